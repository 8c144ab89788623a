/* SPDX-License-Identifier: Apache-2.0 */
/* What linkers and C libraries write into aarch64 files; see arch/arch.h. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch/code.h"

#define ARCH_RELOCATION_JUMP_SLOT   R_AARCH64_JUMP_SLOT
#define ARCH_RELOCATION_GLOBAL_DATA R_AARCH64_GLOB_DAT
#define ARCH_RELOCATION_INDIRECT    R_AARCH64_IRELATIVE
#define ARCH_RELOCATION_RELATIVE    R_AARCH64_RELATIVE

static inline uint32_t arch_word(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return word;
}

/* A place that an indirect branch may lead to, or a no-operation. */
static inline bool arch_is_landing(uint32_t word)
{
	return (word & 0xffffff3f) == 0xd503241f || word == 0xd503201f;
}

/* ---- code without call frame information that C libraries have ---- */

/* mov x8, #SYS_rt_sigreturn; svc #0: the kernel's own and musl's. */
static const uint8_t arch_signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

/*
 * Where musl's __clone() goes on in a new thread, on a stack without a caller: ldp x1, x0, [sp],
 * #16; blr x1; and then it ends the thread.
 */
static const uint8_t arch_thread_start[] = {0xe1, 0x03, 0xc1, 0xa8, 0x20, 0x00, 0x3f, 0xd6};
#define ARCH_THREAD_START_BYTES 16

#define ARCH_START_BYTES 12

/* _start clears the frame pointer, the dynamic linker passes the stack pointer on. */
static inline bool arch_begins_program(const uint8_t code[static ARCH_START_BYTES])
{
	for (size_t at = 0; at < ARCH_START_BYTES; at += sizeof(uint32_t)) {
		uint32_t word = arch_word(code + at);

		if (!arch_is_landing(word))
			return word == 0xd280001d ||
			       word == 0x910003e0; /* mov x29, #0; mov x0, sp */
	}
	return false;
}

/* The address that the instruction takes, adr; 0: none. */
static inline uint64_t arch_address_taken(
	const uint8_t *code, uint64_t vaddr, const struct arch_instruction *instruction)
{
	uint32_t word = arch_word(code);
	int64_t distance = (int64_t)((uint64_t)(word >> 5 & 0x7ffff) << 45) >> 43;

	if (instruction->effect != ARCH_OTHER || (word & 0x9f000000) != 0x10000000)
		return 0;
	return vaddr + (uint64_t)(distance | (word >> 29 & 3));
}

/* ---- the procedure linkage table ---- */

#define ARCH_PLT_ENTRY_BYTES  16
#define ARCH_PLT_HEADER_BYTES 32

/* stp x16, x30, [sp, #-16]! */
#define ARCH_PLT_HEADER_CFA       0
#define ARCH_PLT_HEADER_PUSHED_AT 4
#define ARCH_PLT_HEADER_PUSHES    16

/*
 * Call frame information of glibc's _dl_runtime_resolve() leaves out what the header pushed: its
 * CFA is this much below the caller's stack pointer, and the return address above it.
 */
#define ARCH_RESOLVER_LEAVES_OUT 16

static inline bool arch_is_plt_header(const uint8_t *entry)
{
	uint32_t word = arch_word(entry);

	return (arch_is_landing(word) ? arch_word(entry + 4) : word) == 0xa9bf7bf0;
}

static inline uint16_t arch_plt_pushed_at(const uint8_t *entry)
{
	(void)entry;
	return 0;
}

/* What an entry leads to: a slot of the global offset table. */
struct arch_plt_target {
	uint64_t slot; /* never 0 */
	uint32_t number;
};

/* adrp x16, page; ldr x17, [x16, #offset]. False: no such entry. */
static inline bool arch_plt_read(
	const uint8_t *entry, size_t length, uint64_t vaddr, struct arch_plt_target *ret_target)
{
	uint32_t page, load;
	int64_t pages;

	if (length >= 12 && arch_is_landing(arch_word(entry))) {
		entry += 4;
		vaddr += 4;
		length -= 4;
	}
	if (length < 8)
		return false;
	page = arch_word(entry);
	load = arch_word(entry + 4);
	if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (int64_t)((uint64_t)(page >> 5 & 0x7ffff) << 45) >> 43 | (page >> 29 & 3);
	*ret_target = (struct arch_plt_target){
		.slot = (vaddr & ~4095ULL) + ((uint64_t)pages << 12) + (load >> 10 & 0xfff) * 8};
	return true;
}
