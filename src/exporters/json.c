/* SPDX-License-Identifier: Apache-2.0 */
/* The same document as `sonde report --json`, with every table. */
#include "exporters/exporters.h"
#include "report/recording/report_json.h"

static int json_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	struct report_json_options document = {
		.size = sizeof(document),
		.capture = export_options_or_default(options)->capture,
		.energy = export_options_or_default(options)->energy,
	};
	int r = selection_apply(selection, model, &selected, err);

	r = r ?: report_json_write(model, selection, &selected, &document, out);
	return export_result(r, out, "json", err);
}

const struct exporter json_exporter = {
	.name = "json",
	.description = "every table of the report, as documented in docs/json.md",
	.extension = ".json",
	.export = json_export,
};
