/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "model/windows.h"

int queue_add_change(
	struct queue_changes *changes, int64_t time_ns, uint32_t stream, int32_t change)
{
	return array_append(&changes->items, (struct queue_change){time_ns, stream, change});
}

/* ---- changes ---- */

/* By row: how many pieces of work a call launched, up to 2. */
static uint8_t *count_works(const struct trace_view *view)
{
	uint8_t *counts = calloc(view->trace->events.count + 1, sizeof(*counts));

	for (size_t i = 0; counts && i < view->works.count; i++) {
		uint32_t launch = view->works.items[i].launch;

		if (launch != MODEL_NONE && counts[launch] < 2)
			counts[launch]++;
	}
	return counts;
}

/* Is it the first work of its launch on its stream? Work comes by start. 1, 0, or -ENOMEM. */
static int is_first(struct map_u64 *seen, const uint8_t *counts, const struct trace_view_work *work)
{
	uint64_t key = (uint64_t)work->launch << 32 | work->stream;

	if (counts[work->launch] < 2)
		return 1;
	if (map_u64_get(seen, key, NULL))
		return 0;
	return map_u64_set(seen, key, 1) < 0 ? -ENOMEM : 1;
}

/* Ends come before begins, so that of those at one moment they come first. */
static int find_changes(struct queue_changes *changes, const struct trace_view *view)
{
	_cleanup_free_ uint8_t *counts = count_works(view);
	struct queue_changes joins = {0};
	struct map_u64 seen = {0};
	int r = counts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		int64_t returned_ns;

		if (work->launch == MODEL_NONE)
			continue;
		r = is_first(&seen, counts, work);
		if (r <= 0)
			continue;
		returned_ns = trace_view_end_ns(view, &view->trace->events.items[work->launch]);
		r = queue_add_change(&joins, MIN(returned_ns, work->start_ns), work->stream, 1);
		r = r ?: queue_add_change(changes, work->start_ns, work->stream, -1);
	}
	for (size_t i = 0; r == 0 && i < joins.items.count; i++)
		r = array_append(&changes->items, joins.items.items[i]);
	array_done(&joins.items);
	map_u64_done(&seen);
	return r;
}

/* ---- series ---- */

static int64_t time_of(const void *change)
{
	return ((const struct queue_change *)change)->time_ns;
}

static void add_times(
	struct queue_stream *stream, const struct queue_point *points, const struct trace *trace)
{
	double area = 0;

	stream->longest = points[0].length;
	for (uint32_t i = 1; i < stream->count; i++) {
		int64_t passed_ns = points[i].time_ns - points[i - 1].time_ns;
		int64_t length = points[i - 1].length;

		/* Between two windows nobody knows how many waited. */
		if (!trace_is_continuous(trace, points[i - 1].time_ns, points[i].time_ns))
			passed_ns = 0;
		area += (double)length * (double)passed_ns;
		stream->span_ns += passed_ns;
		if (length <= 0)
			stream->empty_ns += passed_ns;
		if (length >= QUEUE_FULL)
			stream->full_ns += passed_ns;
		stream->longest = MAX(stream->longest, points[i].length);
	}
	stream->mean = stream->span_ns ? area / (double)stream->span_ns : 0;
}

static int describe_stream(
	struct queue *queue, struct queue_stream *stream, const struct trace *trace)
{
	const struct queue_point *points = queue->points.items + stream->first;
	_cleanup_free_ int64_t *lengths = malloc((stream->count + 1) * sizeof(*lengths));

	if (!lengths)
		return -ENOMEM;
	for (uint32_t i = 0; i < stream->count; i++)
		lengths[i] = points[i].length;
	add_times(stream, points, trace);
	return trace_describe_ns(&stream->points, lengths, stream->count);
}

/* Gives each stream its piece of `points`. */
static int deal_points(
	struct queue *queue, const struct queue_changes *changes, const struct trace_view *view)
{
	_cleanup_free_ struct queue_stream *streams =
		calloc(view->streams.count + 1, sizeof(*streams));
	uint32_t first = 0;
	int r = streams ? array_reserve(&queue->points, changes->items.count) : -ENOMEM;

	if (r < 0)
		return r;
	queue->points.count = changes->items.count;
	array_foreach (&changes->items, change)
		streams[change->stream].count++;
	for (uint32_t i = 0; i < view->streams.count; i++) {
		streams[i].stream = i;
		streams[i].first = first;
		first += streams[i].count;
		streams[i].count = 0;
	}
	array_foreach (&changes->items, change) {
		struct queue_stream *stream = &streams[change->stream];
		struct queue_point *point = &queue->points.items[stream->first + stream->count];

		*point = (struct queue_point){change->time_ns, change->change};
		if (stream->count)
			point->length += point[-1].length;
		stream->launches += change->change > 0;
		stream->count++;
	}
	for (uint32_t i = 0; r == 0 && i < view->streams.count; i++) {
		if (!streams[i].count)
			continue;
		r = describe_stream(queue, &streams[i], view->trace);
		r = r ?: array_append(&queue->streams, streams[i]);
	}
	return r;
}

int queue_finish(struct queue *queue, const struct trace_view *view, struct queue_changes *changes,
	trace_order *order)
{
	int r = trace_order_items(changes->items.items, changes->items.count,
		sizeof(*changes->items.items), time_of, order);

	return r < 0 ? r : deal_points(queue, changes, view);
}

int queue_init(struct queue *queue, const struct trace_view *view)
{
	struct queue_changes changes = {0};
	int r;

	*queue = (struct queue){0};
	r = find_changes(&changes, view);
	if (r == 0)
		r = queue_finish(queue, view, &changes, trace_order_stable);
	array_done(&changes.items);
	if (r < 0)
		queue_done(queue);
	return r;
}

void queue_done(struct queue *queue)
{
	array_done(&queue->streams);
	array_done(&queue->points);
}
