/* SPDX-License-Identifier: Apache-2.0 */
/* The same document as `sonde report --json`, with every table. */
#include "exporters/exporters.h"
#include "report/document.h"
#include "report/recording/recording.h"
#include "report/timeline.h"

static int write_document(const struct model *model, const struct selection *selection,
	const struct selected *selected, const struct export_options *options, struct strbuf *out,
	struct errmsg *err)
{
	static const struct selection everything = {0};
	_cleanup_device_idle_ struct device_idle idle = {0};
	_cleanup_report_recording_ struct report_recording recording = {0};
	_cleanup_report_timeline_ struct report_timeline timeline = {0};
	const struct report_view view = {
		.model = model,
		.selection = selection ? selection : &everything,
		.selected = selected,
		.capture = options->capture,
		.energy = options->energy,
		.idle = model->is_narrowed ? NULL : &idle,
		.rates = ENERGY_RATES_NONE,
	};
	const struct report_document document = {
		.input = {
			.recording = &recording.view, .trace = &timeline.report, .is_json = true}};
	int r = model->is_narrowed ? 0 : device_idle_init(&idle, model);

	if (r == 0)
		r = report_timeline_of_recording(&timeline, model, err);
	if (r < 0)
		return r;
	r = report_recording_init(&recording, &view);
	return r < 0 ? r : report_document_json(&document, out);
}

static int json_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	int r = selection_apply(selection, model, &selected, err);

	if (r == 0)
		r = write_document(
			model, selection, &selected, export_options_or_default(options), out, err);
	return export_result(r, out, "json", err);
}

const struct exporter json_exporter = {
	.name = "json",
	.description = "every table of the report, as documented in docs/json.md",
	.extension = ".json",
	.export = json_export,
};
