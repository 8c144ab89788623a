/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF programs read of an arm64 kernel; see arch/arch.h. Part of bpf/kernel.bpf.h. */
#pragma once

/* pt_regs, a fixed layout; programs on perf events are given what stands up to pstate. */
struct registers {
	__u64 x[31], sp, pc, pstate;
	__u64 orig_x0;
	__s32 system_call;
	__u32 unused;
};

#define PSTATE_MODE_MASK   0x0f
#define PSTATE_MODE_32_BIT 0x10

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} __attribute__((preserve_access_index));

/* Kept when the thread is switched out: up to its first switch the one before. */
#define arch_thread_pointer(task) BPF_CORE_READ(task, thread.uw.tp_value)

static __always_inline int arch_is_kernel(const struct registers *registers)
{
	return (registers->pstate & PSTATE_MODE_MASK) != 0;
}

static __always_inline int arch_is_compat(const struct registers *registers)
{
	return !arch_is_kernel(registers) && registers->pstate & PSTATE_MODE_32_BIT;
}

static __always_inline int arch_is_user(const struct registers *registers)
{
	return !arch_is_kernel(registers);
}

/* -1 outside of a system call. */
static __always_inline __u64 arch_system_call(const struct registers *registers)
{
	return (__s64)registers->system_call;
}

static __always_inline __u64 arch_first_argument(const struct registers *registers)
{
	return registers->x[0];
}

static __always_inline void arch_copy_registers(
	const struct registers *from, struct wire_stack_copy *to)
{
	to->pc = from->pc;
	to->sp = from->sp;
	to->fp = from->x[29];
	to->second = from->x[30];
	__builtin_memcpy(to->leaf, from->x, sizeof(from->x));
	to->leaf[31] = from->sp;
}
