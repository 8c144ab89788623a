/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An opened ELF file, 64-bit little-endian: what the unwinder and the symboliser both need to know
 * of it. Every offset of a foreign file is validated here, and its bytes are read, never mapped:
 * its owner may cut it at any time. Callers get either good bytes or an error.
 */
#pragma once

#include <elf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/strbuf.h"

#define BUILD_ID_MAX_BYTES 64

struct build_id {
	uint8_t bytes[BUILD_ID_MAX_BYTES];
	uint8_t length; /* 0: the file has none */
};

/* Lower-case hex into `ret_text` (2 * length + 1 bytes used). */
void build_id_to_hex(const struct build_id *id, char ret_text[2 * BUILD_ID_MAX_BYTES + 1]);
bool build_id_equal(const struct build_id *a, const struct build_id *b);
/* elf_file_identity() of every file with this build-id, which must not be empty. */
uint64_t build_id_identity(const struct build_id *id);

/* One PT_LOAD segment. */
struct elf_segment {
	uint64_t file_offset, vaddr, file_size, memory_size;
	bool executable;
};

/* Bytes of a section or segment. */
struct elf_bytes {
	const uint8_t *bytes;
	size_t length;
	uint64_t vaddr; /* 0 for sections that are not loaded */
};

/* How long one file may be worked on. Zero: without a limit. */
struct elf_limits {
	const atomic_bool *given_up; /* NULL: never */
	uint64_t cpu_ns;             /* of the calling thread, counted from elf_file_limit() */
};

struct elf_file;

/* Of an open descriptor, which stays the caller's; messages use `name_for_messages`. */
int elf_file_open_fd(
	struct elf_file **ret_file, int fd, const char *name_for_messages, struct errmsg *err);
/* Opens an image in memory (vDSO, fuzzing). The bytes must outlive the elf_file. */
int elf_file_open_memory(struct elf_file **ret_file, const void *bytes, size_t length,
	const char *name_for_messages, struct errmsg *err);
struct elf_file *elf_file_free(struct elf_file *file);
void elf_file_freep(struct elf_file **file);
#define _cleanup_elf_file_ _cleanup_(elf_file_freep)

/* Limits the work on this file from now on; long loops over foreign tables ask elf_file_status().
 */
void elf_file_limit(struct elf_file *file, const struct elf_limits *limits);
/*
 * 0 while the file is what it was and all that was asked for could be read. Else what was made of
 * it must not be kept: -ESTALE it was cut or written to, -EFBIG it holds more than is read, -ETIME
 * or -ECANCELED a limit, -ENOMEM.
 */
int elf_file_status(const struct elf_file *file);
/* Limits the work on `file` as that on `other`, whose debug file it is for example. */
void elf_file_limit_as(struct elf_file *file, const struct elf_file *other);
/* True when the limits' flag is set. Costs a load. */
bool elf_file_given_up(const struct elf_file *file);
/* Why a status, or another negative errno, stands in the way: "it changed while it was read".
 */
const char *elf_file_explain(int status);

/* The build-id of all SHT_NOTE and PT_NOTE notes; length 0 when there is none. */
const struct build_id *elf_file_build_id(const struct elf_file *file);
/*
 * The file's identity: build_id_identity(), or for a file without build-id a hash of its size and
 * contents (all of a small file, head, tail and evenly spread blocks of a large one). Never 0.
 * Names its unwind table in the BPF maps and in the cache.
 */
uint64_t elf_file_identity(const struct elf_file *file);
/*
 * Appends a name for what is made of this very file, and of no other: device, inode, size, times,
 * owner and identity. A build-id is what the file says of itself; a cache that went by it alone
 * would give one program the functions of another that has the same.
 */
void elf_file_cache_name(const struct elf_file *file, struct strbuf *ret_name);
/* Who owns the file, and its group; of an image in memory we do. */
void elf_file_owner(const struct elf_file *file, uid_t *ret_user, gid_t *ret_group);

/* e_machine (EM_X86_64 …) and e_entry, 0 when there is none. */
unsigned elf_file_machine(const struct elf_file *file);
uint64_t elf_file_entry(const struct elf_file *file);

size_t elf_file_segment_count(const struct elf_file *file);
const struct elf_segment *elf_file_segment(const struct elf_file *file, size_t index);
/* The segment that covers `vaddr` in memory; NULL when none does. */
const struct elf_segment *elf_file_segment_at(const struct elf_file *file, uint64_t vaddr);

/* Sections by index, as in the file; what does not fit into the file is absent. */
size_t elf_file_section_count(const struct elf_file *file);
const Elf64_Shdr *elf_file_section_header(const struct elf_file *file, size_t index);
/* The first section of this name, or of this type; 0 when there is none. */
size_t elf_file_find_section(struct elf_file *file, const char *name);
size_t elf_file_find_section_of_type(const struct elf_file *file, uint32_t type);
/*
 * The section's bytes, decompressed when SHF_COMPRESSED (zlib); they live as long as the file.
 * False when it is absent, NOBITS, out of bounds or compressed otherwise, or cannot be read: the
 * status then says so.
 */
bool elf_file_section_bytes(struct elf_file *file, size_t index, struct elf_bytes *ret_bytes);
bool elf_file_section(struct elf_file *file, const char *section_name, struct elf_bytes *ret_bytes);

/* Copies bytes of the file, at an offset or as loaded at `vaddr`; false when not all are there. */
bool elf_file_read(const struct elf_file *file, uint64_t offset, void *ret_bytes, size_t length);
bool elf_file_read_loaded(
	const struct elf_file *file, uint64_t vaddr, void *ret_bytes, size_t length);
uint64_t elf_file_length(const struct elf_file *file);
/* How many bytes of the file are loaded from `vaddr` on, to the end of the segment; 0: none. */
uint64_t elf_file_loaded_length(const struct elf_file *file, uint64_t vaddr);
/*
 * Up to `length` bytes as loaded from `vaddr` (through PT_LOAD), fewer at the end of the segment,
 * and at most ELF_WINDOW_MAX_BYTES; they live until the next call. False when there are none.
 */
#define ELF_WINDOW_MAX_BYTES ((uint64_t)64 << 20)
bool elf_file_window(
	struct elf_file *file, uint64_t vaddr, uint64_t length, struct elf_bytes *ret_bytes);
/* All bytes from `vaddr` to the end of its segment; they live as long as the file. */
bool elf_file_loaded_rest(struct elf_file *file, uint64_t vaddr, struct elf_bytes *ret_bytes);

/*
 * Visits the address ranges that hold code: executable sections, or executable segments in a file
 * without section headers. Start with *position = 0; false at the end. The order is the file's.
 */
bool elf_file_next_code(
	const struct elf_file *file, size_t *position, uint64_t *ret_vaddr, uint64_t *ret_length);
/* Where the PT_GNU_EH_FRAME segment (.eh_frame_hdr) is; false when the file has none. */
bool elf_file_eh_frame_header(const struct elf_file *file, struct elf_segment *ret_segment);

/*
 * Where the function at or before `vaddr` begins, by the search table of .eh_frame_hdr: also for
 * files without symbols. False when there is no such table, or nothing before `vaddr`.
 */
bool elf_file_function_start(const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start);
/* True when that function goes on to `vaddr`, and does not end before it. */
bool elf_file_function_covers(const struct elf_file *file, uint64_t vaddr);
/* How many functions that table has; 0 without one. */
uint32_t elf_file_function_count(const struct elf_file *file);
/* The same, and where the next one begins: UINT64_MAX after the last. */
bool elf_file_function_range(
	const struct elf_file *file, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);
