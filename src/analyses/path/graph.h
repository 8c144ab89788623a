/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of a critical path: a node where a row begins and one where it ends, edges for what
 * follows from what. Where two paths are equally long, the edge that was added earlier wins.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

enum trace_path_kind {
	TRACE_PATH_OPERATOR,      /* a row runs */
	TRACE_PATH_DEPENDENCY,    /* order alone */
	TRACE_PATH_LAUNCH_DELAY,  /* from the launch to the start of its work */
	TRACE_PATH_KERNEL_DELAY,  /* from the end of work to the start of the next */
	TRACE_PATH_EARLIER_DELAY, /* to the start of work that waited for an earlier window's */
	TRACE_PATH_SYNC,          /* work or a call waited for work */
	TRACE_PATH_KIND_MAX,
};

struct trace_path_node {
	int64_t time_ns;
	uint32_t event; /* row */
	bool is_start;
};

struct trace_path_edge {
	uint32_t from, to;   /* nodes */
	int64_t duration_ns; /* below 0, from another tool: counts as 0 */
	uint32_t event;      /* row whose time it is; MODEL_NONE: nobody's */
	uint8_t kind;        /* enum trace_path_kind */
};

struct trace_path_graph {
	ARRAY_OF(struct trace_path_node) nodes; /* by time, then row, the start first */
	ARRAY_OF(struct trace_path_edge) edges;
	uint32_t *start_nodes, *end_nodes; /* by row; MODEL_NONE: none */
};

/* Of a trace with so many rows. Returns 0 or -ENOMEM. */
int trace_path_graph_init(struct trace_path_graph *graph, size_t row_count);
void trace_path_graph_done(struct trace_path_graph *graph);
/* Empties it for the next window. */
void trace_path_graph_clear(struct trace_path_graph *graph);

/* The two nodes of a row. Returns 0 or -ENOMEM. */
int trace_path_graph_add_row(
	struct trace_path_graph *graph, uint32_t row, int64_t start_ns, int64_t end_ns);
/* When all nodes are there, before the edges. */
void trace_path_graph_sort(struct trace_path_graph *graph);

/* An edge from one node to another, which takes the time between them or none. */
struct trace_path_edge trace_path_edge_of(const struct trace_path_graph *graph, uint32_t from,
	uint32_t to, enum trace_path_kind kind, bool takes_time, uint32_t event);
/* Adds it. Returns 0 or -ENOMEM. */
int trace_path_connect(struct trace_path_graph *graph, uint32_t from, uint32_t to,
	enum trace_path_kind kind, bool takes_time, uint32_t event);

/*
 * Whose time passes from one node of a thread to the next: for B and C in A, from the begin of A,
 * over those of B and C, to the end of A. `outer`: the row that the first node's row lies in.
 */
uint32_t trace_path_owner(
	const struct trace_path_graph *graph, uint32_t from, uint32_t to, uint32_t outer);

struct trace_path_longest {
	ARRAY_OF(uint32_t) edges; /* indices, first to last */
	uint64_t nodes;           /* of the graph, that have edges */
	uint64_t cyclic_nodes;    /* part of a cycle, or behind one: on no path */
};

/* Zero-initialise, or use again. Returns 0 or -ENOMEM. */
int trace_path_graph_longest(
	const struct trace_path_graph *graph, struct trace_path_longest *ret_longest);
void trace_path_longest_done(struct trace_path_longest *longest);
