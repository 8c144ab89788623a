/* SPDX-License-Identifier: Apache-2.0 */
#include "report/cpu/samples.h"

#include <math.h>

#include "report/view.h"

void report_add_weight(struct result *result, const struct model *model, uint64_t all,
	uint64_t samples, struct energy_uncertainty uncertainty)
{
	bool has_time = model_has_time(model), is_energy = model->counts_energy;

	result_share(result, (double)samples, (double)all);
	result_known(result, has_time, samples * model_sample_weight_ns(model));
	result_known(result, !model->unit_ns, samples);
	result_known(result, !has_time && !is_energy, samples);
	result_known(result, is_energy, samples);
	result_number(result, is_energy ? (double)samples / 1e6 : NAN);
	if (!is_energy)
		uncertainty = ENERGY_NO_UNCERTAINTY;
	result_known(result, !isnan(uncertainty.energy_j),
		isnan(uncertainty.energy_j) ? 0 : (uint64_t)(uncertainty.energy_j * 1e6 + 0.5));
	result_number(result, uncertainty.energy_j);
	result_text(result, energy_doubt_name(uncertainty.doubt));
}

void report_weight_heading(
	struct result *result, const struct report_view *view, const char *heading)
{
	static const char *const weights[MODEL_WEIGHT_MAX] = {
		[MODEL_WEIGHT_CPU] = "CPU time",
		[MODEL_WEIGHT_WAIT] = "time waited",
		[MODEL_WEIGHT_WALL] = "CPU time and waiting",
		[MODEL_WEIGHT_GPU] = "device time",
		[MODEL_WEIGHT_GPU_IDLE] = "idle time of devices",
		[MODEL_WEIGHT_CPU_GPU] = "CPU and device time",
		[MODEL_WEIGHT_ENERGY] = "energy",
	};
	enum model_weight weight = view->selection->weight;
	bool counts = weight == MODEL_WEIGHT_CPU && !model_has_time(view->model);
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s (%s)", heading, counts ? "samples" : weights[weight]);
	strbuf_inherit_status(&result->texts, &text);
	result_heading(result, strbuf_cstr(&text));
}

bool report_has_waiting(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		if (sample->wait != WIRE_WAIT_NONE)
			return true;
	}
	return false;
}
