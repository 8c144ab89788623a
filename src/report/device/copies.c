/* SPDX-License-Identifier: Apache-2.0 */
/* Section: copies and fills of memory, and how fast they were. */
#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column point_columns[] = {
	{.key = "time_ns", .kind = REPORT_NS},
	{.key = "gbps", .kind = REPORT_NUMBER},
};
static const struct report_shape point_shape = REPORT_SHAPE(point_columns);

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "count",
		.title = "Count",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.views = REPORT_ALL_VIEWS},
	{.key = "without_bytes",
		.kind = REPORT_COUNT,
		.help = "those that do not say how much they move; they are only in count"},
	{.key = "bytes",
		.title = "Bytes",
		.kind = REPORT_BYTES,
		.join = REPORT_JOIN_SUM,
		.views = REPORT_ALL_VIEWS},
	{.key = "time_ns",
		.title = "Time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.views = REPORT_ALL_VIEWS},
	{.key = "gbps",
		.title = "GB/s",
		.kind = REPORT_NUMBER,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.help = "10^9 bytes a second"},
	REPORT_RANK_SPREAD(0),
	{.key = "min_gbps", .title = "Min", .kind = REPORT_NUMBER, .join = REPORT_JOIN_LEAST},
	{.key = "max_gbps", .title = "Max", .kind = REPORT_NUMBER, .join = REPORT_JOIN_MOST},
	REPORT_FOREIGN_NUMBER("GB/s"),
	REPORT_FOREIGN_NUMBER("Min"),
	REPORT_FOREIGN_NUMBER("Max"),
	{.key = "at_changes_gbps",
		.kind = REPORT_OBJECT,
		.shape = &columns_describe_shape,
		.help = "HTA's summary of the bandwidth of overlapping copies"},
	{.key = "series",
		.kind = REPORT_LIST,
		.shape = &point_shape,
		.help = "time in ns, GB/s from then on; null but with --by bandwidth"},
	{.key = "name",
		.title = "Copy",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.views = REPORT_ALL_VIEWS,
		.shrinks_to = 12},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_series(
	struct result *result, const struct copies *copies, const struct copies_row *row)
{
	result_open(result);
	for (uint32_t i = row->first; i < row->first + row->point_count; i++) {
		result_i64(result, copies->points.items[i].time_ns);
		result_number(result, copies->points.items[i].gbps);
	}
	result_close(result);
}

static void add_row(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct copies *copies, const struct copies_row *row)
{
	bool known = row->count > row->without_bytes;
	const double ours[] = {known ? copies_gbps(row) : (double)NAN,
		known ? row->least_gbps : (double)NAN, known ? row->most_gbps : (double)NAN};
	const double theirs[] = {row->points.mean, row->points.least, row->points.most};

	result_u64(result, view->rank);
	result_u64(result, row->count);
	result_u64(result, row->without_bytes);
	result_known(result, known, row->bytes);
	result_number(result, known ? row->time_ns : (double)NAN);
	result_number(result, ours[0]);
	report_add_rank_spread(result);
	for (size_t i = 1; i < ARRAY_SIZE(ours); i++)
		result_number(result, ours[i]);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		result_number(result, theirs[i]);
	columns_add_describe(result, &row->points);
	if (input->is_alone)
		add_series(result, copies, row);
	else
		result_null(result);
	result_textf(result, "%.*s", (int)row->name_length, row->name);
}

static void add_without_bytes(struct result *result, uint64_t without_bytes)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!without_bytes)
		return;
	format_count(&text, without_bytes);
	strbuf_add(&text,
		without_bytes == 1
			? " copy or fill does not say how much it moves; it is only in Count."
			: " copies and fills do not say how much they move; they are only in "
			  "Count.");
	result_say(result, 2, &text);
}

static int make(struct result *result, const struct report_input *input)
{
	uint32_t table = result_open(result);
	uint64_t without_bytes = 0;

	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_copies_ struct copies copies = {0};
		int r = input->trace->definitions->copies(&copies, view);
		size_t wanted;

		if (r < 0)
			return r;
		array_foreach (&copies.rows, row)
			without_bytes += row->without_bytes;
		wanted = report_rows_wanted(result, input, copies.rows.count);
		for (size_t k = 0; k < wanted; k++)
			add_row(result, input, view, &copies, &copies.rows.items[k]);
	}
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(
			result, input, "There are no copies or fills of memory in the trace.");
	table = report_join_ranks(result, input, table);
	result_heading(result, "Memory bandwidth");
	add_without_bytes(result, without_bytes);
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10),
			.noun = "copies and fills",
			.view = report_view_of(input->trace)});
	return 0;
}

const struct report_section bandwidth_section = {
	.value = {.key = "bandwidth",
		.total = "bandwidth_total",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "copies and fills of memory by rank, then most time first"},
	.by = "bandwidth",
	.summary = "how fast copies and fills of memory were",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
