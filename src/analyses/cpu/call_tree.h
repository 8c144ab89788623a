/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks merged from their roots: the tree behind flame graphs, folded stacks and the hottest path.
 * Holds one side (a capture) or two (before and after); functions of both are matched by name and
 * module name.
 */
#pragma once

#include "analyses/energy/uncertainty.h"
#include "analyses/selection.h"
#include "base/map.h"
#include "model/model.h"

#define CALL_TREE_SIDES 2

/* What stands above the stacks. */
enum call_tree_roots {
	CALL_TREE_ROOTS_NONE,
	CALL_TREE_ROOTS_PROCESS, /* the process's name */
	CALL_TREE_ROOTS_THREAD,  /* the process's, then the thread's name */
	CALL_TREE_ROOTS_MAX,
	CALL_TREE_ROOTS_INVALID = -EINVAL,
};

/* "none", "process", "thread" */
enum call_tree_roots call_tree_roots_from_string(const char *name);

enum call_tree_kind {
	CALL_TREE_NATIVE = CAPTURE_FRAME_NATIVE,
	CALL_TREE_KERNEL = CAPTURE_FRAME_KERNEL,
	CALL_TREE_INTERPRETED = CAPTURE_FRAME_INTERPRETED,
	CALL_TREE_JIT = CAPTURE_FRAME_JIT,
	CALL_TREE_TASK, /* a process's or thread's name */
};

/* A function as the tree knows it. */
struct call_tree_label {
	const char *name;
	const char *module; /* "" for tasks */
	enum call_tree_kind kind;
	bool inlined;
};

struct call_tree_node {
	uint32_t parent; /* index, below the node's own; the root's is MODEL_NONE */
	uint32_t label;
	uint32_t depth;                                         /* 0: root */
	uint32_t first_child, child_count;                      /* in `order` */
	uint64_t self[CALL_TREE_SIDES], total[CALL_TREE_SIDES]; /* samples */
};

/* nodes.items[0] is the root, "all". Valid as long as the models. */
struct call_tree {
	ARRAY_OF(struct call_tree_node) nodes;
	ARRAY_OF(struct call_tree_label) labels;
	ARRAY_OF(uint32_t)
	order; /* children of each node in a row: most samples first, then by name */
	ARRAY_OF(struct energy_sums)
	sums; /* of each node's total, of side 0 alone, where its
		 samples count energy; else none */
	uint32_t max_depth;
	struct intern label_keys;
	struct map_u64 children; /* parent << 32 | label → node */
};

/* Returns 0 or -ENOMEM, like all below. Then add one or two models, then finish. */
int call_tree_init(struct call_tree *tree);
int call_tree_add(struct call_tree *tree, unsigned side, const struct model *model,
	const struct selected *selected, enum call_tree_roots roots);
/* Totals, depths and order. No adding afterwards. */
int call_tree_finish(struct call_tree *tree);
void call_tree_done(struct call_tree *tree);
#define _cleanup_call_tree_ _cleanup_(call_tree_done)

static inline const struct call_tree_label *call_tree_label(
	const struct call_tree *tree, uint32_t node)
{
	return &tree->labels.items[tree->nodes.items[node].label];
}

static inline uint32_t call_tree_child(
	const struct call_tree *tree, const struct call_tree_node *node, uint32_t position)
{
	return tree->order.items[node->first_child + position];
}

/* Samples of both sides. */
static inline uint64_t call_tree_weight(const struct call_tree_node *node)
{
	return node->total[0] + node->total[1];
}
