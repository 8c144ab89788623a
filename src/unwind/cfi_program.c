/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that call frame programs run on (DWARF 5 section 6.4.2), reduced to four registers.
 */
#include <dwarf.h>
#include <errno.h>

#include "arch/arch.h"
#include "unwind/cfi.h"
#include "unwind/expression.h"

/* Return addresses are signed from here on, or no longer: they are read without the signature. */
#define CFA_AARCH64_NEGATE_RA_STATE         0x2d /* DW_CFA_GNU_window_save, too */
#define CFA_AARCH64_NEGATE_RA_STATE_WITH_PC 0x2c

/* Compilers nest remember_state once or twice. */
#define MAX_REMEMBERED 16

struct machine {
	const struct cfi_cie *cie;
	const struct cfi_registers *initial; /* NULL while the CIE's own program runs */
	const struct cfi_section *section;
	struct cursor program;
	struct cfi_registers now, remembered[MAX_REMEMBERED];
	size_t remembered_count;
	struct cfi_saved ignored; /* stands for every register that is not followed */
	uint64_t location, end;
	bool changed;             /* `now` was not yet added for `location` */
	struct unwind_rows *rows; /* NULL while the CIE's own program runs */
	uint64_t *unsupported_rows;
};

static struct cfi_saved *saved_of(
	struct cfi_registers *registers, uint64_t reg, struct cfi_saved *other)
{
	switch (reg) {
	case ARCH_DWARF_FP:
		return &registers->fp;
	case ARCH_DWARF_SP:
		return &registers->sp;
	case ARCH_DWARF_RETURN_ADDRESS:
		return &registers->ra;
	default:
		/* The return address's own column where there is a link register. */
		return reg == ARCH_DWARF_SECOND ? &registers->second : other;
	}
}

static void set_saved(struct machine *machine, uint64_t reg, enum cfi_saved_kind kind, uint32_t in,
	int64_t offset)
{
	struct cfi_saved *saved = saved_of(&machine->now, reg, &machine->ignored);

	*saved = (struct cfi_saved){.kind = kind, .reg = in, .offset = offset};
	machine->changed |= saved != &machine->ignored;
}

static void set_cfa(struct machine *machine, struct cfi_cfa cfa)
{
	machine->now.cfa = cfa;
	machine->changed = true;
}

/* Register numbers that are nobody's are cut to one that is nobody's too. */
static uint32_t read_register(struct machine *machine)
{
	uint64_t reg = cursor_uleb(&machine->program);

	return reg < UINT32_MAX ? (uint32_t)reg : UINT32_MAX;
}

/* Wraps around instead of overflowing: such an offset is not expressible anyway. */
static int64_t scale(const struct machine *machine, uint64_t factor)
{
	return (int64_t)(factor * (uint64_t)machine->cie->data_alignment);
}

static void restore(struct machine *machine, uint64_t reg)
{
	struct cfi_registers initial =
		machine->initial ? *machine->initial : (struct cfi_registers){0};
	struct cfi_saved unspecified = {0}, *from = saved_of(&initial, reg, &unspecified);

	set_saved(machine, reg, from->kind, from->reg, from->offset);
}

/* Adds a row for what changed since the latest one. */
static int flush(struct machine *machine)
{
	struct unwind_rule rule;

	if (!machine->changed || !machine->rows)
		return 0;
	machine->changed = false;
	if (!cfi_to_rule(&machine->now, &rule))
		++*machine->unsupported_rows;
	return unwind_rows_add(machine->rows, machine->location, &rule);
}

static int move_to(struct machine *machine, uint64_t location)
{
	int result = flush(machine);

	if (location < machine->location)
		return -EINVAL;
	machine->location = location;
	return result;
}

static int advance(struct machine *machine, uint64_t units)
{
	uint64_t bytes, location;

	if (__builtin_mul_overflow(units, machine->cie->code_alignment, &bytes) ||
		__builtin_add_overflow(machine->location, bytes, &location))
		return -EINVAL;
	return move_to(machine, location);
}

static int set_location(struct machine *machine)
{
	uint64_t location;

	if (cfi_read_pointer(&machine->program, machine->section, machine->cie->pointer_encoding,
		    &location) < 0)
		return -EINVAL;
	return move_to(machine, location);
}

static int remember_state(struct machine *machine)
{
	if (machine->remembered_count == MAX_REMEMBERED)
		return -EINVAL;
	machine->remembered[machine->remembered_count++] = machine->now;
	return 0;
}

static int restore_state(struct machine *machine)
{
	if (machine->remembered_count == 0)
		return -EINVAL;
	machine->now = machine->remembered[--machine->remembered_count];
	machine->changed = true;
	return 0;
}

static struct cursor read_expression(struct machine *machine)
{
	uint64_t length = cursor_uleb(&machine->program);

	return cursor_split(&machine->program, length);
}

/* The operations that say where the CFA is. Returns 0, or -EINVAL when `operation` is none of them.
 */
static int run_cfa_operation(struct machine *machine, uint8_t operation)
{
	struct cursor *program = &machine->program;
	struct cfi_cfa cfa = machine->now.cfa;

	switch (operation) {
	case DW_CFA_def_cfa:
		cfa = (struct cfi_cfa){CFI_CFA_REGISTER, .reg = read_register(machine)};
		cfa.offset = (int64_t)cursor_uleb(program);
		break;
	case DW_CFA_def_cfa_sf:
		cfa = (struct cfi_cfa){CFI_CFA_REGISTER, .reg = read_register(machine)};
		cfa.offset = scale(machine, (uint64_t)cursor_sleb(program));
		break;
	case DW_CFA_def_cfa_register:
		cfa.reg = read_register(machine);
		break;
	case DW_CFA_def_cfa_offset:
		cfa.offset = (int64_t)cursor_uleb(program);
		break;
	case DW_CFA_def_cfa_offset_sf:
		cfa.offset = scale(machine, (uint64_t)cursor_sleb(program));
		break;
	case DW_CFA_def_cfa_expression:
		cfa = cfi_cfa_of_expression(read_expression(machine));
		break;
	default:
		return -EINVAL;
	}
	/* Half a definition is only good upon a whole one. */
	if (cfa.kind == CFI_CFA_UNDEFINED ||
		(cfa.kind != CFI_CFA_REGISTER && operation != DW_CFA_def_cfa_expression))
		cfa.kind = CFI_CFA_UNSUPPORTED;
	set_cfa(machine, cfa);
	return 0;
}

/* The operations that say where a register was saved. Returns 0, or -EINVAL when `operation` is
 * none of them. */
static int run_register_operation(struct machine *machine, uint8_t operation, uint64_t reg)
{
	struct cursor *program = &machine->program;
	struct cfi_saved saved;

	switch (operation) {
	case DW_CFA_offset_extended:
		set_saved(machine, reg, CFI_SAVED_AT_CFA, 0, scale(machine, cursor_uleb(program)));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_saved(machine, reg, CFI_SAVED_AT_CFA, 0,
			scale(machine, (uint64_t)cursor_sleb(program)));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_saved(machine, reg, CFI_SAVED_AT_CFA, 0, scale(machine, -cursor_uleb(program)));
		return 0;
	case DW_CFA_restore_extended:
		restore(machine, reg);
		return 0;
	case DW_CFA_undefined:
		set_saved(machine, reg, CFI_SAVED_UNDEFINED, 0, 0);
		return 0;
	case DW_CFA_same_value:
		set_saved(machine, reg, CFI_SAVED_SAME, 0, 0);
		return 0;
	case DW_CFA_register:
		set_saved(machine, reg, CFI_SAVED_IN_REGISTER, read_register(machine), 0);
		return 0;
	case DW_CFA_expression:
		saved = cfi_saved_of_expression(read_expression(machine));
		set_saved(machine, reg, saved.kind, saved.reg, saved.offset);
		return 0;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		/* The caller's stack pointer *is* the CFA: saying so changes nothing. */
		set_saved(machine, reg,
			cursor_uleb(program) == 0 && reg == ARCH_DWARF_SP ? CFI_SAVED_UNSPECIFIED
									  : CFI_SAVED_UNSUPPORTED,
			0, 0);
		return 0;
	case DW_CFA_val_expression:
		read_expression(machine);
		set_saved(machine, reg, CFI_SAVED_UNSUPPORTED, 0, 0);
		return 0;
	default:
		return -EINVAL;
	}
}

static int run_extended_operation(struct machine *machine, uint8_t operation)
{
	struct cursor *program = &machine->program;

	switch (operation) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_location(machine);
	case DW_CFA_advance_loc1:
		return advance(machine, cursor_u8(program));
	case DW_CFA_advance_loc2:
		return advance(machine, cursor_unsigned(program, 2));
	case DW_CFA_advance_loc4:
		return advance(machine, cursor_unsigned(program, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(machine, cursor_unsigned(program, 8));
	case DW_CFA_remember_state:
		return remember_state(machine);
	case DW_CFA_restore_state:
		return restore_state(machine);
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return ARCH_HAS_LINK_REGISTER ? 0 : -EINVAL;
	case DW_CFA_GNU_args_size:
		cursor_uleb(program);
		return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return run_cfa_operation(machine, operation);
	default:
		return run_register_operation(machine, operation, read_register(machine));
	}
}

static int run_operation(struct machine *machine)
{
	uint8_t operation = cursor_u8(&machine->program), operand = operation & 0x3f;

	switch (operation & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(machine, operand);
	case DW_CFA_offset:
		set_saved(machine, operand, CFI_SAVED_AT_CFA, 0,
			scale(machine, cursor_uleb(&machine->program)));
		return 0;
	case DW_CFA_restore:
		restore(machine, operand);
		return 0;
	default:
		return run_extended_operation(machine, operation);
	}
}

/* Runs to the program's end, or until the location leaves the range. */
static int run(struct machine *machine)
{
	int result = 0;

	while (result == 0 && cursor_left(&machine->program) && machine->location < machine->end) {
		result = run_operation(machine);
		if (machine->program.failed)
			result = -EINVAL;
	}
	if (result == 0 && machine->location < machine->end)
		result = flush(machine);
	return result;
}

int cfi_run_initial(const struct cfi_cie *cie, struct cursor program,
	const struct cfi_section *section, struct cfi_registers *ret_initial)
{
	struct machine machine = {.cie = cie, .section = section, .program = program, .end = 1};
	int result = run(&machine);

	if (result < 0 || machine.location)
		return -EINVAL;
	*ret_initial = machine.now;
	return 0;
}

int cfi_add_rows(const struct cfi_entry *entry, const struct cfi_section *section, uint64_t end,
	struct unwind_rows *rows, uint64_t *unsupported_rows)
{
	struct machine machine;

	if (entry->cie->is_signal_frame)
		return unwind_rows_add(
			rows, entry->begin, &(struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL});
	/* Not all of it is zeroed: the remembered states are many bytes, and most FDEs use none. */
	machine.cie = entry->cie;
	machine.initial = &entry->cie->initial;
	machine.section = section;
	machine.program = entry->program;
	machine.now = entry->cie->initial;
	machine.remembered_count = 0;
	machine.location = entry->begin;
	machine.end = end;
	machine.changed = true;
	machine.rows = rows;
	machine.unsupported_rows = unsupported_rows;
	return run(&machine);
}
