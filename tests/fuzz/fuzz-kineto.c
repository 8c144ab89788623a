/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a Kineto trace, which come in windows, and in parts for threads; how large ones, the
 * first byte says. Where no event is lost neither must matter (how a lost one ends is told by what
 * is seen behind it), and what analyses index by must be in range.
 */
#include <stdlib.h>

#include "../unit/kineto-text.h"
#include "analyses/program/collectives.h"
#include "analyses/program/trace_programs.h"
#include "importers/importer.h"
#include "model/weigh.h"
#include "target.h"

#define WINDOWS_MAX 512

static void check(int must_hold)
{
	if (!must_hold)
		abort();
}

static void check_trace(const struct trace *trace)
{
	uint32_t *parents = trace_parents(trace, true);

	check(trace->rows.count == trace->events.count);
	array_foreach (&trace->events, event) {
		check(event->track < trace->tracks.count);
		check(event->name < trace->strings.entries.count);
		check(event->duration_ns == TRACE_NO_DURATION || event->duration_ns >= 0);
		check(trace_end_ns(event) >= event->start_ns);
	}
	array_foreach (&trace->tracks, track) {
		check(track->first + track->count <= trace->rows.count);
		for (uint32_t i = 1; i < track->count; i++) {
			const uint32_t *rows = &trace->rows.items[track->first + i];

			check(trace->events.items[rows[-1]].start_ns <=
				trace->events.items[rows[0]].start_ns);
		}
	}
	for (size_t i = 0; parents && i < trace->events.count; i++)
		check(parents[i] == MODEL_NONE || parents[i] < trace->events.count);
	free(parents);
}

/* Of any rows there are stacks, and device work keeps its time in them. */
static void check_stacks(const struct trace *trace)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_model_ struct model *model = model_new();
	uint64_t works_ns = 0, weighed_ns = 0;

	if (!model || trace_view_init(&view, trace, 0, &options) < 0 ||
		trace_programs_fill_stacks(model, &view, 1, true, NULL) < 0)
		return;
	array_foreach (&model->samples, sample) {
		check(sample->count > 0 && sample->stack < model->stacks.count);
		check(sample->thread < model->threads.count);
	}
	array_foreach (&model->stacks, stack) {
		for (uint32_t i = 0; i < stack->count; i++)
			check(model->stack_frames.items[stack->first + i] < model->frames.count);
	}
	array_foreach (&view.works, work)
		works_ns += (uint64_t)work->end_ns - (uint64_t)work->start_ns;
	if (model_weigh(model, MODEL_WEIGHT_GPU) < 0)
		return;
	array_foreach (&model->samples, sample)
		weighed_ns += sample->count;
	check(weighed_ns == works_ns);
}

/* Two ranks of such rows: all waiting was caused by somebody. */
static void check_collectives(const struct trace *trace)
{
	const struct trace_view_options options = {0};
	struct trace_view views[2] = {0};
	_cleanup_collectives_ struct collectives found = {0};
	uint64_t caused_ns = 0;

	if (trace_view_init(&views[0], trace, 0, &options) == 0 &&
		trace_view_init(&views[1], trace, 1, &options) == 0 &&
		collectives_init(&found, views, 2) == 0) {
		array_foreach (&found.ranks, rank)
			caused_ns += rank->caused_ns;
		check(caused_ns == collectives_waited_ns(&found));
	}
	trace_view_done(&views[0]);
	trace_view_done(&views[1]);
}

static void check_same(const struct trace *a, const struct trace *b)
{
	_cleanup_strbuf_ struct strbuf left = {0}, right = {0};

	check_trace(b);
	if (a->damage.skipped_events || b->damage.skipped_events)
		return;
	kineto_describe(a, &left);
	kineto_describe(b, &right);
	check(strcmp(strbuf_cstr(&left), strbuf_cstr(&right)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	_cleanup_trace_ struct trace *trace = NULL, *windows = NULL, *parts = NULL;
	const char *text = (const char *)bytes + 1;
	size_t step;

	if (!length--)
		return 0;
	importer_of(text, MIN(length, (size_t)IMPORT_HEAD_BYTES));
	/* An event is begun again with each window until it is whole: not many windows of a long
	 * text. */
	step = MAX((size_t)bytes[0] * 2 + 1, length / WINDOWS_MAX);
	if (kineto_parse_text(&trace, text, length, length, SIZE_MAX, true) < 0)
		return 0;
	check_trace(trace);
	check_stacks(trace);
	check_collectives(trace);
	if (kineto_parse_text(&windows, text, length, step, SIZE_MAX, true) == 0)
		check_same(trace, windows);
	if (kineto_parse_parts(&parts, text, length, step, true) == 0)
		check_same(trace, parts);
	return 0;
}
