/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/recording.h"

#include "analyses/energy/span_energy.h"

static int count(struct report_recording *recording, const struct model *model,
	const struct selected *selected, const struct energy_use *energy)
{
	int r = range_use_init(&recording->ranges, model, selected);

	if (r == 0)
		r = step_use_init(&recording->steps, model, selected);
	if (r == 0)
		r = window_use_init(&recording->windows, model, selected);
	if (r == 0)
		r = inference_init(&recording->inference, model);
	if (r == 0)
		r = phase_use_init(&recording->phases, model, selected, &recording->inference);
	if (r == 0)
		r = layer_use_init(&recording->layers, model, selected);
	if (r == 0 && energy && energy_use_has_any(energy))
		r = span_energy_new(&recording->span_energy, model, energy);
	if (r == 0)
		r = inference_joules_init(&recording->joules, recording->span_energy,
			&recording->inference, &recording->phases);
	return r;
}

int report_recording_init(struct report_recording *recording, const struct report_view *view)
{
	int r = count(recording, view->model, view->selected, view->energy);

	recording->view = *view;
	recording->view.ranges = &recording->ranges;
	recording->view.steps = &recording->steps;
	recording->view.windows = &recording->windows;
	recording->view.inference = &recording->inference;
	recording->view.phases = &recording->phases;
	recording->view.layers = &recording->layers;
	recording->view.span_energy = recording->span_energy;
	recording->view.joules = &recording->joules;
	return r;
}

void report_recording_done(struct report_recording *recording)
{
	range_use_done(&recording->ranges);
	step_use_done(&recording->steps);
	window_use_done(&recording->windows);
	inference_done(&recording->inference);
	phase_use_done(&recording->phases);
	layer_use_done(&recording->layers);
	span_energy_free(recording->span_energy);
	inference_joules_done(&recording->joules);
}
