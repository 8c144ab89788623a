/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges that programs told of, as the report shows them. */
#include "analyses/inference/table_joules.h"
#include "model/format.h"
#include "report/inference/energy_cells.h"
#include "report/view.h"

/* Columns that are there where some row has a value. */
struct shown_columns {
	bool device, bytes, energy;
};

/* Marks last no time, and nothing happens in them. */
static void add_row(struct table *table, const struct range_use *use, const struct range_row *row,
	const struct shown_columns *shown)
{
	bool has_time = !row->is_mark;

	if (has_time)
		table_duration(table, row->total_ns);
	else
		table_cell(table, "mark");
	table_count(table, row->count);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t times[] = {
			row->total_ns / row->count, row->minimum_ns, row->maximum_ns};

		if (has_time)
			table_duration(table, times[i]);
		else
			table_cell(table, "");
	}
	if (has_time && use->samples)
		table_cellf(table, "%.2f %%", 100.0 * (double)row->samples / (double)use->samples);
	else
		table_cell(table, "");
	for (unsigned i = 0; shown->device && i < 2; i++) {
		if (has_time && row->works)
			table_duration(table, i ? row->device_busy_ns : row->device_span_ns);
		else
			table_cell(table, "");
	}
	if (shown->bytes && row->with_bytes)
		table_bytes(table, row->bytes);
	else if (shown->bytes)
		table_cell(table, "");
}

static int add_energy(struct table *table, const struct report_view *view,
	const struct range_index *index, const struct range_row *row,
	struct energy_reasons *reasons)
{
	struct joules joules;
	int r;

	if (row->is_mark) {
		table_cell(table, "");
		return 0;
	}
	r = joules_of_ranges(view->span_energy, view->model, index, row, &joules);
	if (r < 0)
		return r;
	table_joules(table, &joules);
	energy_reasons_add(reasons, &joules);
	return 0;
}

static void add_names(struct table *table, const struct range_row *row)
{
	table_cell(table, row->domain);
	table_cellf(table, "%s%s%s", *row->name ? row->name : "[no name]",
		row->of_process ? " (process)" : "", row->open_count ? " (not ended)" : "");
}

static struct shown_columns find_columns(const struct range_use *use)
{
	struct shown_columns shown = {0};

	array_foreach (&use->rows, row) {
		shown.device |= row->works > 0;
		shown.bytes |= row->with_bytes > 0;
	}
	return shown;
}

int report_ranges(const struct report_view *view, size_t limit)
{
	static const struct table_column head[] = {
		{.title = "Total", .right = true},
		{.title = "Count", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Min", .right = true},
		{.title = "Max", .right = true},
		{.title = "CPU", .right = true},
	};
	static const struct table_column device[] = {
		{.title = "On device", .right = true},
		{.title = "Busy", .right = true},
	};
	static const struct table_column bytes = {.title = "Bytes", .right = true};
	static const struct table_column energy = {.title = "Energy", .right = true};
	static const struct table_column tail[] = {
		{.title = "Domain"},
		{.title = "Range", .is_text = true, .shrinks_to = 16},
	};
	struct table_column columns[ARRAY_SIZE(head) + ARRAY_SIZE(device) + 2 + ARRAY_SIZE(tail)];
	_cleanup_table_ struct table table = {.columns = columns};
	_cleanup_range_index_ struct range_index index = {0};
	const struct range_use *use = view->ranges;
	struct energy_reasons reasons = {0};
	struct shown_columns shown;
	int r = 0;

	if (!use || !use->rows.count)
		return 0;
	shown = find_columns(use);
	shown.energy = report_has_energy(view);
	if (shown.energy)
		r = range_index_init(&index, view->model);
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		columns[table.column_count++] = head[i];
	for (size_t i = 0; shown.device && i < ARRAY_SIZE(device); i++)
		columns[table.column_count++] = device[i];
	if (shown.bytes)
		columns[table.column_count++] = bytes;
	if (shown.energy)
		columns[table.column_count++] = energy;
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++)
		columns[table.column_count++] = tail[i];
	report_heading(view, "Ranges");
	for (size_t i = 0; r == 0 && i < use->rows.count && (!limit || i < limit); i++) {
		const struct range_row *row = &use->rows.items[i];

		add_row(&table, use, row, &shown);
		if (shown.energy)
			r = add_energy(&table, view, &index, row, &reasons);
		add_names(&table, row);
	}
	r = r ?: table_print(&table, &view->terminal, view->out);
	if (shown.energy)
		energy_reasons_print(&reasons, view);
	return r;
}
