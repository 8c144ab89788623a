/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the database become the runs of analyses/inference/runs.h, and their report. */
#include <errno.h>

#include "analyses/inference/runs.h"
#include "report/runs/runs.h"
#include "store/documents.h"

static struct run run_of(const struct run_row *row)
{
	const struct store_value *reason = &row->values[STORE_RUN_ENERGY_REASON];
	struct run run = {
		.capture = run_text(row, STORE_RUN_PATH),
		.model = run_text(row, STORE_RUN_MODEL),
		.precision = run_text(row, STORE_RUN_PRECISION),
		.output_tokens = run_number(row, STORE_RUN_OUTPUT_TOKENS),
		.energy_j = run_number(row, STORE_RUN_ENERGY_J),
		.uncertainty_j = run_number(row, STORE_RUN_UNCERTAINTY_J),
		.energy_reason = reason->type == STORE_TEXT ? reason->text : NULL,
		.kv_cache_bytes = run_number(row, STORE_RUN_KV_CACHE),
		.expert_balance = run_number(row, STORE_RUN_EXPERT_BALANCE),
		.expert_entropy = run_number(row, STORE_RUN_EXPERT_ENTROPY),
		.expert_load = run_number(row, STORE_RUN_EXPERT_LOAD),
	};

	for (int i = 0; i < SPAN_ENERGY_SIDES; i++)
		run.states[i] = SPAN_STATE_UNKNOWN("not_in_database");
	run.labels[RUN_BATCH] = run_number(row, STORE_RUN_BATCH_SIZE);
	run.labels[RUN_CONTEXT] = run_number(row, STORE_RUN_CONTEXT_LENGTH);
	run.labels[RUN_PARAMETERS] = run_number(row, STORE_RUN_PARAMETERS);
	run.labels[RUN_ACTIVE] = run_number(row, STORE_RUN_ACTIVE_PARAMETERS);
	run.labels[RUN_EXPERTS] = run_number(row, STORE_RUN_EXPERTS);
	run.figures[RUN_TOKENS_PER_S] = run_number(row, STORE_RUN_TOKENS_PER_S);
	run.figures[RUN_TTFT_NS] = run_number(row, STORE_RUN_TTFT_P50);
	run.figures[RUN_TPOT_NS] = run_number(row, STORE_RUN_TPOT_P50);
	run.figures[RUN_WATTS] = run_number(row, STORE_RUN_AVERAGE_W);
	run.figures[RUN_JOULES_PER_TOKEN] = run_number(row, STORE_RUN_JOULES_PER_TOKEN);
	return run;
}

static int fill(struct runs *runs, const struct run_rows *rows)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rows->items.count; i++)
		r = array_append(&runs->items, run_of(&rows->items.items[i]));
	if (r == 0)
		r = runs_find_optimal(runs);
	return r < 0 ? r : 0;
}

/* -EINVAL has a sentence. */
static int make(struct runs *runs, const struct store_question *question, struct result *result,
	struct errmsg *err)
{
	_cleanup_run_comparison_ struct run_comparison comparison = {0};
	struct run_prediction prediction = {0};
	struct runs_report report = {.runs = runs,
		.comparison = &comparison,
		.rates = question->rates,
		.predict = question->predict};
	int r = 0;

	if (question->predict) {
		report.prediction = &prediction;
		r = runs_predict_as_asked(
			runs, question->predict, &report.predicted, &prediction, err);
	}
	if (r == 0)
		r = run_comparison_init(&comparison, runs);
	return r < 0 ? r : runs_report_make(result, &report);
}

int store_analyse(struct store *store, const struct store_filter *filter,
	const struct store_question *question, struct result *result, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	const struct store_order oldest = {.rising = true};
	struct runs runs = {0};
	int r = store_read_runs(store, filter, &oldest, &rows, err);

	if (r < 0)
		return r;
	if (!rows.items.count)
		return errmsg_set(err, -ENOENT,
			"no run in %s is left by these filters: widen them, or see 'sonde runs'",
			store->address);
	r = fill(&runs, &rows);
	if (r == 0)
		r = make(&runs, question, result, err);
	array_done(&runs.items);
	return r == -ENOMEM ? errmsg_set(err, r, "memory ran out while comparing runs") : r;
}
