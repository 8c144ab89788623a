/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/flamegraph/layout.h"

#include <errno.h>
#include <stdlib.h>

double flamegraph_share(const struct call_tree *tree, uint32_t node, unsigned side)
{
	uint64_t all = tree->nodes.items[0].total[side];

	return all ? (double)tree->nodes.items[node].total[side] / (double)all : 0;
}

static double width_of(
	const struct flamegraph_layout *layout, const struct call_tree *tree, uint32_t node)
{
	double before = flamegraph_share(tree, node, 0);

	if (!layout->is_diff)
		return before;
	return (before + flamegraph_share(tree, node, 1)) / 2;
}

/* The root is drawn even when there is nothing below it. */
static void place_root(struct flamegraph_layout *layout)
{
	layout->boxes[0] = (struct flamegraph_box){.width = 1, .drawn = true};
}

static void place_children(struct flamegraph_layout *layout, const struct call_tree *tree,
	uint32_t parent, double minimum_width)
{
	const struct call_tree_node *node = &tree->nodes.items[parent];
	bool parent_drawn = layout->boxes[parent].drawn;
	double start = layout->boxes[parent].start;

	for (uint32_t i = 0; i < node->child_count; i++) {
		uint32_t child = call_tree_child(tree, node, i);
		struct flamegraph_box *box = &layout->boxes[child];

		*box = (struct flamegraph_box){
			.start = start, .width = width_of(layout, tree, child)};
		start += box->width;
		box->drawn = parent_drawn && box->width >= minimum_width;
		if (box->drawn) {
			layout->max_depth = MAX(layout->max_depth, tree->nodes.items[child].depth);
			continue;
		}
		layout->pruned++;
		if (parent_drawn)
			layout->pruned_width += box->width;
	}
}

int flamegraph_layout_init(struct flamegraph_layout *layout, const struct call_tree *tree,
	bool is_diff, double minimum_width)
{
	*layout = (struct flamegraph_layout){
		.boxes = calloc(tree->nodes.count, sizeof(*layout->boxes)),
		.is_diff = is_diff,
	};
	if (!layout->boxes)
		return -ENOMEM;
	place_root(layout);
	/* Children lie after their parents: each box is known before its children need it. */
	for (uint32_t i = 0; i < tree->nodes.count; i++)
		place_children(layout, tree, i, minimum_width);
	return 0;
}

void flamegraph_layout_done(struct flamegraph_layout *layout)
{
	free(layout->boxes);
	layout->boxes = NULL;
}
