/* SPDX-License-Identifier: Apache-2.0 */
/* What the unwinder asks of aarch64 code; see arch/arch.h. Part of unwind/step.h. */
#pragma once

/* Is there a call instruction right before `return_address`? bl, or blr and its signed forms. */
static inline __attribute__((always_inline)) int arch_follows_call(
	void *context, __u64 return_address)
{
	__u64 code;
	__u32 call;

	if (UNWIND_READ_U64(context, return_address - 8, &code))
		return 0;
	call = code >> 32;
	return call >> 26 == 0x25 || (call & 0xfefff800) == 0xd63f0800 ||
	       (call & 0xfffffc1f) == 0xd63f0000;
}

/* Generated code keeps frame pointers here, the trampolines of `python -X perf` among it. */
static inline __attribute__((always_inline)) __u64 arch_size_by_epilogue(
	void *context __attribute__((unused)), __u64 pc __attribute__((unused)))
{
	return 0;
}

/* Entries push nothing. */
static inline __attribute__((always_inline)) __u64 arch_plt_cfa(
	__u64 sp, __u64 pc __attribute__((unused)), __u64 pushed_at __attribute__((unused)))
{
	return sp;
}
