/* SPDX-License-Identifier: Apache-2.0 */
/* For trace_graphs.c: the captures of a trace, and what replays get of them. */
#pragma once

#include "model/trace.h"

/* A sequence of nodes, or of the calls that captured it, as hashes. */
struct capture_key {
	uint64_t order, kinds; /* kinds and names, and kinds alone, in their order */
	uint64_t names;        /* in any order */
};

/* `kind`: a category of work; `name`: of a kernel, else it does not matter. */
void capture_key_add(struct capture_key *key, uint8_t kind, uint32_t name);

struct graph_call {
	uint32_t row;
	uint32_t kernel; /* a string of the replays' trace; MODEL_NONE: none there has its name; 0:
			    it does not say */
	uint8_t kind;    /* a category of work */
	uint64_t operators; /* a hash of those around it and of their inputs */
};

struct graph_capture {
	size_t first, count; /* calls */
	int64_t pid, end_ns; /* since the base of their trace */
	uint32_t track;
	struct capture_key key;
	uint64_t operators;       /* of all calls */
	bool is_named;            /* its calls say which kernels they launch */
	bool is_forked;           /* it waits for events: other streams may be in it */
	bool has_ended, is_mixed; /* mixed: whose calls are whose is not known */
	int64_t call_end_ns;
};

struct graph_captures {
	ARRAY_OF(struct graph_capture) items; /* by their begin */
	ARRAY_OF(struct graph_call) calls;
};

/* Those of `captured`, with names of `trace`. Returns 0 or -ENOMEM. */
int graph_captures_init(
	struct graph_captures *captures, const struct trace *captured, const struct trace *trace);
void graph_captures_done(struct graph_captures *captures);

/* A copy that a kernel does is a copy, as ROCm has them. */
uint8_t graph_node_kind(const struct trace *trace, const struct trace_event *event);

/* `work`: in trace.works; `call`: a row of `captured`. */
struct graph_origin {
	uint32_t work, call;
};

/* Sets them, with the rows of another trace that they need, on tracks of their own. Returns 0 or
 * -ENOMEM. */
int graph_origins_apply(struct trace *trace, const struct trace *captured,
	const struct graph_origin *origins, size_t count);
