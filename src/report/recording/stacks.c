/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "analyses/cpu/call_tree.h"
#include "base/escape.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/view.h"

#define PATH_STOPS_BELOW 0.05 /* of all samples: further down there is no one hot path */
#define MAX_INDENT       24
#define FRAMES_SHOWN     12 /* of a stack, innermost ones */

static void add_name(
	const struct report_view *view, const char *name, const char *module, size_t column)
{
	_cleanup_strbuf_ struct strbuf plain_name = {0};
	_cleanup_strbuf_ struct strbuf plain_module = {0};
	size_t room = view->terminal.width > column + 30 ? view->terminal.width - column : 30;
	size_t module_columns;

	escape_plain(&plain_name, name);
	escape_plain(&plain_module, module);
	module_columns = MIN(shorten_columns(strbuf_cstr(&plain_module)), (size_t)24);
	shorten_name(view->out, strbuf_cstr(&plain_name), room - module_columns - 2);
	if (module_columns) {
		strbuf_addf(view->out, "  %s", terminal_dim(&view->terminal));
		shorten_name(view->out, strbuf_cstr(&plain_module), 24);
		strbuf_add(view->out, terminal_plain(&view->terminal));
	}
	strbuf_add_char(view->out, '\n');
}

static void add_path_line(
	const struct report_view *view, const struct call_tree *tree, uint32_t node)
{
	const struct call_tree_node *found = &tree->nodes.items[node];
	const struct call_tree_label *label = call_tree_label(tree, node);
	double all = (double)tree->nodes.items[0].total[0];
	size_t indent = MIN((size_t)found->depth - 1, (size_t)MAX_INDENT);

	strbuf_addf(view->out, "%6.2f %%  %6.2f %%  %*s", 100 * (double)found->total[0] / all,
		100 * (double)found->self[0] / all, (int)indent, "");
	add_name(view, label->name, label->module, 20 + indent);
}

/* Follows the heaviest child from the root. A run of one function calling itself is one line. */
static void add_path(const struct report_view *view, const struct call_tree *tree)
{
	double smallest = PATH_STOPS_BELOW * (double)tree->nodes.items[0].total[0];
	uint32_t node = 0;

	strbuf_addf(view->out, "%s   Total      Self  Function%s\n", terminal_bold(&view->terminal),
		terminal_plain(&view->terminal));
	while (tree->nodes.items[node].child_count) {
		node = call_tree_child(tree, &tree->nodes.items[node], 0);
		if ((double)tree->nodes.items[node].total[0] < smallest)
			break;
		add_path_line(view, tree, node);
	}
}

static int report_path(const struct report_view *view)
{
	_cleanup_call_tree_ struct call_tree tree = {0};
	int r = call_tree_init(&tree);

	r = r ?: call_tree_add(&tree, 0, view->model, view->selected, CALL_TREE_ROOTS_PROCESS);
	r = r ?: call_tree_finish(&tree);
	if (r < 0)
		return r;
	report_heading(view, "Hottest path");
	add_path(view, &tree);
	return 0;
}

/* Innermost frame first; what is left out is counted. */
static void add_frames(const struct report_view *view, const struct model_stack *stack)
{
	const struct model *model = view->model;
	uint32_t shown = MIN(stack->count, (uint32_t)FRAMES_SHOWN);

	for (uint32_t i = 0; i < shown; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + stack->count - 1 - i];
		uint32_t function = model->frames.items[frame].function;
		_cleanup_strbuf_ struct strbuf name = {0};

		model_frame_name(model, frame, &name);
		strbuf_add(view->out, i ? "        \xe2\x86\x90 " : "          ");
		add_name(view, strbuf_cstr(&name), model_function_module(model, function), 10);
	}
	if (stack->count > shown)
		strbuf_addf(
			view->out, "        \xe2\x86\x90 %u more frames\n", stack->count - shown);
	if (stack->stop > WIRE_STOP_NO_USER_STACK)
		strbuf_addf(view->out, "        \xe2\x86\x90 callers unknown (%s)\n",
			wire_stop_name(stack->stop));
}

static void add_stack(
	const struct report_view *view, const struct breakdown *breakdown, size_t index)
{
	const struct breakdown_row *row = &breakdown->rows.items[index];

	strbuf_addf(view->out, "%6.2f %%  ",
		100.0 * (double)row->self_samples / (double)breakdown->samples);
	report_add_time(view->out, view->model, row->self_samples);
	strbuf_add_char(view->out, '\n');
	if (row->key == MODEL_NONE)
		strbuf_add(view->out, "          [no stack]\n");
	else
		add_frames(view, &view->model->stacks.items[row->key]);
}

int report_stacks(const struct report_view *view, size_t limit)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	size_t shown;
	int r = report_path(view);

	r = r
		    ?: breakdown_init(&breakdown, view->model, view->selected, BREAKDOWN_STACK,
			       BREAKDOWN_SORT_SELF);
	if (r < 0)
		return r;
	report_heading(view, "Hottest stacks");
	shown = limit ? MIN(limit, breakdown.rows.count) : breakdown.rows.count;
	for (size_t i = 0; i < shown; i++)
		add_stack(view, &breakdown, i);
	if (breakdown.rows.count > shown) {
		strbuf_addf(view->out, "%s\xe2\x80\xa6 ", terminal_dim(&view->terminal));
		format_count(view->out, breakdown.rows.count - shown);
		strbuf_addf(view->out, " more stacks (--limit shows more)%s\n",
			terminal_plain(&view->terminal));
	}
	return 0;
}
