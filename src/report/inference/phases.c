/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of inference: prefill, decode, and around them. */
#include <math.h>

#include "report/inference/figures.h"
#include "report/sections.h"

static const struct report_column row_columns[] = {
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "total_ns", .title = "Time", .kind = REPORT_NS},
	{.title = "Mean", .kind = REPORT_NS},
	{.key = "covered_ns", .kind = REPORT_NS, .help = "overlapping ones once"},
	{.key = "tokens",
		.title = "Tokens",
		.kind = REPORT_COUNT,
		.help = "computed ones of prompts; of decode output"},
	{.title = "Tokens/s", .kind = REPORT_NUMBER},
	REPORT_COST_COLUMNS,
	REPORT_JOULES_COLUMNS("J/token", 0),
	{.title = "Power", .kind = REPORT_WATTS, .hide = REPORT_HIDE_EMPTY},
	{.title = "Peak", .kind = REPORT_WATTS, .hide = REPORT_HIDE_EMPTY},
	{.key = "edp_js",
		.title = "EDP (J\xc2\xb7s)",
		.kind = REPORT_NUMBER,
		.hide = REPORT_HIDE_EMPTY,
		.help = "joules times seconds"},
	{.key = "phase", .title = "Phase", .kind = REPORT_TEXT},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column columns[] = {
	{.key = "overlap", .kind = REPORT_FLAG, .help = "phases overlapped: rows do not add up"},
	{.key = "rows", .kind = REPORT_ROWS, .shape = &row_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_row(
	struct result *result, const struct report_view *view, enum inference_phase phase)
{
	const struct phase_row *row = &view->phases->rows[phase];
	const struct joules *joules = view->span_energy ? &view->joules->phases[phase] : NULL;

	result_u64(result, row->count);
	result_u64(result, row->total_ns);
	result_u64(result, row->total_ns / row->count);
	result_u64(result, row->covered_ns);
	result_known(result, row->tokens_known, row->tokens);
	result_share(result, row->tokens_known ? (double)row->tokens * NS_PER_S : NAN,
		(double)row->covered_ns);
	report_add_span_cost(result, view->model, &row->cost);
	report_add_joules(result, view, joules, row->tokens_known ? (double)row->tokens : 0);
	result_number(result, joules ? joules->average_w : NAN);
	result_number(result, joules ? joules->peak_w : NAN);
	result_number(result, joules ? view->joules->phase_edp_js[phase] : NAN);
	result_text(result, inference_phase_name(phase));
}

/* The whole report has them in JSON alone. */
static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	struct energy_reasons reasons = {0};
	uint32_t rows;

	if (!view->phases->has_any)
		return report_nothing(result, input,
			"There are no phases of inference: no process that was recorded reported "
			"tokens, or ranges named prefill and decode; sonde.token(), sonde.range() "
			"and the hooks for transformers and vLLM do.");
	result_open(result);
	result_flag(result, view->phases->overlaps);
	rows = result_open(result);
	for (int i = 0; i < INFERENCE_PHASE_MAX; i++) {
		if (!view->phases->rows[i].count)
			continue;
		add_row(result, view, (enum inference_phase)i);
		if (view->span_energy)
			energy_reasons_add(&reasons, &view->joules->phases[i]);
	}
	result_close(result);
	result_close(result);
	if (!input->is_alone)
		return 0;
	result_heading(result, "Phases of inference");
	result_show(result, rows, &(struct result_show){0});
	energy_reasons_say(&reasons, view, result);
	if (view->phases->overlaps)
		result_sentence(result, 0,
			"Phases of different requests overlapped: their times, and the CPU time in "
			"them, do not add up. Tokens/s counts the time in which any request was in "
			"the phase.");
	return 0;
}

const struct report_section phases_section = {
	.value = {.key = "phases", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "phase",
	.summary = "prefill and decode",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_RANGES,
	.make = make,
};
