/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions as assemblers write them, and what they do to a frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arch/code.h"
#include "base/macros.h"
#include "unwind/frame_state.h"

#define CODE(...) .code = {__VA_ARGS__}, .length = sizeof((uint8_t[]){__VA_ARGS__})
#define BIT(reg)  (1U << (reg))

struct example {
	const char *text;
	uint8_t code[16], length;
	enum arch_effect effect;
	uint8_t reg, base;
	uint16_t written;
	int64_t value;
};

static const struct example examples[] = {
	{"push %rbp", CODE(0x55), ARCH_PUSH, X86_RBP},
	{"push %r12", CODE(0x41, 0x54), ARCH_PUSH, 12},
	{"push $5", CODE(0x6a, 5), ARCH_PUSH, ARCH_NO_REGISTER},
	{"push -8(%r10)", CODE(0x41, 0xff, 0x72, 0xf8), ARCH_PUSH, ARCH_NO_REGISTER},
	{"pop %rbx", CODE(0x5b), ARCH_POP, X86_RBX, 0, BIT(X86_RBX)},
	{"sub $0x18,%rsp", CODE(0x48, 0x83, 0xec, 0x18), ARCH_ADD, X86_RSP, 0, BIT(X86_RSP), -0x18},
	{"sub $-128,%rsp", CODE(0x48, 0x83, 0xec, 0x80), ARCH_ADD, X86_RSP, 0, BIT(X86_RSP), 128},
	{"add $0x1000,%rsp", CODE(0x48, 0x81, 0xc4, 0, 0x10, 0, 0), ARCH_ADD, X86_RSP, 0,
		BIT(X86_RSP), 0x1000},
	{"and $-64,%rsp", CODE(0x48, 0x83, 0xe4, 0xc0), ARCH_OTHER, 0, 0, BIT(X86_RSP)},
	{"sub %rax,%rsp", CODE(0x48, 0x29, 0xc4), ARCH_OTHER, 0, 0, BIT(X86_RSP)},
	{"cmp %rax,%rsp", CODE(0x48, 0x39, 0xc4), ARCH_OTHER},
	{"mov %rsp,%rbp", CODE(0x48, 0x89, 0xe5), ARCH_MOVE, X86_RBP, X86_RSP, BIT(X86_RBP)},
	{"mov %esp,%ebp", CODE(0x89, 0xe5), ARCH_OTHER, 0, 0, BIT(X86_RBP)},
	{"mov %rbx,%rsp (8b)", CODE(0x48, 0x8b, 0xe3), ARCH_MOVE, X86_RSP, X86_RBX, BIT(X86_RSP)},
	{"mov %rbx,16(%rsp)", CODE(0x48, 0x89, 0x5c, 0x24, 16), ARCH_STORE, X86_RBX, X86_RSP, 0,
		16},
	{"mov 16(%rsp),%rbx", CODE(0x48, 0x8b, 0x5c, 0x24, 16), ARCH_LOAD, X86_RBX, X86_RSP,
		BIT(X86_RBX), 16},
	{"mov (%rsp,%rcx),%rbx", CODE(0x48, 0x8b, 0x1c, 0x0c), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"mov 8(%rip),%rbx", CODE(0x48, 0x8b, 0x1d, 8, 0, 0, 0), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"mov 0(%r13),%rax", CODE(0x49, 0x8b, 0x45, 0), ARCH_LOAD, X86_RAX, 13, BIT(X86_RAX), 0},
	{"lea 8(%rsp),%r10", CODE(0x4c, 0x8d, 0x54, 0x24, 8), ARCH_ADDRESS, 10, X86_RSP, BIT(10),
		8},
	{"lea (%rsp,%rax,8),%rsp", CODE(0x48, 0x8d, 0x24, 0xc4), ARCH_OTHER, 0, 0, BIT(X86_RSP)},
	{"leave", CODE(0xc9), ARCH_LEAVE, X86_RBP, 0, BIT(X86_RBP)},
	{"ret", CODE(0xc3), ARCH_RETURN},
	{"rep ret", CODE(0xf3, 0xc3), ARCH_RETURN},
	{"ret $16", CODE(0xc2, 16, 0), ARCH_RETURN},
	{"call +0x10", CODE(0xe8, 0x10, 0, 0, 0), ARCH_CALL, 0, 0, 0, 0x1015},
	{"call *%rcx", CODE(0xff, 0xd1), ARCH_CALL},
	{"jmp -2", CODE(0xeb, 0xfe), ARCH_JUMP, 0, 0, 0, 0x1000},
	{"notrack jmp *%rax", CODE(0x3e, 0xff, 0xe0), ARCH_JUMP_INDIRECT},
	{"jne +0x100", CODE(0x0f, 0x85, 0, 1, 0, 0), ARCH_JUMP_IF, 0, 0, 0, 0x1106},
	{"jrcxz +2", CODE(0xe3, 2), ARCH_JUMP_IF, 0, 0, 0, 0x1004},
	{"ud2", CODE(0x0f, 0x0b), ARCH_TRAP},
	{"nopw 0(%rax,%rax)", CODE(0x66, 0x0f, 0x1f, 0x44, 0, 0), ARCH_PADDING},
	{"endbr64", CODE(0xf3, 0x0f, 0x1e, 0xfa), ARCH_OTHER},
	{"mov $imm64,%rbx", CODE(0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8), ARCH_OTHER, 0, 0,
		BIT(X86_RBX)},
	{"mov $imm16,%bx", CODE(0x66, 0xbb, 1, 2), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"mov $1,%ch", CODE(0xb5, 1), ARCH_OTHER, 0, 0, BIT(X86_RCX)},
	{"mov $1,%bpl", CODE(0x40, 0xb5, 1), ARCH_OTHER, 0, 0, BIT(X86_RBP)},
	{"test $1,%eax", CODE(0xf7, 0xc0, 1, 0, 0, 0), ARCH_OTHER},
	{"neg %rbx", CODE(0x48, 0xf7, 0xdb), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"div %rbx", CODE(0x48, 0xf7, 0xf3), ARCH_OTHER, 0, 0, BIT(X86_RAX) | BIT(X86_RDX)},
	{"movabs 0x..,%eax", CODE(0xa1, 1, 2, 3, 4, 5, 6, 7, 8), ARCH_OTHER, 0, 0, BIT(X86_RAX)},
	{"cmovne %rax,%rbp", CODE(0x48, 0x0f, 0x45, 0xe8), ARCH_OTHER, 0, 0, BIT(X86_RBP)},
	{"addps %xmm4,%xmm5", CODE(0x0f, 0x58, 0xec), ARCH_OTHER},
	{"movd %xmm0,%ebx", CODE(0x66, 0x0f, 0x7e, 0xc3), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"cvttsd2si %xmm0,%rbp", CODE(0xf2, 0x48, 0x0f, 0x2c, 0xe8), ARCH_OTHER, 0, 0,
		BIT(X86_RBP)},
	{"pextrd $1,%xmm0,%ebx", CODE(0x66, 0x0f, 0x3a, 0x16, 0xc3, 1), ARCH_OTHER, 0, 0,
		BIT(X86_RBX)},
	{"vzeroupper", CODE(0xc5, 0xf8, 0x77), ARCH_OTHER},
	{"vaddps 32(%rsp),%ymm4,%ymm5", CODE(0xc5, 0xdc, 0x58, 0x6c, 0x24, 32), ARCH_OTHER},
	{"vfmadd231ps %ymm2,%ymm1,%ymm5", CODE(0xc4, 0xe2, 0x75, 0xb8, 0xea), ARCH_OTHER},
	{"andn %rax,%rcx,%rbp", CODE(0xc4, 0xe2, 0xf0, 0xf2, 0xe8), ARCH_OTHER, 0, 0,
		BIT(X86_RBP) | BIT(X86_RCX)},
	{"vpermilps $1,%xmm1,%xmm5", CODE(0xc4, 0xe3, 0x79, 0x04, 0xe9, 1), ARCH_OTHER},
	{"kmovw %k1,%ebx", CODE(0xc5, 0xf8, 0x93, 0xd9), ARCH_OTHER, 0, 0, BIT(X86_RBX)},
	{"vaddps 64(%rax),%zmm1,%zmm5", CODE(0x62, 0xf1, 0x74, 0x48, 0x58, 0x68, 1), ARCH_OTHER},
	{"vpternlogd $1,%zmm2,%zmm1,%zmm5", CODE(0x62, 0xf3, 0x75, 0x48, 0x25, 0xea, 1),
		ARCH_OTHER},
	{"vpaddd (XOP: vpmacsdd)", CODE(0x8f, 0xe8, 0x78, 0x9e, 0xc1, 0x20), ARCH_OTHER},
};

static void test_examples(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *example = &examples[i];
		struct arch_instruction x86;

		if (!arch_decode(example->code, sizeof(example->code), 0x1000, &x86))
			fail_msg("%s is not decoded", example->text);
		if (x86.length != example->length)
			fail_msg("%s: length %u", example->text, x86.length);
		if (x86.effect != example->effect || x86.reg != example->reg ||
			x86.base != example->base || x86.value != example->value)
			fail_msg("%s: effect %u reg %u base %u value %lld", example->text,
				x86.effect, x86.reg, x86.base, (long long)x86.value);
		if (x86.written != example->written)
			fail_msg("%s: writes %#x", example->text, x86.written);
	}
}

static void test_cut_off_code_is_none(void **state)
{
	static const uint8_t bad[][2] = {{0x06}, {0x0f, 0x04}, {0xd4}, {0xea}, {0x62, 0}};
	struct arch_instruction x86;

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		for (size_t length = 0; length < examples[i].length; length++) {
			uint8_t prefixes = 0;

			while (examples[i].code[prefixes] == 0xf3 ||
				examples[i].code[prefixes] == 0x3e)
				prefixes++;
			if (length > prefixes || length == 0)
				assert_false(arch_decode(examples[i].code, length, 0, &x86));
		}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(arch_decode(bad[i], sizeof(bad[i]), 0, &x86));
}

/* Only prefixes: no instruction is longer than 15 bytes. */
static void test_endless_prefixes(void **state)
{
	struct arch_instruction x86;
	uint8_t code[64];

	memset(code, 0x66, sizeof(code));
	assert_false(arch_decode(code, sizeof(code), 0, &x86));
}

static void apply(struct frame_state *state, enum arch_effect effect, uint8_t reg, uint8_t base,
	int64_t value)
{
	frame_state_apply(
		state, &(struct arch_instruction){.effect = (uint8_t)effect,
			       .reg = reg,
			       .base = base,
			       .value = value,
			       .written = (uint16_t)(effect == ARCH_OTHER ? BIT(reg) : 0)});
}

static void test_frame_states(void **state)
{
	struct frame_state frame = frame_state_at_entry(), other;
	struct unwind_rule rule;

	assert_true(frame_state_can_return(&frame));
	apply(&frame, ARCH_PUSH, X86_RBX, 0, 0);
	apply(&frame, ARCH_ADD, X86_RSP, 0, -32);
	assert_true(frame_state_to_rule(&frame, &rule));
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.cfa_offset, 48);
	assert_int_equal(rule.second, UNWIND_SAVED_AT_CFA);
	assert_int_equal(rule.second_offset, -16);
	assert_true(frame_state_cannot_return(&frame));

	/* Two depths at one place are a contradiction; other facts are only lost. */
	other = frame;
	apply(&other, ARCH_PUSH, X86_RAX, 0, 0);
	assert_true(frame_state_merge(&frame, &other) < 0);
	other = frame;
	apply(&other, ARCH_MOVE, X86_R11, X86_RSP, 0);
	assert_int_equal(frame_state_merge(&frame, &other), 0);
	assert_int_equal(frame_state_merge(&other, &frame), 1);
	assert_int_equal(frame_state_merge(&other, &frame), 0);

	apply(&frame, ARCH_OTHER, X86_RSP, 0, 0);
	assert_false(frame_state_to_rule(&frame, &rule));
	assert_false(frame_state_can_return(&frame) || frame_state_cannot_return(&frame));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_cut_off_code_is_none),
		cmocka_unit_test(test_endless_prefixes),
		cmocka_unit_test(test_frame_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
