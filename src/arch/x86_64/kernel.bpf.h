/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the BPF programs read of an x86-64 kernel; see arch/arch.h. Part of bpf/kernel.bpf.h. */
#pragma once

/* pt_regs, a fixed layout; on FRED kernels the bits above the 16 of cs mean something else. */
struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};

#define USER_CS   0x33
#define USER32_CS 0x23

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* In a macro, because CO-RE follows the members from the task on. */
#define arch_thread_pointer(task) BPF_CORE_READ(task, thread.fsbase)

static __always_inline int arch_is_kernel(const struct registers *registers)
{
	return !(registers->cs & 3);
}

static __always_inline int arch_is_compat(const struct registers *registers)
{
	return (__u16)registers->cs == USER32_CS;
}

static __always_inline int arch_is_user(const struct registers *registers)
{
	return (__u16)registers->cs == USER_CS;
}

/* -1 outside of a system call. */
static __always_inline __u64 arch_system_call(const struct registers *registers)
{
	return registers->orig_ax;
}

static __always_inline __u64 arch_first_argument(const struct registers *registers)
{
	return registers->di;
}

static __always_inline void arch_copy_registers(
	const struct registers *from, struct wire_stack_copy *to)
{
	to->pc = from->ip;
	to->sp = from->sp;
	to->fp = from->bp;
	to->second = from->bx;
	to->leaf[0] = from->ax;
	to->leaf[1] = from->dx;
	to->leaf[2] = from->cx;
	to->leaf[3] = from->bx;
	to->leaf[4] = from->si;
	to->leaf[5] = from->di;
	to->leaf[6] = from->bp;
	to->leaf[7] = from->sp;
	to->leaf[8] = from->r8;
	to->leaf[9] = from->r9;
	to->leaf[10] = from->r10;
	to->leaf[11] = from->r11;
	to->leaf[12] = from->r12;
	to->leaf[13] = from->r13;
	to->leaf[14] = from->r14;
	to->leaf[15] = from->r15;
}
