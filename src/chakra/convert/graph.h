/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph that a Chakra trace will be: the nodes of an execution trace with all that they wait
 * for. Made by convert.h; the files here each add or look at one kind of dependency.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "base/strbuf.h"
#include "chakra/convert/collectives.h"
#include "model/execution_trace.h"

enum chakra_dep_kind {
	CHAKRA_DEP_CALL,         /* who called it: the only control dependency */
	CHAKRA_DEP_OTHER_THREAD, /* what another thread did before */
	CHAKRA_DEP_THREAD,       /* the operator before it in its thread */
	CHAKRA_DEP_LAUNCH,       /* device work on the operator that launched it */
	CHAKRA_DEP_SYNC,         /* a host operator on device work that its thread waited for */
	CHAKRA_DEP_STREAM,       /* device work on work of its stream */
	CHAKRA_DEP_EVENT,        /* device work on work of another stream */
	CHAKRA_DEP_KIND_MAX,
};

/* "calls", "thread" …: for sentences and JSON. */
const char *chakra_dep_kind_to_string(enum chakra_dep_kind kind);

struct chakra_dep {
	uint32_t from, on; /* indices of nodes: `from` waits for `on` */
	uint8_t kind;
};

struct chakra_node {
	uint32_t source;               /* index in the execution trace's nodes */
	uint32_t first_dep, dep_count; /* deps.items[first_dep] …, calls first */
	uint32_t collective;           /* index; MODEL_NONE: it does not communicate */
	uint8_t type;                  /* the schema's NodeType */
	bool is_removed;
	bool is_main; /* device work that stands for its operator's arithmetic: the longest */
};

struct chakra_definition;

struct chakra_graph {
	const struct execution_trace *trace; /* not owned */
	const struct chakra_definition *definition;
	ARRAY_OF(struct chakra_node) nodes; /* by id */
	ARRAY_OF(struct chakra_dep) deps;   /* by node: see chakra_graph_sort() */
	ARRAY_OF(struct chakra_collective) collectives;
	struct chakra_groups groups;
	uint32_t *parents;     /* index of the caller by index; MODEL_NONE: none that is there */
	uint32_t *positions;   /* index by index in the trace's nodes; MODEL_NONE: not in it */
	uint32_t *first_child; /* count + 1 of them, in `children` */
	uint32_t *children;    /* by caller, then by id */
};

static inline const struct execution_node *chakra_source(
	const struct chakra_graph *graph, uint32_t node)
{
	return &graph->trace->nodes.items[graph->nodes.items[node].source];
}

/* MODEL_NONE when there is no node of that id. */
uint32_t chakra_graph_find(const struct chakra_graph *graph, uint64_t id);
/* Adds it; a node does not wait for itself. Returns 0 or -ENOMEM. */
int chakra_graph_add(
	struct chakra_graph *graph, uint32_t from, uint32_t on, enum chakra_dep_kind kind);
/*
 * Puts dependencies in the order of their nodes, calls first, and leaves out the second of two on
 * one node. Returns 0 or -ENOMEM.
 */
int chakra_graph_sort(struct chakra_graph *graph);
void chakra_graph_done(struct chakra_graph *graph);

/* chakra/convert/order.c: streams and events. Device work on all that ended last before it on its
 * stream, and on what events made it wait for. Returns 0 or -ENOMEM. */
int chakra_order_streams(struct chakra_graph *graph);

/* chakra/convert/threads.c: host nodes in the order of their threads, device nodes on their
 * launches. */
struct chakra_thread_result {
	uint64_t missing; /* dependencies on nodes that are not there */
	uint64_t late;    /* dependencies on what began later */
	uint64_t removed; /* nodes, because nothing waits for them and they for nothing */
};

int chakra_order_threads(struct chakra_graph *graph, struct chakra_thread_result *ret_result);

/* Callers before those that they called, each once. Zero-initialise. */
struct chakra_walk {
	struct chakra_graph *graph;
	ARRAY_OF(uint32_t) stack; /* what is left to visit; begin with a root */
	uint8_t *visited;
	struct chakra_thread_result result;
};

int chakra_walk_init(struct chakra_walk *walk, struct chakra_graph *graph);
void chakra_walk_done(struct chakra_walk *walk);
#define _cleanup_chakra_walk_ _cleanup_(chakra_walk_done)
/* MODEL_NONE at the end. */
uint32_t chakra_walk_next(struct chakra_walk *walk);
/* Those that it called, in the order of ids. Returns 0 or -ENOMEM. */
int chakra_walk_into(struct chakra_walk *walk, uint32_t node);

/* The root of a thread's nodes. */
bool chakra_is_thread_root(const struct execution_node *node);

/* chakra/convert/cycles.c */
struct chakra_cycles {
	uint64_t count;     /* groups of nodes that wait for one another */
	uint64_t nodes;     /* in them */
	struct strbuf path; /* of one: "7 aten::mm -> 9 aten::add -> 7 aten::mm" */
	uint64_t cut;       /* dependencies that were taken out */
};

/*
 * Finds what waits for itself; with `cut`, takes out the dependencies in each group on what began
 * later or at the same time with a higher id, which leaves none. Returns 0 or -ENOMEM.
 */
int chakra_find_cycles(struct chakra_graph *graph, bool cut, struct chakra_cycles *ret_cycles);

/* What another converter does otherwise, faults included: compat/chakra_converter/. */
struct chakra_definition {
	bool has_process_root; /* as a node, which here stays out */
	bool leaves_orphans;   /* where callers are missing; here they go below their thread */
	bool has_no_copies;    /* copies are compute nodes */
	bool is_plain;         /* writes no start times, and no attributes beyond the schema's */
	/* Who called whom, and the order of threads and streams. Returns 0 or -ENOMEM. */
	int (*order)(struct chakra_graph *graph, struct chakra_thread_result *ret_result);
	/* Of nodes; `of_host`: no device communicates. False: it does not. */
	bool (*find_collective)(const struct chakra_graph *graph, const struct execution_node *node,
		bool of_host, struct chakra_collective *ret_collective);
	uint64_t (*duration_us)(const struct execution_node *node);
};
