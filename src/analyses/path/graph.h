/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of a critical path: a node where a row begins and one where it ends, edges for what
 * follows from what. Where two paths are equally long, the edge that was added earlier wins.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
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
	int64_t duration_ns; /* HTA's may be negative, and counts as 0 then */
	uint32_t event;      /* row whose time it is; MODEL_NONE: nobody's */
	uint8_t kind;        /* enum trace_path_kind */
};

struct trace_path_graph {
	ARRAY_OF(struct trace_path_node) nodes; /* by time, then row, the start first */
	ARRAY_OF(struct trace_path_edge) edges;
	/* HTA's: two nodes have one edge, the last one added, at the place of the first. */
	bool is_simple;
	struct map_u64 edge_of_nodes;
};

void trace_path_graph_done(struct trace_path_graph *graph);
/* Empties it for the next window. */
void trace_path_graph_clear(struct trace_path_graph *graph);

/* Returns 0 or -ENOMEM. */
int trace_path_graph_add(struct trace_path_graph *graph, const struct trace_path_edge *edge);

struct trace_path_longest {
	ARRAY_OF(uint32_t) edges; /* indices, first to last */
	uint64_t nodes;           /* of the graph, that have edges */
	uint64_t cyclic_nodes;    /* part of a cycle, or behind one: on no path */
};

/* Zero-initialise, or use again. Returns 0 or -ENOMEM. */
int trace_path_graph_longest(
	const struct trace_path_graph *graph, struct trace_path_longest *ret_longest);
void trace_path_longest_done(struct trace_path_longest *longest);
