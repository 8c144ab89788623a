/* SPDX-License-Identifier: Apache-2.0 */
/* What the unwinder asks of x86-64 code; see arch/arch.h. Part of unwind/step.h. */
#pragma once

/* Is there a call instruction right before `return_address`? E8 rel32, or FF /2 of 2 to 7 bytes. */
static inline __attribute__((always_inline)) int arch_follows_call(
	void *context, __u64 return_address)
{
	__u64 code;

	if (UNWIND_READ_U64(context, return_address - 8, &code))
		return 0;
	if (((code >> 24) & 0xff) == 0xe8)
		return 1;
	/* Opcode and the middle bits of ModRM, at 2, 3, 4, 6 and 7 bytes before. */
	return ((code >> 48) & 0x38ff) == 0x10ff || ((code >> 40) & 0x38ff) == 0x10ff ||
	       ((code >> 32) & 0x38ff) == 0x10ff || ((code >> 16) & 0x38ff) == 0x10ff ||
	       ((code >> 8) & 0x38ff) == 0x10ff;
}

/*
 * Generated code without frame pointer shows its frame's size where the call returns to: `add $n,
 * %rsp; ret`, as the trampolines of `python -X perf` do. Returns n + 8, or 0 when the code is
 * another.
 */
static inline __attribute__((always_inline)) __u64 arch_size_by_epilogue(void *context, __u64 pc)
{
	__u64 code;

	if (UNWIND_READ_U64(context, pc, &code) || (code & 0xff00ffffff) != 0xc300c48348)
		return 0;
	return ((code >> 24) & 0x7f) + 8;
}

/* An entry of 16 bytes has pushed a word from byte `pushed_at` on. */
static inline __attribute__((always_inline)) __u64 arch_plt_cfa(__u64 sp, __u64 pc, __u64 pushed_at)
{
	return sp + 8 + ((pc & 15) >= pushed_at ? 8 : 0);
}
