/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/infer.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "unwind/frame_state.h"

/* A function is cut there; no compiler and no person wrote a longer one. */
#define MAX_INSTRUCTIONS ((size_t)1 << 20)
/* Facts are only ever taken away, so a loop nest settles in a few rounds. */
#define MAX_ROUNDS         16
#define FUNCTION_ALIGNMENT 16
/* Without symbols, branches further ahead are taken to lead to other functions. */
#define MAX_FUNCTION_BYTES ((uint64_t)1 << 18)

struct instruction {
	struct x86_instruction x86;
	uint32_t offset; /* from the function's start */
	uint32_t join; /* index + 1 of the state where branches meet; 0: reached from above only */
};

struct inferrer {
	struct elf_file *file;
	ARRAY_OF(uint64_t) starts; /* of functions, by their symbols, ascending */
	uint64_t believed, refused;

	/* The function at hand; memory is kept from one to the next. */
	uint64_t begin, end;
	bool has_symbol; /* it starts at one, or ends before one */
	const struct unwind_rule *unknown;
	ARRAY_OF(struct instruction) instructions;
	ARRAY_OF(struct frame_state) joins;
	ARRAY_OF(uint32_t) index_at; /* by offset: index + 1 of the instruction that starts there */
};

struct sweep {
	struct inferrer *inferrer;
	struct frame_state state;
	bool is_reached;  /* `state` holds */
	bool changed;     /* another round is needed */
	bool has_proof;   /* the stack was found balanced at an exit */
	bool callees_pop; /* called functions may take their arguments off the stack */
	bool guesses;     /* code that nothing is seen to reach gets a state too */
	struct frame_state at_table_jump; /* the latest indirect jump's */
	bool has_table_jump;
	struct unwind_rows *rows; /* NULL: only follow */
};

static int compare_starts(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static int read_symbols(struct inferrer *inferrer, const char *section)
{
	struct elf_bytes bytes;

	if (!elf_file_section(inferrer->file, section, &bytes))
		return 0;
	for (size_t at = 0; bytes.length - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, bytes.bytes + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
			continue;
		if (array_append(&inferrer->starts, symbol.st_value) < 0)
			return -ENOMEM;
	}
	return 0;
}

int inferrer_new(struct inferrer **ret_inferrer, struct elf_file *file)
{
	struct inferrer *inferrer = calloc(1, sizeof(*inferrer));

	if (!inferrer)
		return -ENOMEM;
	inferrer->file = file;
	if (read_symbols(inferrer, ".symtab") < 0 || read_symbols(inferrer, ".dynsym") < 0) {
		inferrer_free(inferrer);
		return -ENOMEM;
	}
	if (inferrer->starts.count)
		qsort(inferrer->starts.items, inferrer->starts.count, sizeof(uint64_t),
			compare_starts);
	*ret_inferrer = inferrer;
	return 0;
}

struct inferrer *inferrer_free(struct inferrer *inferrer)
{
	if (!inferrer)
		return NULL;
	array_done(&inferrer->starts);
	array_done(&inferrer->instructions);
	array_done(&inferrer->joins);
	array_done(&inferrer->index_at);
	free(inferrer);
	return NULL;
}

uint64_t inferrer_believed(const struct inferrer *inferrer)
{
	return inferrer->believed;
}

uint64_t inferrer_refused(const struct inferrer *inferrer)
{
	return inferrer->refused;
}

/* The first function symbol above `vaddr`; `end` when there is none before. */
static uint64_t next_start(const struct inferrer *inferrer, uint64_t vaddr, uint64_t end)
{
	size_t low = 0, high = inferrer->starts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (inferrer->starts.items[middle] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < inferrer->starts.count ? MIN(end, inferrer->starts.items[low]) : end;
}

static bool has_start_at(const struct inferrer *inferrer, uint64_t vaddr)
{
	return next_start(inferrer, vaddr - 1, vaddr + 1) == vaddr;
}

static bool ends_flow(const struct x86_instruction *instruction)
{
	return instruction->effect == X86_JUMP || instruction->effect == X86_JUMP_INDIRECT ||
	       instruction->effect == X86_RETURN || instruction->effect == X86_TRAP;
}

static int note_instruction(
	struct inferrer *inferrer, const struct x86_instruction *x86, uint64_t at)
{
	uint32_t offset = (uint32_t)(at - inferrer->begin);
	struct instruction instruction = {.x86 = *x86, .offset = offset};

	if (array_append(&inferrer->instructions, instruction) < 0 ||
		array_reserve(&inferrer->index_at, x86->length) < 0)
		return -ENOMEM;
	memset(&inferrer->index_at.items[offset], 0, x86->length * sizeof(uint32_t));
	inferrer->index_at.items[offset] = (uint32_t)inferrer->instructions.count;
	inferrer->index_at.count = offset + x86->length;
	return 0;
}

/*
 * Decodes the function at `begin`, up to the instruction after which nothing goes on: no
 * fall-through, and no branch seen so far leads further. It ends at `limit` at the latest. With
 * symbols around it even far branches stay inside. Sets inferrer->end.
 */
static int read_function(
	struct inferrer *inferrer, const uint8_t *code, uint64_t begin, uint64_t limit)
{
	uint64_t at = begin, furthest = begin;
	uint64_t reach = inferrer->has_symbol ? limit : MIN(limit, begin + MAX_FUNCTION_BYTES);
	struct x86_instruction x86;

	inferrer->begin = begin;
	array_clear(&inferrer->instructions);
	array_clear(&inferrer->index_at);
	array_clear(&inferrer->joins);
	while (at < limit && inferrer->instructions.count < MAX_INSTRUCTIONS &&
		x86_decode(code + (at - begin), limit - at, at, &x86)) {
		if (note_instruction(inferrer, &x86, at) < 0)
			return -ENOMEM;
		at += x86.length;
		if ((x86.effect == X86_JUMP || x86.effect == X86_JUMP_IF) &&
			(uint64_t)x86.value < reach)
			furthest = MAX(furthest, (uint64_t)x86.value);
		if (ends_flow(&x86) && at > furthest)
			break;
	}
	inferrer->end = at;
	return 0;
}

/* The instruction at `vaddr`; NULL when that is outside of the function or inside an instruction.
 */
static struct instruction *instruction_at(struct inferrer *inferrer, uint64_t vaddr)
{
	uint32_t index;

	if (vaddr < inferrer->begin || vaddr - inferrer->begin >= inferrer->index_at.count)
		return NULL;
	index = inferrer->index_at.items[vaddr - inferrer->begin];
	return index ? &inferrer->instructions.items[index - 1] : NULL;
}

/* Brings `state` to the instruction. Returns 0, -ENOMEM, or -EINVAL for a contradiction. */
static int join(
	struct sweep *sweep, struct instruction *instruction, const struct frame_state *state)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result;

	if (!instruction->join) {
		if (array_append(&inferrer->joins, *state) < 0)
			return -ENOMEM;
		instruction->join = (uint32_t)inferrer->joins.count;
		sweep->changed = true;
		return 0;
	}
	result = frame_state_merge(&inferrer->joins.items[instruction->join - 1], state);
	sweep->changed |= result > 0;
	return result < 0 ? result : 0;
}

/* True when a function is known to start there, or may by its alignment. */
static bool may_be_start(const struct inferrer *inferrer, uint64_t vaddr)
{
	return vaddr % FUNCTION_ALIGNMENT == 0 || has_start_at(inferrer, vaddr);
}

/*
 * A branch out of the function must be a call in tail position, of another function and with
 * nothing on the stack: else this is a piece that was moved out of a function, and begins in the
 * middle of its frame.
 */
static int branch(struct sweep *sweep, uint64_t target)
{
	struct inferrer *inferrer = sweep->inferrer;
	struct instruction *instruction = instruction_at(inferrer, target);

	if (instruction)
		return join(sweep, instruction, &sweep->state);
	if (target >= inferrer->begin && target < inferrer->end)
		return -EINVAL; /* into the middle of an instruction */
	return frame_state_cannot_return(&sweep->state) || !may_be_start(inferrer, target) ? -EINVAL
											   : 0;
}

/*
 * Nothing was seen to reach this instruction: it is a case of the latest jump through a table, or,
 * when aligned as functions are, the start of a function that has no symbol. The function at hand
 * is cut there.
 */
static int guess(struct sweep *sweep, struct instruction *instruction)
{
	uint64_t vaddr = sweep->inferrer->begin + instruction->offset;

	if (!sweep->guesses || instruction->x86.effect == X86_PADDING)
		return 0;
	if (sweep->has_table_jump)
		return join(sweep, instruction, &sweep->at_table_jump);
	return vaddr % FUNCTION_ALIGNMENT == 0 && !sweep->inferrer->has_symbol ? -ERANGE : 0;
}

static int add_row(struct sweep *sweep, const struct instruction *instruction)
{
	struct inferrer *inferrer = sweep->inferrer;
	uint64_t vaddr = inferrer->begin + instruction->offset;
	struct unwind_rule rule = *inferrer->unknown;

	if (!sweep->is_reached && instruction->x86.effect == X86_PADDING)
		return 0;
	if (sweep->is_reached && !frame_state_to_rule(&sweep->state, &rule))
		rule = *inferrer->unknown;
	return unwind_rows_add(sweep->rows, vaddr, &rule);
}

/* What follows the instruction: branches, and whether the next one is reached. */
static int leave_instruction(struct sweep *sweep, const struct x86_instruction *x86)
{
	switch (x86->effect) {
	case X86_JUMP:
	case X86_JUMP_IF:
		sweep->is_reached = x86->effect == X86_JUMP_IF;
		return branch(sweep, (uint64_t)x86->value);
	case X86_JUMP_INDIRECT:
		sweep->at_table_jump = sweep->state;
		/* With an empty stack it is a call in tail position as a rule. */
		sweep->has_table_jump = frame_state_cannot_return(&sweep->state);
		sweep->is_reached = false;
		return 0;
	case X86_RETURN:
		sweep->is_reached = false;
		sweep->has_proof |= frame_state_can_return(&sweep->state);
		return frame_state_cannot_return(&sweep->state) ? -EINVAL : 0;
	case X86_POP:
	case X86_LEAVE:
		/* The caller's rbp is back, and the return address is next. */
		sweep->has_proof |= x86->reg == X86_RBP && frame_state_can_return(&sweep->state);
		return 0;
	case X86_TRAP:
		sweep->is_reached = false;
		return 0;
	default:
		return 0;
	}
}

static int visit(struct sweep *sweep, struct instruction *instruction)
{
	int result = 0;

	if (instruction->join && sweep->is_reached)
		result = join(sweep, instruction, &sweep->state);
	else if (!sweep->is_reached && !instruction->join)
		result = guess(sweep, instruction);
	if (result < 0)
		return result;
	if (instruction->join) {
		sweep->state = sweep->inferrer->joins.items[instruction->join - 1];
		sweep->is_reached = true;
	}
	if (sweep->rows)
		result = add_row(sweep, instruction);
	if (result < 0 || !sweep->is_reached)
		return result;
	frame_state_apply(&sweep->state, &instruction->x86);
	if (sweep->callees_pop && instruction->x86.effect == X86_CALL)
		frame_state_after_popping_call(&sweep->state);
	return leave_instruction(sweep, &instruction->x86);
}

/* One round over the function, in the order of addresses. */
static int run_sweep(struct sweep *sweep)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result = 0;

	sweep->state = frame_state_at_entry();
	sweep->is_reached = true;
	sweep->has_table_jump = false;
	sweep->changed = sweep->has_proof = false;
	for (size_t i = 0; result == 0 && i < inferrer->instructions.count; i++)
		result = visit(sweep, &inferrer->instructions.items[i]);
	return result;
}

/*
 * Follows the function until nothing changes any more. Returns 0, -ENOMEM, -EINVAL when it makes no
 * sense, or -ERANGE when another function starts in it.
 */
static int settle(struct sweep *sweep)
{
	for (int round = 0; round < MAX_ROUNDS; round++) {
		int result = run_sweep(sweep);

		if (result < 0)
			return result;
		if (!sweep->changed && sweep->guesses)
			return sweep->has_proof ? 0 : -EINVAL;
		sweep->guesses |= !sweep->changed;
	}
	return -EINVAL;
}

static void forget_joins(struct inferrer *inferrer)
{
	array_clear(&inferrer->joins);
	array_foreach (&inferrer->instructions, instruction)
		instruction->join = 0;
}

/* Ends the function before the first aligned instruction that nothing reaches. */
static void cut(struct inferrer *inferrer)
{
	size_t kept = 0;
	bool is_reached = true;

	for (; kept < inferrer->instructions.count; kept++) {
		const struct instruction *instruction = &inferrer->instructions.items[kept];

		is_reached |= instruction->join != 0;
		if (!is_reached && instruction->x86.effect != X86_PADDING &&
			(inferrer->begin + instruction->offset) % FUNCTION_ALIGNMENT == 0)
			break;
		is_reached &= !ends_flow(&instruction->x86);
	}
	inferrer->index_at.count = inferrer->instructions.items[kept].offset;
	inferrer->end = inferrer->begin + inferrer->index_at.count;
	inferrer->instructions.count = kept;
	array_clear(&inferrer->joins);
	array_foreach (&inferrer->instructions, instruction)
		instruction->join = 0;
}

/* True when the last instruction goes on into bytes that are none. */
static bool runs_off(const struct inferrer *inferrer, uint64_t limit)
{
	const struct instruction *last =
		&inferrer->instructions.items[inferrer->instructions.count - 1];

	return inferrer->end < limit && !ends_flow(&last->x86);
}

/* Settles the function, or its first part when another one starts in it. */
static int try_to_settle(struct sweep *sweep, bool callees_pop)
{
	struct inferrer *inferrer = sweep->inferrer;
	int result;

	*sweep = (struct sweep){.inferrer = inferrer, .callees_pop = callees_pop};
	forget_joins(inferrer);
	result = settle(sweep);
	if (result != -ERANGE)
		return result;
	cut(inferrer);
	*sweep = (struct sweep){.inferrer = inferrer, .callees_pop = callees_pop};
	result = settle(sweep);
	return result == -ERANGE ? -EINVAL : result;
}

static int infer_function(struct inferrer *inferrer, struct unwind_rows *rows, uint64_t limit)
{
	struct sweep sweep = {.inferrer = inferrer};
	size_t row_count = rows->packed.count;
	int result = -EINVAL;

	if (!runs_off(inferrer, limit)) {
		result = try_to_settle(&sweep, false);
		if (result == -EINVAL)
			result = try_to_settle(&sweep, true);
	}
	if (result == 0) {
		sweep.rows = rows;
		result = run_sweep(&sweep);
	}
	if (result == 0)
		inferrer->believed++;
	if (result != -EINVAL)
		return result;
	inferrer->refused++;
	rows->packed.count = MIN(row_count, rows->packed.count);
	return unwind_rows_add(rows, inferrer->begin, inferrer->unknown);
}

/* Steps over what linkers and assemblers fill gaps with. */
static uint64_t skip_padding(const uint8_t *code, uint64_t at, uint64_t limit)
{
	struct x86_instruction x86;
	uint64_t begin = at;

	while (at < limit) {
		const uint8_t *here = code + (at - begin);

		if (here[0] == 0)
			at++;
		else if (x86_decode(here, limit - at, at, &x86) && x86.effect == X86_PADDING)
			at += x86.length;
		else
			break;
	}
	return at;
}

int inferrer_add_rows(struct inferrer *inferrer, struct unwind_rows *rows, uint64_t begin,
	uint64_t end, const struct unwind_rule *unknown)
{
	struct elf_bytes code;
	uint64_t at = begin;

	inferrer->unknown = unknown;
	if (!elf_file_loaded_bytes(inferrer->file, begin, &code))
		return 0;
	end = MIN(end, begin + code.length);
	while (at < end) {
		uint64_t limit;

		at = skip_padding(code.bytes + (at - begin), at, end);
		limit = next_start(inferrer, at, end);
		if (at == end)
			break;
		inferrer->has_symbol = limit < end || has_start_at(inferrer, at);
		if (read_function(inferrer, code.bytes + (at - begin), at, limit) < 0)
			return -ENOMEM;
		if (inferrer->instructions.count && infer_function(inferrer, rows, limit) < 0)
			return -ENOMEM;
		if (inferrer->end < limit && inferrer->instructions.count == 0) {
			/* No code at all, constants perhaps: go on where a function may start. */
			if (unwind_rows_add(rows, at, unknown) < 0)
				return -ENOMEM;
			inferrer->end = MIN(limit, (at | (FUNCTION_ALIGNMENT - 1)) + 1);
		}
		at = inferrer->end;
	}
	return 0;
}
