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

struct chakra_graph {
	const struct execution_trace *trace; /* not owned */
	ARRAY_OF(struct chakra_node) nodes;  /* by id */
	ARRAY_OF(struct chakra_dep) deps;    /* by node: see chakra_graph_sort() */
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
};

int chakra_order_threads(struct chakra_graph *graph, struct chakra_thread_result *ret_result);
int chakra_order_threads_compat(
	struct chakra_graph *graph, struct chakra_thread_result *ret_result);

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
