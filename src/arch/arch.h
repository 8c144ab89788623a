/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor that sonde was built for. Everything that differs between processors is in
 * src/arch/NAME/; the rest of sonde uses what is named here. Stacks are unwound, and code is read,
 * only for the processor that sonde runs on.
 *
 * To add a processor, write src/arch/NAME/ with these files, and add NAME below, in
 * src/arch/meson.build and in tools/cross/. x86_64 is what runs every day; aarch64 is the example
 * of a processor with a link register.
 *
 *   registers.h     included by this file, so by BPF programs, user space and the injected library:
 *       ARCH_NAME                      as sentences have it
 *       ARCH_ELF_MACHINE               e_machine of its files
 *       ARCH_REGISTERS                 general registers by DWARF number, a power of two: the
 *                                      innermost frame's are kept in wire_stack_copy.leaf
 *       ARCH_DWARF_SP, _FP, _RETURN_ADDRESS      columns in call frame information
 *       ARCH_DWARF_SECOND              the second register that is followed from frame to frame,
 *                                      beside the frame pointer: what frames are found by that have
 *                                      neither (rbx), or the link register
 *       ARCH_HAS_LINK_REGISTER         1: a call leaves the return address in the second register,
 *                                      and a function that calls none may keep it there
 *       ARCH_ENTRY_CFA                 CFA - stack pointer at a function's first instruction
 *       ARCH_RETURN_OFFSET             where the return address is, from the CFA, when a call
 * pushes it; 0 with a link register (A frame pointer points to the caller's, and the return address
 * is behind it, on every processor.) ARCH_FIRST_ARGUMENT            DWARF number of the register
 * with a system call's first ARCH_UCONTEXT_PC, _SP, _FP, _SECOND      in the signal frame, from the
 * stack pointer of the code that returns from the signal ARCH_PTHREAD_*                 where glibc
 * keeps thread-specific values ARCH_FUNCTION_ALIGNMENT        what compilers align functions to
 *       arch_code_address()            a return address without what the processor hides in it
 *
 *   step.h          for unwind/step.h, in BPF and user space; UNWIND_READ_U64 reads the target:
 *       arch_follows_call()            is there a call instruction before this address?
 *       arch_size_by_epilogue()        the size of a frame by the code that it returns to, or 0
 *       arch_plt_cfa()                 the CFA in a procedure linkage table that pushes words
 *
 *   kernel.bpf.h    what BPF programs read of the kernel:
 *       struct registers               pt_regs, and of struct thread_struct the thread pointer
 *       arch_is_kernel(), arch_is_user(), arch_is_compat()      whose registers these are
 *       arch_copy_registers()          to wire_stack_copy; arch_system_call(): its number or -1
 *       arch_first_argument(), arch_thread_pointer()
 *
 *   calls.h         for BPF programs and user space:
 *       ARCH_CALL_FUTEX, ARCH_CASES_*  system calls by what a thread in them waits for, as labels
 *                                      of a switch; those that being stopped ends
 *       arch_makes_child(), arch_reads_or_writes()
 *       ARCH_CALL_RESTART, arch_call_in_code()      of a call that the kernel restarts
 *
 *   tracee.h        the registers of a thread that ptrace has stopped
 *
 *   code.c          arch_decode() of arch/code.h, and code_registers.h, which code.h includes: the
 *                   numbers of registers in machine code (ARCH_SP, ARCH_FP, ARCH_SECOND,
 *                   ARCH_MACHINE_REGISTERS, ARCH_CALLER_SAVED) and arch_dwarf_register()
 *
 *   files.h         what linkers and C libraries write: instructions that return from a signal,
 *                   begin a program or a thread, the procedure linkage table, relocations
 *
 *   perf.h          registers as perf events give them
 *
 *   cpu.h           for the injected library and the sensors: arch_ticks() and whether they are
 *                   steady, arch_prefetch_to_write(), arch_machine()
 *
 *   launch.c        arch_launch_registers() and sonde_launch_marker(), see arch/launch.h
 */
#pragma once

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define ARCH_HEADER(name) <arch/x86_64/name.h>
#elif defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define ARCH_HEADER(name) <arch/aarch64/name.h>
#else
#error "sonde knows x86-64 and aarch64: see src/arch/arch.h"
#endif

#include ARCH_HEADER(registers)
