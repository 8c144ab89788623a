/* SPDX-License-Identifier: Apache-2.0 */
/* A Chakra trace as a graph to look at: its nodes, and from each dependency to what waits for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

enum chakra_graph_format {
	CHAKRA_GRAPH_DOT,     /* Graphviz's language */
	CHAKRA_GRAPH_GRAPHML, /* http://graphml.graphdrawing.org */
};

struct chakra_graph_options {
	enum chakra_graph_format format;
	/* Only this node and those at most so many dependencies away, either way. */
	bool has_around;
	uint64_t around;
	unsigned hops;
};

struct chakra_graph_result {
	uint64_t nodes, edges;
	uint64_t missing; /* dependencies left out, on nodes that are not in the trace */
};

/*
 * Reads the trace at `input`, and writes its graph to `output`, "-" for standard output. Of a
 * damaged trace nothing is written. Returns 0 or a negative errno with a sentence: -ENOENT when
 * there is no node `around`.
 */
int chakra_graph_write(const char *input, const char *output,
	const struct chakra_graph_options *options, struct chakra_graph_result *ret_result,
	struct errmsg *err);
