/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs: how often each was replayed, and what its nodes took, of rows; how it was captured,
 * and by which lines, only a recording knows.
 */
#pragma once

#include "analyses/trace_view.h"

#define DEVICE_GRAPH_NAMES 4

/*
 * An executable graph of a process. An id that a driver uses again is one graph. Work that a
 * graph's launch gave and that names no graph, as in traces of ROCm, is of graph 0.
 */
struct device_graph {
	uint64_t id; /* of the executable graph */
	/* A recording's: the index; of another tool's trace that of the view. */
	uint32_t process;
	uint32_t pid;     /* 0: not known */
	uint32_t rank;    /* MODEL_NONE: not known */
	uint32_t source;  /* of the graph that it was made from; 0: not known */
	bool has_capture; /* the capture was seen: what follows is known */
	uint64_t capture_ns;
	uint64_t capture_bytes; /* of device memory, allocated by the process meanwhile */
	uint32_t captured_nodes;
	uint32_t capture_frame;  /* where the capture began; MODEL_NONE: not known */
	uint64_t instantiate_ns; /* of all instantiations */
	uint32_t instantiations;
	uint64_t replays;        /* launches of which work was seen */
	uint32_t replay_frame;   /* where the most recent was launched; MODEL_NONE: not known */
	uint64_t work_ns;        /* of all nodes together, or of the replays as a whole */
	uint64_t span_ns;        /* of the replays, each from its first start to its last end */
	uint64_t device_replays; /* of them, launched on the device; the names of their work: */
	const char *device_names[DEVICE_GRAPH_NAMES];
	uint32_t device_name_count; /* different ones, or as many as there is room for */
	uint64_t whole_replays;     /* of them, timed as a whole: their nodes have no times */
	uint64_t node_work_ns;      /* of work_ns: of nodes */
	/* Of the spans of replays; 0: there are none. */
	uint64_t median_by_node_ns, median_whole_ns;
	uint32_t node_count; /* different nodes seen, or that it is made of */
	uint32_t place;      /* its own index */
};

/* A node of it, in all replays together. */
struct device_graph_node {
	uint32_t graph;   /* index */
	uint64_t id;      /* 0: not known; then it is all nodes of its name */
	const char *name; /* the kernel's, or the kind's */
	uint8_t kind;     /* enum wire_device_kind */
	uint32_t frame;   /* that captured it; MODEL_NONE: not known */
	uint64_t count, total_ns, minimum_ns, maximum_ns; /* 0 where it has no times */
};

struct device_graphs {
	ARRAY_OF(struct device_graph) graphs;     /* most time first */
	ARRAY_OF(struct device_graph_node) nodes; /* by graph, then most time first */
	uint64_t captures, captured_launches;     /* seen, also of graphs that never ran */
};

/* A replay as a whole has the name, which stays: counts those that were launched on the device. */
void device_graph_add_name(struct device_graph *graph, const char *name);
/* Of all views of the model's rows. Returns 0 or -ENOMEM. Strings are the traces' and the model's.
 */
int device_graphs_init(struct device_graphs *graphs, const struct model *model,
	const struct trace_view *views, size_t count);
void device_graphs_done(struct device_graphs *graphs);
#define _cleanup_device_graphs_ _cleanup_(device_graphs_done)
