/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a part of a file, behind those of the parts before it. */
#include "importers/kineto/parser.h"

#include <errno.h>

void kineto_known_done(struct kineto_known *known)
{
	array_done(&known->strings);
	array_done(&known->tracks);
}

static int merge_tracks(
	struct kineto_parser *to, const struct kineto_parser *from, struct kineto_known *known)
{
	const struct trace *part = from->trace;
	int r = array_reserve(&known->tracks, part->tracks.count - known->tracks.count);

	for (size_t i = known->tracks.count; r >= 0 && i < part->tracks.count; i++) {
		struct trace_track track = part->tracks.items[i];
		uint32_t found;

		track.pid_text = known->strings.items[track.pid_text];
		track.tid_text = known->strings.items[track.tid_text];
		r = kineto_add_track(to, &track, &found);
		if (r >= 0)
			known->tracks.items[known->tracks.count++] = found;
	}
	for (size_t i = 0; r >= 0 && i < part->tracks.count; i++)
		to->trace->tracks.items[known->tracks.items[i]].is_device |=
			part->tracks.items[i].is_device;
	return MIN(r, 0);
}

/* Room for what follows, so that nothing can fail in the middle. */
static int reserve_rows(struct trace *trace, const struct trace *part)
{
	if (trace->events.count + part->events.count > MODEL_NONE ||
		array_reserve(&trace->events, part->events.count) < 0 ||
		array_reserve(&trace->ops, part->ops.count) < 0 ||
		array_reserve(&trace->works, part->works.count) < 0 ||
		array_reserve(&trace->collectives, part->collectives.count) < 0 ||
		array_reserve(&trace->memory, part->memory.count) < 0 ||
		array_reserve(&trace->flows, part->flows.count) < 0 ||
		array_reserve(&trace->counters, part->counters.count) < 0)
		return -ENOMEM;
	return 0;
}

/* Where the details of an event are, and where those of the part begin. */
static uint32_t first_detail(const struct trace *trace, const struct trace_event *event)
{
	if (event->category >= TRACE_KERNEL && event->category <= TRACE_SYNC)
		return (uint32_t)trace->works.count;
	return (uint32_t)(event->category == TRACE_CPU_INSTANT ? trace->memory.count
							       : trace->ops.count);
}

static void merge_events(struct kineto_parser *to, const struct kineto_parser *from,
	const uint32_t *strings, const uint32_t *tracks)
{
	struct trace *trace = to->trace;

	array_foreach (&from->trace->events, event) {
		struct trace_event *out = &trace->events.items[trace->events.count++];

		*out = *event;
		out->name = strings[event->name];
		out->category_name = strings[event->category_name];
		out->track = tracks[event->track];
		out->file_index += to->position;
		if (event->detail != MODEL_NONE)
			out->detail += first_detail(trace, event);
	}
}

static void merge_ops(struct trace *trace, const struct trace *part, const uint32_t *strings)
{
	const uint32_t first_collective = (uint32_t)trace->collectives.count;

	array_foreach (&part->ops, op) {
		struct trace_op *out = &trace->ops.items[trace->ops.count++];

		*out = *op;
		out->input_dims = strings[op->input_dims];
		out->input_types = strings[op->input_types];
		out->input_strides = strings[op->input_strides];
		out->concrete_inputs = strings[op->concrete_inputs];
		out->call_stack = strings[op->call_stack];
		out->module_hierarchy = strings[op->module_hierarchy];
		out->kernel = strings[op->kernel];
		out->others = strings[op->others];
		if (op->collective != MODEL_NONE)
			out->collective += first_collective;
	}
}

static void merge_works(struct trace *trace, const struct trace *part, const uint32_t *strings)
{
	const uint32_t first_collective = (uint32_t)trace->collectives.count;

	array_foreach (&part->works, work) {
		struct trace_work *out = &trace->works.items[trace->works.count++];

		*out = *work;
		out->sync_kind = strings[work->sync_kind];
		out->others = strings[work->others];
		if (work->collective != MODEL_NONE)
			out->collective += first_collective;
	}
}

static void merge_collectives(
	struct trace *trace, const struct trace *part, const uint32_t *strings)
{
	array_foreach (&part->collectives, row) {
		struct trace_collective *out =
			&trace->collectives.items[trace->collectives.count++];

		*out = *row;
		out->name = strings[row->name];
		out->dtype = strings[row->dtype];
		out->group_name = strings[row->group_name];
		out->group_description = strings[row->group_description];
		out->group_ranks = strings[row->group_ranks];
		out->in_split = strings[row->in_split];
		out->out_split = strings[row->out_split];
	}
}

static void merge_others(struct trace *trace, const struct trace *part, const uint32_t *strings,
	const uint32_t *tracks)
{
	array_foreach (&part->memory, memory) {
		struct trace_memory *out = &trace->memory.items[trace->memory.count++];

		*out = *memory;
		out->others = strings[memory->others];
	}
	array_foreach (&part->flows, flow) {
		struct trace_flow *out = &trace->flows.items[trace->flows.count++];

		*out = *flow;
		out->track = tracks[flow->track];
		out->category_name = strings[flow->category_name];
	}
	array_foreach (&part->counters, counter) {
		struct trace_counter *out = &trace->counters.items[trace->counters.count++];

		*out = *counter;
		out->track = tracks[counter->track];
		out->name = strings[counter->name];
		out->series = strings[counter->series];
	}
}

/* The part's strings and tracks stay, with what it has learned. */
static void empty(struct kineto_parser *parser)
{
	struct trace *trace = parser->trace;

	array_clear(&trace->events);
	array_clear(&trace->ops);
	array_clear(&trace->works);
	array_clear(&trace->collectives);
	array_clear(&trace->memory);
	array_clear(&trace->flows);
	array_clear(&trace->counters);
	trace->has_fractions = false;
	trace->damage = (struct trace_damage){0};
	parser->position = 0;
}

int kineto_merge(struct kineto_parser *to, struct kineto_parser *from, struct kineto_known *known)
{
	struct trace *trace = to->trace;
	const struct trace *part = from->trace;
	const uint32_t *strings, *tracks;

	if (kineto_merge_strings(to, from, known) < 0 || merge_tracks(to, from, known) < 0 ||
		reserve_rows(trace, part) < 0)
		return -ENOMEM;
	strings = known->strings.items;
	tracks = known->tracks.items;
	/* Events first: their details' places are those before these are added. */
	merge_events(to, from, strings, tracks);
	merge_ops(trace, part, strings);
	merge_works(trace, part, strings);
	merge_collectives(trace, part, strings);
	merge_others(trace, part, strings, tracks);
	to->position += from->position;
	trace->has_fractions |= part->has_fractions;
	trace->damage.skipped_events += part->damage.skipped_events;
	trace->damage.skipped_bytes += part->damage.skipped_bytes;
	trace->damage.mended_events += part->damage.mended_events;
	trace->damage.repaired_times += part->damage.repaired_times;
	empty(from);
	return 0;
}
