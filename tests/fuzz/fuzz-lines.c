/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file whose source lines are asked for. libdw reads most of it, which is not
 * ours: what it does to the process that runs it is why that is a child (fuzz-line-answer has what
 * then reaches us). This looks at what we make of libdw's answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/elf_file.h"
#include "symbols/lines.h"
#include "target.h"

/* Unpacking takes time, and no code of ours. */
#define UNPACKED_MAX_BYTES ((uint64_t)1 << 20)
#define DEPTH              8

static void ask(struct line_table *table, uint64_t vaddr)
{
	struct source_line lines[DEPTH];
	size_t count = line_table_find(table, vaddr, lines, DEPTH), text_bytes = 0;

	if (count > DEPTH)
		abort();
	for (size_t i = 0; i < count; i++) {
		text_bytes += lines[i].function ? strlen(lines[i].function) : 0;
		text_bytes += lines[i].file ? strlen(lines[i].file) : 0;
	}
	if (text_bytes > (size_t)1 << 30)
		abort();
}

static void ask_all(struct line_table *table, const struct elf_file *file)
{
	if (line_table_unpacked_bytes(table) > UNPACKED_MAX_BYTES)
		return;
	for (size_t i = 0; i < elf_file_segment_count(file); i++) {
		const struct elf_segment *segment = elf_file_segment(file, i);

		for (uint64_t at = 0; at < segment->memory_size && at < 2048; at += 16)
			ask(table, segment->vaddr + at);
	}
	ask(table, 0);
	ask(table, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_elf_file_ struct elf_file *file = NULL;
	int fd = memfd_create("input", MFD_CLOEXEC);
	struct line_table *table = NULL;
	struct errmsg err;
	char path[64];

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write_all(fd, bytes, length) == 0 &&
		elf_file_open_memory(&file, bytes, length, "input", &err) == 0 &&
		line_table_open(&table, path, "", &err) == 0)
		ask_all(table, file);
	line_table_free(table);
	closep(&fd);
	return 0;
}
