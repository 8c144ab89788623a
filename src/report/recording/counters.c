/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of programs, as the report shows them. */
#include "analyses/program/counter_use.h"
#include "report/view.h"

static void add_counter(
	struct table *table, const struct model *model, const struct counter_row *row)
{
	const double values[] = {row->minimum, row->mean, row->maximum, row->last};
	bool has_values = row->count > row->not_numbers;

	table_count(table, row->count);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (has_values)
			table_cellf(table, "%.6g", values[i]);
		else
			table_cell(table, "");
	}
	if (model->processes.count > 1)
		table_cellf(table, "%u", model->processes.items[row->process].pid);
	if (row->not_numbers)
		table_cellf(table, "%s (%llu times no number)", row->name,
			(unsigned long long)row->not_numbers);
	else
		table_cell(table, row->name);
}

/* With the process where there are several. */
int report_counters(const struct report_view *view, size_t limit)
{
	static const struct table_column with_process[] = {
		{.title = "Count", .right = true},
		{.title = "Min", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Max", .right = true},
		{.title = "Last", .right = true},
		{.title = "PID", .right = true},
		{.title = "Counter", .is_text = true, .shrinks_to = 16},
	};
	struct table_column columns[ARRAY_SIZE(with_process)];
	_cleanup_table_ struct table table = {.columns = columns};
	_cleanup_counter_use_ struct counter_use use = {0};
	bool has_process = view->model->processes.count > 1;
	int r = counter_use_init(&use, view->model);

	if (r < 0 || !use.rows.count)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(with_process); i++) {
		if (has_process || i + 2 != ARRAY_SIZE(with_process))
			columns[table.column_count++] = with_process[i];
	}
	report_heading(view, "Counters");
	for (size_t i = 0; i < use.rows.count && (!limit || i < limit); i++)
		add_counter(&table, view->model, &use.rows.items[i]);
	return table_print(&table, &view->terminal, view->out);
}
