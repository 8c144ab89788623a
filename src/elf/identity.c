/* SPDX-License-Identifier: Apache-2.0 */
/* What tells a file from others: its build-id, or a hash of what is in it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "elf/elf_file_state.h"

#define PAGE_BYTES 4096ULL
/* A file without build-id is hashed whole up to this size, else in this many blocks of a page. */
#define IDENTITY_WHOLE_BYTES ((size_t)4 << 20)
#define IDENTITY_BLOCKS      256
/* Notes of linkers are below a kilobyte; those of probes (.note.stapsdt) some ten. */
#define NOTES_MAX_BYTES ((uint64_t)1 << 20)

void build_id_to_hex(const struct build_id *id, char ret_text[2 * BUILD_ID_MAX_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	char *out = ret_text;

	for (size_t i = 0; i < id->length; i++) {
		*out++ = digits[id->bytes[i] >> 4];
		*out++ = digits[id->bytes[i] & 15];
	}
	*out = '\0';
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static uint64_t never_zero(uint64_t hash)
{
	return hash ? hash : 1;
}

uint64_t build_id_identity(const struct build_id *id)
{
	return never_zero(hash_bytes(id->bytes, id->length, id->length));
}

/* How many of `length` bytes from `offset` lie in the file. */
uint64_t elf_present_bytes(const struct elf_file *file, uint64_t offset, uint64_t length)
{
	return offset >= file->source.length ? 0 : MIN(length, file->source.length - offset);
}

static uint64_t note_align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/* Looks for the build-id among the notes. Sizes are 32-bit, so 64-bit sums of them cannot overflow.
 */
void elf_find_build_id(struct elf_file *file, uint64_t offset, uint64_t length, uint64_t alignment)
{
	_cleanup_free_ uint8_t *notes = NULL;
	uint64_t at = 0;

	length = elf_present_bytes(file, offset, length);
	/* Each counts as a page at least: a file may have very many empty ones. */
	file->note_bytes += MAX(length, PAGE_BYTES);
	if (length == 0 || file->note_bytes > NOTES_MAX_BYTES)
		return;
	notes = malloc(length);
	if (!notes || !elf_source_read(&file->source, offset, notes, length))
		return;
	alignment = alignment == 8 ? 8 : 4;
	while (file->build_id.length == 0 && at < length && length - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name_at = at + sizeof(note), value_at;

		memcpy(&note, notes + at, sizeof(note));
		value_at = note_align(name_at + note.n_namesz, alignment);
		at = note_align(value_at + note.n_descsz, alignment);
		if (value_at + note.n_descsz > length)
			return;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
			memcmp(notes + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) != 0)
			continue;
		if (note.n_descsz == 0 || note.n_descsz > BUILD_ID_MAX_BYTES)
			continue;
		memcpy(file->build_id.bytes, notes + value_at, note.n_descsz);
		file->build_id.length = (uint8_t)note.n_descsz;
	}
}

void elf_find_build_id_in_sections(struct elf_file *file)
{
	for (uint64_t i = 0; file->build_id.length == 0 && i < file->section_count; i++) {
		const Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type == SHT_NOTE)
			elf_find_build_id(
				file, section->sh_offset, section->sh_size, section->sh_addralign);
	}
}

/* Goes on with the hash over a block; what cannot be read any more counts as nothing. */
static uint64_t hash_block(
	const struct elf_file *file, uint64_t offset, uint8_t *block, size_t length, uint64_t hash)
{
	if (!elf_source_read(&file->source, offset, block, length))
		return hash;
	return hash_bytes(block, length, hash);
}

static int hash_contents(const struct elf_file *file, uint64_t *ret_hash)
{
	uint64_t length = file->source.length, hash = length, stride;
	size_t block_length = length <= IDENTITY_WHOLE_BYTES ? length : PAGE_BYTES;
	_cleanup_free_ uint8_t *block = malloc(block_length);

	if (!block)
		return -ENOMEM;
	if (length <= IDENTITY_WHOLE_BYTES) {
		*ret_hash = hash_block(file, 0, block, length, hash);
		return 0;
	}
	stride = (length - PAGE_BYTES) / (IDENTITY_BLOCKS - 1);
	for (size_t i = 0; i < IDENTITY_BLOCKS - 1; i++)
		hash = hash_block(file, i * stride, block, PAGE_BYTES, hash);
	*ret_hash = hash_block(file, length - PAGE_BYTES, block, PAGE_BYTES, hash);
	return 0;
}

int elf_find_identity(struct elf_file *file)
{
	int result = 0;

	if (file->build_id.length)
		file->identity = build_id_identity(&file->build_id);
	else
		result = hash_contents(file, &file->identity);
	file->identity = never_zero(file->identity);
	return result;
}
