/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions as comma-separated values (RFC 4180). Unknown values are empty fields. */
#include <errno.h>

#include "analyses/cpu/breakdown.h"
#include "base/escape.h"
#include "exporters/exporters.h"
#include "model/kinds.h"

static void add_counts(
	struct strbuf *out, const struct model *model, uint64_t samples, uint64_t of_samples)
{
	uint64_t time_ns = samples * model_sample_weight_ns(model);

	strbuf_add_char(out, ',');
	if (!model->counts_energy)
		strbuf_addf(out, "%llu", (unsigned long long)samples);
	strbuf_add_char(out, ',');
	if (model_has_time(model))
		strbuf_addf(out, "%llu", (unsigned long long)time_ns);
	strbuf_addf(out, ",%.9g", of_samples ? (double)samples / (double)of_samples : 0.0);
}

static void add_function(struct strbuf *out, const struct model *model, uint32_t index)
{
	const struct model_function *function =
		index == MODEL_NONE ? NULL : &model->functions.items[index];
	bool has_module = function && function->module != MODEL_NONE;

	escape_csv(out, model_function_name(model, index));
	strbuf_add_char(out, ',');
	escape_csv(out, has_module ? model_function_module(model, index) : "");
	strbuf_add_char(out, ',');
	escape_csv(out, has_module ? model->modules.items[function->module].path : "");
	strbuf_addf(out, ",%s,", function ? kind_name(function->kind) : "");
	escape_csv(out, function ? function->source_file : "");
}

static int csv_export(const struct model *model, const struct selection *selection,
	const struct export_options *options, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(selected_done) struct selected selected = {0};
	_cleanup_breakdown_ struct breakdown functions = {0};
	int r = selection_apply(selection, model, &selected, err);

	r = r
		    ?: breakdown_init(&functions, model, &selected, BREAKDOWN_FUNCTION,
			       BREAKDOWN_SORT_SELF);
	if (r == 0)
		strbuf_add(out,
			"function,module,module_path,kind,source_file,self_samples,self_time_ns,"
			"self_share,total_samples,total_time_ns,total_share");
	if (r == 0)
		strbuf_add(
			out, model->counts_energy ? ",self_energy_uj,total_energy_uj\r\n" : "\r\n");
	array_foreach (&functions.rows, row) {
		add_function(out, model, row->key);
		add_counts(out, model, row->self_samples, functions.samples);
		add_counts(out, model, row->total_samples, functions.samples);
		if (model->counts_energy)
			strbuf_addf(out, ",%llu,%llu", (unsigned long long)row->self_samples,
				(unsigned long long)row->total_samples);
		strbuf_add(out, "\r\n");
	}
	return export_result(r, out, "csv", err);
}

const struct exporter csv_exporter = {
	.name = "csv",
	.description = "the table of functions, for spreadsheets",
	.extension = ".csv",
	.export = csv_export,
};
