/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static const char *const root_names[CALL_TREE_ROOTS_MAX] = {
	[CALL_TREE_ROOTS_NONE] = "none",
	[CALL_TREE_ROOTS_PROCESS] = "process",
	[CALL_TREE_ROOTS_THREAD] = "thread",
};

enum call_tree_roots call_tree_roots_from_string(const char *name)
{
	for (int i = 0; i < CALL_TREE_ROOTS_MAX; i++) {
		if (strcmp(root_names[i], name) == 0)
			return (enum call_tree_roots)i;
	}
	return CALL_TREE_ROOTS_INVALID;
}

/*
 * Labels are kept by their bytes: kind, inlined, name, NUL, module, NUL. The interned copy is what
 * the label points into.
 */
static int add_label(struct call_tree *tree, enum call_tree_kind kind, bool inlined,
	const char *name, const char *module, uint32_t *ret_label)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	const char *bytes;
	int r;

	strbuf_add_char(&key, (char)('0' + kind));
	strbuf_add_char(&key, inlined ? 'i' : '-');
	strbuf_add_bytes(&key, name, strlen(name) + 1);
	strbuf_add_bytes(&key, module, strlen(module) + 1);
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	r = intern_add(&tree->label_keys, key.data, key.length, ret_label);
	if (r <= 0)
		return r;
	bytes = intern_get(&tree->label_keys, *ret_label);
	return array_append(&tree->labels, (struct call_tree_label){
						   .name = bytes + 2,
						   .module = bytes + 2 + strlen(name) + 1,
						   .kind = kind,
						   .inlined = inlined,
					   });
}

static int label_of_frame(struct call_tree *tree, const struct model *model,
	const struct model_frame *frame, uint32_t *ret_label)
{
	const struct model_function *function = &model->functions.items[frame->function];
	const char *module = model_module_name(model, function->module);

	return add_label(tree, (enum call_tree_kind)function->kind, frame->inlined, function->name,
		module, ret_label);
}

static int label_frames(struct call_tree *tree, const struct model *model, uint32_t **ret_labels)
{
	_cleanup_free_ uint32_t *labels = calloc(model->frames.count + 1, sizeof(*labels));
	int r = labels ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		r = label_of_frame(tree, model, &model->frames.items[i], &labels[i]);
	if (r == 0)
		*ret_labels = TAKE_PTR(labels);
	return r;
}

static int descend(struct call_tree *tree, uint32_t parent, uint32_t label, uint32_t *ret_node)
{
	uint64_t key = (uint64_t)parent << 32 | label, known;
	int r = 0;

	if (map_u64_get(&tree->children, key, &known)) {
		*ret_node = (uint32_t)known;
		return 0;
	}
	known = tree->nodes.count;
	if (known == MODEL_NONE)
		return -ENOMEM;
	if (r == 0)
		r = array_append(&tree->nodes, (struct call_tree_node){
						       .parent = parent,
						       .label = label,
						       .depth = tree->nodes.items[parent].depth + 1,
					       });
	r = r ?: map_u64_set(&tree->children, key, known);
	if (r < 0)
		return r;
	tree->max_depth = MAX(tree->max_depth, tree->nodes.items[known].depth);
	*ret_node = (uint32_t)known;
	return 0;
}

/* The node that each thread's stacks hang from. */
static int add_roots(struct call_tree *tree, const struct model *model,
	const struct model_thread *thread, enum call_tree_roots roots, uint32_t *ret_node)
{
	const char *process = model->processes.items[thread->process].name;
	uint32_t label;
	int r = 0;

	*ret_node = 0;
	if (roots == CALL_TREE_ROOTS_NONE)
		return 0;
	r = r ?: add_label(tree, CALL_TREE_TASK, false, process, "", &label);
	r = r ?: descend(tree, *ret_node, label, ret_node);
	if (r < 0 || roots == CALL_TREE_ROOTS_PROCESS)
		return r;
	r = r ?: add_label(tree, CALL_TREE_TASK, false, thread->name, "", &label);
	return r ?: descend(tree, *ret_node, label, ret_node);
}

static int add_stack(struct call_tree *tree, const struct model *model, uint32_t stack,
	const uint32_t *labels, uint32_t no_stack_label, uint32_t *node)
{
	const struct model_stack *found = stack == MODEL_NONE ? NULL : &model->stacks.items[stack];
	int r = 0;

	if (!found || !found->count)
		return descend(tree, *node, no_stack_label, node);
	for (uint32_t i = 0; r == 0 && i < found->count; i++)
		r = descend(tree, *node, labels[model->stack_frames.items[found->first + i]], node);
	return r;
}

/*
 * Threads share roots and samples share stacks: the leaf of each pair of root and stack is looked
 * up once, not walked to again.
 */
struct leaf_memo {
	struct map_u64 leaves; /* root << 32 | stack → node */
	struct energy_periods periods;
};

/* To the node and all above it. */
static int add_energy(struct call_tree *tree, const struct model *model, uint32_t node,
	const struct energy_piece *piece)
{
	int r = 0;

	while (r == 0 && tree->sums.count < tree->nodes.count)
		r = array_append(&tree->sums, (struct energy_sums){0});
	for (; r == 0 && node != MODEL_NONE; node = tree->nodes.items[node].parent)
		energy_sums_add(&tree->sums.items[node], model, piece);
	return r;
}

static int add_sample(struct call_tree *tree, unsigned side, const struct model *model,
	uint32_t root, size_t index, const uint32_t *labels, uint32_t no_stack_label,
	struct leaf_memo *memo)
{
	const struct model_sample *sample = &model->samples.items[index];
	uint64_t key = (uint64_t)root << 32 | sample->stack, known;
	uint32_t node = root;
	int r = 0;

	if (!map_u64_get(&memo->leaves, key, &known)) {
		r = r ?: add_stack(tree, model, sample->stack, labels, no_stack_label, &node);
		r = r ?: map_u64_set(&memo->leaves, key, node);
		known = node;
	}
	if (r == 0)
		tree->nodes.items[known].self[side] += sample->count;
	if (r == 0 && side == 0 && model->counts_energy) {
		struct energy_piece piece = energy_piece_of(&memo->periods, model, index);

		r = add_energy(tree, model, (uint32_t)known, &piece);
	}
	return r;
}

static int add_samples(struct call_tree *tree, unsigned side, const struct model *model,
	const struct selected *selected, const uint32_t *labels, const uint32_t *roots)
{
	struct leaf_memo memo = {0};
	uint32_t no_stack_label = 0;
	int r = add_label(
		tree, CALL_TREE_NATIVE, false, "[no stack]", "[unknown]", &no_stack_label);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];

		if (selected->samples[i])
			r = add_sample(tree, side, model, roots[sample->thread], i, labels,
				no_stack_label, &memo);
	}
	map_u64_done(&memo.leaves);
	return r;
}

/* Threads without a selected sample get no node. */
static int root_threads(struct call_tree *tree, const struct model *model,
	const struct selected *selected, enum call_tree_roots roots, uint32_t **ret_roots)
{
	_cleanup_free_ uint32_t *nodes = calloc(model->threads.count + 1, sizeof(*nodes));
	_cleanup_free_ bool *wanted = calloc(model->threads.count + 1, sizeof(*wanted));
	int r = nodes && wanted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		wanted[model->samples.items[i].thread] |= selected->samples[i];
	for (size_t i = 0; r == 0 && i < model->threads.count; i++) {
		if (wanted[i])
			r = add_roots(tree, model, &model->threads.items[i], roots, &nodes[i]);
	}
	if (r == 0)
		*ret_roots = TAKE_PTR(nodes);
	return r;
}

int call_tree_init(struct call_tree *tree)
{
	uint32_t label;
	int r = 0;

	*tree = (struct call_tree){0};
	r = r ?: add_label(tree, CALL_TREE_TASK, false, "all", "", &label);
	if (r == 0)
		r = array_append(&tree->nodes,
			(struct call_tree_node){.parent = MODEL_NONE, .label = label});
	if (r < 0)
		call_tree_done(tree);
	return r;
}

int call_tree_add(struct call_tree *tree, unsigned side, const struct model *model,
	const struct selected *selected, enum call_tree_roots roots)
{
	_cleanup_free_ uint32_t *labels = NULL, *root_nodes = NULL;
	int r = label_frames(tree, model, &labels);

	r = r ?: root_threads(tree, model, selected, roots, &root_nodes);
	r = r ?: add_samples(tree, side, model, selected, labels, root_nodes);
	return r;
}

static int compare_siblings(const void *left, const void *right, void *context)
{
	const struct call_tree *tree = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct call_tree_node *one = &tree->nodes.items[a], *other = &tree->nodes.items[b];
	int r;

	if (one->parent != other->parent)
		return one->parent < other->parent ? -1 : 1;
	if (call_tree_weight(one) != call_tree_weight(other))
		return call_tree_weight(one) > call_tree_weight(other) ? -1 : 1;
	r = strcmp(call_tree_label(tree, a)->name, call_tree_label(tree, b)->name);
	return r ?: (one->label < other->label ? -1 : 1);
}

int call_tree_finish(struct call_tree *tree)
{
	/* Children lie after their parents, so that one pass from the end sums whole subtrees. */
	for (size_t i = tree->nodes.count; i-- > 0;) {
		struct call_tree_node *node = &tree->nodes.items[i];

		for (unsigned side = 0; side < CALL_TREE_SIDES; side++) {
			node->total[side] += node->self[side];
			if (node->parent != MODEL_NONE)
				tree->nodes.items[node->parent].total[side] += node->total[side];
		}
	}
	if (array_reserve(&tree->order, tree->nodes.count) < 0)
		return -ENOMEM;
	for (uint32_t i = 1; i < tree->nodes.count; i++)
		tree->order.items[tree->order.count++] = i;
	if (tree->order.count)
		qsort_r(tree->order.items, tree->order.count, sizeof(*tree->order.items),
			compare_siblings, tree);
	for (uint32_t i = 0; i < tree->order.count; i++) {
		struct call_tree_node *parent =
			&tree->nodes.items[tree->nodes.items[tree->order.items[i]].parent];

		if (!parent->child_count++)
			parent->first_child = i;
	}
	return 0;
}

void call_tree_done(struct call_tree *tree)
{
	array_done(&tree->nodes);
	array_done(&tree->labels);
	array_done(&tree->order);
	array_done(&tree->sums);
	intern_done(&tree->label_keys);
	map_u64_done(&tree->children);
	*tree = (struct call_tree){0};
}
