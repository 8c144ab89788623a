/* SPDX-License-Identifier: Apache-2.0 */
/* What the user's own code costs, line by line with its source, and by function. */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/own_code.h"
#include "base/source_text.h"
#include "model/format.h"
#include "report/view.h"

#define ENERGY "Energy" /* a column */

static double percent(uint64_t part, uint64_t all)
{
	return 100.0 * (double)part / (double)all;
}

static void add_figures(struct table *table, const struct report_view *view,
	const struct own_code *own, uint64_t samples)
{
	_cleanup_strbuf_ struct strbuf time = {0};

	table_cellf(table, "%.2f %%", percent(samples, own->samples));
	report_add_time(&time, view->model, samples);
	table_cell(table, strbuf_cstr(&time));
}

/* Beside times, where there is energy at all. */
static bool has_joules(const struct report_view *view)
{
	return view->energy && energy_use_has_any(view->energy) && !view->model->counts_energy;
}

static void add_joules(struct table *table, const struct report_view *view, double joules)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!has_joules(view))
		return;
	format_energy(&text, joules);
	table_cell(table, strbuf_cstr(&text));
}

/* Drops the columns of energy where there is none. Returns how many are left. */
static size_t choose_columns(
	const struct report_view *view, struct table_column *columns, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (has_joules(view) || strcmp(columns[i].title, ENERGY) != 0)
			columns[kept++] = columns[i];
	}
	return kept;
}

static const char *self_title(const struct model *model)
{
	return model->counts_energy    ? "Self energy"
	       : model_has_time(model) ? "Self time"
				       : "Self count";
}

static void add_place(
	struct table *table, const struct model *model, const struct model_frame *frame, bool line)
{
	const struct model_function *function = &model->functions.items[frame->function];
	const char *file = line ? frame->source_file : function->source_file;

	if (line && frame->line)
		table_cellf(table, "%s:%u", *file ? file : "[unknown file]", frame->line);
	else
		table_cell(table, *file ? file : model_function_module(model, frame->function));
}

/* Returns 1 when there was a line of source to add. */
static int add_source(
	struct table *table, struct source_text *source, const struct model_frame *frame)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = source_text_line(source, frame->source_file, frame->line, &text);

	table_cell(table, strbuf_cstr(&text));
	return r < 0 ? r : text.length > 0;
}

static void add_rest(const struct report_view *view, const struct own_code *own,
	enum own_code_by by, size_t shown)
{
	static const char *const many[] = {"lines", "functions"};
	uint64_t samples = 0;

	if (shown == own->rows[by].count)
		return;
	for (size_t i = shown; i < own->rows[by].count; i++)
		samples += own->rows[by].items[i].self_samples;
	strbuf_addf(view->out, "%s\xe2\x80\xa6 ", terminal_dim(&view->terminal));
	format_count(view->out, own->rows[by].count - shown);
	strbuf_addf(view->out, " more %s with %.2f %% self (--limit shows more)%s\n", many[by],
		percent(samples, own->samples), terminal_plain(&view->terminal));
}

static int add_lines(const struct report_view *view, const struct own_code *own, size_t shown)
{
	struct table_column columns[] = {
		{.title = "Self", .right = true},
		{.title = self_title(view->model), .right = true},
		{.title = ENERGY, .right = true},
		{.title = "Line", .is_path = true, .shrinks_to = 14},
		{.title = "Function", .shrinks_to = 10, .largest = 26},
		{.title = "Source", .is_source = true, .dim = true, .shrinks_to = 10},
	};
	_cleanup_table_ struct table table = {
		.columns = columns,
		.column_count = choose_columns(view, columns, ARRAY_SIZE(columns)),
	};
	_cleanup_source_text_ struct source_text *source = NULL;
	int r = source_text_new(&source, view->model->session.start_realtime_ns);

	for (size_t i = 0; r >= 0 && i < shown; i++) {
		const struct own_code_row *row = &own->rows[OWN_CODE_LINE].items[i];
		const struct model_frame *frame = &view->model->frames.items[row->frame];

		add_figures(&table, view, own, row->self_samples);
		add_joules(&table, view, row->self_energy_j);
		add_place(&table, view->model, frame, true);
		table_cell(&table, model_function_name(view->model, frame->function));
		r = add_source(&table, source, frame);
	}
	report_heading(view, "Your code (what a line calls in libraries counts as its own)");
	return r < 0 ? r : table_print(&table, &view->terminal, view->out);
}

static int add_functions(const struct report_view *view, const struct own_code *own, size_t shown)
{
	struct table_column columns[] = {
		{.title = "Self", .right = true},
		{.title = self_title(view->model), .right = true},
		{.title = "Total", .right = true},
		{.title = view->model->counts_energy    ? "Total energy"
			  : model_has_time(view->model) ? "Total time"
							: "Total count",
			.right = true},
		{.title = ENERGY, .right = true},
		{.title = "Function", .shrinks_to = 16},
		{.title = "File", .is_path = true, .dim = true, .shrinks_to = 12},
	};
	_cleanup_table_ struct table table = {
		.columns = columns,
		.column_count = choose_columns(view, columns, ARRAY_SIZE(columns)),
	};

	for (size_t i = 0; i < shown; i++) {
		const struct own_code_row *row = &own->rows[OWN_CODE_FUNCTION].items[i];
		const struct model_frame *frame = &view->model->frames.items[row->frame];

		add_figures(&table, view, own, row->self_samples);
		add_figures(&table, view, own, row->total_samples);
		add_joules(&table, view, row->total_energy_j);
		table_cell(&table, model_function_name(view->model, frame->function));
		add_place(&table, view->model, frame, false);
	}
	report_heading(view, "Your functions (likewise)");
	return table_print(&table, &view->terminal, view->out);
}

static void add_others(const struct report_view *view, const struct own_code *own)
{
	if (!own->others)
		return;
	strbuf_addf(view->out, "%s\xe2\x80\xa6 %.2f %% in stacks without your code: %s%s\n",
		terminal_dim(&view->terminal), percent(own->others, own->samples),
		"threads of libraries, other programs, the interpreter's start and end",
		terminal_plain(&view->terminal));
}

static bool has_lines(const struct model *model, const struct own_code *own)
{
	array_foreach (&own->rows[OWN_CODE_LINE], row) {
		if (model->frames.items[row->frame].line)
			return true;
	}
	return false;
}

/* Lines that only call others of the user's: the functions have them. Returns how many are left. */
static size_t drop_callers(struct own_code *own)
{
	__typeof__(own->rows[OWN_CODE_LINE]) *rows = &own->rows[OWN_CODE_LINE];

	while (rows->count && !rows->items[rows->count - 1].self_samples)
		rows->count--;
	return rows->count;
}

int report_own_code(const struct report_view *view, size_t limit)
{
	_cleanup_own_code_ struct own_code own = {0};
	int r = own_code_init(&own, view->model, view->selected);
	size_t lines = MIN(limit, drop_callers(&own));
	size_t functions = MIN(limit, own.rows[OWN_CODE_FUNCTION].count);

	if (r < 0 || !functions)
		return r;
	/* Without lines the two tables would be one. */
	if (has_lines(view->model, &own)) {
		r = add_lines(view, &own, lines);
		add_rest(view, &own, OWN_CODE_LINE, lines);
		add_others(view, &own);
	}
	r = r ?: add_functions(view, &own, functions);
	add_rest(view, &own, OWN_CODE_FUNCTION, functions);
	return r;
}
