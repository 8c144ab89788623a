/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_model.h"

#include <errno.h>
#include <stdio.h>

#include "analyses/device/idle_spans.h"
#include "analyses/program/trace_programs.h"
#include "cli/command.h"
#include "load/load.h"
#include "load/trace_samples.h"
#include "report/counts.h"

/* The report of one model, while it is made. */
struct making {
	const struct report_arguments *arguments;
	const char *path; /* the first */
	struct model *model;
	/* Of all of the model, before filters leave something out. */
	struct idle_spans idle; /* with --weight gpu-idle */
	struct energy_use energy;
	struct selected selected;
	struct report_counts counts;
	struct trace_report rows;
	struct errmsg *err;
};

static void making_done(struct making *making)
{
	trace_report_done(&making->rows);
	report_counts_done(&making->counts);
	selected_done(&making->selected);
	idle_spans_done(&making->idle);
	energy_use_done(&making->energy);
	model_free(making->model);
}

/* For the tables: everything before them is about what ran. */
static int weigh(void *context)
{
	struct making *making = context;
	const struct report_arguments *arguments = making->arguments;
	int r = weigh_capture(
		making->model, arguments->shown, &making->idle, &making->energy, making->err);

	if (r < 0 || shown_weight(arguments->shown) == MODEL_WEIGHT_CPU)
		return r;
	selected_done(&making->selected);
	arguments->selection->weight = shown_weight(arguments->shown);
	return selection_apply(arguments->selection, making->model, &making->selected, making->err);
}

/* ---- what sections need ---- */

/* By itself a recording has no sections of rows without device work or memory; and other tools'
 * definitions have no steps and ranges. */
static unsigned needs_of(const struct making *making)
{
	const struct report_arguments *arguments = making->arguments;
	const struct model *model = making->model;
	bool is_foreign = model_is_foreign(model);
	bool is_own = arguments->rows.definitions == &own_definitions;
	unsigned needs = 0;

	if (arguments->by)
		needs = report_sections_need(
			arguments->by, is_foreign ? REPORT_OF_FOREIGN : REPORT_OF_RECORDING);
	else if (arguments->form == REPORT_FORM_JSON || model->device_works.count ||
		 model->device_memory.count)
		needs = REPORT_NEEDS_ROWS;
	if (!arguments->by && ((is_foreign && is_own) || model->traces.count > 1))
		needs |= REPORT_NEEDS_PROGRAMS;
	return is_foreign ? needs | REPORT_NEEDS_ROWS : needs;
}

/* Of another tool's trace, the stacks that it has in place of samples. */
static int fill_samples(struct making *making)
{
	const struct report_arguments *arguments = making->arguments;
	int r = fill_trace_samples(making->model, making->rows.views, making->rows.count,
		arguments->shown, making->path, &making->idle, making->err);

	if (r == 0)
		r = selection_narrow(arguments->selection, making->model, making->err);
	if (r < 0)
		return r;
	selected_done(&making->selected);
	return selection_apply(arguments->selection, making->model, &making->selected, making->err);
}

static int fill(struct making *making)
{
	const struct report_arguments *arguments = making->arguments;
	unsigned needs = needs_of(making);
	int r;

	if (!(needs & REPORT_NEEDS_ROWS))
		return 0;
	if (model_make_rows(making->model) < 0)
		return errmsg_set(making->err, -ENOMEM, "memory ran out while making rows");
	r = trace_report_init(
		&making->rows, making->model, &arguments->rows, arguments->rank, making->err);
	if (r < 0)
		return r;
	making->rows.choice = arguments->choice;
	if (model_is_foreign(making->model) && (needs & REPORT_NEEDS_SAMPLES))
		return fill_samples(making);
	if ((needs & REPORT_NEEDS_PROGRAMS) &&
		trace_programs_fill(making->model, making->rows.views, making->rows.count) < 0)
		return errmsg_set(making->err, -ENOMEM, "memory ran out while making steps");
	return 0;
}

static int load(struct making *making, const char *const *paths, size_t count)
{
	const struct report_arguments *arguments = making->arguments;
	struct selection *selection = arguments->selection;
	const struct load_options options = {
		.shown = arguments->shown,
		.selection = selection,
		.rows_only = arguments->rows_only,
	};
	int r = load_model(&making->model, paths, count, &options, making->err);

	if (r == 0)
		r = selection_apply(selection, making->model, &making->selected, making->err);
	if (r < 0)
		return r;
	if (shown_weight(arguments->shown) == MODEL_WEIGHT_GPU_IDLE &&
		idle_spans_init(&making->idle, making->model) < 0)
		return errmsg_set(
			making->err, -ENOMEM, "memory ran out while looking at idle devices");
	r = charge_energy(making->model, selection, &making->energy, making->err);
	if (r == 0)
		r = selection_narrow(selection, making->model, making->err);
	return r < 0 ? r : fill(making);
}

/* ---- the report ---- */

static int write_report(struct making *making, struct strbuf *out)
{
	const struct report_arguments *arguments = making->arguments;
	const struct terminal terminal = terminal_of(stdout);
	int dimension = arguments->by ? breakdown_by_from_string(arguments->by) : -1;
	struct report_view view = {
		.model = making->model,
		.selection = arguments->selection,
		.selected = &making->selected,
		.energy = &making->energy,
		.slo = arguments->slo,
		.rates = arguments->rates,
		.capture = making->path,
		.by = dimension >= 0 ? (enum breakdown_by)dimension : BREAKDOWN_FUNCTION,
		.sort = arguments->sort,
		.weight = shown_weight(arguments->shown),
		.folds_libraries = arguments->shown->fold_libraries != NULL,
	};
	const struct report_document document = {
		.input = {.view = &view,
			.trace = making->rows.count ? &making->rows : NULL,
			.limit = arguments->limit,
			.is_json = arguments->form != REPORT_FORM_TERMINAL},
		.by = arguments->by,
		.weigh = weigh,
		.context = making,
	};
	int r = report_counts_init(&making->counts, &view);

	if (r < 0)
		return errmsg_set(making->err, r, "memory ran out while making the report");
	return report_document_write(&document, arguments->form, &terminal, out, making->err);
}

int report_model(const struct report_arguments *arguments, const char *const *paths, size_t count)
{
	struct errmsg err;
	_cleanup_(making_done) struct making making = {
		.arguments = arguments, .path = paths[0], .err = &err};
	_cleanup_strbuf_ struct strbuf out = {0};
	int r = load(&making, paths, count);

	if (r == 0)
		r = write_report(&making, &out);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
