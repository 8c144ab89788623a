/* SPDX-License-Identifier: Apache-2.0 */
#include "report/cpu/samples.h"

#include <math.h>

#include "model/weigh.h"
#include "report/view.h"

void report_add_weight(struct result *result, const struct model *model, uint64_t all,
	uint64_t samples, struct energy_uncertainty uncertainty)
{
	bool has_time = model_has_time(model), is_energy = model->counts_energy;
	bool is_bytes = model->counts_bytes;

	result_share(result, (double)samples, (double)all);
	result_known(result, has_time, samples * model_sample_weight_ns(model));
	result_known(result, !model->unit_ns, samples);
	result_known(result, !has_time && !is_energy && !is_bytes, samples);
	result_known(result, is_energy, samples);
	result_number(result, is_energy ? (double)samples / 1e6 : NAN);
	result_known(result, is_bytes, samples);
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
	enum model_weight weight = view->selection->weight;
	bool counts = weight == MODEL_WEIGHT_CPU && !model_has_time(view->model);
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "%s (%s%s)", heading,
		!counts && weight == MODEL_WEIGHT_CPU && report_is_user_time(view->model) ? "user "
											  : "",
		counts ? "samples" : model_weight_noun(weight));
	strbuf_inherit_status(&result->texts, &text);
	result_heading(result, strbuf_cstr(&text));
}

bool report_is_user_time(const struct model *model)
{
	/* Of sources/cpu/perf_sampler.c. */
	static const char note[] = "time in the kernel is not sampled";
	const struct capture_stats *stats = &model->stats.values;

	for (uint32_t i = 0; i < stats->note_count; i++) {
		if (strncmp(stats->notes[i], note, strlen(note)) == 0)
			return true;
	}
	return false;
}

bool report_has_waiting(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		if (sample->wait != WIRE_WAIT_NONE)
			return true;
	}
	return false;
}
