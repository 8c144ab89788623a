/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of real libraries against libdw: at many addresses one step is taken from made-up
 * registers over a made-up memory, by our rule and by libdw's expressions. Both must find the same
 * CFA, return address, rbp and rbx.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table_rules.h"

#define ADDRESSES      6000
#define OPERATIONS_MAX 16
/* Ours may say nothing where libdw says something this seldom: rules that the table has no words
 * for. */
#define SILENT_MAX_PERMILLE 3

enum { RBX = 3, RBP = 6, RSP = 7, RETURN_ADDRESS = 16 };

struct registers {
	uint64_t values[17];
};

/* A value that libdw's description gives: or "undefined". */
struct value {
	uint64_t number;
	bool is_undefined;
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

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg16)
		push(evaluation,
			evaluation->registers->values[atom - DW_OP_breg0] + operation->number);
	else if (atom == DW_OP_bregx && operation->number <= RETURN_ADDRESS)
		push(evaluation,
			evaluation->registers->values[operation->number] + operation->number2);
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg16)
		push(evaluation, evaluation->registers->values[atom - DW_OP_reg0]);
	else if (atom == DW_OP_regx && operation->number <= RETURN_ADDRESS)
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
				(atom >= DW_OP_reg0 && atom <= DW_OP_reg16);
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
	return (struct value){
		evaluation.is_value ? evaluation.stack[0] : memory_at(evaluation.stack[0])};
}

static struct registers made_up_registers(uint64_t seed)
{
	struct registers registers;

	/* Every other register lies above rsp: whichever tells the CFA, it is that of a caller. */
	for (size_t i = 0; i < ARRAY_SIZE(registers.values); i++)
		registers.values[i] = 1ULL << 46 | hash_u64(seed + i * 0x9e3779b97f4a7c15ULL) >> 20;
	registers.values[RSP] &= 0xfffffff8;
	registers.values[RETURN_ADDRESS] = seed;
	return registers;
}

static struct unwind_state first_state(const struct registers *registers)
{
	struct unwind_state unwinding = {.pc = registers->values[RETURN_ADDRESS],
		.sp = registers->values[RSP],
		.rbp = {.value = registers->values[RBP]},
		.rbx = {.value = registers->values[RBX]},
		.exact_pc = 1,
		.is_leaf = 1};

	memcpy(unwinding.leaf, registers->values, sizeof(unwinding.leaf));
	return unwinding;
}

struct tally {
	unsigned compared, ends, signals, silent, nowhere;
};

static void compare_saved(
	const char *what, uint64_t vaddr, struct unwind_saved_register saved, struct value expected)
{
	if (saved.lost)
		return;
	assert_int_equal(unwind_register_value(NULL, &saved), UNWIND_CONTINUE);
	if (!expected.is_undefined && saved.value != expected.number)
		fail_msg("%s differs at %#lx: %#llx, libdw %#lx", what, (unsigned long)vaddr,
			(unsigned long long)saved.value, (unsigned long)expected.number);
}

static void compare_step(
	const struct unwind_rule *rule, Dwarf_Frame *frame, uint64_t vaddr, struct tally *tally)
{
	struct registers registers = made_up_registers(vaddr);
	struct unwind_state unwinding = first_state(&registers);
	uint64_t cfa = reference_cfa(frame, &registers);
	struct value return_address = reference_register(frame, RETURN_ADDRESS, &registers, cfa);

	if (return_address.is_undefined) {
		assert_int_equal(rule->cfa, UNWIND_CFA_END);
		tally->ends++;
		return;
	}
	if (unwind_step(NULL, &unwinding, rule) != UNWIND_CONTINUE)
		fail_msg("the step stops at %#lx (CFA kind %u)", (unsigned long)vaddr, rule->cfa);
	if (unwinding.sp != cfa)
		fail_msg("CFA differs at %#lx (kind %u)", (unsigned long)vaddr, rule->cfa);
	if (unwinding.pc != return_address.number)
		fail_msg("return address differs at %#lx", (unsigned long)vaddr);
	compare_saved("rbp", vaddr, unwinding.rbp, reference_register(frame, RBP, &registers, cfa));
	compare_saved("rbx", vaddr, unwinding.rbx, reference_register(frame, RBX, &registers, cfa));
	tally->compared++;
}

static void compare_address(
	const struct unwind_table *table, Dwarf_CFI *cfi, uint64_t vaddr, struct tally *tally)
{
	struct unwind_rule rule = table_rule(table, vaddr);
	Dwarf_Frame *frame = NULL;
	bool is_signal = false;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame) != 0) {
		tally->nowhere++;
		return;
	}
	dwarf_frame_info(frame, NULL, NULL, &is_signal);
	if (is_signal) {
		assert_int_equal(rule.cfa, UNWIND_CFA_SIGNAL);
		tally->signals++;
	} else if (rule.cfa == UNWIND_CFA_NONE) {
		tally->silent++;
	} else {
		compare_step(&rule, frame, vaddr, tally);
	}
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

static void compare_file(const char *path)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	const struct elf_segment *code;
	struct unwind_build_stats stats;
	struct unwind_table table;
	struct tally tally = {0};
	struct errmsg err;
	Dwarf_CFI *cfi;

	assert_int_equal(elf_file_open(&file, path, path, &err), 0);
	assert_int_equal(unwind_table_build(&table, file, &stats, &err), 0);
	assert_int_equal(stats.corrupt_fdes, 0);
	cfi = dwarf_getcfi_elf(elf_file_libelf(file));
	assert_non_null(cfi);
	code = code_segment(file);
	for (uint64_t i = 0; i < ADDRESSES; i++)
		compare_address(&table, cfi, code->vaddr + hash_u64(i) % code->memory_size, &tally);
	print_message("%s: %u compared, %u ends, %u signal frames, %u silent, %u without FDE\n",
		path, tally.compared, tally.ends, tally.signals, tally.silent, tally.nowhere);
	assert_true(tally.compared > ADDRESSES / 2);
	assert_true(tally.silent * 1000 <= ADDRESSES * SILENT_MAX_PERMILLE);
	dwarf_cfi_end(cfi);
	unwind_table_done(&table);
}

static void test_system_libraries(void **state)
{
	static const char *const paths[] = {"/proc/self/exe", "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/python3",
		"/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib64/libc.so.6",
		"/usr/lib64/libcrypto.so.3", "/usr/lib64/libstdc++.so.6"};
	unsigned compared = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (access(paths[i], R_OK) < 0)
			continue;
		compare_file(paths[i]);
		compared++;
	}
	assert_true(compared >= 3);
}

static char **given_paths;

/* By hand: `test-unwind-reference FILE...` compares any other files. */
static void test_given_files(void **state)
{
	for (char **path = given_paths; *path; path++)
		compare_file(*path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest system[] = {cmocka_unit_test(test_system_libraries)};
	const struct CMUnitTest given[] = {cmocka_unit_test(test_given_files)};

	given_paths = argv + 1;
	return argc > 1 ? cmocka_run_group_tests(given, NULL, NULL)
			: cmocka_run_group_tests(system, NULL, NULL);
}
