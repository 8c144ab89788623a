/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/output_file.h"
#include "capture/protobuf.h"
#include "chakra/et/file.h"

struct et_writer {
	struct output_file file;
	struct strbuf *memory; /* NULL: into the file */
	uint64_t bytes;
	bool too_long; /* a message was */
};

int et_writer_open(struct et_writer **ret_writer, const char *path, struct errmsg *err)
{
	_cleanup_et_writer_ struct et_writer *writer = calloc(1, sizeof(*writer));
	int r;

	if (!writer)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing %s", path);
	r = output_file_open(&writer->file, path, err);
	if (r == 0)
		*ret_writer = TAKE_PTR(writer);
	return r;
}

int et_writer_open_memory(struct et_writer **ret_writer, struct strbuf *out)
{
	struct et_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	writer->memory = out;
	*ret_writer = writer;
	return 0;
}

void et_write_message(struct et_writer *writer, const void *message, size_t length)
{
	struct strbuf *out = writer->memory ?: &writer->file.out;
	size_t before = out->length;

	if (writer->too_long || length > ET_MAX_MESSAGE) {
		writer->too_long = true;
		return;
	}
	pb_put_varint(out, length);
	strbuf_add_bytes(out, message, length);
	writer->bytes += out->length - before;
	if (!writer->memory)
		output_file_keep_small(&writer->file);
}

int et_writer_close(struct et_writer *writer, uint64_t *ret_bytes, struct errmsg *err)
{
	_cleanup_et_writer_ struct et_writer *owned = writer;
	int r = 0;

	if (owned->too_long)
		return errmsg_set(err, -EMSGSIZE,
			"one node takes more than 32 MB: is a name or a list in the input "
			"damaged?");
	if (!owned->memory)
		r = output_file_close(&owned->file, err);
	else if (strbuf_status(owned->memory) < 0)
		r = errmsg_set(err, -ENOMEM, "memory ran out while writing an execution trace");
	if (r == 0 && ret_bytes)
		*ret_bytes = owned->bytes;
	return r;
}

struct et_writer *et_writer_free(struct et_writer *writer)
{
	if (writer && !writer->memory)
		output_file_done(&writer->file);
	free(writer);
	return NULL;
}

void et_writer_freep(struct et_writer **writer)
{
	et_writer_free(*writer);
}
