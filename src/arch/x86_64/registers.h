/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64: registers and where the ABI puts things; see arch/arch.h. psABI, figures 3.4 and 3.36.
 * Compiled into the BPF programs, too.
 */
#pragma once

#include <linux/types.h>

#define ARCH_NAME        "x86-64"
#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */

/* rax rdx rcx rbx rsi rdi rbp rsp r8 … r15 */
#define ARCH_REGISTERS            16
#define ARCH_DWARF_SECOND         3 /* rbx */
#define ARCH_DWARF_FP             6 /* rbp */
#define ARCH_DWARF_SP             7 /* rsp */
#define ARCH_DWARF_RETURN_ADDRESS 16
#define ARCH_HAS_LINK_REGISTER    0
/* The call pushed the return address. */
#define ARCH_ENTRY_CFA          8
#define ARCH_RETURN_OFFSET      (-8)
#define ARCH_FIRST_ARGUMENT     5 /* rdi */
#define ARCH_FUNCTION_ALIGNMENT 16

/* struct sigcontext in the ucontext that the kernel pushes (uapi/asm/sigcontext.h) */
#define ARCH_UCONTEXT_FP     120
#define ARCH_UCONTEXT_SECOND 128
#define ARCH_UCONTEXT_SP     160
#define ARCH_UCONTEXT_PC     168

/* glibc's struct pthread: fs points to it. Two words a key, sequence number and value. */
#define ARCH_PTHREAD_FROM_THREAD_POINTER 0
#define ARCH_PTHREAD_FIRST_KEYS          784
#define ARCH_PTHREAD_KEY_TABLES          1296

static inline __attribute__((always_inline)) __u64 arch_code_address(__u64 address)
{
	return address;
}
