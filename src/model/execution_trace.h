/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PyTorch execution trace: which operator called which, with what tensors; and, after linking,
 * when they ran and which device work they launched. Read by importers/pytorch_et/pytorch_et.h,
 * linked by chakra/link/link.h, written as JSON or converted to Chakra.
 *
 * Texts that are only passed on (values, shapes, types) are pieces of the file's bytes.
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "base/id_map.h"
#include "model/model.h"

#define EXECUTION_NO_ID UINT64_MAX

/* Bytes of the file, or "" */
struct execution_text {
	const char *bytes;
	uint32_t length;
};

/* JSON lists, with their brackets; strides: empty before schema 1.1.1. */
struct execution_values {
	struct execution_text values, shapes, types, strides;
};

/* How a node was matched with the device trace. */
enum execution_match {
	EXECUTION_UNMATCHED,
	EXECUTION_BY_RF_ID,
	EXECUTION_BY_OFFSET, /* External id − rf_id is one number for all */
	EXECUTION_BY_TREE,   /* by names, along the call tree */
	EXECUTION_MATCH_MAX,
};

struct execution_text;
/* "none", "rf_id", "offset", "tree"; a text that is none of them is EXECUTION_UNMATCHED. */
const char *execution_match_to_string(enum execution_match match);
enum execution_match execution_match_from_text(struct execution_text text);

/* Of device nodes. */
struct execution_work {
	struct execution_text category; /* "kernel", "gpu_memcpy", "gpu_memset" */
	int64_t device, stream;         /* TRACE_NO_NUMBER: not known */
	uint64_t correlation, bytes;
	uint32_t grid[3], block[3];
	uint64_t graph, graph_node;       /* 0: of none */
	struct execution_text group_name; /* of communication; empty: not known */
	struct execution_text group_ranks, collective, dtype;
	int64_t in_elements, out_elements, group_size; /* TRACE_NO_NUMBER: not known */
	int64_t source, destination;                   /* ranks, of sends and receives */
};

struct execution_node {
	uint64_t id;
	uint64_t parent; /* the one control dependency; its own id or EXECUTION_NO_ID: none */
	struct execution_text name, op_schema;
	uint64_t rf_id;     /* EXECUTION_NO_ID: none */
	uint64_t fw_parent; /* 0: none */
	int64_t seq_id;     /* -1: none */
	uint64_t scope, tid, fw_tid;
	struct execution_values inputs, outputs;
	struct execution_text
		other_attrs; /* JSON objects with commas between, as the file has them */
	/* Of linking. */
	int64_t start_ns, inclusive_ns, exclusive_ns; /* TRACE_NO_NUMBER: not known */
	uint8_t match;                                /* enum execution_match */
	uint32_t work;                                /* index in works; MODEL_NONE: a host node */
	uint64_t inter_thread_dep;                    /* id; EXECUTION_NO_ID: none */
	uint32_t first_sync_dep, sync_dep_count;      /* ids: deps.items[first] … */
	/* Device work that this one waited for: order on its stream, and events. */
	uint32_t first_order_dep, order_dep_count;
};

struct execution_trace {
	const char *path; /* a copy */
	struct execution_text schema, time;
	uint64_t pid, start_ts, finish_ts; /* the file's, ms */
	bool has_finish;
	ARRAY_OF(struct execution_node) nodes; /* in the file's order; linked: by id */
	ARRAY_OF(struct execution_work) works;
	ARRAY_OF(uint64_t) deps;
	struct id_map index; /* id → index in nodes: of execution_trace_index() */
	uint64_t skipped_nodes, skipped_bytes, repeated_ids;
	uint64_t mended; /* commas missing or too many, quotes in names */
	bool truncated;
	ARRAY_OF(char *) blocks; /* texts that are no piece of a file */
	const char *bytes;       /* the file's, that texts point into */
	size_t length;
	void (*release)(struct execution_trace *trace); /* frees bytes; NULL: nothing to free */
};

/* An empty one; NULL when memory ran out. */
struct execution_trace *execution_trace_new(const char *path);
struct execution_trace *execution_trace_free(struct execution_trace *trace);
void execution_trace_freep(struct execution_trace **trace);
#define _cleanup_execution_trace_ _cleanup_(execution_trace_freep)

/* A copy of the text that lives as long as the trace; its bytes are NULL when memory ran out. */
struct execution_text execution_trace_keep(
	struct execution_trace *trace, const char *bytes, size_t length);
/*
 * The schema to write it with: its own, or 1.0.2 for those before, whose nodes are written as if
 * they were of that one.
 */
struct execution_text execution_trace_schema(const struct execution_trace *trace);
/* Builds `index`, and counts the ids that are not the first of their kind. Returns 0 or -ENOMEM. */
int execution_trace_index(struct execution_trace *trace);
/* NULL when there is no node of that id. */
const struct execution_node *execution_trace_find(const struct execution_trace *trace, uint64_t id);

static inline bool execution_text_begins(struct execution_text text, const char *word)
{
	return text.length >= strlen(word) && memcmp(text.bytes, word, strlen(word)) == 0;
}

static inline bool execution_text_contains(struct execution_text text, const char *word)
{
	return text.length > 0 && memmem(text.bytes, text.length, word, strlen(word));
}

static inline bool execution_text_equals(struct execution_text text, const char *word)
{
	return text.length == strlen(word) && memcmp(text.bytes, word, text.length) == 0;
}
