/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64: registers and where the ABI puts things; see arch/arch.h. DWARF for the Arm 64-bit
 * Architecture (AADWARF64), section 4.1. Compiled into the BPF programs, too.
 */
#pragma once

#include <linux/types.h>

#define ARCH_NAME        "aarch64"
#define ARCH_ELF_MACHINE 183 /* EM_AARCH64 */

/* x0 … x30, and the stack pointer as 31 */
#define ARCH_REGISTERS            32
#define ARCH_DWARF_SECOND         30 /* the link register */
#define ARCH_DWARF_FP             29
#define ARCH_DWARF_SP             31
#define ARCH_DWARF_RETURN_ADDRESS 30
#define ARCH_HAS_LINK_REGISTER    1
#define ARCH_ENTRY_CFA            0
#define ARCH_RETURN_OFFSET        0
#define ARCH_FIRST_ARGUMENT       0
#define ARCH_FUNCTION_ALIGNMENT   16

/*
 * struct rt_sigframe: 128 bytes of siginfo, then the ucontext, whose sigcontext lies 176 bytes
 * within: fault address, x0 … x30, sp, pc (uapi/asm/sigcontext.h and ucontext.h).
 */
#define ARCH_SIGCONTEXT      (128 + 176)
#define ARCH_UCONTEXT_FP     (ARCH_SIGCONTEXT + 8 + 29 * 8)
#define ARCH_UCONTEXT_SECOND (ARCH_SIGCONTEXT + 8 + 30 * 8)
#define ARCH_UCONTEXT_SP     (ARCH_SIGCONTEXT + 8 + 31 * 8)
#define ARCH_UCONTEXT_PC     (ARCH_SIGCONTEXT + 8 + 32 * 8)

/*
 * glibc's struct pthread ends where the thread pointer points to, so that its size counts: of 2.36.
 * Two words a key, sequence number and value.
 */
#define ARCH_PTHREAD_FROM_THREAD_POINTER (-1856)
#define ARCH_PTHREAD_FIRST_KEYS          272
#define ARCH_PTHREAD_KEY_TABLES          784

/*
 * Pointer authentication signs return addresses in the bits above the address; what a user program
 * runs has none of them set.
 */
static inline __attribute__((always_inline)) __u64 arch_code_address(__u64 address)
{
	return address & ((1ULL << 48) - 1);
}
