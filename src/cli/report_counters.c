/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and tokens that programs told of, as the report shows them. */
#include "analyses/counter_use.h"
#include "analyses/token_use.h"
#include "cli/report_view.h"

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

static void add_gaps(struct table *table, const struct token_gaps *gaps)
{
	const uint64_t times_ns[] = {gaps->mean_ns, gaps->p50_ns, gaps->p95_ns, gaps->maximum_ns};

	for (size_t i = 0; i < ARRAY_SIZE(times_ns); i++) {
		if (gaps->count)
			table_duration(table, times_ns[i]);
		else
			table_cell(table, "");
	}
}

static void add_request(struct table *table, const struct token_row *row)
{
	table_count(table, row->tokens);
	if (row->has_first)
		table_duration(table, row->first_ns);
	else
		table_cell(table, "");
	add_gaps(table, &row->gaps);
	table_cell(table, *row->request ? row->request : "[no request]");
}

/* The last row is of all requests, where there are several. */
int report_tokens(const struct report_view *view, size_t limit)
{
	static const struct table_column columns[] = {
		{.title = "Tokens", .right = true},
		{.title = "To first", .right = true},
		{.title = "Mean", .right = true},
		{.title = "p50", .right = true},
		{.title = "p95", .right = true},
		{.title = "Max", .right = true},
		{.title = "Request", .is_text = true, .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	_cleanup_token_use_ struct token_use use = {0};
	int r = token_use_init(&use, view->model);

	if (r < 0)
		return r;
	if (!use.rows.count) {
		report_paragraph(view,
			"There are no tokens: no process that was recorded told of any; "
			"sonde.token() and sonde_token() do.",
			0);
		return 0;
	}
	report_heading(view, "Tokens (time to the first one, and between two of a request)");
	for (size_t i = 0; i < use.rows.count && (!limit || i < limit); i++)
		add_request(&table, &use.rows.items[i]);
	if (use.rows.count > 1) {
		table_count(&table, use.tokens);
		table_cell(&table, "");
		add_gaps(&table, &use.gaps);
		table_cellf(&table, "all %zu", use.rows.count);
	}
	return table_print(&table, &view->terminal, view->out);
}
