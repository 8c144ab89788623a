/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/forward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct finding {
	const struct trace *trace;
	struct map_u64 begins;   /* id of an arrow → row of its begin */
	struct map_u64 forwards; /* sequence number → the last operator that began with it */
	uint32_t *rows;
};

static void finding_done(struct finding *finding)
{
	map_u64_done(&finding->begins);
	map_u64_done(&finding->forwards);
}

static const struct trace_event *event_at(
	const struct trace *trace, const struct trace_track *track, uint32_t position)
{
	return &trace->events.items[trace->rows.items[track->first + position]];
}

/* ---- arrows ---- */

/* The first row of the track that does not begin before `time_ns`. */
static uint32_t find_position(
	const struct trace *trace, const struct trace_track *track, int64_t time_ns)
{
	uint32_t low = 0, high = track->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (event_at(trace, track, middle)->start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The operator that an arrow begins or ends at: it begins at that moment. The innermost. */
static uint32_t row_of(const struct trace *trace, const struct trace_flow *flow)
{
	const struct trace_track *track = &trace->tracks.items[flow->track];
	uint32_t found = MODEL_NONE;

	for (uint32_t i = find_position(trace, track, flow->time_ns); i < track->count; i++) {
		const struct trace_event *event = event_at(trace, track, i);

		if (event->start_ns != flow->time_ns)
			break;
		if (event->category == TRACE_CPU_OP)
			found = trace->rows.items[track->first + i];
	}
	return found;
}

static bool is_to_backward(const struct trace *trace, const struct trace_flow *flow)
{
	return strcmp(trace_text(trace, flow->category_name), TRACE_FLOW_TO_BACKWARD) == 0;
}

static int follow_arrows(struct finding *finding)
{
	const struct trace *trace = finding->trace;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];

		if (!flow->is_end && is_to_backward(trace, flow))
			r = map_u64_set(&finding->begins, flow->id, row_of(trace, flow));
	}
	for (size_t i = 0; r == 0 && i < trace->flows.count; i++) {
		const struct trace_flow *flow = &trace->flows.items[i];
		uint64_t begin;
		uint32_t row;

		if (!flow->is_end || !is_to_backward(trace, flow) ||
			!map_u64_get(&finding->begins, flow->id, &begin))
			continue;
		row = row_of(trace, flow);
		if (row != MODEL_NONE && row != begin)
			finding->rows[row] = (uint32_t)begin;
	}
	return r;
}

/* ---- sequence numbers ---- */

static const struct trace_op *numbered(const struct trace *trace, const struct trace_event *event)
{
	const struct trace_op *op = event->category == TRACE_CPU_OP ? trace_op(trace, event) : NULL;

	return op && op->sequence != TRACE_NO_NUMBER ? op : NULL;
}

static bool is_backward(const struct trace_op *op)
{
	return op->forward_thread != TRACE_NO_NUMBER && op->forward_thread != 0;
}

static int gather_forwards(struct finding *finding)
{
	const struct trace *trace = finding->trace;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		const struct trace_op *op = numbered(trace, event);
		uint64_t known;

		if (!op || is_backward(op))
			continue;
		if (!map_u64_get(&finding->forwards, (uint64_t)op->sequence, &known) ||
			trace->events.items[known].start_ns <= event->start_ns)
			r = map_u64_set(&finding->forwards, (uint64_t)op->sequence, row);
	}
	return r;
}

static int follow_numbers(struct finding *finding)
{
	const struct trace *trace = finding->trace;
	int r = gather_forwards(finding);

	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		const struct trace_op *op = numbered(trace, event);
		uint64_t forward;

		if (!op || !is_backward(op) || finding->rows[row] != MODEL_NONE ||
			!map_u64_get(&finding->forwards, (uint64_t)op->sequence, &forward))
			continue;
		if (trace->events.items[forward].start_ns <= event->start_ns)
			finding->rows[row] = (uint32_t)forward;
	}
	return r;
}

uint32_t *trace_forward_rows(const struct trace *trace)
{
	_cleanup_(finding_done) struct finding finding = {.trace = trace};
	size_t size = (trace->events.count + 1) * sizeof(*finding.rows);
	int r;

	finding.rows = malloc(size);
	if (!finding.rows)
		return NULL;
	memset(finding.rows, 0xff, size);
	r = follow_arrows(&finding);
	r = r ?: follow_numbers(&finding);
	if (r == 0)
		return finding.rows;
	free(finding.rows);
	return NULL;
}
