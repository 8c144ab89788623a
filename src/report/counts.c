/* SPDX-License-Identifier: Apache-2.0 */
#include "report/counts.h"

#include "analyses/energy/span_energy.h"

static int count(struct report_counts *counts, const struct report_view *view)
{
	const struct model *model = view->model;
	int r = range_use_init(&counts->ranges, model, view->selected);

	if (r == 0)
		r = step_use_init(&counts->steps, model, view->selected);
	if (r == 0)
		r = window_use_init(&counts->windows, model, view->selected);
	if (r == 0)
		r = inference_init(&counts->inference, model);
	if (r == 0)
		r = phase_use_init(&counts->phases, model, view->selected, &counts->inference);
	if (r == 0)
		r = layer_use_init(&counts->layers, model, view->selected);
	if (r == 0 && view->energy && energy_use_has_any(view->energy))
		r = span_energy_new(&counts->span_energy, model, view->energy);
	if (r == 0)
		r = inference_joules_init(
			&counts->joules, counts->span_energy, &counts->inference, &counts->phases);
	return r;
}

int report_counts_init(struct report_counts *counts, struct report_view *view)
{
	int r = count(counts, view);

	view->ranges = &counts->ranges;
	view->steps = &counts->steps;
	view->windows = &counts->windows;
	view->inference = &counts->inference;
	view->phases = &counts->phases;
	view->layers = &counts->layers;
	view->span_energy = counts->span_energy;
	view->joules = &counts->joules;
	return r;
}

void report_counts_done(struct report_counts *counts)
{
	range_use_done(&counts->ranges);
	step_use_done(&counts->steps);
	window_use_done(&counts->windows);
	inference_done(&counts->inference);
	phase_use_done(&counts->phases);
	layer_use_done(&counts->layers);
	span_energy_free(counts->span_energy);
	inference_joules_done(&counts->joules);
}
