/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chakra's .et files: a GlobalMetadata, then Nodes, each after its length as a varint. Both ways go
 * message by message, so that memory does not grow with the file. Files may be compressed by gzip
 * for reading, never for writing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "chakra.pb-c.h"

typedef ChakraProtoMsg__GlobalMetadata et_metadata;
typedef ChakraProtoMsg__Node et_node;
typedef ChakraProtoMsg__AttributeProto et_attribute;
typedef ChakraProtoMsg__IOInfo et_values;

/* Longer messages are taken for damage: the largest of real files have some 100 KB. */
#define ET_MAX_MESSAGE ((uint32_t)32 << 20)

/* NULL where the number has no name. */
const char *et_node_type_to_string(int64_t type);
const char *et_collective_to_string(int64_t type);
/* NULL when there is no attribute of that name. */
const et_attribute *et_find_attribute(const et_node *node, const char *name);

struct et_writer;

/*
 * Writes beside `path` and moves it there in the end, so that a failure leaves the file of before;
 * pipes and devices are written to, "-" is standard output. Returns 0 or a negative errno with a
 * sentence.
 */
int et_writer_open(struct et_writer **ret_writer, const char *path, struct errmsg *err);
/* Appends to `out`, which outlives the writer. Returns 0 or -ENOMEM. */
int et_writer_open_memory(struct et_writer **ret_writer, struct strbuf *out);
/*
 * An encoded message. Failures are remembered until the end. The metadata come first, and must not
 * be empty.
 */
void et_write_message(struct et_writer *writer, const void *message, size_t length);
/* All is there, or a sentence that says why not. Frees the writer either way. */
int et_writer_close(struct et_writer *writer, uint64_t *ret_bytes, struct errmsg *err);
/* Throws away what was written. */
struct et_writer *et_writer_free(struct et_writer *writer);
void et_writer_freep(struct et_writer **writer);
#define _cleanup_et_writer_ _cleanup_(et_writer_freep)

struct et_reader;

/* Where a message lies, in the bytes of the file as it is when not compressed. */
struct et_place {
	uint64_t offset;
	uint32_t length; /* without the varint; 0: readers in Python stop there */
};

/* Reads the metadata. Returns 0 or a negative errno with a sentence. */
int et_reader_open(struct et_reader **ret_reader, const char *path, struct errmsg *err);
/* `bytes` outlive the reader; `name` is for sentences. */
int et_reader_open_bytes(struct et_reader **ret_reader, const void *bytes, size_t length,
	const char *name, struct errmsg *err);
const et_metadata *et_reader_metadata(const struct et_reader *reader);
/*
 * The next node, which lives until the next call. Returns 1, 0 at the end of the file, or a
 * negative errno with a sentence where the bytes are no node or are cut off: then nothing follows.
 */
int et_reader_next(struct et_reader *reader, const et_node **ret_node, struct errmsg *err);
/* Of the last message. */
struct et_place et_reader_place(const struct et_reader *reader);
struct et_reader *et_reader_free(struct et_reader *reader);
void et_reader_freep(struct et_reader **reader);
#define _cleanup_et_reader_ _cleanup_(et_reader_freep)
