/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without call frame information, in the shapes that math kernels and video codecs have. Each calls
 * unwind_workload_inner() from inside its frame, except the leaf, so that callers must be found through it.
 */
	.text

.macro function name
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
.endm

.macro end name
	.size \name, . - \name
.endm

/* Saves by stores, keeps the old stack pointer in rbx, aligns (OpenBLAS). */
function unwind_assembly_in_rbx
	endbr64
	sub $96, %rsp
	mov %rbx, (%rsp)
	mov %rbp, 8(%rsp)
	mov %r12, 16(%rsp)
	mov %rsp, %rbx
	sub $4224, %rsp
	and $-4096, %rsp
	mov $3, %ebp
1:	mov %ebp, %edi
	call unwind_workload_inner
	dec %ebp
	jnz 1b
	mov %rbx, %rsp
	mov (%rsp), %rbx
	mov 8(%rsp), %rbp
	mov 16(%rsp), %r12
	add $96, %rsp
	ret
end unwind_assembly_in_rbx

/* Keeps the old stack pointer in memory (x86inc.asm). */
function unwind_assembly_in_memory
	mov %rsp, %rax
	sub $64, %rsp
	and $-32, %rsp
	mov %rax, 56(%rsp)
	push %rdi
	sub $8, %rsp
	call unwind_workload_inner
	add $8, %rsp
	pop %rdi
	mov 56(%rsp), %rsp
	ret
end unwind_assembly_in_memory

/* Pushes everything, has loops, an early exit and a second return. */
function unwind_assembly_pushes
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	sub $40, %rsp
	test %edi, %edi
	jz 3f
	mov %edi, %ebp
	mov $2, %ebx
	jmp 2f
	.p2align 4
1:	mov %ebp, %edi
	call unwind_workload_inner
	add %eax, %ebp
2:	dec %ebx
	jns 1b
	lea 40(%rsp), %rsp
	mov %ebp, %eax
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.p2align 4
3:	add $40, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	xor %eax, %eax
	ret
end unwind_assembly_pushes

/* A frame pointer over a stack whose depth nobody can tell beforehand (V8). */
function unwind_assembly_frame_pointer
	push %rbp
	mov %rsp, %rbp
	push %rbx
	and $-32, %rsp
	mov $4, %ecx
1:	push %rcx
	dec %ecx
	jnz 1b
	call unwind_workload_inner
	mov -8(%rbp), %rbx
	leave
	ret
end unwind_assembly_frame_pointer

/* Ends by jumping to another function. */
function unwind_assembly_tail
	push %rbx
	mov %edi, %ebx
	call unwind_workload_inner
	lea (%rbx, %rax), %edi
	pop %rbx
	jmp unwind_assembly_pushes
end unwind_assembly_tail

/* Keeps the old stack pointer in a register that no callee would keep. */
function unwind_assembly_leaf
	mov %rsp, %r11
	and $-64, %rsp
	sub $128, %rsp
	mov %edi, (%rsp)
	mov $5, %eax
1:	add (%rsp), %eax
	dec %edi
	jns 1b
	mov %r11, %rsp
	ret
end unwind_assembly_leaf

	.section .note.GNU-stack, "", @progbits
