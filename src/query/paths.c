/* SPDX-License-Identifier: Apache-2.0 */
#include "query/paths.h"

#include <errno.h>
#include <string.h>

#include "analyses/cpu/breakdown.h"
#include "analyses/cpu/call_tree.h"
#include "base/escape.h"
#include "model/format.h"
#include "query/answer.h"

#define PATHS_LIMIT     60
#define FUNCTIONS_LIMIT 40

static void add_share(struct strbuf *out, uint64_t part, uint64_t all)
{
	strbuf_addf(out, "%5.1f %%  ", all ? 100.0 * (double)part / (double)all : 0);
}

static void add_function(struct strbuf *out, const char *name, const char *module)
{
	escape_plain(out, name);
	if (*module) {
		strbuf_add(out, " (");
		escape_plain(out, module);
		strbuf_add_char(out, ')');
	}
	strbuf_add_char(out, '\n');
}

/* ---- the heaviest paths ---- */

struct printing {
	const struct call_tree *tree;
	const struct model *model;
	double minimum_share;
	uint64_t limit, printed, hidden;
	struct strbuf *out;
};

static void print_node(struct printing *printing, uint32_t index)
{
	const struct call_tree_node *node = &printing->tree->nodes.items[index];
	const struct call_tree_label *label = call_tree_label(printing->tree, index);
	struct strbuf *out = printing->out;

	if (printing->printed == printing->limit) {
		printing->hidden++;
		return;
	}
	printing->printed++;
	add_share(out, node->total[0], printing->tree->nodes.items[0].total[0]);
	format_weight(out, printing->model, node->total[0]);
	strbuf_add(out, "  self ");
	format_weight(out, printing->model, node->self[0]);
	strbuf_addf(out, "  %*s", (int)MIN(node->depth, 60U), "");
	add_function(out, label->name, label->module);
}

/* The heaviest node that was found, with the next one of its parent's to look at. */
struct open_node {
	uint32_t node, next_child;
};

/* From the root, each node before its children, as deep as they are heavy. */
static int print_tree(struct printing *printing)
{
	const struct call_tree *tree = printing->tree;
	double least = printing->minimum_share * (double)tree->nodes.items[0].total[0];
	ARRAY_OF(struct open_node) open = {0};
	int r = array_append(&open, (struct open_node){0});

	print_node(printing, 0);
	while (r == 0 && open.count) {
		struct open_node *top = &open.items[open.count - 1];
		const struct call_tree_node *node = &tree->nodes.items[top->node];
		uint32_t child = top->next_child < node->child_count
					 ? call_tree_child(tree, node, top->next_child++)
					 : MODEL_NONE;

		/* Children come heaviest first: those behind a light one are lighter. */
		if (child == MODEL_NONE || (double)tree->nodes.items[child].total[0] < least) {
			open.count--;
			continue;
		}
		print_node(printing, child);
		r = array_append(&open, (struct open_node){.node = child});
	}
	if (printing->hidden)
		strbuf_addf(printing->out,
			"%llu more are not shown: raise limit or min-share, or filter.\n",
			(unsigned long long)printing->hidden);
	array_done(&open);
	return r;
}

int query_paths(
	struct query *query, struct query_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_strbuf_ struct strbuf notes = {0};
	struct printing printing = {
		.tree = &tree,
		.minimum_share = options->minimum_share_percent / 100,
		.limit = options->limit ? options->limit : PATHS_LIMIT,
		.out = out,
	};
	int r = query_begin_weighed(query, options, &selected, &notes, err);

	if (r < 0)
		return r;
	if (!selected.count)
		return errmsg_set(err, -ENODATA, "%s has no stacks%s", query->paths[0],
			selection_narrows(&options->selection) ? " that pass the filters" : "");
	printing.model = query->model;
	r = call_tree_init(&tree);
	if (r == 0)
		r = call_tree_add(&tree, 0, query->model, &selected,
			call_tree_roots_from_string(options->roots));
	if (r == 0)
		r = call_tree_finish(&tree);
	if (r == 0 && notes.length)
		strbuf_addf(out, "%s\n", strbuf_cstr(&notes));
	if (r == 0)
		r = print_tree(&printing);
	return r < 0 ? errmsg_set(err, r, "memory ran out while making the call tree") : 0;
}

/* ---- functions ---- */

static void print_function(struct strbuf *out, const struct model *model,
	const struct breakdown *breakdown, size_t row)
{
	const struct breakdown_row *found = &breakdown->rows.items[row];
	const struct model_function *function = &model->functions.items[found->key];

	add_share(out, found->self_samples, breakdown->samples);
	strbuf_add(out, "self ");
	format_weight(out, model, found->self_samples);
	strbuf_add(out, "  total ");
	format_weight(out, model, found->total_samples);
	strbuf_add(out, "  ");
	add_function(out, function->name,
		function->module == MODEL_NONE ? "" : model->modules.items[function->module].name);
}

static int print_functions(const struct query *query, const struct breakdown *breakdown,
	const char *text, uint64_t limit, struct strbuf *out)
{
	const struct model *model = query->model;
	uint64_t found = 0;

	for (size_t i = 0; i < breakdown->rows.count; i++) {
		uint32_t key = breakdown->rows.items[i].key;

		if (key == MODEL_NONE || !strcasestr(model->functions.items[key].name, text))
			continue;
		if (found++ < limit)
			print_function(out, model, breakdown, i);
	}
	if (!found)
		strbuf_add(out, "No function that was sampled has this in its name.\n");
	if (found > limit)
		strbuf_addf(out, "%llu more are not shown: raise limit.\n",
			(unsigned long long)(found - limit));
	return strbuf_status(out);
}

int query_functions(struct query *query, struct query_options *options, const char *text,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	_cleanup_strbuf_ struct strbuf notes = {0};
	int r = query_begin_weighed(query, options, &selected, &notes, err);

	if (r < 0)
		return r;
	r = breakdown_init(
		&breakdown, query->model, &selected, BREAKDOWN_FUNCTION, query_sort(options));
	if (r == 0)
		r = print_functions(query, &breakdown, text,
			options->limit ? options->limit : FUNCTIONS_LIMIT, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while looking for functions") : 0;
}
