/* SPDX-License-Identifier: Apache-2.0 */
/* The same as `sonde report --json`, and as `sonde report --csv --by function`. */
#include "exporters/exporters.h"
#include "report/document.h"
#include "report/recording/recording.h"
#include "report/timeline.h"

static int write_document(const struct model *model, const struct selection *selection,
	const struct selected *selected, const struct export_options *options,
	enum report_form form, struct strbuf *out, struct errmsg *err)
{
	static const struct selection everything = {0};
	_cleanup_report_recording_ struct report_recording recording = {0};
	_cleanup_report_timeline_ struct report_timeline timeline = {0};
	const struct report_view view = {
		.model = model,
		.selection = selection ? selection : &everything,
		.selected = selected,
		.capture = options->capture,
		.energy = options->energy,
		.rates = ENERGY_RATES_NONE,
	};
	const struct report_document document = {
		.input = {.recording = &recording.view, .trace = &timeline.report, .is_json = true},
		.by = form == REPORT_FORM_CSV ? "function" : NULL};
	int r = report_recording_init(&recording, &view);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while making the report");
	if (form == REPORT_FORM_JSON)
		r = report_timeline_of_recording(&timeline, model, err);
	return r < 0 ? r : report_document_write(&document, form, NULL, out, err);
}

static int report_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, enum report_form form, struct strbuf *out,
	struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	int r = selection_apply(selection, model, &selected, err);

	if (r < 0)
		return r;
	return write_document(
		model, selection, &selected, export_options_or_default(options), form, out, err);
}

static int json_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	return report_export(model, selection, options, REPORT_FORM_JSON, out, err);
}

static int csv_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	return report_export(model, selection, options, REPORT_FORM_CSV, out, err);
}

const struct exporter json_exporter = {
	.name = "json",
	.description = "every table of the report, as documented in docs/json.md",
	.extension = ".json",
	.export = json_export,
};

const struct exporter csv_exporter = {
	.name = "csv",
	.description = "the table of functions, for spreadsheets",
	.extension = ".csv",
	.export = csv_export,
};
