/* SPDX-License-Identifier: Apache-2.0 */
/* What linkers and C libraries write into x86-64 files; see arch/arch.h. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arch/code.h"

#define ARCH_RELOCATION_JUMP_SLOT   R_X86_64_JUMP_SLOT
#define ARCH_RELOCATION_GLOBAL_DATA R_X86_64_GLOB_DAT
#define ARCH_RELOCATION_INDIRECT    R_X86_64_IRELATIVE
#define ARCH_RELOCATION_RELATIVE    R_X86_64_RELATIVE

/* ---- code without call frame information that C libraries have ---- */

/* mov $SYS_rt_sigreturn, %rax; syscall: in musl and in stripped-down libraries. */
static const uint8_t arch_signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/*
 * Where musl's __clone() goes on in a new thread, on a stack without a caller: xor %ebp, %ebp; pop
 * %rdi; call *%r9; and then it ends the thread.
 */
static const uint8_t arch_thread_start[] = {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1};
#define ARCH_THREAD_START_BYTES 15 /* up to __clone()'s way back in the old thread */

#define ARCH_START_BYTES 8 /* that arch_begins_program() looks at */

/* _start clears rbp, the dynamic linker passes rsp on. */
static inline bool arch_begins_program(const uint8_t code[static ARCH_START_BYTES])
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t xor_ebp[] = {0x31, 0xed};
	static const uint8_t xor_rbp[] = {0x48, 0x31, 0xed};
	static const uint8_t mov_rsp_rdi_call[] = {0x48, 0x89, 0xe7, 0xe8};

	if (memcmp(code, endbr64, sizeof(endbr64)) == 0)
		code += sizeof(endbr64);
	return memcmp(code, xor_ebp, sizeof(xor_ebp)) == 0 ||
	       memcmp(code, xor_rbp, sizeof(xor_rbp)) == 0 ||
	       memcmp(code, mov_rsp_rdi_call, sizeof(mov_rsp_rdi_call)) == 0;
}

/* The address that the instruction takes, lea disp32(%rip), %reg; 0: none. */
static inline uint64_t arch_address_taken(
	const uint8_t *code, uint64_t vaddr, const struct arch_instruction *instruction)
{
	int32_t distance;

	if (instruction->length != 7 || (code[0] & 0xf8) != 0x48 || code[1] != 0x8d ||
		(code[2] & 0xc7) != 0x05)
		return 0;
	memcpy(&distance, code + 3, sizeof(distance));
	return vaddr + 7 + (uint64_t)(int64_t)distance;
}

/* ---- the procedure linkage table ---- */

#define ARCH_PLT_ENTRY_BYTES  16
#define ARCH_PLT_HEADER_BYTES 16

/* The header pushes the link map in its first instruction, and was entered with a number pushed. */
#define ARCH_PLT_HEADER_CFA       16
#define ARCH_PLT_HEADER_PUSHED_AT 6
#define ARCH_PLT_HEADER_PUSHES    8

/* glibc's _dl_runtime_resolve() counts what the header pushed. */
#define ARCH_RESOLVER_LEAVES_OUT 0

static inline bool arch_is_plt_header(const uint8_t *entry)
{
	static const uint8_t push_map[] = {0xff, 0x35}; /* push map(%rip) */

	return memcmp(entry, push_map, sizeof(push_map)) == 0;
}

/* Where in an entry its push ends; 0 when it has none, by the forms that linkers write. */
static inline uint16_t arch_plt_pushed_at(const uint8_t *entry)
{
	static const uint8_t jump[] = {0xff, 0x25}; /* jmp *slot(%rip) */
	static const uint8_t endbr_push[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x68}; /* endbr64; push $index */

	if (memcmp(entry, jump, sizeof(jump)) == 0 && entry[6] == 0x68)
		return 11;
	if (memcmp(entry, endbr_push, sizeof(endbr_push)) == 0)
		return 9;
	return entry[0] == 0x68 ? 5 : 0;
}

/* What an entry leads to: a slot of the global offset table, or a number among the relocations. */
struct arch_plt_target {
	uint64_t slot; /* 0: by number */
	uint32_t number;
};

static inline int32_t arch_read_i32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* By jmp *slot(%rip), else by push $number. False: no such entry. */
static inline bool arch_plt_read(
	const uint8_t *entry, size_t length, uint64_t vaddr, struct arch_plt_target *ret_target)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;

	if (length >= sizeof(endbr64) && memcmp(entry, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (at < length && entry[at] == 0xf2) /* bnd */
		at++;
	if (at + 6 <= length && entry[at] == 0xff && entry[at + 1] == 0x25) {
		*ret_target = (struct arch_plt_target){
			.slot = vaddr + at + 6 + (uint64_t)(int64_t)arch_read_i32(entry + at + 2)};
		return true;
	}
	if (at + 5 <= length && entry[at] == 0x68) {
		*ret_target =
			(struct arch_plt_target){.number = (uint32_t)arch_read_i32(entry + at + 1)};
		return true;
	}
	return false;
}
