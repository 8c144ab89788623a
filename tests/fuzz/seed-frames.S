/* SPDX-License-Identifier: Apache-2.0 */
/* One function per form of call frame information; make-seeds.sh links it at the addresses of fuzz-eh-frame.c. */
.text
.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
.endm

function pushes
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	sub $0x12345, %rsp
	.cfi_adjust_cfa_offset 0x12345
	.cfi_remember_state
	jne 1f
	add $0x12345, %rsp
	.cfi_adjust_cfa_offset -0x12345
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	ret
1:	.cfi_restore_state
	nop
	.cfi_endproc

function realigned /* as gcc: CFA in r10, then behind a saved pointer */
	lea 8(%rsp), %r10
	.cfi_def_cfa r10, 0
	and $-32, %rsp
	push -8(%r10)
	push %rbp
	.cfi_escape 0x10,0x6,0x2,0x76,0
	mov %rsp, %rbp
	push %r10
	.cfi_escape 0xf,0x3,0x76,0x78,0x6
	nop
	leave
	.cfi_restore rbp
	.cfi_def_cfa r10, 0
	lea -8(%r10), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc

function saved_stack_pointer /* as OpenSSL: *(rsp + 152) + 8 */
	nop
	.cfi_escape 0x0f,0x06,0x77,0x98,0x01,0x06,0x23,0x08
	ret
	.cfi_endproc

function linkage_table /* as ld for .plt */
	nop
	.cfi_escape 0x0f,0x0b,0x77,0x08,0x80,0x00,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22
	ret
	.cfi_endproc

function register_return /* as vfork */
	pop %rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rdi
	jmp *%rdi
	.cfi_endproc

function outermost
	.cfi_undefined rip
	call pushes
	hlt
	.cfi_endproc

	nop
function signal_return
	.cfi_signal_frame
	mov $15, %rax
	syscall
	.cfi_endproc

function with_personality
	.cfi_personality 0x9b, personality_pointer
	.cfi_lsda 0x1b, personality_pointer
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset rbx, -16
	.cfi_same_value rbp
	.cfi_val_offset rsp, 0
	.cfi_escape 0x2e,0x18
	ret
	.cfi_endproc

	.data
personality_pointer:
	.quad 0
	.section .note.GNU-stack, "", @progbits
