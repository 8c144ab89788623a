/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in the ranges of programs. */
#include <math.h>

#include "analyses/inference/table_joules.h"
#include "report/columns.h"
#include "report/energy/joules.h"
#include "report/sections.h"

static const struct report_column row_columns[] = {
	{.key = "kind",
		.title = "Kind",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_SAME,
		.help = "thread, process, mark"},
	{.key = "total_ns", .title = "Total", .kind = REPORT_NS},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "open_count",
		.title = "Not ended",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "how many of them have no known end"},
	{.title = "Mean", .kind = REPORT_NS},
	{.key = "minimum_ns", .title = "Min", .kind = REPORT_NS},
	{.key = "maximum_ns", .title = "Max", .kind = REPORT_NS},
	{.key = "samples", .kind = REPORT_COUNT, .help = "of running threads inside"},
	{.title = "CPU", .kind = REPORT_SHARE, .hide = REPORT_HIDE_EMPTY},
	{.key = "device_work_count", .kind = REPORT_COUNT, .help = "launched inside"},
	{.key = "device_span_ns",
		.title = "On device",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of each from the first start to the last end, added up"},
	{.key = "device_busy_ns",
		.title = "Busy",
		.kind = REPORT_NS,
		.hide = REPORT_HIDE_EMPTY,
		.help = "overlapping work of a device counts once"},
	{.key = "bytes",
		.title = "Bytes",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of payloads of this name; null: there are none"},
	REPORT_JOULES_COLUMNS(NULL, 0),
	{.key = "domain", .title = "Domain", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "name",
		.title = "Range",
		.kind = REPORT_TEXT,
		.shrinks_to = 16,
		.unknown = "[no name]"},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "ranges", .kind = REPORT_COUNT},
	{.key = "marks", .kind = REPORT_COUNT},
	{.key = "samples", .kind = REPORT_COUNT, .help = "of running threads, in the whole"},
	{.key = "unbalanced_ends", .kind = REPORT_COUNT, .help = "of what had not begun"},
	{.key = "ends_lost", .kind = REPORT_COUNT},
	{.key = "open_at_thread_end", .kind = REPORT_COUNT},
	{.key = "open_at_end", .kind = REPORT_COUNT},
	{.key = "too_many_at_once", .kind = REPORT_COUNT},
	{.key = "names_lost", .kind = REPORT_COUNT},
	{.key = "names_cut", .kind = REPORT_COUNT},
	{.key = "records_damaged", .kind = REPORT_COUNT},
	{.key = "calls_dropped", .kind = REPORT_COUNT},
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "longest first, marks last"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* Marks last no time, and nothing happens in them. */
static void add_row(struct result *result, const struct report_view *view,
	const struct range_row *row, const struct joules *joules)
{
	bool has_time = !row->is_mark;

	result_text(result, row->is_mark ? "mark" : row->of_process ? "process" : "thread");
	result_known(result, has_time, row->total_ns);
	result_u64(result, row->count);
	result_u64(result, row->open_count);
	result_known(result, has_time, row->total_ns / row->count);
	result_known(result, has_time, row->minimum_ns);
	result_known(result, has_time, row->maximum_ns);
	if (has_time)
		columns_add_samples(result, view->model, row->samples);
	else
		result_null(result);
	result_share(result, has_time ? (double)row->samples : NAN, (double)view->ranges->samples);
	result_known(result, has_time, row->works);
	result_known(result, has_time, row->device_span_ns);
	result_known(result, has_time, row->device_busy_ns);
	result_known(result, row->with_bytes, row->bytes);
	report_add_joules(result, view, joules, 0);
	result_text(result, row->domain);
	result_text(result, row->name);
}

static int add_rows(
	struct result *result, const struct report_view *view, struct energy_reasons *reasons)
{
	_cleanup_range_index_ struct range_index index = {0};
	int r = view->span_energy ? range_index_init(&index, view->model) : 0;

	for (size_t i = 0; r == 0 && i < view->ranges->rows.count; i++) {
		const struct range_row *row = &view->ranges->rows.items[i];
		bool has_energy = view->span_energy && !row->is_mark;
		struct joules joules;

		if (has_energy)
			r = joules_of_ranges(view->span_energy, view->model, &index, row, &joules);
		if (r < 0)
			return r;
		if (has_energy)
			energy_reasons_add(reasons, &joules);
		add_row(result, view, row, has_energy ? &joules : NULL);
	}
	return r;
}

/* Null where the recording has no account of its own. */
static void add_account(struct result *result, const struct capture_range_stats *stats)
{
	const uint64_t counts[] = {stats->unbalanced_ends, stats->ends_lost,
		stats->open_at_thread_end, stats->open_at_end, stats->too_many, stats->names_lost,
		stats->names_cut, stats->records_damaged, stats->calls_dropped};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_known(result, stats->events, counts[i]);
}

static int say_none(struct result *result, const struct report_input *input)
{
	return report_nothing(result, input,
		report_is_foreign(input)
			? "There are no ranges: the trace has no annotations of the program, such "
			  "as PyTorch's record_function() makes."
			: "There are no ranges: no recorded process had ranges of NVTX or of "
			  "sonde.range().");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct capture_range_stats *stats = &view->model->stats.values.ranges;
	struct energy_reasons reasons = {0};
	uint32_t table;
	int r;

	if (!input->is_alone && !report_is_own(input))
		return 0;
	if ((!view->ranges->rows.count && !stats->events) ||
		selection_left_out(view->model, SELECTION_RANGES))
		return say_none(result, input);
	result_open(result);
	result_u64(result, view->ranges->ranges);
	result_u64(result, view->ranges->marks);
	columns_add_samples(result, view->model, view->ranges->samples);
	add_account(result, stats);
	table = result_open(result);
	r = add_rows(result, view, &reasons);
	if (r < 0)
		return r;
	result_close(result);
	result_close(result);
	if (!view->ranges->rows.count)
		return say_none(result, input);
	result_heading(result, "Ranges");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8), .noun = "ranges"});
	energy_reasons_say(&reasons, view, result);
	return 0;
}

const struct report_section ranges_section = {
	.value = {.key = "ranges",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "of NVTX and of sonde's own interface"},
	.by = "range",
	.summary = "what happened in the program's ranges",
	.needs = REPORT_NEEDS_PROGRAMS,
	.shows = SELECTION_RANGES,
	.make = make,
};
