/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links an execution trace with the device trace (Kineto's) of the same run. Operators get times,
 * and below them come nodes of the device work that they launched.
 *
 * Operators are matched by the id of their record function where the device trace has it
 * ("Record function id"); else by the one difference that "External id" and that id have
 * throughout, which is counted with the names that must agree; else by names along the call tree
 * of each thread. Device work belongs to the innermost matched operator that encloses its launch.
 */
#pragma once

#include "model/execution_trace.h"
#include "model/trace.h"

struct link;

struct chakra_link_options {
	size_t size;
	/* How another tool links, faults included: compat/chakra_trace_link/; NULL: as here. */
	int (*definition)(struct link *link, struct errmsg *err);
	/* Links traces that say they are of two processes, too. */
	bool any_process;
	int64_t thread_gap_ns; /* a longer pause of a thread makes a new group; 0: 1 ms */
};

struct chakra_link_result {
	uint64_t host_nodes;                   /* without those of processes and threads */
	uint64_t matched[EXECUTION_MATCH_MAX]; /* of host_nodes, by rule; [0]: not matched */
	uint64_t names_differ;                 /* same id, other name: not matched */
	uint64_t orphans;                      /* host nodes whose parent is not in the trace */
	int64_t offset;                        /* External id − rf id, for EXECUTION_BY_OFFSET */
	uint64_t device_rows;                  /* kernels, copies and fills of the device trace */
	uint64_t linked;                       /* of them: they are nodes now */
	uint64_t linked_by_external_id;        /* of `linked`: their launch is not in the trace */
	uint64_t linked_to_threads;            /* of `linked`: launched outside of operators */
	uint64_t linked_graphs;                /* of `linked`: several have one launch */
	uint64_t without_launch;               /* not linked: no call with their correlation */
	uint64_t without_operator;             /* not linked: launched by a thread without any */
	uint64_t inter_thread_deps, sync_deps, order_deps;
};

/*
 * Adds device nodes to `host`, whose schema is then 1.0.2 at least, and gives all nodes new ids: 0,
 * 1, 2 … by their old ids, device work right after its operator, by start. `host->nodes` is then in
 * the order of ids, and indexed. Host nodes keep their parents, device nodes have their operator as
 * parent.
 *
 *   start_ns, inclusive_ns, exclusive_ns  of matched operators and device nodes; start_ns is
 *                     since the epoch where the device trace says when it began
 *   inter_thread_dep  of the first operator after a pause of its thread: the operator of another
 *                     thread that ended last before it
 *   sync deps         of the operator that starts next after its thread waited for the device: the
 *                     device nodes that were waited for, the last of each stream
 *   order deps        of device nodes: the one before on the same stream, and those that events
 *                     made the stream wait for
 *
 * Work that was launched outside of all operators, such as a graph from Python, is a child of its
 * thread's node, and its inter_thread_dep is the operator before it on that thread.
 *
 * Names and other texts of device nodes are those of `device`, which must live as long.
 *
 * Dependencies are ids of nodes that are there and began before. Returns 0; -ENODATA with the
 * evidence when nothing could be matched, as for traces of different runs; -ENOMEM.
 */
int chakra_link(struct execution_trace *host, const struct trace *device,
	const struct chakra_link_options *options, struct chakra_link_result *ret_result,
	struct errmsg *err);
/*
 * The same where it is known which row of `device` each node is: rows[i] of node i, MODEL_NONE of
 * threads. Returns 0 or -ENOMEM.
 */
int chakra_link_rows(struct execution_trace *host, const struct trace *device, const uint32_t *rows,
	struct chakra_link_result *ret_result);
