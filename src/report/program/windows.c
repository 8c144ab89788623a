/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of a recording, or of a trace. */
#include <errno.h>
#include <stdlib.h>

#include "analyses/program/trace_windows.h"
#include "base/escape.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/rows.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column row_columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "number", .title = "Window", .kind = REPORT_INTEGER},
	{.key = "begin_ns",
		.title = "Begin",
		.kind = REPORT_NS,
		.help = "since the recording began; of a trace, since its first row"},
	{.key = "begin_unix_time_ns", .kind = REPORT_INTEGER},
	{.key = "duration_ns", .title = "Duration", .kind = REPORT_NS},
	{.title = "Steps", .kind = REPORT_TEXT},
	{.key = "leader_pid",
		.kind = REPORT_INTEGER,
		.help = "the process whose steps were counted; null: none"},
	{.key = "first_step", .kind = REPORT_INTEGER, .help = "the leader's"},
	{.key = "last_step", .kind = REPORT_INTEGER},
	{.key = "steps_begun", .kind = REPORT_COUNT, .help = "of all processes"},
	{.key = "samples",
		.title = "CPU samples",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of running threads"},
	{.key = "cpu_time_ns", .kind = REPORT_NS},
	{.key = "device_work_count", .kind = REPORT_COUNT, .help = "that began in it"},
	{.key = "device_busy_ns", .kind = REPORT_NS, .help = "in which some device worked"},
	{.title = "Device busy", .kind = REPORT_SHARE, .decimals = 1, .hide = REPORT_HIDE_EMPTY},
	{.key = "opened_by",
		.title = "Opened by",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "null: another tool's trace has no record of it"},
	{.key = "closed_by", .title = "Closed by", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "label",
		.title = "Label",
		.kind = REPORT_TEXT,
		.shrinks_to = 8,
		.hide = REPORT_HIDE_EMPTY},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "windows_in_capture", .kind = REPORT_COUNT},
	{.key = "duration_ns", .kind = REPORT_NS, .help = "of the windows in rows"},
	{.key = "recording_duration_ns",
		.kind = REPORT_NS,
		.help = "from its begin to its end; null: of a trace"},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static bool has_steps(const struct model_window *window)
{
	return window->last_step >= window->first_step;
}

static void describe_steps(struct strbuf *text, const struct model_window *window)
{
	if (window->last_step > window->first_step)
		strbuf_addf(text, "steps %llu to %llu", (unsigned long long)window->first_step,
			(unsigned long long)window->last_step);
	else if (window->last_step == window->first_step)
		strbuf_addf(text, "step %llu", (unsigned long long)window->first_step);
}

/* "Window 2, opened by steps, closed by schedule, steps 2 to 4". */
static void describe_one(
	struct strbuf *text, const struct model *model, const struct model_window *window)
{
	strbuf_addf(text, "Window %u", window->number);
	if (model->whole_window_count > 1)
		strbuf_addf(text, " of %u", model->whole_window_count);
	if (*window->label) {
		strbuf_add(text, " (");
		escape_plain(text, window->label);
		strbuf_add_char(text, ')');
	}
	strbuf_addf(text, ", opened by %s, closed by %s",
		capture_window_trigger_name(window->opened_by),
		capture_window_reason_name(window->closed_by));
	if (has_steps(window)) {
		strbuf_add(text, ", ");
		describe_steps(text, window);
	}
}

void report_describe_windows(const struct model *model, struct strbuf *out)
{
	size_t count = model->windows.count;

	if (!count)
		return;
	if (count == 1)
		describe_one(out, model, model->windows.items);
	else if (count == model->whole_window_count)
		strbuf_addf(out, "%zu windows", count);
	else
		strbuf_addf(out, "%zu of %u windows", count, model->whole_window_count);
	strbuf_add(out, ": ");
	format_duration(out, model_duration_ns(model));
	strbuf_add(out, " of the ");
	format_duration(out, model_elapsed_ns(model));
	strbuf_add(out, " that the recording took; times and shares below are of these.");
}

/* `trace`: whose window it is; NULL: the recording's. */
static void add_row(struct result *result, const struct model *model,
	const struct model_window *window, const struct window_row *row,
	const struct trace_windows *trace, uint32_t rank)
{
	uint64_t begin_ns =
		trace ? window->begin_ns : model_since_start_ns(model, window->begin_ns);
	uint64_t duration_ns = window->end_ns - window->begin_ns;
	bool is_recorded = !trace || trace->is_recorded;
	_cleanup_strbuf_ struct strbuf steps = {0};

	describe_steps(&steps, window);
	strbuf_inherit_status(&result->texts, &steps);
	result_known(result, trace != NULL, rank);
	result_u64(result, window->number);
	result_u64(result, begin_ns);
	result_known(result, model->session.start_realtime_ns != 0,
		model->session.start_realtime_ns + begin_ns);
	result_u64(result, duration_ns);
	result_text(result, strbuf_cstr(&steps));
	result_known(result, window->leader_pid != 0, window->leader_pid);
	result_known(result, has_steps(window), window->first_step);
	result_known(result, has_steps(window), window->last_step);
	result_u64(result, row->steps);
	columns_add_samples(result, model, row->samples);
	columns_add_cpu_time(result, model, row->samples);
	result_u64(result, row->works);
	result_u64(result, row->device_busy_ns);
	result_share(result, (double)row->device_busy_ns, (double)duration_ns);
	result_text(result, is_recorded ? capture_window_trigger_name(window->opened_by) : NULL);
	result_text(result, is_recorded ? capture_window_reason_name(window->closed_by) : NULL);
	result_text(result, window->label);
}

static int show(struct result *result, const struct report_input *input, uint32_t table)
{
	if (!input->is_alone)
		return 0;
	result_heading(result, "Windows");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8), .noun = "windows"});
	return 0;
}

static void add_trace(struct result *result, const struct report_input *input,
	const struct trace_windows *windows, uint32_t rank)
{
	for (size_t i = 0; i < windows->windows.count; i++)
		add_row(result, input->view->model, &windows->windows.items[i],
			&windows->use.rows.items[i], windows, rank);
}

static int fill_ranks(struct trace_windows *ranks, const struct trace_report *trace)
{
	uint64_t first_ns = trace_windows_first_ns(trace->views, trace->count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->count; i++)
		r = trace_windows_init(&ranks[i], &trace->views[i], first_ns);
	return r;
}

static int add_ranks(
	struct result *result, const struct report_input *input, const struct trace_windows *ranks)
{
	const struct trace_report *trace = input->trace;
	uint64_t count = 0, duration_ns = 0;
	uint32_t table;

	for (size_t i = 0; i < trace->count; i++) {
		count += ranks[i].windows.count;
		array_foreach (&ranks[i].windows, window)
			duration_ns += window->end_ns - window->begin_ns;
	}
	if (!count)
		return report_nothing(result, input,
			"There are no windows: the trace has no row of them, which sonde export "
			"and PyTorch's profiler write.");
	result_open(result);
	result_u64(result, count);
	result_u64(result, duration_ns);
	result_null(result);
	table = result_open(result);
	for (size_t i = 0; i < trace->count; i++)
		add_trace(result, input, &ranks[i], trace->views[i].rank);
	result_close(result);
	result_close(result);
	return show(result, input, table);
}

static int make_of_trace(struct result *result, const struct report_input *input)
{
	const struct trace_report *trace = input->trace;
	struct trace_windows *ranks;
	int r;

	if (!trace || !report_is_own(input))
		return 0;
	ranks = calloc(trace->count, sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	r = fill_ranks(ranks, trace);
	if (r == 0)
		r = add_ranks(result, input, ranks);
	for (size_t i = 0; i < trace->count; i++)
		trace_windows_done(&ranks[i]);
	free(ranks);
	return r;
}

/* In the complete report the head has them, in a sentence. */
static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct model *model = view->model;
	uint32_t table;

	if (report_is_foreign(input))
		return make_of_trace(result, input);
	if (!model->windows.count || selection_left_out(model, SELECTION_WINDOWS))
		return report_nothing(result, input,
			"There are no windows: all of the time was recorded; choose windows with "
			"sonde record --window.");
	result_open(result);
	result_u64(result, model->whole_window_count);
	result_u64(result, model_duration_ns(model));
	result_u64(result, model_elapsed_ns(model));
	table = result_open(result);
	for (size_t i = 0; i < model->windows.count; i++)
		add_row(result, model, &model->windows.items[i], &view->windows->rows.items[i],
			NULL, 0);
	result_close(result);
	result_close(result);
	return show(result, input, table);
}

const struct report_section windows_section = {
	.value = {.key = "windows", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "window",
	.summary = "the windows of the recording, or of the trace",
	.needs = REPORT_NEEDS_RECORDING | REPORT_NEEDS_FOREIGN,
	.shows = SELECTION_WINDOWS,
	.make = make,
};
