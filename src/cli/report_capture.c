/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_capture.h"

#include <errno.h>
#include <stdio.h>

#include "analyses/device/idle_spans.h"
#include "cli/command.h"
#include "load/capture.h"
#include "report/recording/recording.h"
#include "report/timeline.h"
#include "report/view.h"

/* What is found in all of the model, before filters leave something out. */
struct before_narrowing {
	struct idle_spans idle; /* with --weight gpu-idle */
	struct energy_use energy;
};

static void before_narrowing_done(struct before_narrowing *before)
{
	idle_spans_done(&before->idle);
	energy_use_done(&before->energy);
}

/* The report of one recording, while it is made. */
struct making {
	const struct report_capture_arguments *arguments;
	struct model *model;
	struct before_narrowing before;
	struct selected selected;
	struct report_recording recording;
	struct report_timeline timeline;
	struct errmsg *err;
};

static void making_done(struct making *making)
{
	report_timeline_done(&making->timeline);
	report_recording_done(&making->recording);
	selected_done(&making->selected);
	before_narrowing_done(&making->before);
	model_free(making->model);
}

/* For the tables: everything before them is about what ran. */
static int weigh(void *context)
{
	struct making *making = context;
	const struct report_capture_arguments *arguments = making->arguments;
	const struct before_narrowing *before = &making->before;
	int r = weigh_capture(
		making->model, arguments->shown, &before->idle, &before->energy, making->err);

	if (r < 0 || shown_weight(arguments->shown) == MODEL_WEIGHT_CPU)
		return r;
	selected_done(&making->selected);
	arguments->selection->weight = shown_weight(arguments->shown);
	return selection_apply(arguments->selection, making->model, &making->selected, making->err);
}

/* Rows are made where there is device work or memory, or where a section of rows is asked for. */
static bool needs_timeline(
	const struct model *model, const struct report_capture_arguments *arguments)
{
	if (arguments->by)
		return report_sections_need(arguments->by, KINDS_OF_RECORDING) &
		       REPORT_NEEDS_TIMELINE;
	return arguments->form == REPORT_FORM_JSON || model->device_works.count ||
	       model->device_memory.count;
}

static int write_report(struct making *making, const char *path, struct strbuf *out)
{
	const struct report_capture_arguments *arguments = making->arguments;
	const struct terminal terminal = terminal_of(stdout);
	int dimension = arguments->by ? breakdown_by_from_string(arguments->by) : -1;
	const struct report_view view = {
		.model = making->model,
		.selection = arguments->selection,
		.selected = &making->selected,
		.energy = &making->before.energy,
		.slo = arguments->slo,
		.rates = arguments->rates,
		.capture = path,
		.by = dimension >= 0 ? (enum breakdown_by)dimension : BREAKDOWN_FUNCTION,
		.sort = arguments->sort,
		.weight = shown_weight(arguments->shown),
		.folds_libraries = arguments->shown->fold_libraries != NULL,
		.terminal = terminal,
		.out = out,
	};
	const struct report_document document = {
		.input = {.recording = &making->recording.view,
			.trace = making->timeline.views.count ? &making->timeline.report : NULL,
			.limit = arguments->limit,
			.is_json = arguments->form != REPORT_FORM_TERMINAL},
		.by = arguments->by,
		.weigh = weigh,
		.context = making,
	};
	int r = report_recording_init(&making->recording, &view);

	if (r < 0)
		return errmsg_set(making->err, r, "memory ran out while making the report");
	return report_document_write(&document, arguments->form, &terminal, out, making->err);
}

static int report(const struct report_capture_arguments *arguments, const char *path,
	struct strbuf *out, struct errmsg *err)
{
	_cleanup_(making_done) struct making making = {.arguments = arguments, .err = err};
	int r = load_capture(path, arguments->shown, arguments->selection, &making.model, err);

	if (r == 0)
		r = selection_apply(arguments->selection, making.model, &making.selected, err);
	if (r < 0)
		return r;
	/* Before events are left out. */
	if (shown_weight(arguments->shown) == MODEL_WEIGHT_GPU_IDLE &&
		idle_spans_init(&making.before.idle, making.model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking at idle devices");
	r = charge_energy(making.model, arguments->selection, &making.before.energy, err);
	if (r == 0)
		r = selection_narrow(arguments->selection, making.model, err);
	if (r == 0 && needs_timeline(making.model, arguments))
		r = report_timeline_of_recording(&making.timeline, making.model, err);
	return r < 0 ? r : write_report(&making, path, out);
}

int report_capture(const struct report_capture_arguments *arguments, const char *path)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	if (report(arguments, path, &out, &err) < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
