/* SPDX-License-Identifier: Apache-2.0 */
/* Sections: why devices and their streams were idle, and who is to blame. */
#include <errno.h>
#include <math.h>

#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* Where a filter leaves out some of the work of a time, gaps between the rest are no idle time. */
static bool is_known(struct result *result, const struct report_input *input)
{
	if (!columns_has_works(result, input))
		return false;
	if (!selection_refused(input->view->selection, SELECTION_DEVICE_IDLE))
		return true;
	report_nothing(result, input, "");
	return false;
}

/* ---- by cause ---- */

static const struct report_column cause_columns[] = {
	{.key = "cause", .kind = REPORT_TEXT},
	{.key = "idle_ns", .kind = REPORT_NS},
	{.key = "share", .kind = REPORT_SHARE},
	{.key = "gaps_ns",
		.kind = REPORT_OBJECT,
		.shape = &columns_describe_shape,
		.help = "how long the gaps, or parts of gaps, are"},
};
static const struct report_shape cause_shape = REPORT_SHAPE(cause_columns);

static const struct report_column place_columns[] = {
	REPORT_STREAM_COLUMNS,
	{.key = "of", .kind = REPORT_TEXT, .help = "device: all streams together; or stream"},
	{.key = "idle_ns", .kind = REPORT_NS},
	{.key = "gaps", .kind = REPORT_COUNT, .help = "null with --hta-compatible"},
	{.key = "causes", .kind = REPORT_ROWS, .shape = &cause_shape},
};
static const struct report_shape place_shape = REPORT_SHAPE(place_columns);

static void add_place(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct device_idle_place *place)
{
	if (place->stream != MODEL_NONE) {
		columns_add_stream(result, input->trace, view, place->stream);
		return;
	}
	columns_add_device(result, input->trace, view, place->device);
	result_text(result, "all streams");
	result_null(result);
}

static int add_cause(struct result *result, const struct device_idle *idle,
	const struct device_idle_place *place, enum device_idle_cause cause)
{
	struct trace_describe gaps;
	int r = device_idle_describe(idle, place, cause, &gaps);

	if (r < 0)
		return r;
	result_text(result, device_idle_cause_name(cause));
	result_i64(result, place->by_cause_ns[cause]);
	result_share(result, (double)place->by_cause_ns[cause], (double)place->idle_ns);
	columns_add_describe(result, &gaps);
	return 0;
}

static int add_causes(struct result *result, const struct device_idle *idle,
	const struct device_idle_place *place)
{
	int r = 0;

	result_open(result);
	for (int cause = 0; r == 0 && cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
		if (place->is_listed[cause])
			r = add_cause(result, idle, place, (enum device_idle_cause)cause);
	}
	result_close(result);
	return r;
}

static int add_json(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct device_idle *idle)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < idle->places.count; i++) {
		const struct device_idle_place *place = &idle->places.items[i];

		add_place(result, input, view, place);
		result_text(result, place->stream == MODEL_NONE ? "device" : "stream");
		result_i64(result, place->idle_ns);
		result_known(result, place->gap_count != DEVICE_IDLE_NOT_COUNTED, place->gap_count);
		r = add_causes(result, idle, place);
	}
	return r;
}

/* ---- in the terminal: one row for each device, or for each cause of a place ---- */

#define CAUSE_COLUMN(name)                                                                         \
	{                                                                                          \
		.title = (name), .kind = REPORT_SHARE, .hide = REPORT_HIDE_EMPTY,                  \
		.join = REPORT_JOIN_MEAN                                                           \
	}

static const struct report_column device_columns[] = {
	REPORT_DEVICE_COLUMNS,
	{.title = "Idle", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .is_lead = true},
	REPORT_RANK_SPREAD(0),
	CAUSE_COLUMN("Host wait"),
	CAUSE_COLUMN("Running"),
	CAUSE_COLUMN("GIL"),
	CAUSE_COLUMN("Lock"),
	CAUSE_COLUMN("Sleep"),
	CAUSE_COLUMN("Disk"),
	CAUSE_COLUMN("Pipe"),
	CAUSE_COLUMN("CPU"),
	CAUSE_COLUMN("Other wait"),
	CAUSE_COLUMN("Blocking call"),
	CAUSE_COLUMN("Launch"),
	CAUSE_COLUMN("Kernel wait"),
	CAUSE_COLUMN("Event"),
	CAUSE_COLUMN("Other"),
	CAUSE_COLUMN("Unknown"),
};
static const struct report_shape device_shape = REPORT_SHAPE(device_columns);

static int add_devices(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct device_idle *idle)
{
	array_foreach (&idle->places, place) {
		if (place->stream != MODEL_NONE)
			continue;
		columns_add_device(result, input->trace, view, place->device);
		result_i64(result, place->idle_ns);
		report_add_rank_spread(result);
		for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
			result_share(
				result, (double)place->by_cause_ns[cause], (double)place->idle_ns);
	}
	return 0;
}

static const struct report_column detail_columns[] = {
	REPORT_STREAM_COLUMNS,
	{.title = "Cause", .kind = REPORT_TEXT, .join = REPORT_JOIN_KEY},
	{.title = "Idle", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.title = "", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	{.title = "Gaps", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.title = "Mean", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "Std", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "Min", .kind = REPORT_NS, .join = REPORT_JOIN_LEAST},
	{.title = "Median", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "Max", .kind = REPORT_NS, .join = REPORT_JOIN_MOST},
};
static const struct report_shape detail_shape = REPORT_SHAPE(detail_columns);

static int add_detail(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct device_idle *idle,
	const struct device_idle_place *place, enum device_idle_cause cause)
{
	struct trace_describe gaps;
	int r = device_idle_describe(idle, place, cause, &gaps);

	if (r < 0)
		return r;
	add_place(result, input, view, place);
	result_text(result, device_idle_cause_title(cause));
	result_i64(result, place->by_cause_ns[cause]);
	report_add_rank_spread(result);
	result_share(result, (double)place->by_cause_ns[cause], (double)place->idle_ns);
	result_u64(result, gaps.count);
	result_number(result, gaps.mean);
	result_number(result, gaps.deviation);
	result_number(result, gaps.least);
	result_number(result, gaps.median);
	result_number(result, gaps.most);
	return 0;
}

static int add_details(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct device_idle *idle)
{
	int r = 0;

	array_foreach (&idle->places, place) {
		for (int cause = 0; r == 0 && cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
			if (place->is_listed[cause])
				r = add_detail(result, input, view, idle, place,
					(enum device_idle_cause)cause);
		}
	}
	return r;
}

/* Rows of all ranks, in a table. */
static int add_table(struct result *result, const struct report_input *input, uint32_t *ret_table,
	int (*add)(struct result *result, const struct report_input *input,
		const struct trace_view *view, const struct device_idle *idle))
{
	const struct trace_report *report = input->trace;
	int r = 0;

	*ret_table = result_open(result);
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		const struct device_idle *idle = trace_results_idle(report->results, i);

		r = idle ? add(result, input, &report->views[i], idle) : -ENOMEM;
	}
	result_close(result);
	return r;
}

static const struct report_column idle_columns[] = {
	{.key = "idle",
		.kind = REPORT_ROWS,
		.shape = &place_shape,
		.help = "why devices and their streams were idle"},
	{.kind = REPORT_ROWS, .shape = &device_shape},
	{.kind = REPORT_ROWS, .shape = &detail_shape},
};
static const struct report_shape idle_shape = REPORT_SHAPE(idle_columns);

/* Of the causes that there are. */
static void add_legend(struct result *result, const struct trace_report *report)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	bool is_there[DEVICE_IDLE_CAUSE_MAX] = {0};

	for (size_t i = 0; i < report->count; i++) {
		const struct device_idle *idle = trace_results_idle(report->results, i);

		for (size_t k = 0; idle && k < idle->places.count; k++) {
			for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
				is_there[cause] |= idle->places.items[k].by_cause_ns[cause] != 0;
		}
	}
	for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
		if (is_there[cause])
			strbuf_addf(&text, "%s%s: %s", text.length ? "; " : "",
				device_idle_cause_title((enum device_idle_cause)cause),
				device_idle_cause_meaning((enum device_idle_cause)cause));
	}
	if (text.length)
		result_sentencef(result, 2, "%s.", strbuf_cstr(&text));
	strbuf_inherit_status(&result->texts, &text);
}

static int make_idle(struct result *result, const struct report_input *input)
{
	bool is_own = trace_report_is_own(input->trace);
	uint32_t table;
	int r;

	if (!is_known(result, input))
		return 0;
	result_open(result);
	r = add_table(result, input, &table, add_json);
	if (r == 0)
		r = add_table(result, input, &table, add_devices);
	if (r == 0 && (input->is_alone || !is_own))
		r = add_table(result, input, &table, add_details);
	else
		result_null(result);
	if (r < 0)
		return r;
	result_close(result);
	result_heading(result, "Idle time breakdown");
	if (is_own)
		add_legend(result, input->trace);
	result_show(result, report_join_ranks(result, input, table), &(struct result_show){0});
	return 0;
}

const struct report_section idle_section = {
	.value = {.kind = REPORT_OBJECT, .shape = &idle_shape},
	.by = "idle",
	.summary = "why devices and their streams were idle",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make_idle,
};

/* ---- who is to blame ---- */

static const struct report_column blame_columns[] = {
	{.key = "share", .title = "Idle", .kind = REPORT_SHARE},
	{.key = "idle_ns", .title = "Time", .kind = REPORT_NS},
	{.key = "gaps", .title = "Gaps", .kind = REPORT_COUNT, .help = "gaps with a part in it"},
	{.key = "samples",
		.title = "Samples",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "for recordings: samples that the time rests on"},
	{.title = "GPU", .kind = REPORT_TEXT, .hide = REPORT_HIDE_SAME},
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "device", .kind = REPORT_INTEGER},
	{.key = "device_name", .kind = REPORT_TEXT},
	{.title = "Cause", .kind = REPORT_TEXT},
	{.key = "cause", .kind = REPORT_TEXT},
	{.key = "kind",
		.title = "Kind",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "operator, call, annotation or python"},
	{.key = "name",
		.title = "The host was in",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.is_name = true,
		.shrinks_to = 16,
		.help = "the innermost row of the launching thread; null: none, or the host was "
			"not the cause"},
	{.key = "waited_for",
		.title = "Waited for",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 12,
		.help = "what the call or the stream waited for, by the records of waits; null: "
			"not known, or no such wait"},
	{.title = "Line",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.is_path = true,
		.shrinks_to = 14},
	{.title = "Function",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_EMPTY,
		.is_name = true,
		.shrinks_to = 10},
	{.key = "function", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line", .kind = REPORT_INTEGER},
};
static const struct report_shape blame_shape = REPORT_SHAPE(blame_columns);

static void add_blame(struct result *result, const struct report_input *input,
	const struct idle_rows *rows, const struct idle_row *row)
{
	const struct trace_view *view = input->trace->views;

	result_share(result, (double)row->time_ns, (double)rows->time_ns);
	result_i64(result, row->time_ns);
	result_u64(result, row->gaps);
	result_known(result, view->trace->recorded != NULL, row->samples);
	if (row->device != MODEL_NONE) {
		columns_add_device(result, input->trace, view, row->device);
	} else {
		for (int i = 0; i < 4; i++)
			result_null(result);
	}
	result_text(result, device_idle_cause_title(row->cause));
	result_text(result, device_idle_cause_name(row->cause));
	result_text(result, row->name ? idle_row_kind(row) : NULL);
	result_text(result, row->name);
	result_text(result, row->target);
	if (view->trace->recorded) {
		columns_add_frame(result, view->trace->recorded, row->frame, NULL);
		return;
	}
	for (int i = 0; i < 6; i++)
		result_null(result);
}

static void add_basis(
	struct result *result, const struct report_input *input, const struct idle_rows *rows)
{
	uint64_t samples = 0;

	if (!input->trace->views->trace->recorded)
		return;
	array_foreach (&rows->rows, row)
		samples += row->samples;
	if (samples < rows->gaps)
		result_sentence(result, 2,
			"There are fewer samples than gaps: the line that a short gap is charged "
			"to is a matter of chance.");
}

static int make_host(struct result *result, const struct report_input *input)
{
	const struct idle_rows *rows;
	uint32_t table;
	size_t wanted;

	if (!is_known(result, input))
		return 0;
	rows = trace_results_idle_rows(input->trace->results);
	if (!rows)
		return -ENOMEM;
	if (!rows->rows.count)
		return report_nothing(result, input,
			"Devices were not idle; with --hta-compatible the host's part is not "
			"known, because HTA has no such analysis.");
	table = result_open(result);
	wanted = report_rows_wanted(result, input, rows->rows.count);
	for (size_t i = 0; i < wanted; i++)
		add_blame(result, input, rows, &rows->rows.items[i]);
	result_close(result);
	result_heading(result, "Why devices were idle");
	add_basis(result, input, rows);
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "rows"});
	return 0;
}

const struct report_section host_section = {
	.value = {.key = "host",
		.total = "host_total",
		.kind = REPORT_ROWS,
		.shape = &blame_shape,
		.help = "idle time of devices, of all ranks together, by what the host did"},
	.by = "host",
	.summary = "what the host did while devices were idle",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make_host,
};
