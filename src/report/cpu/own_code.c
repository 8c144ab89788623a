/* SPDX-License-Identifier: Apache-2.0 */
/* What the user's own code costs, line by line with its source, and by function. */
#include "analyses/cpu/own_code.h"

#include <math.h>

#include "base/source_text.h"
#include "report/columns.h"
#include "report/cpu/samples.h"
#include "report/sections.h"

static const struct report_column line_columns[] = {
	REPORT_SELF_COLUMNS,
	REPORT_WEIGHT_KEYS("total"),
	{.key = "self_energy_j",
		.title = "Energy",
		.kind = REPORT_JOULES,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "with the device work that was launched there"},
	{.key = "self_energy_uncertainty_j",
		.title = "\xc2\xb1",
		.kind = REPORT_JOULES,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "total_energy_j", .kind = REPORT_JOULES},
	{.key = "total_energy_uncertainty_j", .kind = REPORT_JOULES},
	REPORT_FRAME_COLUMNS("Line"),
	{.key = "source",
		.title = "Source",
		.kind = REPORT_TEXT,
		.is_source = true,
		.is_dim = true,
		.shrinks_to = 10,
		.help = "null where the file cannot be read, or was changed after the recording"},
};
static const struct report_shape line_shape = REPORT_SHAPE(line_columns);

static const struct report_column function_columns[] = {
	REPORT_SELF_COLUMNS,
	REPORT_TOTAL_COLUMNS,
	{.key = "self_energy_j", .kind = REPORT_JOULES},
	{.key = "self_energy_uncertainty_j", .kind = REPORT_JOULES},
	{.key = "total_energy_j",
		.title = "Energy",
		.kind = REPORT_JOULES,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "total_energy_uncertainty_j",
		.title = "\xc2\xb1",
		.kind = REPORT_JOULES,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "function",
		.title = "Function",
		.kind = REPORT_TEXT,
		.is_name = true,
		.shrinks_to = 16},
	{.title = "File", .kind = REPORT_TEXT, .is_path = true, .is_dim = true, .shrinks_to = 12},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
};
static const struct report_shape function_shape = REPORT_SHAPE(function_columns);

static const struct report_column lines_columns[] = {
	{.key = "rows", .total = "rows_total", .kind = REPORT_ROWS, .shape = &line_shape},
};
static const struct report_shape lines_shape = REPORT_SHAPE(lines_columns);

static const struct report_column functions_columns[] = {
	{.key = "rows", .total = "rows_total", .kind = REPORT_ROWS, .shape = &function_shape},
};
static const struct report_shape functions_shape = REPORT_SHAPE(functions_columns);

static const struct report_column columns[] = {
	{.key = "other_samples",
		.kind = REPORT_COUNT,
		.help = "these three: in stacks without your code"},
	{.key = "other_time_ns", .kind = REPORT_NS},
	{.key = "other_energy_uj", .kind = REPORT_COUNT},
	{.key = "other_bytes", .kind = REPORT_BYTES},
	{.key = "lines", .kind = REPORT_OBJECT, .shape = &lines_shape},
	{.key = "functions", .kind = REPORT_OBJECT, .shape = &functions_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- rows ---- */

static void add_figures(struct result *result, const struct model *model,
	const struct own_code *own, const struct own_code_row *row)
{
	/* Beside times, where there is energy at all. */
	bool has_joules =
		model->energy_intervals.count && !model->counts_energy && !model->counts_bytes;

	report_add_weight(result, model, own->samples, row->self_samples, row->self_uncertainty);
	report_add_weight(result, model, own->samples, row->total_samples, row->total_uncertainty);
	result_number(result, has_joules ? row->self_energy_j : NAN);
	result_number(result, has_joules ? row->self_uncertainty.energy_j : NAN);
	result_number(result, has_joules ? row->total_energy_j : NAN);
	result_number(result, has_joules ? row->total_uncertainty.energy_j : NAN);
}

static int add_line(struct result *result, const struct model *model, const struct own_code *own,
	const struct own_code_row *row, struct source_text *source)
{
	const struct model_frame *frame = &model->frames.items[row->frame];
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = source_text_line(source, frame->source_file, frame->line, &text);

	if (r < 0)
		return r;
	add_figures(result, model, own, row);
	columns_add_frame(result, model, row->frame, NULL);
	result_text(result, strbuf_cstr(&text));
	return strbuf_status(&text);
}

static void add_function(struct result *result, const struct model *model,
	const struct own_code *own, const struct own_code_row *row)
{
	const struct model_frame *frame = &model->frames.items[row->frame];
	const struct model_function *function = &model->functions.items[frame->function];
	const char *module = model_function_module(model, frame->function);

	add_figures(result, model, own, row);
	result_text(result, function->name);
	result_text(result, *function->source_file ? function->source_file : module);
	result_text(result, function->source_file);
	result_text(result, module);
}

/* ---- the terminal ---- */

static void show(struct result *result, const struct report_input *input,
	const struct own_code *own, enum own_code_by by, uint32_t table)
{
	static const char *const nouns[] = {"lines", "functions"};
	size_t shown = report_rows_shown(input, 20, 8);
	uint64_t rest = 0;

	for (size_t i = shown; i < own->rows[by].count; i++)
		rest += own->rows[by].items[i].self_samples;
	result_show(result, table,
		&(struct result_show){
			.limit = shown,
			.rest_share = (double)rest / (double)own->samples,
			.noun = nouns[by],
		});
}

static bool has_lines(const struct model *model, const struct own_code *own)
{
	array_foreach (&own->rows[OWN_CODE_LINE], row) {
		if (model->frames.items[row->frame].line)
			return true;
	}
	return false;
}

static void say_others(struct result *result, const struct own_code *own)
{
	if (own->others)
		result_sentencef(result, 2,
			"\xe2\x80\xa6 %.2f %% in stacks without your code: threads of libraries, "
			"other programs, the interpreter's start and end",
			100.0 * (double)own->others / (double)own->samples);
}

/* Lines that only call others of the user's: the functions have them. */
static void drop_callers(struct own_code *own)
{
	__typeof__(own->rows[OWN_CODE_LINE]) *rows = &own->rows[OWN_CODE_LINE];

	while (rows->count && !rows->items[rows->count - 1].self_samples)
		rows->count--;
}

static void show_tables(struct result *result, const struct report_input *input,
	const struct own_code *own, const uint32_t tables[OWN_CODE_MAX])
{
	if (!own->rows[OWN_CODE_FUNCTION].count)
		return;
	/* Without lines the two tables would be one. */
	if (has_lines(input->view->model, own)) {
		result_heading(
			result, "Your code (what a line calls in libraries counts as its own)");
		show(result, input, own, OWN_CODE_LINE, tables[OWN_CODE_LINE]);
		say_others(result, own);
	}
	result_heading(result, "Your functions (likewise)");
	show(result, input, own, OWN_CODE_FUNCTION, tables[OWN_CODE_FUNCTION]);
}

/* ---- the section ---- */

static int add_tables(struct result *result, const struct report_input *input,
	const struct own_code *own, uint32_t ret_tables[OWN_CODE_MAX])
{
	const struct model *model = input->view->model;
	_cleanup_source_text_ struct source_text *source = NULL;
	int r = source_text_new(&source, model->session.start_realtime_ns);
	size_t shown = report_rows_shown(input, 20, 8), wanted;

	if (r < 0)
		return r;
	result_open(result);
	ret_tables[OWN_CODE_LINE] = result_open(result);
	wanted = report_rows_filled(result, input, own->rows[OWN_CODE_LINE].count, shown);
	for (size_t i = 0; i < wanted; i++) {
		r = add_line(result, model, own, &own->rows[OWN_CODE_LINE].items[i], source);
		if (r < 0)
			return r;
	}
	result_close(result);
	result_close(result);
	result_open(result);
	ret_tables[OWN_CODE_FUNCTION] = result_open(result);
	wanted = report_rows_filled(result, input, own->rows[OWN_CODE_FUNCTION].count, shown);
	for (size_t i = 0; i < wanted; i++)
		add_function(result, model, own, &own->rows[OWN_CODE_FUNCTION].items[i]);
	result_close(result);
	result_close(result);
	return 0;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct model *model = view->model;
	_cleanup_own_code_ struct own_code own = {0};
	uint32_t tables[OWN_CODE_MAX];
	int r = own_code_init(&own, model, view->selected);

	if (r < 0)
		return r;
	if (!input->is_json)
		drop_callers(&own);
	result_open(result);
	result_known(result, !model->unit_ns, own.others);
	result_known(result, model_has_time(model), own.others * model_sample_weight_ns(model));
	result_known(result, model->counts_energy, own.others);
	result_known(result, model->counts_bytes, own.others);
	r = add_tables(result, input, &own, tables);
	if (r < 0)
		return r;
	result_close(result);
	if (!view->folds_libraries)
		show_tables(result, input, &own, tables);
	return 0;
}

const struct report_section own_code_section = {
	.value = {.key = "own_code",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "your code, with what it calls in libraries"},
	.needs = REPORT_NEEDS_RECORDING,
	.is_weighed = true,
	.make = make,
};
