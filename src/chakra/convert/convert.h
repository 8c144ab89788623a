/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a linked execution trace to a Chakra execution trace: chakra_convert() makes the graph and
 * chakra_write() writes it, node by node. The same input gives the same bytes. The rules are in
 * docs/chakra.md.
 */
#pragma once

#include "chakra/convert/graph.h"
#include "chakra/et/file.h"

struct chakra_convert_options {
	size_t size;
	const struct chakra_definition *definition; /* NULL: as docs/chakra.md has it */
	bool break_cycles;
	bool no_memory_nodes; /* copies between host and device are compute nodes, too */
	bool has_rank;
	uint32_t rank;
	uint64_t left_out; /* device work without a place in the trace: reported in the metadata */
};

struct chakra_convert_result {
	uint64_t nodes, types[8]; /* by the schema's NodeType */
	uint64_t host_nodes, device_nodes;
	uint64_t deps[CHAKRA_DEP_KIND_MAX];
	uint64_t removed;      /* with neither dependencies nor dependants: chakra_converter's */
	uint64_t repeated_ids; /* nodes left out: another one has their id */
	uint64_t missing_deps; /* left out: on nodes that are not there */
	uint64_t late_deps;    /* left out: on what began later */
	uint64_t without_time; /* host nodes and device nodes that no one timed */
	uint64_t unknown_collectives;         /* communicate, and nothing says how: compute nodes */
	uint64_t without_bytes, without_peer; /* communicate; required fields are not known */
	uint64_t cycles, cut_deps;
	uint64_t bytes; /* of the file: chakra_convert_to_file() */
};

/*
 * `linked` outlives the graph and is indexed. Returns 0; -ELOOP with the path of a cycle, unless it
 * is to be cut; -ENODATA when there is nothing to convert; -ENOMEM.
 */
int chakra_convert(struct chakra_graph **ret_graph, const struct execution_trace *linked,
	const struct chakra_convert_options *options, struct chakra_convert_result *ret_result,
	struct errmsg *err);
struct chakra_graph *chakra_graph_free(struct chakra_graph *graph);
void chakra_graph_freep(struct chakra_graph **graph);
#define _cleanup_chakra_graph_ _cleanup_(chakra_graph_freep)

/* Metadata and all nodes; failures are reported by et_writer_close(). Returns 0 or -ENOMEM. */
int chakra_write(const struct chakra_graph *graph, const struct chakra_convert_options *options,
	struct et_writer *writer);
/* All of it. A sentence says what failed; the file is then as it was. */
int chakra_convert_to_file(const struct execution_trace *linked, const char *path,
	const struct chakra_convert_options *options, struct chakra_convert_result *ret_result,
	struct errmsg *err);
