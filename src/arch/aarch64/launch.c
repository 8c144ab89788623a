/* SPDX-License-Identifier: Apache-2.0 */
/* arch/launch.h on aarch64. */
#include "arch/launch.h"

__asm__(".text\n"
	".p2align 4\n"
	".hidden arch_launch_registers\n"
	".globl arch_launch_registers\n"
	".type arch_launch_registers, @function\n"
	"arch_launch_registers:\n"
	".cfi_startproc\n"
	"stp x19, x20, [x0, #152]\n"
	"stp x21, x22, [x0, #168]\n"
	"stp x23, x24, [x0, #184]\n"
	"stp x25, x26, [x0, #200]\n"
	"stp x27, x28, [x0, #216]\n"
	"stp x29, x30, [x0, #232]\n"
	"mov x1, sp\n"
	"str x1, [x0, #248]\n"
	"mov x0, x30\n"
	"ret\n"
	".cfi_endproc\n"
	".size arch_launch_registers, . - arch_launch_registers\n");

/* The kernel steps over a no-operation itself; every probe is a trap here. */
__asm__(".text\n"
	".p2align 4\n"
	".globl sonde_launch_marker\n"
	".type sonde_launch_marker, @function\n"
	"sonde_launch_marker:\n"
	".cfi_startproc\n"
	"nop\n"
	"ret\n"
	".cfi_endproc\n"
	".size sonde_launch_marker, . - sonde_launch_marker\n");
