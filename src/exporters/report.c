/* SPDX-License-Identifier: Apache-2.0 */
/* The same as `sonde report --json`, and as `sonde report --csv --by function`; and every table of
 * the report as a CSV of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/exporters.h"
#include "report/counts.h"
#include "report/document.h"
#include "report/rows.h"

/* Where the report goes: one file, or a folder of its tables. */
struct wanted {
	enum report_form form;
	struct strbuf *out;
	struct export_files *files; /* NULL: `out` */
};

/* Spreadsheets take a file for UTF-8 where it begins so. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* "kernel.kernels.csv"; a section that is a table itself is "steps.csv". */
static int add_tables(
	void *context, const struct report_section *section, const struct result *result)
{
	const struct wanted *wanted = context;
	const char *of = section->value.key ? section->value.key : section->value.title;
	size_t at = 0;

	for (;;) {
		struct export_file file = {0};
		const struct report_column *column;
		int r;

		strbuf_add(&file.content, BYTE_ORDER_MARK);
		column = report_render_next_table(result, &at, &file.content);
		if (!column) {
			strbuf_done(&file.content);
			return 0;
		}
		r = asprintf(&file.own_name, column == &section->value ? "%s.csv" : "%s.%s.csv",
			of ? of : "report", column->key);
		if (r < 0)
			file.own_name = NULL;
		for (char *blank = file.own_name; blank && (blank = strchr(blank, ' '));)
			*blank = '_';
		file.name = file.own_name;
		r = r < 0 ? -ENOMEM : strbuf_status(&file.content);
		r = r < 0 ? r : array_append(&wanted->files->items, file);
		if (r < 0) {
			strbuf_done(&file.content);
			free(file.own_name);
			return r;
		}
	}
}

static int write_document(const struct model *model, const struct selection *selection,
	const struct selected *selected, const struct export_options *options,
	const struct wanted *wanted, struct errmsg *err)
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
		.by = wanted->form == REPORT_FORM_CSV ? "function" : NULL,
		.is_complete = wanted->files != NULL};
	int r = report_counts_init(&counts, &view);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while making the report");
	if (model->traces.count)
		r = trace_report_init(&trace, model, &rows, UINT64_MAX, err);
	if (r < 0)
		return r;
	return wanted->files
		       ? report_document_visit(&document, add_tables, (void *)wanted, err)
		       : report_document_write(&document, wanted->form, NULL, wanted->out, err);
}

static int report_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, const struct wanted *wanted, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	int r = selection_apply(selection, model, &selected, err);

	if (r < 0)
		return r;
	return write_document(
		model, selection, &selected, export_options_or_default(options), wanted, err);
}

static int json_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	const struct wanted wanted = {.form = REPORT_FORM_JSON, .out = out};

	return report_export(model, selection, options, &wanted, err);
}

static int csv_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	const struct wanted wanted = {.form = REPORT_FORM_CSV, .out = out};

	return report_export(model, selection, options, &wanted, err);
}

static int tables_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct export_files *files, struct errmsg *err)
{
	const struct wanted wanted = {.form = REPORT_FORM_JSON, .files = files};

	return report_export(model, selection, options, &wanted, err);
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

const struct exporter tables_exporter = {
	.name = "tables",
	.description = "a folder with every table of the report, for spreadsheets",
	.extension = ".tables",
	.takes_traces = true,
	.needs_rows = true,
	.export_files = tables_export,
};
