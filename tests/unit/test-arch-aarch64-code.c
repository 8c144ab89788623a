/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as assemblers write them, and what they do to a frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arch/code.h"
#include ARCH_HEADER(files)
#include "base/macros.h"
#include "unwind/cfi.h"
#include "unwind/frame_state.h"

#define BIT(reg) (1U << (reg))
#define VADDR    0x1000

struct example {
	const char *text;
	uint32_t word;
	struct arch_instruction expected;
};

static const struct example examples[] = {
	{"stp x29, x30, [sp, #-48]!", 0xa9bd7bfd,
		{.effect = ARCH_STORE,
			.reg = 29,
			.base = 31,
			.has_pair = true,
			.pair = 30,
			.before = -48,
			.written = BIT(31)}},
	{"ldp x29, x30, [sp], #48", 0xa8c37bfd,
		{.effect = ARCH_LOAD,
			.reg = 29,
			.base = 31,
			.has_pair = true,
			.pair = 30,
			.after = 48,
			.written = BIT(29) | BIT(30) | BIT(31)}},
	{"stp x19, x20, [sp, #16]", 0xa90153f3,
		{.effect = ARCH_STORE,
			.reg = 19,
			.base = 31,
			.has_pair = true,
			.pair = 20,
			.value = 16}},
	{"ldp x19, x20, [sp, #16]", 0xa94153f3,
		{.effect = ARCH_LOAD,
			.reg = 19,
			.base = 31,
			.has_pair = true,
			.pair = 20,
			.value = 16,
			.written = BIT(19) | BIT(20)}},
	{"stp d8, d9, [sp, #-32]!", 0x6dbe27e8,
		{.effect = ARCH_STORE,
			.reg = ARCH_NO_REGISTER,
			.base = 31,
			.has_pair = true,
			.pair = ARCH_NO_REGISTER,
			.before = -32,
			.written = BIT(31)}},
	{"ldp d8, d9, [sp], #32", 0x6cc227e8,
		{.effect = ARCH_STORE,
			.reg = ARCH_NO_REGISTER,
			.base = 31,
			.has_pair = true,
			.pair = ARCH_NO_REGISTER,
			.after = 32,
			.written = BIT(31)}},
	{"stp w1, w2, [sp, #8]", 0x29010be1, {.effect = ARCH_OTHER}},
	{"str x30, [sp, #-16]!", 0xf81f0ffe,
		{.effect = ARCH_STORE, .reg = 30, .base = 31, .before = -16, .written = BIT(31)}},
	{"ldr x30, [sp], #16", 0xf84107fe,
		{.effect = ARCH_LOAD,
			.reg = 30,
			.base = 31,
			.after = 16,
			.written = BIT(30) | BIT(31)}},
	{"str x19, [sp, #24]", 0xf9000ff3,
		{.effect = ARCH_STORE, .reg = 19, .base = 31, .value = 24}},
	{"ldr x19, [sp, #24]", 0xf9400ff3,
		{.effect = ARCH_LOAD, .reg = 19, .base = 31, .value = 24, .written = BIT(19)}},
	{"stur x19, [x29, #-8]", 0xf81f83b3,
		{.effect = ARCH_STORE, .reg = 19, .base = 29, .value = -8}},
	{"str w0, [sp, #12]", 0xb9000fe0, {.effect = ARCH_OTHER}},
	{"ldrb w3, [x4, x5]", 0x38656883, {.effect = ARCH_OTHER, .written = BIT(3)}},
	{"sub sp, sp, #0x40", 0xd10103ff,
		{.effect = ARCH_ADD, .reg = 31, .base = 31, .value = -64, .written = BIT(31)}},
	{"add sp, sp, #0x1, lsl #12", 0x914007ff,
		{.effect = ARCH_ADD, .reg = 31, .base = 31, .value = 4096, .written = BIT(31)}},
	{"mov x29, sp", 0x910003fd,
		{.effect = ARCH_ADDRESS, .reg = 29, .base = 31, .written = BIT(29)}},
	{"add x29, sp, #0x10", 0x910043fd,
		{.effect = ARCH_ADDRESS, .reg = 29, .base = 31, .value = 16, .written = BIT(29)}},
	{"mov sp, x29", 0x910003bf,
		{.effect = ARCH_ADDRESS, .reg = 31, .base = 29, .written = BIT(31)}},
	{"mov x3, x4", 0xaa0403e3, {.effect = ARCH_MOVE, .reg = 3, .base = 4, .written = BIT(3)}},
	{"subs x3, x4, #0x1", 0xf1000483, {.effect = ARCH_OTHER, .written = BIT(3)}},
	{"cmp x3, #0x1", 0xf100047f, {.effect = ARCH_OTHER}},
	{"add w3, w4, #0x1", 0x11000483, {.effect = ARCH_OTHER, .written = BIT(3)}},
	{"and sp, x9, #-64", 0x927ae53f, {.effect = ARCH_OTHER, .written = BIT(31)}},
	{"sub sp, sp, x1", 0xcb2163ff, {.effect = ARCH_OTHER, .written = BIT(31)}},
	{"adrp x16, .", 0x90000010, {.effect = ARCH_OTHER, .written = BIT(16)}},
	{"mov x8, #0x8b", 0xd2801168, {.effect = ARCH_OTHER, .written = BIT(8)}},
	{"bl .+16", 0x94000004, {.effect = ARCH_CALL, .value = VADDR + 16}},
	{"b .-16", 0x17fffffc, {.effect = ARCH_JUMP, .value = VADDR - 16}},
	{"b.eq .+8", 0x54000040, {.effect = ARCH_JUMP_IF, .value = VADDR + 8}},
	{"cbz x1, .+12", 0xb4000061, {.effect = ARCH_JUMP_IF, .value = VADDR + 12}},
	{"tbnz w2, #3, .+16", 0x37180082, {.effect = ARCH_JUMP_IF, .value = VADDR + 16}},
	{"blr x3", 0xd63f0060, {.effect = ARCH_CALL}},
	{"br x17", 0xd61f0220, {.effect = ARCH_JUMP_INDIRECT}},
	{"ret", 0xd65f03c0, {.effect = ARCH_RETURN}},
	{"retaa", 0xd65f0bff, {.effect = ARCH_RETURN}},
	{"paciasp", 0xd503233f, {.effect = ARCH_OTHER}},
	{"autiasp", 0xd50323bf, {.effect = ARCH_OTHER}},
	{"nop", 0xd503201f, {.effect = ARCH_PADDING}},
	{"brk #0x1", 0xd4200020, {.effect = ARCH_TRAP}},
	{"udf #0", 0, {.effect = ARCH_TRAP}},
	{"svc #0x0", 0xd4000001, {.effect = ARCH_OTHER, .written = BIT(0)}},
	{"mrs x1, tpidr_el0", 0xd53bd041, {.effect = ARCH_OTHER, .written = BIT(1)}},
	{"fmov x1, d2", 0x9e660041, {.effect = ARCH_OTHER, .written = BIT(1)}},
	{"fmov d1, x2", 0x9e670041, {.effect = ARCH_OTHER}},
	{"fcvtzs w3, s4", 0x1e380083, {.effect = ARCH_OTHER, .written = BIT(3)}},
	{"fadd d1, d2, d3", 0x1e632841, {.effect = ARCH_OTHER}},
	{"umov w1, v2.b[3]", 0x0e073c41, {.effect = ARCH_OTHER, .written = BIT(1)}},
	{"addvl sp, sp, #-1", 0x043f57ff, {.effect = ARCH_OTHER, .written = BIT(31)}},
	{"ldr x1, .+8", 0x58000041, {.effect = ARCH_OTHER, .written = BIT(1)}},
};

static struct arch_instruction decode(uint32_t word)
{
	struct arch_instruction instruction;
	uint8_t code[4];

	memcpy(code, &word, sizeof(code));
	assert_true(arch_decode(code, sizeof(code), VADDR, &instruction));
	assert_int_equal(instruction.length, sizeof(code));
	return instruction;
}

static void test_examples(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct arch_instruction *expected = &examples[i].expected;
		struct arch_instruction found = decode(examples[i].word);

		if (found.effect != expected->effect || found.reg != expected->reg ||
			found.base != expected->base || found.value != expected->value)
			fail_msg("%s: effect %u reg %u base %u value %lld", examples[i].text,
				found.effect, found.reg, found.base, (long long)found.value);
		if (found.has_pair != expected->has_pair || found.pair != expected->pair ||
			found.before != expected->before || found.after != expected->after)
			fail_msg("%s: pair %u, %d before, %d after", examples[i].text, found.pair,
				found.before, found.after);
		if (found.written != expected->written)
			fail_msg("%s: writes %#x", examples[i].text, found.written);
	}
}

static void test_cut_off_code_is_none(void **state)
{
	static const uint8_t code[4];
	struct arch_instruction instruction;

	assert_true(arch_decode(code, 4, 0, &instruction));
	assert_false(arch_decode(code, 3, 0, &instruction));
}

static struct unwind_rule rule_of(const struct frame_state *frame)
{
	struct unwind_rule rule;

	assert_true(frame_state_to_rule(frame, &rule));
	return rule;
}

static void apply(struct frame_state *frame, uint32_t word)
{
	struct arch_instruction instruction = decode(word);

	frame_state_apply(frame, &instruction);
}

/* The return address is in x30 until it is saved, and again when it was read back. */
static void test_frame_states(void **state)
{
	struct frame_state frame = frame_state_at_entry();
	struct unwind_rule rule = rule_of(&frame);

	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.cfa_offset, 0);
	assert_int_equal(rule.ra, UNWIND_RA_SECOND);
	assert_true(frame_state_can_return(&frame));
	apply(&frame, 0xd503233f); /* paciasp */
	apply(&frame, 0xa9bd7bfd); /* stp x29, x30, [sp, #-48]! */
	rule = rule_of(&frame);
	assert_int_equal(rule.cfa_offset, 48);
	assert_int_equal(rule.ra, UNWIND_RA_AT_CFA);
	assert_int_equal(rule.ra_offset, -40);
	assert_int_equal(rule.fp_offset, -48);
	apply(&frame, 0x910003fd); /* mov x29, sp */
	apply(&frame, 0xcb2163ff); /* sub sp, sp, x1 */
	rule = rule_of(&frame);
	assert_int_equal(rule.cfa, UNWIND_CFA_FP);
	assert_int_equal(rule.cfa_offset, 48);
	assert_false(frame_state_can_return(&frame));
	apply(&frame, 0x910003bf); /* mov sp, x29 */
	apply(&frame, 0xa8c37bfd); /* ldp x29, x30, [sp], #48 */
	rule = rule_of(&frame);
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.ra, UNWIND_RA_SECOND);
	assert_int_equal(rule.fp, UNWIND_SAVED_SAME);
	assert_true(frame_state_can_return(&frame));
}

/* adrp x16, 0x11000; ldr x17, [x16, #8] */
static void test_procedure_linkage_table(void **state)
{
	static const uint32_t words[] = {0x90000090, 0xf9400611, 0x91002210, 0xd61f0220};
	struct arch_plt_target target;
	uint8_t entry[sizeof(words)];

	memcpy(entry, words, sizeof(words));
	assert_true(arch_plt_read(entry, sizeof(entry), VADDR, &target));
	assert_int_equal(target.slot, 0x11008);
	assert_false(arch_plt_read(entry, 4, VADDR, &target));
	assert_false(arch_plt_read(entry + 4, 12, VADDR, &target));
}

/* glibc's _dl_runtime_resolve(), behind a header that pushed 16 bytes: CFA sp+208, ra at c+8. */
static void test_the_resolvers_frame(void **state)
{
	const struct cfi_saved above = {.kind = CFI_SAVED_AT_CFA, .offset = 8};
	struct cfi_registers registers = {
		.cfa = {.kind = CFI_CFA_REGISTER, .reg = ARCH_DWARF_SP, .offset = 208},
		.ra = above,
		.second = above};
	struct unwind_rule rule;

	assert_true(cfi_to_rule(&registers, &rule));
	assert_int_equal(rule.cfa_offset, 224);
	assert_int_equal(rule.ra_offset, -8);
	assert_int_equal(rule.second_offset, -8);
	assert_int_equal(rule.fp, UNWIND_SAVED_SAME);
	registers.cfa.offset = -16; /* before its last branch */
	assert_true(cfi_to_rule(&registers, &rule));
	assert_int_equal(rule.cfa_offset, 0);
	registers.ra.offset = -8; /* any other function */
	assert_true(cfi_to_rule(&registers, &rule));
	assert_int_equal(rule.cfa_offset, -16);
}

static void test_signed_addresses(void **state)
{
	assert_int_equal(arch_code_address(0x00bcffffdeadbeefULL), 0xffffdeadbeefULL);
	assert_int_equal(arch_code_address(0xffffdeadbeefULL), 0xffffdeadbeefULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_cut_off_code_is_none),
		cmocka_unit_test(test_frame_states),
		cmocka_unit_test(test_procedure_linkage_table),
		cmocka_unit_test(test_the_resolvers_frame),
		cmocka_unit_test(test_signed_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
