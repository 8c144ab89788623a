/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "chakra/et_file.h"

#define FLUSH_BYTES ((size_t)1 << 20)

struct et_writer {
	int fd;          /* -1: into memory */
	bool is_ours;    /* the descriptor is closed here */
	char *path;      /* NULL: into memory, or standard output */
	char *temporary; /* NULL: written in place */
	mode_t mode;     /* of the new file */
	struct strbuf *out, own;
	uint64_t bytes;
	int error; /* the first */
};

/* What open() would give a new file; the one before keeps its own. */
static mode_t mode_of(const struct stat *before)
{
	mode_t mask;

	if (before)
		return before->st_mode & 07777;
	mask = umask(077);
	umask(mask);
	return 0666 & ~mask;
}

static int open_path(struct et_writer *writer, const char *path)
{
	_cleanup_strbuf_ struct strbuf temporary = {0};
	struct stat status;
	bool exists = stat(path, &status) == 0;

	writer->is_ours = true;
	writer->path = strdup(path);
	if (!writer->path)
		return -ENOMEM;
	if (exists && !S_ISREG(status.st_mode)) {
		writer->fd = open(path, O_WRONLY | O_CLOEXEC);
		return writer->fd < 0 ? -errno : 0;
	}
	strbuf_addf(&temporary, "%s.XXXXXX", path);
	if (strbuf_status(&temporary) < 0)
		return -ENOMEM;
	writer->mode = mode_of(exists ? &status : NULL);
	writer->fd = mkostemp(temporary.data, O_CLOEXEC);
	if (writer->fd < 0)
		return -errno;
	writer->temporary = TAKE_PTR(temporary.data);
	return 0;
}

static struct et_writer *new_writer(struct strbuf *out)
{
	struct et_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->fd = -1;
	writer->out = out ?: &writer->own;
	return writer;
}

static int cannot_write(const struct et_writer *writer, int error, struct errmsg *err)
{
	const char *path = writer && writer->path ? writer->path : "standard output";

	if (error == -ENOMEM)
		return errmsg_set(err, error, "memory ran out while writing an execution trace");
	if (error == -EMSGSIZE)
		return errmsg_set(err, error,
			"cannot write %s: one node takes more than 32 MB; is a name or a list in "
			"the input damaged?",
			path);
	if (error == -ENOSPC || error == -EDQUOT)
		return errmsg_set(err, error,
			"cannot write %s: %s; free some space, or write elsewhere", path,
			strerror(-error));
	return errmsg_set(
		err, error, "cannot write %s: %s; name another file", path, strerror(-error));
}

int et_writer_open(struct et_writer **ret_writer, const char *path, struct errmsg *err)
{
	_cleanup_et_writer_ struct et_writer *writer = new_writer(NULL);
	int r = 0;

	if (!writer)
		return cannot_write(NULL, -ENOMEM, err);
	if (strcmp(path, "-") == 0)
		writer->fd = STDOUT_FILENO;
	else
		r = open_path(writer, path);
	if (r < 0)
		return cannot_write(writer, r, err);
	*ret_writer = TAKE_PTR(writer);
	return 0;
}

int et_writer_open_memory(struct et_writer **ret_writer, struct strbuf *out)
{
	struct et_writer *writer = new_writer(out);

	if (!writer)
		return -ENOMEM;
	*ret_writer = writer;
	return 0;
}

static void flush(struct et_writer *writer)
{
	int r = strbuf_status(writer->out);

	if (r == 0 && writer->fd >= 0) {
		r = write_all(writer->fd, writer->out->data, writer->out->length);
		strbuf_clear(writer->out);
	}
	if (writer->error == 0)
		writer->error = r;
}

static void put_varint(struct strbuf *out, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		strbuf_add_char(out, (char)(value | 0x80));
	strbuf_add_char(out, (char)value);
}

static void write_message(struct et_writer *writer, const ProtobufCMessage *message)
{
	size_t length = protobuf_c_message_get_packed_size(message), before = writer->out->length;
	uint8_t *room;

	if (writer->error < 0)
		return;
	if (length > ET_MAX_MESSAGE) {
		writer->error = -EMSGSIZE;
		return;
	}
	put_varint(writer->out, (uint32_t)length);
	room = strbuf_extend(writer->out, length);
	if (room)
		protobuf_c_message_pack(message, room);
	writer->bytes += writer->out->length - before;
	if (!room || (writer->fd >= 0 && writer->out->length >= FLUSH_BYTES))
		flush(writer);
}

void et_write_metadata(struct et_writer *writer, const et_metadata *metadata)
{
	write_message(writer, &metadata->base);
}

void et_write_node(struct et_writer *writer, const et_node *node)
{
	write_message(writer, &node->base);
}

/* The temporary file becomes the one that was asked for. */
static int put_in_place(struct et_writer *writer)
{
	if (writer->is_ours && close(TAKE_FD(writer->fd)) < 0)
		return -errno;
	if (!writer->temporary)
		return 0;
	/* Temporary files are private; a failure to open it to others loses nothing. */
	(void)!chmod(writer->temporary, writer->mode);
	if (rename(writer->temporary, writer->path) < 0)
		return -errno;
	free(writer->temporary);
	writer->temporary = NULL;
	return 0;
}

int et_writer_close(struct et_writer *writer, uint64_t *ret_bytes, struct errmsg *err)
{
	_cleanup_et_writer_ struct et_writer *owned = writer;
	int r;

	flush(writer);
	r = writer->error ?: put_in_place(writer);
	if (r < 0)
		return cannot_write(writer, r, err);
	if (ret_bytes)
		*ret_bytes = writer->bytes;
	return 0;
}

struct et_writer *et_writer_free(struct et_writer *writer)
{
	if (!writer)
		return NULL;
	if (writer->is_ours)
		closep(&writer->fd);
	if (writer->temporary)
		unlink(writer->temporary);
	free(writer->temporary);
	free(writer->path);
	strbuf_done(&writer->own);
	free(writer);
	return NULL;
}

void et_writer_freep(struct et_writer **writer)
{
	et_writer_free(*writer);
}
