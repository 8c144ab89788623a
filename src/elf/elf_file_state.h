/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of opened ELF files share: elf_file.c has headers and sections, identity.c the
 * build-id and hash. Nothing else includes this.
 */
#pragma once

#include "base/array.h"
#include "elf/elf_file.h"
#include "elf/elf_source.h"

struct elf_file {
	struct elf_source source;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	uint64_t section_count, section_names_index;
	ARRAY_OF(struct elf_segment) segments;
	struct elf_segment eh_frame_header; /* file_size 0: none */
	struct build_id build_id;
	uint64_t note_bytes; /* looked through */
	uint64_t identity;
	struct elf_limits limits;
	uint64_t cpu_end_ns; /* 0: not limited */
};

/* How many of `length` bytes from `offset` lie in the file. */
uint64_t elf_present_bytes(const struct elf_file *file, uint64_t offset, uint64_t length);
/* Takes a build-id among the notes there. */
void elf_find_build_id(struct elf_file *file, uint64_t offset, uint64_t length, uint64_t alignment);
void elf_find_build_id_in_sections(struct elf_file *file);
/* Of the build-id, or else of the contents. Returns 0 or -ENOMEM. */
int elf_find_identity(struct elf_file *file);
