/* SPDX-License-Identifier: Apache-2.0 */
/* arch/launch.h on x86-64. */
#include "arch/launch.h"

__asm__(".text\n"
	".p2align 4\n"
	".hidden arch_launch_registers\n"
	".globl arch_launch_registers\n"
	".type arch_launch_registers, @function\n"
	"arch_launch_registers:\n"
	".cfi_startproc\n"
	"movq %rbx, 24(%rdi)\n"
	"movq %rbp, 48(%rdi)\n"
	"leaq 8(%rsp), %rax\n"
	"movq %rax, 56(%rdi)\n"
	"movq %r12, 96(%rdi)\n"
	"movq %r13, 104(%rdi)\n"
	"movq %r14, 112(%rdi)\n"
	"movq %r15, 120(%rdi)\n"
	"movq (%rsp), %rax\n"
	"ret\n"
	".cfi_endproc\n"
	".size arch_launch_registers, . - arch_launch_registers\n");

/*
 * Written out, so that the function begins with the 5-byte no-operation whatever the compiler adds
 * to functions: Linux from 6.18 on runs a probe there without a trap.
 */
__asm__(".text\n"
	".p2align 4\n"
	".globl sonde_launch_marker\n"
	".type sonde_launch_marker, @function\n"
	"sonde_launch_marker:\n"
	".cfi_startproc\n"
	".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"ret\n"
	".cfi_endproc\n"
	".size sonde_launch_marker, . - sonde_launch_marker\n");
