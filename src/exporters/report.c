/* SPDX-License-Identifier: Apache-2.0 */
/* The same as `sonde report --json`, and as `sonde report --csv --by function`. */
#include "exporters/exporters.h"
#include "report/counts.h"
#include "report/document.h"
#include "report/rows.h"

static int write_document(const struct model *model, const struct selection *selection,
	const struct selected *selected, const struct export_options *options,
	enum report_form form, struct strbuf *out, struct errmsg *err)
{
	static const struct selection everything = {0};
	static const struct trace_view_options rows = {0};
	_cleanup_report_counts_ struct report_counts counts = {0};
	_cleanup_trace_report_ struct trace_report trace = {0};
	struct report_view view = {
		.model = model,
		.selection = selection ? selection : &everything,
		.selected = selected,
		.capture = options->capture,
		.energy = options->energy,
		.rates = ENERGY_RATES_NONE,
	};
	const struct report_document document = {
		.input = {.view = &view,
			.trace = model->traces.count ? &trace : NULL,
			.is_json = true},
		.by = form == REPORT_FORM_CSV ? "function" : NULL};
	int r = report_counts_init(&counts, &view);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while making the report");
	if (model->traces.count)
		r = trace_report_init(&trace, model, &rows, UINT64_MAX, err);
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
	.takes_traces = true,
	.needs_rows = true,
	.export = json_export,
};

const struct exporter csv_exporter = {
	.name = "csv",
	.description = "the table of functions, for spreadsheets",
	.extension = ".csv",
	.is_weighed = true,
	.export = csv_export,
};
