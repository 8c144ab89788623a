/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture that a model is made of: its energy is split, its traces are written as
 * JSON, and again. */
#include <stdlib.h>

#include "analyses/energy/use.h"
#include "analyses/inference/joules.h"
#include "analyses/inference/layers.h"
#include "analyses/inference/runs.h"
#include "exporters/chrome/kineto_json.h"
#include "model/builder/builder.h"
#include "model/trace.h"
#include "model/trace_capture.h"
#include "target.h"

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Every row is of one track, in its order, and refers to what is there. */
static void check_trace(const struct trace *trace)
{
	size_t rows = 0;

	array_foreach (&trace->tracks, track) {
		require(track->first == rows);
		rows += track->count;
	}
	require(rows == trace->events.count && rows == trace->rows.count);
	array_foreach (&trace->events, event) {
		const struct trace_op *op = trace_op(trace, event);
		const struct trace_work *work = trace_work(trace, event);

		require(event->track < trace->tracks.count);
		require(event->name < trace->strings.entries.count);
		require(event->category < TRACE_CATEGORY_MAX);
		require(!op || op->others < trace->strings.entries.count);
		require(!work || work->others < trace->strings.entries.count);
	}
	array_foreach (&trace->flows, flow)
		require(flow->track < trace->tracks.count);
}

static void analyse_inference(const struct model *model, const struct energy_use *energy)
{
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use phases = {0};
	_cleanup_layer_use_ struct layer_use layers = {0};
	_cleanup_inference_joules_ struct inference_joules joules = {0};
	_cleanup_span_energy_ struct span_energy *spans = NULL;
	struct run run = {0};

	if (inference_init(&inference, model) < 0 ||
		phase_use_init(&phases, model, NULL, &inference) < 0 ||
		layer_use_init(&layers, model, NULL) < 0)
		return;
	if (energy_use_has_any(energy) && span_energy_new(&spans, model, energy) < 0)
		return;
	inference_joules_init(&joules, spans, &inference, &phases);
	run_describe(&run, model, &inference);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_model_builder_ struct model_builder *builder = NULL;
	_cleanup_energy_use_ struct energy_use energy = {0};
	_cleanup_model_ struct model *model = NULL;
	struct errmsg err;

	if (model_builder_new(&builder) < 0)
		return 0;
	capture_read_memory(bytes, length, "input", &model_builder_visitor, builder, NULL, &err);
	if (model_builder_finish(builder, NULL, &model) < 0)
		return 0;
	if (energy_use_init(&energy, model) == 0) {
		analyse_inference(model, &energy);
		if (energy_use_has_any(&energy))
			model_weigh_energy(model, energy.rests.items, energy.rests.count);
	}
	array_foreach (&model->traces, trace) {
		_cleanup_strbuf_ struct strbuf out = {0};

		check_trace(*trace);
		kineto_write_document(&out, *trace);
	}
	return 0;
}
