/* SPDX-License-Identifier: Apache-2.0 */
/* The heaviest way from the root down, and the hottest stacks. */
#include "analyses/cpu/call_tree.h"
#include "report/cpu/dimensions.h"
#include "report/view.h"

#define PATH_STOPS_BELOW 0.05 /* of all samples: further down there is no one hot path */
#define MAX_INDENT       24
#define FRAMES_SHOWN     12 /* of a stack, innermost ones */

static const struct report_column path_columns[] = {
	{.title = "Total", .kind = REPORT_SHARE},
	{.title = "Self", .kind = REPORT_SHARE},
	{.title = "Function", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 30},
	{.title = "Module", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 8, .largest = 24},
};
const struct report_shape report_path_shape = REPORT_SHAPE(path_columns);

static const struct report_column listing_columns[] = {
	REPORT_WEIGHT_COLUMNS("self", "Share", "Time", "Count", "Energy", "Bytes"),
	{.title = "Function", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 30},
	{.title = "Module", .kind = REPORT_TEXT, .is_dim = true, .shrinks_to = 8, .largest = 24},
};
const struct report_shape report_listing_shape = REPORT_SHAPE(listing_columns);

/* ---- the path ---- */

static void add_node(struct result *result, const struct call_tree *tree, uint32_t node)
{
	const struct call_tree_node *found = &tree->nodes.items[node];
	const struct call_tree_label *label = call_tree_label(tree, node);
	double all = (double)tree->nodes.items[0].total[0];
	size_t indent = MIN((size_t)found->depth - 1, (size_t)MAX_INDENT);

	result_share(result, (double)found->total[0], all);
	result_share(result, (double)found->self[0], all);
	result_textf(result, "%*s%s", (int)indent, "", label->name);
	result_text(result, label->module);
}

/* Follows the heaviest child from the root. A run of one function calling itself is one line. */
static uint32_t add_path(struct result *result, const struct call_tree *tree)
{
	double smallest = PATH_STOPS_BELOW * (double)tree->nodes.items[0].total[0];
	uint32_t table = result_open(result), node = 0;

	while (tree->nodes.items[node].child_count) {
		node = call_tree_child(tree, &tree->nodes.items[node], 0);
		if ((double)tree->nodes.items[node].total[0] < smallest)
			break;
		add_node(result, tree, node);
	}
	result_close(result);
	return table;
}

static int show_path(struct result *result, const struct report_view *view)
{
	_cleanup_call_tree_ struct call_tree tree = {0};
	int r = call_tree_init(&tree);

	if (r == 0)
		r = call_tree_add(&tree, 0, view->model, view->selected, CALL_TREE_ROOTS_PROCESS);
	if (r == 0)
		r = call_tree_finish(&tree);
	if (r < 0)
		return r;
	report_weight_heading(result, view, "Hottest path");
	result_show(result, add_path(result, &tree), &(struct result_show){0});
	return 0;
}

/* ---- stacks ---- */

/* The first row of a stack has its figures. */
static void add_figures(struct result *result, const struct report_view *view,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	if (row) {
		report_add_weight(result, view->model, breakdown->samples, row->self_samples,
			breakdown_uncertainty(breakdown, view->model, row, false));
		return;
	}
	for (size_t i = 0; i < REPORT_WEIGHT_COUNT; i++)
		result_null(result);
}

static void add_callers(struct result *result, const struct report_view *view,
	const struct breakdown *breakdown, const struct model_stack *stack)
{
	if (stack->count > FRAMES_SHOWN) {
		add_figures(result, view, breakdown, NULL);
		result_textf(result, "\xe2\x86\x90 %u more frames", stack->count - FRAMES_SHOWN);
		result_null(result);
	}
	if (stack->stop > WIRE_STOP_NO_USER_STACK) {
		add_figures(result, view, breakdown, NULL);
		result_textf(
			result, "\xe2\x86\x90 callers unknown (%s)", wire_stop_name(stack->stop));
		result_null(result);
	}
}

/* Innermost frame first; what is left out is counted. */
static void add_stack(struct result *result, const struct report_view *view,
	const struct breakdown *breakdown, const struct breakdown_row *row)
{
	const struct model *model = view->model;
	const struct model_stack *stack =
		row->key == MODEL_NONE ? NULL : &model->stacks.items[row->key];

	for (uint32_t i = 0; stack && i < MIN(stack->count, (uint32_t)FRAMES_SHOWN); i++) {
		uint32_t frame = model->stack_frames.items[stack->first + stack->count - 1 - i];
		_cleanup_strbuf_ struct strbuf name = {0};

		strbuf_add(&name, i ? "\xe2\x86\x90 " : "");
		model_frame_name(model, frame, &name);
		add_figures(result, view, breakdown, i ? NULL : row);
		strbuf_inherit_status(&result->texts, &name);
		result_text(result, strbuf_cstr(&name));
		result_text(
			result, model_function_module(model, model->frames.items[frame].function));
	}
	if (!stack || !stack->count) {
		add_figures(result, view, breakdown, row);
		result_text(result, "[no stack]");
		result_null(result);
	}
	if (stack)
		add_callers(result, view, breakdown, stack);
}

static void show_stacks(struct result *result, const struct report_view *view,
	const struct breakdown *breakdown, size_t shown)
{
	uint32_t table = result_open(result);

	for (size_t i = 0; i < shown; i++)
		add_stack(result, view, breakdown, &breakdown->rows.items[i]);
	result_close(result);
	report_weight_heading(result, view, "Hottest stacks");
	result_show(result, table,
		&(struct result_show){.left_out = breakdown->rows.count - shown, .noun = "stacks"});
}

int report_add_stacks(struct result *result, const struct report_input *input,
	const struct breakdown *breakdown, size_t shown)
{
	const struct report_view *view = input->view;
	int r;

	if (input->is_json) {
		result_null(result);
		result_null(result);
		return 0;
	}
	r = show_path(result, view);
	if (r < 0)
		return r;
	show_stacks(result, view, breakdown, shown);
	return 0;
}
