/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strongly connected components of what waits for what (Tarjan's), without recursion since the
 * depth is foreign.
 */
#pragma once

#include <stdint.h>

#include "base/array.h"

/* Node i waits for on[first[i]] … on[first[i + 1] - 1]. */
struct waits {
	uint32_t count;
	const uint32_t *first; /* count + 1 of them */
	const uint32_t *on;
};

struct components {
	uint32_t count;
	uint32_t *of;    /* by node, from 0: what a node waits for has the same or a lower one */
	uint32_t *sizes; /* by component: nodes; more than 1 wait for one another */
};

/* Returns 0 or -ENOMEM. */
int components_find(const struct waits *waits, struct components *ret_components);
void components_done(struct components *components);
#define _cleanup_components_ _cleanup_(components_done)

struct node_list {
	ARRAY_OF(uint32_t) nodes;
};

/*
 * A way from a node back to itself, in the component of `node`, which has more than one: each
 * waits for the next, the last for the first. Returns 0 or -ENOMEM.
 */
int components_cycle(const struct waits *waits, const struct components *components, uint32_t node,
	struct node_list *ret_cycle);
