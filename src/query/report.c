/* SPDX-License-Identifier: Apache-2.0 */
/* The report: the model is selected and weighed, its rows are made, and its sections written. */
#include <errno.h>

#include "analyses/collectives/calls.h"
#include "analyses/program/trace_programs.h"
#include "analyses/trace_narrow.h"
#include "compat/hta/hta.h"
#include "load/client_results.h"
#include "load/trace_samples.h"
#include "model/trace_capture.h"
#include "query/answer.h"
#include "report/counts.h"
#include "report/document.h"

/* The report of one model, while it is made. */
struct making {
	struct query_options *options;
	enum report_form form;
	const char *path; /* the first */
	struct model *model;
	/* Of all of the model, before filters leave something out. */
	struct weight_spans spans; /* with --weight gpu-idle and gpu-bytes */
	struct energy_use energy;
	struct selected selected;
	struct report_counts counts;
	struct trace_report rows;
	struct client_results client;
	struct errmsg *err;
};

static void making_done(struct making *making)
{
	trace_report_done(&making->rows);
	client_results_done(&making->client);
	report_counts_done(&making->counts);
	selected_done(&making->selected);
	weight_spans_done(&making->spans);
	energy_use_done(&making->energy);
}

/* For the tables: everything before them is about what ran. */
static int weigh(void *context)
{
	struct making *making = context;
	struct query_options *options = making->options;
	int r = weigh_capture(
		making->model, &options->shown, &making->spans, &making->energy, making->err);

	if (r < 0 || shown_weight(&options->shown) == MODEL_WEIGHT_CPU)
		return r;
	selected_done(&making->selected);
	options->selection.weight = shown_weight(&options->shown);
	return selection_apply(&options->selection, making->model, &making->selected, making->err);
}

/* ---- what sections need ---- */

/* Calls of collectives are of rows, too, since those of devices are. */
static bool has_collectives(const struct model *model)
{
	array_foreach (&model->ranges, range) {
		if (collective_is_call(range->name))
			return true;
	}
	return false;
}

/* By itself a recording has no sections of rows without device work, memory or collectives; and
 * other tools' definitions have no steps and ranges. */
static unsigned needs_of(const struct making *making)
{
	const struct query_options *options = making->options;
	const struct model *model = making->model;
	bool is_foreign = model_is_foreign(model);
	unsigned needs = 0;

	if (options->by)
		needs = report_sections_need(
			options->by, is_foreign ? REPORT_OF_FOREIGN : REPORT_OF_RECORDING);
	else if (making->form == REPORT_FORM_JSON || model->device_works.count ||
		 model->device_memory.count || has_collectives(model))
		needs = REPORT_NEEDS_ROWS;
	if (!options->by && ((is_foreign && !options->hta_compatible) || model->traces.count > 1))
		needs |= REPORT_NEEDS_PROGRAMS;
	return is_foreign ? needs | REPORT_NEEDS_ROWS : needs;
}

/* Of another tool's trace, the stacks that it has in place of samples. */
static int fill_samples(struct making *making)
{
	struct query_options *options = making->options;
	int r = fill_trace_samples(making->model, making->rows.views, making->rows.count,
		&options->shown, making->path, &making->spans, making->err);

	if (r == 0)
		r = selection_narrow(&options->selection, making->model, making->err);
	if (r < 0)
		return r;
	selected_done(&making->selected);
	return selection_apply(&options->selection, making->model, &making->selected, making->err);
}

static int fill_rows(struct making *making)
{
	const struct query_options *options = making->options;
	const struct trace_view_options rows = {
		.definitions = options->hta_compatible ? &hta_definitions : &own_definitions,
		.keep_last_step = options->keep_last_step,
		.drop_last_step = options->drop_last_step,
	};

	if (model_make_rows(making->model) < 0)
		return errmsg_set(making->err, -ENOMEM, "memory ran out while making rows");
	making->rows.choice = options->choice;
	return trace_report_init(&making->rows, making->model, &rows, options->rank, making->err);
}

static int fill(struct making *making)
{
	unsigned needs = needs_of(making);
	int r = needs & REPORT_NEEDS_ROWS ? fill_rows(making) : 0;

	if (r < 0 || !(needs & REPORT_NEEDS_ROWS))
		return r;
	if (model_is_foreign(making->model) && (needs & REPORT_NEEDS_SAMPLES))
		return fill_samples(making);
	if ((needs & REPORT_NEEDS_PROGRAMS) &&
		trace_programs_fill(making->model, making->rows.views, making->rows.count) < 0)
		return errmsg_set(making->err, -ENOMEM, "memory ran out while making steps");
	return 0;
}

static int select_and_fill(struct making *making)
{
	struct query_options *options = making->options;
	static const struct selection none = {0};
	/* Of another tool's trace there are only rows as yet. */
	const struct selection *selection =
		model_is_foreign(making->model) ? &none : &options->selection;
	int r = trace_narrow(&options->selection, making->model, making->err);

	if (r == 0)
		r = selection_apply(selection, making->model, &making->selected, making->err);
	if (r == 0)
		r = charge_and_narrow(making->model, &options->shown, selection, &making->energy,
			&making->spans, making->err);
	return r < 0 ? r : fill(making);
}

/* ---- the report ---- */

static int write_report(struct making *making, const struct terminal *terminal, struct strbuf *out)
{
	struct query_options *options = making->options;
	int dimension = options->by ? breakdown_by_from_string(options->by) : -1;
	struct report_view view = {
		.model = making->model,
		.selection = &options->selection,
		.selected = &making->selected,
		.energy = &making->energy,
		.client = options->load_results ? &making->client : NULL,
		.slo = options->slo_text ? &options->slo : NULL,
		.peaks = options->peak_text ? &options->peaks : NULL,
		.rates = options->rates,
		.capture = making->path,
		.by = dimension >= 0 ? (enum breakdown_by)dimension : BREAKDOWN_FUNCTION,
		.sort = query_sort(options),
		.weight = shown_weight(&options->shown),
		.folds_libraries = options->shown.fold_libraries != NULL,
	};
	const struct report_document document = {
		.input = {.view = &view,
			.trace = making->rows.count ? &making->rows : NULL,
			.limit = (size_t)options->limit,
			.is_json =
				making->form == REPORT_FORM_JSON || making->form == REPORT_FORM_CSV,
			.is_page = making->form == REPORT_FORM_PAGE},
		.by = options->by,
		.weigh = weigh,
		.context = making,
	};
	int r = report_counts_init(&making->counts, &view);

	if (r < 0)
		return errmsg_set(making->err, r, "memory ran out while making the report");
	return report_document_write(&document, making->form, terminal, out, making->err);
}

int query_report(struct query *query, struct query_options *options, enum report_form form,
	const struct terminal *terminal, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(making_done) struct making making = {
		.options = options, .form = form, .path = query->paths[0], .err = err};
	int r = query_begin(query, options, err);

	if (r < 0)
		return r;
	making.model = query->model;
	if (options->load_results)
		r = load_client_results(&making.client, options->load_results, err);
	if (r == 0)
		r = select_and_fill(&making);
	return r < 0 ? r : write_report(&making, terminal, out);
}
