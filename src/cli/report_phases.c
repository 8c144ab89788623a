/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of inference, as the report shows them. */
#include "cli/report_view.h"

static void add_row(struct table *table, const struct report_view *view,
	const struct phase_use *use, enum inference_phase phase, bool has_device)
{
	const struct phase_row *row = &use->rows[phase];

	table_count(table, row->count);
	table_duration(table, row->total_ns);
	table_duration(table, row->total_ns / row->count);
	if (row->tokens_known)
		table_count(table, row->tokens);
	else
		table_cell(table, "");
	if (row->tokens_known && row->covered_ns)
		table_cellf(
			table, "%.4g", (double)row->tokens * NS_PER_S / (double)row->covered_ns);
	else
		table_cell(table, "");
	table_duration(table, row->cost.samples * model_sample_weight_ns(view->model));
	if (has_device)
		table_duration(table, row->cost.device_busy_ns);
	table_cell(table, inference_phase_name(phase));
}

static int print(const struct report_view *view, const struct phase_use *use)
{
	static const struct table_column all[] = {
		{.title = "Count", .right = true},
		{.title = "Time", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Tokens", .right = true},
		{.title = "Tokens/s", .right = true},
		{.title = "CPU time", .right = true},
		{.title = "Device", .right = true},
		{.title = "Phase", .is_text = true},
	};
	struct table_column columns[ARRAY_SIZE(all)];
	_cleanup_table_ struct table table = {.columns = columns};
	bool has_device = view->model->device_works.count > 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (has_device || i + 2 != ARRAY_SIZE(all))
			columns[table.column_count++] = all[i];
	}
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++) {
		if (use->rows[i].count)
			add_row(&table, view, use, (enum inference_phase)i, has_device);
	}
	return table_print(&table, &view->terminal, view->out);
}

int report_phases(const struct report_view *view)
{
	const struct phase_use *use = view->phases;
	int r;

	if (!use->has_any) {
		report_paragraph(view,
			"There are no phases of inference: no process that was recorded reported "
			"tokens, or ranges named prefill and decode; sonde.token(), sonde.range() "
			"and the hooks for transformers and vLLM do.",
			0);
		return 0;
	}
	report_heading(view, "Phases of inference");
	r = print(view, use);
	if (use->overlaps)
		report_paragraph(view,
			"Phases of different requests were at the same time: their times, and the "
			"CPU time in them, do not add up. Tokens/s is of the time in which any "
			"request was in the phase.",
			0);
	return r;
}
