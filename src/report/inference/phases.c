/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of inference, as the report shows them. */
#include <math.h>

#include "report/inference/energy_cells.h"
#include "report/view.h"

/* Columns that are there where something has a value. */
struct phase_columns {
	bool device, energy;
};

static void add_energy(struct table *table, const struct phase_row *row,
	const struct joules *joules, double edp_js)
{
	table_joules(table, joules);
	table_joules_per(table, joules, row->tokens_known ? (double)row->tokens : 0);
	table_watts(table, joules->average_w);
	table_watts(table, joules->peak_w);
	if (isnan(edp_js))
		table_cell(table, "");
	else
		table_cellf(table, "%.3g J\xc2\xb7s", edp_js);
}

static void add_row(struct table *table, const struct report_view *view, enum inference_phase phase,
	const struct phase_columns *shown)
{
	const struct phase_row *row = &view->phases->rows[phase];

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
	if (shown->device)
		table_duration(table, row->cost.device_busy_ns);
	if (shown->energy)
		add_energy(table, row, &view->joules->phases[phase],
			view->joules->phase_edp_js[phase]);
	table_cell(table, inference_phase_name(phase));
}

static size_t make_columns(const struct phase_columns *shown, struct table_column *columns)
{
	const struct {
		const char *title;
		bool is_shown;
	} figures[] = {{"Count", true}, {"Time", true}, {"Mean", true}, {"Tokens", true},
		{"Tokens/s", true}, {"CPU time", true}, {"Device", shown->device},
		{"Energy", shown->energy}, {"Per token", shown->energy}, {"Power", shown->energy},
		{"Peak", shown->energy}, {"EDP", shown->energy}};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		if (figures[i].is_shown)
			columns[count++] =
				(struct table_column){.title = figures[i].title, .right = true};
	}
	columns[count++] = (struct table_column){.title = "Phase", .is_text = true};
	return count;
}

static int print(const struct report_view *view)
{
	struct table_column columns[13];
	_cleanup_table_ struct table table = {.columns = columns};
	struct energy_reasons reasons = {0};
	const struct phase_columns shown = {
		.device = view->model->device_works.count > 0,
		.energy = report_has_energy(view),
	};
	int r;

	table.column_count = make_columns(&shown, columns);
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++) {
		if (!view->phases->rows[i].count)
			continue;
		add_row(&table, view, (enum inference_phase)i, &shown);
		if (shown.energy)
			energy_reasons_add(&reasons, &view->joules->phases[i]);
	}
	r = table_print(&table, &view->terminal, view->out);
	if (shown.energy)
		energy_reasons_print(&reasons, view);
	return r;
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
	r = print(view);
	if (use->overlaps)
		report_paragraph(view,
			"Phases of different requests were at the same time: their times, and the "
			"CPU time in them, do not add up. Tokens/s is of the time in which any "
			"request was in the phase.",
			0);
	return r;
}
