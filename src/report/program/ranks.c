/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of a distributed job is slowest. */
#include "analyses/program/rank_use.h"
#include "report/sections.h"
#include "report/view.h"

static const struct report_column time_columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "mean_ns", .kind = REPORT_NS},
};
static const struct report_shape time_shape = REPORT_SHAPE(time_columns);

static const struct report_column columns[] = {
	{.key = "slowest_rank", .title = "Slowest rank", .kind = REPORT_INTEGER},
	{.title = "Mean", .kind = REPORT_NS},
	{.key = "fastest_rank", .title = "Fastest", .kind = REPORT_INTEGER},
	{.title = "Mean", .kind = REPORT_NS},
	{.title = "Spread", .kind = REPORT_SHARE, .decimals = 1},
	{.key = "spread_ns", .kind = REPORT_NS, .help = "between the two means"},
	{.title = "Ranks", .kind = REPORT_COUNT},
	{.key = "kind", .title = "Kind", .kind = REPORT_TEXT, .help = "step, range"},
	{.key = "domain", .title = "Domain", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.shrinks_to = 12,
		.unknown = "[no name]"},
	{.key = "ranks", .kind = REPORT_ROWS, .shape = &time_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_time(struct result *result, const struct rank_time *time)
{
	result_u64(result, time->rank);
	result_u64(result, time->count);
	result_u64(result, time->total_ns);
	result_u64(result, rank_time_mean_ns(time));
}

static void add_row(struct result *result, const struct rank_use *use, const struct rank_row *row)
{
	const struct rank_time *slowest = &use->times.items[row->slowest];
	const struct rank_time *fastest = &use->times.items[row->fastest];
	uint64_t spread_ns = rank_row_spread_ns(use, row);

	result_u64(result, slowest->rank);
	result_u64(result, rank_time_mean_ns(slowest));
	result_u64(result, fastest->rank);
	result_u64(result, rank_time_mean_ns(fastest));
	result_share(result, (double)spread_ns, (double)rank_time_mean_ns(fastest));
	result_u64(result, spread_ns);
	result_u64(result, row->rank_count);
	result_text(result, row->is_step ? "step" : "range");
	result_text(result, row->domain);
	result_text(result, row->name);
	result_open(result);
	for (uint32_t i = 0; i < row->rank_count; i++)
		add_time(result, &use->times.items[row->first_rank + i]);
	result_close(result);
}

static int make(struct result *result, const struct report_input *input)
{
	_cleanup_rank_use_ struct rank_use use = {0};
	int r = rank_use_init(&use, input->programs->model);
	uint32_t table;

	if (r < 0 || !use.rows.count)
		return r;
	table = result_open(result);
	array_foreach (&use.rows, row)
		add_row(result, &use, row);
	result_close(result);
	result_heading(result, "Ranks: the slowest and the fastest");
	result_show(result, table,
		&(struct result_show){
			.limit = report_rows_shown(input, 20, 8), .noun = "ranges and steps"});
	return 0;
}

/* Behind the table of samples by rank. */
const struct report_section ranks_section = {
	.value = {.key = "ranks",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "ranges and steps of several ranks"},
	.by = "rank",
	.summary = "the ranks of a job, and which is slowest",
	.needs = REPORT_NEEDS_RECORDING | REPORT_NEEDS_TRACE,
	.is_extra_of_traces = true,
	.comes_along = true,
	.shows = SELECTION_RANGES,
	.make = make,
};
