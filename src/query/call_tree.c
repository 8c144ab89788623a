/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree as JSON: labels once, nodes as flat arrays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/call_tree.h"
#include "base/escape.h"
#include "query/answer.h"

/* The tree of one side, or two, while it is written. */
struct writing {
	struct call_tree tree;
	unsigned sides;
	const struct query *queries[CALL_TREE_SIDES];
	struct selected selected[CALL_TREE_SIDES];
	double minimum_share; /* of the total */
	uint32_t *kept;       /* by node: its number in the answer; MODEL_NONE: left out */
	uint32_t *labels;     /* by label, likewise */
	uint64_t pruned_count, pruned[CALL_TREE_SIDES];
	struct strbuf notes;
	struct json_writer json;
};

static void writing_done(struct writing *writing)
{
	call_tree_done(&writing->tree);
	for (unsigned side = 0; side < CALL_TREE_SIDES; side++)
		selected_done(&writing->selected[side]);
	free(writing->kept);
	free(writing->labels);
	strbuf_done(&writing->notes);
}

/* ---- what is left out ---- */

static double share_of(const struct call_tree *tree, const struct call_tree_node *node)
{
	const struct call_tree_node *root = &tree->nodes.items[0];
	double share = 0;

	for (unsigned side = 0; side < CALL_TREE_SIDES; side++) {
		if (root->total[side])
			share = MAX(share, (double)node->total[side] / (double)root->total[side]);
	}
	return share;
}

static void leave_out(struct writing *writing, const struct call_tree_node *node)
{
	writing->pruned_count++;
	if (writing->kept[node->parent] == MODEL_NONE)
		return;
	for (unsigned side = 0; side < writing->sides; side++)
		writing->pruned[side] += node->total[side];
}

/* Numbers the nodes that stay, parents first, and their labels. */
static int prune(struct writing *writing)
{
	const struct call_tree *tree = &writing->tree;
	uint32_t nodes = 0, labels = 0;

	writing->kept = calloc(tree->nodes.count, sizeof(*writing->kept));
	writing->labels = calloc(tree->labels.count, sizeof(*writing->labels));
	if (!writing->kept || !writing->labels)
		return -ENOMEM;
	for (size_t i = 0; i < tree->labels.count; i++)
		writing->labels[i] = MODEL_NONE;
	for (size_t i = 0; i < tree->nodes.count; i++) {
		const struct call_tree_node *node = &tree->nodes.items[i];

		writing->kept[i] = MODEL_NONE;
		if (i && (writing->kept[node->parent] == MODEL_NONE ||
				 share_of(tree, node) < writing->minimum_share)) {
			leave_out(writing, node);
			continue;
		}
		writing->kept[i] = nodes++;
		if (writing->labels[node->label] == MODEL_NONE)
			writing->labels[node->label] = labels++;
	}
	return 0;
}

/* ---- what is written ---- */

/* What a sample of one side stands for. */
static uint64_t unit_of(const struct writing *writing, unsigned side)
{
	const struct model *model = writing->queries[side]->model;

	return model_has_time(model) ? model_sample_weight_ns(model) : 1;
}

static const char *unit_name(const struct model *model)
{
	if (model->counts_energy)
		return "uj";
	if (model->counts_bytes)
		return "bytes";
	return model_has_time(model) ? "ns" : "samples";
}

static const char *kind_name(enum call_tree_kind kind)
{
	static const char *const names[] = {
		[CALL_TREE_NATIVE] = "native",
		[CALL_TREE_KERNEL] = "kernel",
		[CALL_TREE_INTERPRETED] = "interpreted",
		[CALL_TREE_JIT] = "jit",
		[CALL_TREE_TASK] = "task",
	};

	return kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : "native";
}

/* Control characters become escapes, as in a terminal. */
static void write_name(struct json_writer *json, const char *name)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, name);
	json_string(json, strbuf_cstr(&plain));
	strbuf_inherit_status(json->out, &plain);
}

enum label_column { LABEL_NAME, LABEL_MODULE, LABEL_KIND };

static void write_labels(struct writing *writing, const char *key, enum label_column column)
{
	const struct call_tree *tree = &writing->tree;
	struct json_writer *json = &writing->json;
	uint32_t next = 0;

	json_key(json, key);
	json_begin_array(json);
	/* Labels are numbered by their first node. */
	for (size_t i = 0; i < tree->nodes.count; i++) {
		const struct call_tree_label *label = call_tree_label(tree, (uint32_t)i);

		if (writing->kept[i] == MODEL_NONE ||
			writing->labels[tree->nodes.items[i].label] != next)
			continue;
		next++;
		write_name(json, column == LABEL_NAME     ? label->name
				 : column == LABEL_MODULE ? label->module
							  : kind_name(label->kind));
	}
	json_end_array(json);
}

static void write_nodes(struct writing *writing)
{
	const struct call_tree *tree = &writing->tree;
	struct json_writer *json = &writing->json;

	json_key(json, "label");
	json_begin_array(json);
	for (size_t i = 0; i < tree->nodes.count; i++) {
		if (writing->kept[i] != MODEL_NONE)
			json_u64(json, writing->labels[tree->nodes.items[i].label]);
	}
	json_end_array(json);
	json_key(json, "parent");
	json_begin_array(json);
	for (size_t i = 0; i < tree->nodes.count; i++) {
		if (writing->kept[i] != MODEL_NONE)
			json_i64(
				json, i ? (int64_t)writing->kept[tree->nodes.items[i].parent] : -1);
	}
	json_end_array(json);
}

/* Of each side an array with a number of each node. */
static void write_weights(struct writing *writing, const char *key, bool total)
{
	const struct call_tree *tree = &writing->tree;
	struct json_writer *json = &writing->json;

	json_key(json, key);
	json_begin_array(json);
	for (unsigned side = 0; side < writing->sides; side++) {
		uint64_t unit = unit_of(writing, side);

		json_begin_array(json);
		for (size_t i = 0; i < tree->nodes.count; i++) {
			const struct call_tree_node *node = &tree->nodes.items[i];

			if (writing->kept[i] != MODEL_NONE)
				json_u64(json,
					unit * (total ? node->total[side] : node->self[side]));
		}
		json_end_array(json);
	}
	json_end_array(json);
}

static void write_sums(struct writing *writing, const char *key, const uint64_t *samples)
{
	json_key(&writing->json, key);
	json_begin_array(&writing->json);
	for (unsigned side = 0; side < writing->sides; side++)
		json_u64(&writing->json, unit_of(writing, side) * samples[side]);
	json_end_array(&writing->json);
}

static void write_head(struct writing *writing)
{
	struct json_writer *json = &writing->json;

	json_member_text(json, "unit", unit_name(writing->queries[0]->model));
	json_key(json, "paths");
	json_begin_array(json);
	for (unsigned side = 0; side < writing->sides; side++)
		json_string(json, writing->queries[side]->paths[0]);
	json_end_array(json);
	write_sums(writing, "totals", writing->tree.nodes.items[0].total);
	json_key(json, "pruned");
	json_begin_object(json);
	json_member_u64(json, "nodes", writing->pruned_count);
	write_sums(writing, "total", writing->pruned);
	json_end_object(json);
	json_key(json, "notes");
	json_begin_array(json);
	if (writing->notes.length)
		json_string(json, strbuf_cstr(&writing->notes));
	json_end_array(json);
}

static int write_tree(struct writing *writing)
{
	struct json_writer *json = &writing->json;
	int r = prune(writing);

	if (r < 0)
		return r;
	json_begin_object(json);
	write_head(writing);
	write_labels(writing, "names", LABEL_NAME);
	write_labels(writing, "modules", LABEL_MODULE);
	write_labels(writing, "kinds", LABEL_KIND);
	write_nodes(writing);
	write_weights(writing, "self", false);
	write_weights(writing, "total", true);
	json_end_object(json);
	return strbuf_status(json->out);
}

/* ---- what is asked ---- */

static int merge(struct writing *writing, const char *roots)
{
	int r = call_tree_init(&writing->tree);

	for (unsigned side = 0; r == 0 && side < writing->sides; side++)
		r = call_tree_add(&writing->tree, side, writing->queries[side]->model,
			&writing->selected[side], call_tree_roots_from_string(roots));
	return r == 0 ? call_tree_finish(&writing->tree) : r;
}

/* Two sides are comparable when they count the same. */
static int check_sides(const struct writing *writing, struct errmsg *err)
{
	const struct query *before = writing->queries[0], *after = writing->queries[1];

	if (writing->sides < 2 || strcmp(unit_name(before->model), unit_name(after->model)) == 0)
		return 0;
	return errmsg_set(err, -EINVAL,
		"%s counts %s and %s counts %s: weigh both by wall, wait or gpu to compare them",
		before->paths[0], unit_name(before->model), after->paths[0],
		unit_name(after->model));
}

static int make(struct query *const *queries, unsigned sides, struct query_options *options,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_(writing_done) struct writing writing = {
		.sides = sides,
		.minimum_share = options->minimum_share_percent / 100,
		.json = {.out = out},
	};
	int r = 0;

	for (unsigned side = 0; r == 0 && side < sides; side++) {
		writing.queries[side] = queries[side];
		r = query_begin_weighed(
			queries[side], options, &writing.selected[side], &writing.notes, err);
	}
	if (r == 0)
		r = check_sides(&writing, err);
	if (r < 0)
		return r;
	r = merge(&writing, options->roots);
	if (r == 0)
		r = write_tree(&writing);
	return r < 0 ? errmsg_set(err, r, "memory ran out while making the call tree") : 0;
}

int query_call_tree(
	struct query *query, struct query_options *options, struct strbuf *out, struct errmsg *err)
{
	return make(&query, 1, options, out, err);
}

int query_call_tree_diff(struct query *before, struct query *after, struct query_options *options,
	struct strbuf *out, struct errmsg *err)
{
	struct query *const queries[] = {before, after};

	return make(queries, 2, options, out, err);
}
