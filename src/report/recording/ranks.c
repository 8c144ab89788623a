/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of a distributed job is slowest, as the report shows it. */
#include "analyses/program/rank_use.h"
#include "model/format.h"
#include "report/view.h"

static void add_row(struct table *table, const struct rank_use *use, const struct rank_row *row)
{
	const struct rank_time *slowest = &use->times.items[row->slowest];
	const struct rank_time *fastest = &use->times.items[row->fastest];
	uint64_t fastest_ns = rank_time_mean_ns(fastest);

	table_cellf(table, "%u", slowest->rank);
	table_duration(table, rank_time_mean_ns(slowest));
	table_cellf(table, "%u", fastest->rank);
	table_duration(table, fastest_ns);
	if (fastest_ns)
		table_cellf(table, "+%.1f %%",
			100.0 * (double)rank_row_spread_ns(use, row) / (double)fastest_ns);
	else
		table_cell(table, "");
	table_cellf(table, "%u", row->rank_count);
	table_cell(table, row->is_step ? "step" : "range");
	table_cellf(table, "%s%s%s", row->domain, *row->domain ? ": " : "",
		*row->name ? row->name : "[no name]");
}

int report_ranks(const struct report_view *view, size_t limit)
{
	static const struct table_column columns[] = {
		{.title = "Slowest rank", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Fastest", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Spread", .right = true},
		{.title = "Ranks", .right = true},
		{.title = "Kind"},
		{.title = "Name", .is_text = true, .shrinks_to = 12},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	_cleanup_rank_use_ struct rank_use use = {0};
	int r = rank_use_init(&use, view->model);

	if (r < 0 || !use.rows.count)
		return r;
	report_heading(view, "Ranks: the slowest and the fastest");
	for (size_t i = 0; i < use.rows.count && (!limit || i < limit); i++)
		add_row(&table, &use, &use.rows.items[i]);
	return table_print(&table, &view->terminal, view->out);
}
