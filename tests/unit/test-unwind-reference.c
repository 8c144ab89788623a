/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of real libraries against libdw: at many addresses one step is taken from made-up
 * registers over a made-up memory, by our rule and by libdw's expressions. Both must find the same
 * CFA, return address, frame pointer and, where it is no link register, second register.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/elf_path.h"
#include "arch/arch.h"
#include ARCH_HEADER(files)
#include "base/file.h"
#include "table_rules.h"

#define ADDRESSES      6000
#define OPERATIONS_MAX 16
/* Ours may say nothing where libdw says something this seldom: rules that the table has no words
 * for. */
#define SILENT_MAX_PERMILLE 3
/* Of what is told from instructions, this may be wrong. */
#define WRONG_MAX_PERMILLE 5

static const char *const system_paths[] = {
#if defined(__x86_64__)
	"/proc/self/exe", "/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/bin/python3", "/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib64/libc.so.6",
	"/usr/lib64/libcrypto.so.3", "/usr/lib64/libstdc++.so.6"
#else /* of the cross compiler, or of the machine */
	"/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libm.so.6",
	"/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1", "/usr/lib/aarch64-linux-gnu/libc.so.6",
	"/usr/lib/aarch64-linux-gnu/libm.so.6", "/lib/ld-linux-aarch64.so.1"
#endif
};

struct registers {
	uint64_t values[ARCH_REGISTERS + 1];
	uint64_t pc;
};

/* What libdw's description gives for a register. */
struct value {
	uint64_t number, at;
	bool is_undefined;
	bool is_saved; /* it was read from memory, `at` */
};

struct evaluation {
	const struct registers *registers;
	uint64_t cfa, stack[OPERATIONS_MAX + 1];
	size_t depth;
	bool is_value; /* not the address where the value lies */
};

static void push(struct evaluation *evaluation, uint64_t number)
{
	assert_in_range(evaluation->depth, 0, OPERATIONS_MAX);
	evaluation->stack[evaluation->depth++] = number;
}

static uint64_t pop(struct evaluation *evaluation)
{
	assert_true(evaluation->depth > 0);
	return evaluation->stack[--evaluation->depth];
}

static uint64_t memory_at(uint64_t address)
{
	__u64 word;

	made_up_word(address, &word);
	return word;
}

static void run_binary(struct evaluation *evaluation, const Dwarf_Op *operation)
{
	uint64_t right = pop(evaluation), left = pop(evaluation);

	switch (operation->atom) {
	case DW_OP_plus:
		push(evaluation, left + right);
		break;
	case DW_OP_and:
		push(evaluation, left & right);
		break;
	case DW_OP_shl:
		push(evaluation, left << right);
		break;
	case DW_OP_ge:
		push(evaluation, (int64_t)left >= (int64_t)right);
		break;
	default:
		fail_msg(
			"libdw uses operation %#x, which this test does not know", operation->atom);
	}
}

static void run_operation(struct evaluation *evaluation, const Dwarf_Op *operation)
{
	uint8_t atom = operation->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		push(evaluation,
			evaluation->registers->values[atom - DW_OP_breg0] + operation->number);
	else if (atom == DW_OP_bregx &&
		 operation->number < ARRAY_SIZE(((struct registers *)0)->values))
		push(evaluation,
			evaluation->registers->values[operation->number] + operation->number2);
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		push(evaluation, evaluation->registers->values[atom - DW_OP_reg0]);
	else if (atom == DW_OP_regx &&
		 operation->number < ARRAY_SIZE(((struct registers *)0)->values))
		push(evaluation, evaluation->registers->values[operation->number]);
	else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		push(evaluation, atom - DW_OP_lit0);
	else if (atom == DW_OP_call_frame_cfa)
		push(evaluation, evaluation->cfa);
	else if (atom == DW_OP_plus_uconst)
		push(evaluation, pop(evaluation) + operation->number);
	else if (atom == DW_OP_deref)
		push(evaluation, memory_at(pop(evaluation)));
	else if (atom != DW_OP_stack_value)
		run_binary(evaluation, operation);
	evaluation->is_value |= atom == DW_OP_stack_value || atom == DW_OP_regx ||
				(atom >= DW_OP_reg0 && atom <= DW_OP_reg31);
}

static struct evaluation run_operations(
	const Dwarf_Op *operations, size_t count, const struct registers *registers, uint64_t cfa)
{
	struct evaluation evaluation = {.registers = registers, .cfa = cfa};

	for (size_t i = 0; i < count; i++)
		run_operation(&evaluation, &operations[i]);
	/* Rules of registers start with the CFA on the stack: the result is what lies on top. */
	evaluation.stack[0] = pop(&evaluation);
	return evaluation;
}

static uint64_t reference_cfa(Dwarf_Frame *frame, const struct registers *registers)
{
	Dwarf_Op *operations;
	size_t count;

	assert_int_equal(dwarf_frame_cfa(frame, &operations, &count), 0);
	return count ? run_operations(operations, count, registers, 0).stack[0] : 0;
}

static struct value reference_register(
	Dwarf_Frame *frame, int reg, const struct registers *registers, uint64_t cfa)
{
	Dwarf_Op memory[3], *operations;
	struct evaluation evaluation;
	size_t count;

	assert_int_equal(dwarf_frame_register(frame, reg, memory, &operations, &count), 0);
	if (count == 0)
		return (struct value){
			.number = registers->values[reg], .is_undefined = operations == memory};
	evaluation = run_operations(operations, count, registers, cfa);
	if (evaluation.is_value)
		return (struct value){.number = evaluation.stack[0]};
	return (struct value){.number = memory_at(evaluation.stack[0]),
		.at = evaluation.stack[0],
		.is_saved = true};
}

/* Some functions are called with it in another register. */
static struct value reference_return_address(
	Dwarf_Frame *frame, const struct registers *registers, uint64_t cfa)
{
	return reference_register(frame, dwarf_frame_info(frame, NULL, NULL, NULL), registers, cfa);
}

static struct registers made_up_registers(uint64_t seed)
{
	struct registers registers;

	/* Every other register lies above the stack pointer: whichever tells the CFA, it is that of
	 * a caller. */
	for (size_t i = 0; i < ARRAY_SIZE(registers.values); i++)
		registers.values[i] = 1ULL << 46 | hash_u64(seed + i * 0x9e3779b97f4a7c15ULL) >> 20;
	registers.values[ARCH_DWARF_SP] &= 0xfffffff8;
	registers.pc = seed;
	if (!ARCH_HAS_LINK_REGISTER)
		registers.values[ARCH_DWARF_RETURN_ADDRESS] = seed;
	return registers;
}

static struct unwind_state first_state(const struct registers *registers)
{
	struct unwind_state unwinding = {.pc = registers->pc,
		.sp = registers->values[ARCH_DWARF_SP],
		.fp = {.value = registers->values[ARCH_DWARF_FP]},
		.second = {.value = registers->values[ARCH_DWARF_SECOND]},
		.exact_pc = 1,
		.is_leaf = 1};

	memcpy(unwinding.leaf, registers->values, sizeof(unwinding.leaf));
	return unwinding;
}

struct tally {
	unsigned same, different, ends, signals, silent, nowhere;
};

/*
 * Compilers go on saying where a register was saved when the function has read it back already:
 * then what the instructions tell, that it is the caller's again, is as good.
 */
static bool saved_agrees(
	struct unwind_saved_register saved, struct value expected, bool is_inferred)
{
	if (saved.lost || expected.is_undefined ||
		(is_inferred && expected.is_saved && !saved.saved_at))
		return true;
	return unwind_register_value(NULL, &saved) == UNWIND_CONTINUE &&
	       saved.value == expected.number;
}

/* What glibc's description of its resolver leaves out of the CFA. */
static uint64_t left_out(struct value return_address, uint64_t cfa)
{
	bool is_above =
		return_address.is_saved && return_address.at == cfa + ARCH_RESOLVER_LEAVES_OUT - 8;

	return is_above ? ARCH_RESOLVER_LEAVES_OUT : 0;
}

/* NULL when the step by our rule leads where libdw's description does, else what differs. */
static const char *compare_step(const struct unwind_rule *rule, Dwarf_Frame *frame,
	const struct registers *registers, bool is_inferred)
{
	struct unwind_state unwinding = first_state(registers);
	uint64_t cfa = reference_cfa(frame, registers);
	struct value return_address = reference_return_address(frame, registers, cfa);

	if (unwind_step(NULL, &unwinding, rule) != UNWIND_CONTINUE)
		return "the step stops";
	if (unwinding.sp != cfa + left_out(return_address, cfa))
		return "the CFA differs";
	/* Read back, as in saved_agrees(). */
	if (is_inferred && rule->ra == UNWIND_RA_SECOND && return_address.is_saved)
		return NULL;
	if (unwinding.pc != arch_code_address(return_address.number))
		return "the return address differs";
	if (!saved_agrees(unwinding.fp, reference_register(frame, ARCH_DWARF_FP, registers, cfa),
		    is_inferred))
		return "the frame pointer differs";
	if (!ARCH_HAS_LINK_REGISTER &&
		!saved_agrees(unwinding.second,
			reference_register(frame, ARCH_DWARF_SECOND, registers, cfa), is_inferred))
		return "the second register differs";
	return NULL;
}

static bool is_end(Dwarf_Frame *frame, const struct registers *registers)
{
	return reference_return_address(frame, registers, 0).is_undefined;
}

/*
 * Frames whose size does not change have the same CFA by the stack pointer and by the frame
 * pointer. aarch64's compilers take the latter and inference the former: made-up registers cannot
 * tell that this is the same place.
 */
static bool is_by_other_register(const struct unwind_rule *rule, Dwarf_Frame *frame)
{
	uint32_t ours = rule->cfa == UNWIND_CFA_SP ? ARCH_DWARF_SP : ARCH_DWARF_FP;
	Dwarf_Op *operations;
	size_t count;

	if (!ARCH_HAS_LINK_REGISTER || (rule->cfa != UNWIND_CFA_SP && rule->cfa != UNWIND_CFA_FP) ||
		dwarf_frame_cfa(frame, &operations, &count) != 0 || !count)
		return false;
	return operations[0].atom == DW_OP_bregx ? operations[0].number != ours
						 : operations[0].atom != DW_OP_breg0 + ours;
}

static void compare_rule(const struct unwind_rule *rule, Dwarf_Frame *frame, uint64_t vaddr,
	bool is_inferred, struct tally *tally)
{
	struct registers registers = made_up_registers(vaddr);
	const char *difference;

	if (is_end(frame, &registers)) {
		tally->ends++;
		return;
	}
	if (rule->cfa == UNWIND_CFA_NONE || (is_inferred && is_by_other_register(rule, frame))) {
		tally->silent++;
		return;
	}
	difference = compare_step(rule, frame, &registers, is_inferred);
	if (!difference) {
		tally->same++;
		return;
	}
	tally->different++;
	print_message("%#lx: %s (CFA kind %u)\n", (unsigned long)vaddr, difference, rule->cfa);
}

/*
 * Without call frame information, frame pointers are the guess for what is not known. A stack
 * pointer saved in memory may be found through either of two registers: made-up ones cannot
 * tell that this is the same place.
 */
static bool is_comparable(const struct unwind_rule *rule)
{
	return rule->cfa != UNWIND_CFA_FRAME_POINTER && rule->cfa != UNWIND_CFA_SP_DEREF;
}

static void compare_address(const struct unwind_table *table, Dwarf_CFI *cfi, bool is_inferred,
	uint64_t vaddr, struct tally *tally)
{
	struct unwind_rule rule = table_rule(table, vaddr);
	Dwarf_Frame *frame = NULL;
	bool is_signal = false;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame) != 0) {
		tally->nowhere++;
		return;
	}
	dwarf_frame_info(frame, NULL, NULL, &is_signal);
	if (is_signal && rule.cfa == UNWIND_CFA_SIGNAL)
		tally->signals++;
	else if (is_inferred && !is_comparable(&rule))
		tally->silent++;
	else
		compare_rule(&rule, frame, vaddr, is_inferred, tally);
	free(frame);
}

static const struct elf_segment *code_segment(const struct elf_file *file)
{
	for (size_t i = 0; i < elf_file_segment_count(file); i++)
		if (elf_file_segment(file, i)->executable)
			return elf_file_segment(file, i);
	fail_msg("no executable segment");
	return NULL;
}

/* Compares the table, made of the file or of a copy, with the file's own call frame information. */
static struct tally compare_table(const char *path, struct elf_file *file,
	struct elf_file *table_file, struct unwind_build_stats *ret_stats)
{
	const struct elf_segment *code = code_segment(file);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	struct unwind_table table;
	struct tally tally = {0};
	struct errmsg err;

	assert_non_null(cfi);
	assert_int_equal(unwind_table_build(&table, table_file, ret_stats, &err), 0);
	for (uint64_t i = 0; i < ADDRESSES; i++)
		compare_address(&table, cfi, table_file != file,
			code->vaddr + hash_u64(i) % code->memory_size, &tally);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	unwind_table_done(&table);
	return tally;
}

static void print_tally(const char *path, const char *how, const struct tally *tally)
{
	print_message("%s %s: %u same, %u different, %u ends, %u signal frames, %u silent, %u "
		      "without FDE\n",
		path, how, tally->same, tally->different, tally->ends, tally->signals,
		tally->silent, tally->nowhere);
}

static void compare_file(const char *path)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	struct unwind_build_stats stats;
	struct tally tally;
	struct errmsg err;

	assert_int_equal(open_elf(&file, path, path, &err), 0);
	tally = compare_table(path, file, file, &stats);
	print_tally(path, "by CFI", &tally);
	assert_int_equal(stats.corrupt_fdes, 0);
	assert_int_equal(tally.different, 0);
	assert_true(tally.same > ADDRESSES / 2);
	assert_true(tally.silent * 1000 <= ADDRESSES * SILENT_MAX_PERMILLE);
}

/* Makes a copy of the file in which nobody finds call frame information. */
static struct elf_file *open_without_cfi(const char *path, struct strbuf *bytes)
{
	static const char name[] = ".eh_frame";
	struct elf_file *file;
	struct errmsg err;
	Elf64_Ehdr header;

	assert_int_equal(read_whole_file(path, (size_t)1 << 30, bytes), 0);
	memcpy(&header, bytes->data, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(bytes->data + header.e_phoff) + i;

		if (segment->p_type == PT_GNU_EH_FRAME)
			segment->p_type = PT_NULL;
	}
	for (char *at = bytes->data;
		(at = memmem(at, (size_t)(bytes->data + bytes->length - at), name, sizeof(name)));)
		at[1] = 'x';
	assert_int_equal(elf_file_open_memory(&file, bytes->data, bytes->length, path, &err), 0);
	return file;
}

/* What the instructions alone tell of a file must agree with what its compiler wrote down. */
static void compare_inferred(const char *path)
{
	_cleanup_elf_file_ struct elf_file *file = NULL, *bare = NULL;
	_cleanup_strbuf_ struct strbuf bytes = {0};
	struct unwind_build_stats stats;
	struct tally tally;
	struct errmsg err;

	assert_int_equal(open_elf(&file, path, path, &err), 0);
	bare = open_without_cfi(path, &bytes);
	tally = compare_table(path, file, bare, &stats);
	print_tally(path, "by instructions", &tally);
	print_message("%lu functions believed, %lu refused\n",
		(unsigned long)stats.inferred_functions, (unsigned long)stats.refused_functions);
	assert_int_equal(stats.fde_count, 0);
	assert_true(tally.different * 1000 <= ADDRESSES * WRONG_MAX_PERMILLE);
	assert_true(tally.same > ADDRESSES / 10);
}

static void test_system_libraries(void **state)
{
	unsigned compared = 0;

	for (size_t i = 0; i < ARRAY_SIZE(system_paths); i++) {
		if (access(system_paths[i], R_OK) < 0)
			continue;
		compare_file(system_paths[i]);
		compare_inferred(system_paths[i]);
		compared++;
	}
	assert_true(compared >= 3);
}

static char **given_paths;

/* By hand: `test-unwind-reference FILE...` compares any other files. */
static void test_given_files(void **state)
{
	for (char **path = given_paths; *path; path++) {
		compare_file(*path);
		compare_inferred(*path);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest system[] = {cmocka_unit_test(test_system_libraries)};
	const struct CMUnitTest given[] = {cmocka_unit_test(test_given_files)};

	given_paths = argv + 1;
	return argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
			: cmocka_run_group_tests(system, NULL, NULL);
}
