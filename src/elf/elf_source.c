/* SPDX-License-Identifier: Apache-2.0 */
#include "elf/elf_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/*
 * All that is kept of one file at a time. The largest programs known have symbol tables of 400 MB;
 * a sparse file can promise any number.
 */
#define KEPT_MAX_BYTES ((uint64_t)768 << 20)
/* Many small ranges are asked for in ascending order: one read serves several. */
#define WINDOW_MIN_BYTES ((uint64_t)64 << 10)

int elf_source_open(struct elf_source *source, int fd)
{
	*source = (struct elf_source){.fd = -1};
	if (fstat(fd, &source->opened) < 0)
		return -errno;
	if (S_ISDIR(source->opened.st_mode))
		return -EISDIR;
	if (!S_ISREG(source->opened.st_mode))
		return -EINVAL;
	source->length = (uint64_t)source->opened.st_size;
	source->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return source->fd < 0 ? -errno : 0;
}

void elf_source_open_memory(struct elf_source *source, const void *bytes, size_t length)
{
	*source = (struct elf_source){.fd = -1, .memory = bytes, .length = length};
}

void elf_source_done(struct elf_source *source)
{
	array_foreach (&source->kept, kept)
		free(kept->bytes);
	array_done(&source->kept);
	free(source->window.bytes);
	closep(&source->fd);
}

/* How many bytes of the range are there, and copied: fewer when the file was cut. */
static uint64_t read_some(
	const struct elf_source *source, uint64_t offset, void *ret_bytes, uint64_t length)
{
	uint64_t done = 0;

	if (offset >= source->length)
		return 0;
	length = MIN(length, source->length - offset);
	if (source->memory) {
		memcpy(ret_bytes, source->memory + offset, length);
		return length;
	}
	while (done < length) {
		ssize_t got = pread(source->fd, (char *)ret_bytes + done, length - done,
			(off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (uint64_t)got;
	}
	return done;
}

bool elf_source_read(
	const struct elf_source *source, uint64_t offset, void *ret_bytes, size_t length)
{
	return read_some(source, offset, ret_bytes, length) == length;
}

static const struct elf_kept *find_kept(
	const struct elf_source *source, uint64_t offset, uint64_t length, bool inflated)
{
	array_foreach (&source->kept, kept) {
		if (kept->offset == offset && kept->inflated == inflated &&
			(inflated || kept->length == length))
			return kept;
	}
	return NULL;
}

const struct elf_kept *elf_source_find_inflated(const struct elf_source *source, uint64_t offset)
{
	return find_kept(source, offset, 0, true);
}

bool elf_source_has_room(struct elf_source *source, uint64_t length)
{
	if (length <= KEPT_MAX_BYTES - source->kept_bytes)
		return true;
	source->too_large = true;
	return false;
}

static bool keep(struct elf_source *source, struct elf_kept take_kept)
{
	if (array_append(&source->kept, take_kept) < 0) {
		source->no_memory = true;
		free(take_kept.bytes);
		return false;
	}
	source->kept_bytes += take_kept.length;
	return true;
}

const uint8_t *elf_source_keep(struct elf_source *source, uint64_t offset, uint64_t length)
{
	const struct elf_kept *known = find_kept(source, offset, length, false);
	struct elf_kept made = {.offset = offset, .length = length};

	if (known)
		return known->bytes;
	if (offset > source->length || length > source->length - offset)
		return NULL;
	if (source->memory)
		return source->memory + offset;
	if (!elf_source_has_room(source, length))
		return NULL;
	made.bytes = malloc(length ? length : 1);
	if (!made.bytes) {
		source->no_memory = true;
		return NULL;
	}
	if (!elf_source_read(source, offset, made.bytes, length)) {
		source->cut = true;
		free(made.bytes);
		return NULL;
	}
	return keep(source, made) ? made.bytes : NULL;
}

bool elf_source_keep_inflated(
	struct elf_source *source, uint64_t offset, uint8_t *take_bytes, uint64_t length)
{
	return keep(source,
		(struct elf_kept){
			.offset = offset, .length = length, .bytes = take_bytes, .inflated = true});
}

static bool window_covers(const struct elf_kept *window, uint64_t offset, uint64_t length)
{
	return window->bytes && offset >= window->offset &&
	       offset - window->offset <= window->length &&
	       length <= window->length - (offset - window->offset);
}

/* Grown without keeping the old contents. */
static bool reserve_window(struct elf_source *source, uint64_t length)
{
	if (length <= source->window_capacity)
		return true;
	free(source->window.bytes);
	source->window = (struct elf_kept){.bytes = malloc(length)};
	source->window_capacity = source->window.bytes ? length : 0;
	source->no_memory |= !source->window.bytes;
	return source->window.bytes != NULL;
}

const uint8_t *elf_source_window(
	struct elf_source *source, uint64_t offset, uint64_t length, uint64_t *ret_length)
{
	struct elf_kept *window = &source->window;

	if (offset >= source->length)
		return NULL;
	*ret_length = length = MIN(length, source->length - offset);
	if (source->memory)
		return source->memory + offset;
	if (!window_covers(window, offset, length)) {
		if (!reserve_window(source, MAX(length, WINDOW_MIN_BYTES)))
			return NULL;
		window->offset = offset;
		window->length =
			read_some(source, offset, window->bytes, MAX(length, WINDOW_MIN_BYTES));
		source->cut |= window->length < length;
		*ret_length = MIN(length, window->length);
	}
	return *ret_length ? window->bytes + (offset - window->offset) : NULL;
}

bool elf_source_unchanged(const struct elf_source *source)
{
	const struct stat *before = &source->opened;
	struct stat now;

	if (source->fd < 0)
		return true;
	return fstat(source->fd, &now) == 0 && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}
