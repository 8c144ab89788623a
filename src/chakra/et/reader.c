/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/input_file.h"
#include "chakra/et/file.h"

#define CHUNK          ((size_t)256 * 1024)
#define MAX_VARINT     5 /* of 32 bits */
#define BLOCK_BYTES    ((size_t)64 * 1024)
#define MAX_NODE_BYTES ((size_t)512 << 20) /* small parts take more in memory than in the file */

/* What the parts of one message are made in; all are given back together. */
struct arena {
	ProtobufCAllocator allocator;
	char *block; /* BLOCK_BYTES, kept for the next message */
	size_t used, total;
	ARRAY_OF(void *) others; /* what found no room in it */
	bool is_full;
};

struct et_reader {
	char *name;
	gzFile file; /* NULL: from memory */
	const unsigned char *at, *end;
	struct strbuf window; /* of a file: at and end lie in it */
	uint64_t offset;      /* of `at` in the file */
	struct et_place place;
	uint64_t messages;
	et_metadata *metadata;
	struct arena metadata_arena, arena;
};

static void *arena_alloc(void *data, size_t size)
{
	struct arena *arena = data;
	void *other;

	size = (size + 15) & ~(size_t)15;
	if (arena->block && size <= BLOCK_BYTES - arena->used) {
		arena->used += size;
		return arena->block + arena->used - size;
	}
	arena->total += size;
	arena->is_full = arena->is_full || arena->total > MAX_NODE_BYTES;
	other = arena->is_full ? NULL : malloc(size);
	if (!other || array_append(&arena->others, other) < 0) {
		free(other);
		return NULL;
	}
	return other;
}

static void arena_free(void *data _unused_, void *part _unused_)
{
}

static void arena_clear(struct arena *arena)
{
	array_foreach (&arena->others, other)
		free(*other);
	array_clear(&arena->others);
	arena->used = arena->total = 0;
	arena->is_full = false;
}

static void arena_init(struct arena *arena)
{
	arena->block = malloc(BLOCK_BYTES); /* without it, every part is an allocation */
	arena->allocator.alloc = arena_alloc;
	arena->allocator.free = arena_free;
	arena->allocator.allocator_data = arena;
}

static void arena_done(struct arena *arena)
{
	arena_clear(arena);
	array_done(&arena->others);
	free(arena->block);
}

static int damaged(const struct et_reader *reader, struct errmsg *err, const char *how)
{
	return errmsg_set(err, -EBADMSG,
		"%s is damaged: %s in message %llu, at byte %llu; write it again with sonde chakra "
		"convert",
		reader->name, how, (unsigned long long)reader->messages,
		(unsigned long long)reader->place.offset);
}

static int out_of_memory(const struct et_reader *reader, struct errmsg *err)
{
	return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", reader->name);
}

/* More of the file behind what is left of the window. Returns 1, 0 at its end, or an error. */
static int fill_more(struct et_reader *reader, struct errmsg *err)
{
	size_t left = (size_t)(reader->end - reader->at);
	int got, error;
	char *room;

	if (!reader->file)
		return 0;
	if (left > 0 && reader->at != (unsigned char *)reader->window.data)
		memmove(reader->window.data, reader->at, left);
	reader->window.length = left;
	room = strbuf_extend(&reader->window, CHUNK);
	if (!room)
		return out_of_memory(reader, err);
	got = gzread(reader->file, room, CHUNK);
	reader->at = (unsigned char *)reader->window.data;
	reader->end = reader->at + left + MAX(got, 0);
	if (got > 0)
		return 1;
	gzerror(reader->file, &error);
	if (got == 0 && error == Z_OK)
		return 0;
	if (error == Z_ERRNO)
		return errmsg_set(err, -errno, "cannot read %s: %s", reader->name, strerror(errno));
	return errmsg_set(err, -EBADMSG,
		"%s is damaged: its gzip data are %s; copy or compress it again", reader->name,
		error == Z_BUF_ERROR ? "cut off" : "wrong");
}

/* So many bytes from `at` on. Returns 1, 0 when the file ends before, or an error. */
static int need(struct et_reader *reader, size_t length, struct errmsg *err)
{
	int r = 1;

	while (r == 1 && (size_t)(reader->end - reader->at) < length)
		r = fill_more(reader, err);
	return r;
}

static int read_length(struct et_reader *reader, uint32_t *ret_length, struct errmsg *err)
{
	uint64_t length = 0;

	for (unsigned i = 0;; i++) {
		int r = need(reader, 1, err);

		if (r < 0 || (r == 0 && i == 0))
			return r;
		if (r == 0)
			return damaged(reader, err, "the file is cut off");
		if (i == MAX_VARINT)
			return damaged(reader, err, "the length is not a 32-bit number");
		length |= (uint64_t)(*reader->at & 0x7f) << (7 * i);
		reader->offset++;
		if (!(*reader->at++ & 0x80))
			break;
	}
	if (length > ET_MAX_MESSAGE)
		return damaged(reader, err, "the length is more than 32 MB");
	*ret_length = (uint32_t)length;
	return 1;
}

/* Returns 1 and a message of `arena`, 0 at the end of the file, or an error. */
static int read_message(struct et_reader *reader, const ProtobufCMessageDescriptor *descriptor,
	struct arena *arena, void **ret_message, struct errmsg *err)
{
	uint32_t length = 0;
	void *message;
	int r;

	reader->place = (struct et_place){.offset = reader->offset};
	r = read_length(reader, &length, err);
	if (r <= 0)
		return r;
	reader->place.length = length;
	r = need(reader, length, err);
	if (r < 0)
		return r;
	if (r == 0)
		return damaged(reader, err, "the file is cut off");
	arena_clear(arena);
	message = protobuf_c_message_unpack(descriptor, &arena->allocator, length, reader->at);
	if (!message)
		return arena->is_full ? damaged(reader, err, "there are too many small parts")
				      : damaged(reader, err, "the bytes are not a Chakra message");
	reader->at += length;
	reader->offset += length;
	reader->messages++;
	*ret_message = message;
	return 1;
}

static struct et_reader *new_reader(const char *name)
{
	struct et_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	arena_init(&reader->arena);
	arena_init(&reader->metadata_arena);
	reader->name = strdup(name);
	return reader->name ? reader : et_reader_free(reader);
}

static int read_metadata(struct et_reader *reader, struct errmsg *err)
{
	void *metadata = NULL;
	int r = read_message(reader, &chakra_proto_msg__global_metadata__descriptor,
		&reader->metadata_arena, &metadata, err);

	if (r == 0)
		return errmsg_set(err, -EBADMSG,
			"%s is empty: a Chakra execution trace begins with its metadata; write it "
			"with sonde chakra convert",
			reader->name);
	if (r == -EBADMSG)
		return errmsg_set(err, r,
			"%s is not a Chakra execution trace, or is cut off in its first message: "
			"name a file of sonde chakra convert or chakra_converter",
			reader->name);
	reader->metadata = metadata;
	return MIN(r, 0);
}

int et_reader_open(struct et_reader **ret_reader, const char *path, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = new_reader(path);
	_cleanup_close_ int fd = input_open(path, 0);
	struct stat status;
	int r;

	if (!reader)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", path);
	if (fd < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
		return errmsg_set(
			err, -EISDIR, "cannot read %s: it is a directory; name a file in it", path);
	reader->file = gzdopen(fd, "rb");
	if (!reader->file)
		return out_of_memory(reader, err);
	TAKE_FD(fd);
	r = read_metadata(reader, err);
	if (r == 0)
		*ret_reader = TAKE_PTR(reader);
	return r;
}

int et_reader_open_bytes(struct et_reader **ret_reader, const void *bytes, size_t length,
	const char *name, struct errmsg *err)
{
	_cleanup_et_reader_ struct et_reader *reader = new_reader(name);
	int r;

	if (!reader)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", name);
	reader->at = bytes;
	reader->end = reader->at + length;
	r = read_metadata(reader, err);
	if (r == 0)
		*ret_reader = TAKE_PTR(reader);
	return r;
}

const et_metadata *et_reader_metadata(const struct et_reader *reader)
{
	return reader->metadata;
}

int et_reader_next(struct et_reader *reader, const et_node **ret_node, struct errmsg *err)
{
	void *node = NULL;
	int r = read_message(
		reader, &chakra_proto_msg__node__descriptor, &reader->arena, &node, err);

	if (r == 1)
		*ret_node = node;
	return r;
}

struct et_place et_reader_place(const struct et_reader *reader)
{
	return reader->place;
}

struct et_reader *et_reader_free(struct et_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->file)
		gzclose(reader->file);
	arena_done(&reader->arena);
	arena_done(&reader->metadata_arena);
	strbuf_done(&reader->window);
	free(reader->name);
	free(reader);
	return NULL;
}

void et_reader_freep(struct et_reader **reader)
{
	et_reader_free(*reader);
}
