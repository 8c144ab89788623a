/* SPDX-License-Identifier: Apache-2.0 */
/* Section: the counters of programs, and of other tools' traces. */
#include <math.h>

#include "analyses/program/counter_use.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column columns[] = {
	{.key = "count", .title = "Count", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "not_numbers",
		.title = "No number",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_EMPTY,
		.help = "infinite values and NaN, of the count"},
	{.key = "minimum", .title = "Min", .kind = REPORT_NUMBER, .join = REPORT_JOIN_LEAST},
	{.key = "mean",
		.title = "Mean",
		.kind = REPORT_NUMBER,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "p95",
		.title = "p95",
		.kind = REPORT_NUMBER,
		.join = REPORT_JOIN_MEAN,
		.help = "95 % of the values are this at most; by nearest rank"},
	{.key = "maximum", .title = "Max", .kind = REPORT_NUMBER, .join = REPORT_JOIN_MOST},
	{.key = "last", .title = "Last", .kind = REPORT_NUMBER, .join = REPORT_JOIN_MEAN},
	REPORT_RANK_COLUMN,
	{.key = "pid", .title = "PID", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "name",
		.title = "Counter",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 16,
		.help = "in traces that have several series of a name: \"name: series\""},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_row(struct result *result, const struct counter_row *row)
{
	bool has_values = row->count > row->not_numbers;

	result_u64(result, row->count);
	result_u64(result, row->not_numbers);
	result_number(result, has_values ? row->minimum : NAN);
	result_number(result, has_values ? row->mean : NAN);
	report_add_rank_spread(result);
	result_number(result, has_values ? row->p95 : NAN);
	result_number(result, has_values ? row->maximum : NAN);
	result_number(result, has_values ? row->last : NAN);
	result_known(result, row->rank != MODEL_NONE, row->rank);
	result_known(result, row->pid != 0, row->pid);
	result_textf(result, *row->series ? "%s: %s" : "%s%s", row->name, row->series);
}

/* A refusal of --pm-sampling is said in its place. */
static int say_nothing(struct result *result, const struct report_input *input)
{
	array_foreach (&input->view->model->device_notes, note) {
		if (note->note == WIRE_NOTE_PM_SAMPLING)
			return report_nothing(result, input, note->text);
	}
	return report_nothing(result, input,
		report_is_foreign(input)
			? "There are no counters in the trace."
			: "There are no counters: no process that was recorded reported any, which "
			  "sonde.counter() and sonde_counter() do; sonde record --pm-sampling has "
			  "those of GPUs.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *rows = input->trace;
	_cleanup_counter_use_ struct counter_use use = {0};
	int r = counter_use_init(
		&use, input->view->model, rows ? rows->views : NULL, rows ? rows->count : 0);
	uint32_t table;

	if (r < 0)
		return r;
	if (!use.rows.count)
		return say_nothing(result, input);
	table = result_open(result);
	array_foreach (&use.rows, row)
		add_row(result, row);
	result_close(result);
	result_heading(result, "Counters");
	result_show(result, report_join_ranks(result, input, table),
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 8), .noun = "counters"});
	return 0;
}

const struct report_section counters_section = {
	.value = {.key = "counters",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "counters that programs report, of GPUs with --pm-sampling, and of traces"},
	.by = "counter",
	.summary = "the counters of programs, GPUs and traces",
	.needs = REPORT_NEEDS_RECORDING | REPORT_NEEDS_FOREIGN,
	.shows = SELECTION_COUNTERS,
	.make = make,
};
