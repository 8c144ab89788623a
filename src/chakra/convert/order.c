/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of device work. On one stream, work waits for what had ended when it began and is
 * ended by no other such work: mostly the one before, and two where two had run side by side, as
 * programmatic dependent launches do. Across streams, it waits for what events say.
 */
#include <errno.h>
#include <stdlib.h>

#include "chakra/convert/graph.h"
#include "model/trace.h"

#define MAX_SIDE_BY_SIDE 16 /* real ones are two; more, and the earliest to end are left out */

struct timed_work {
	int64_t device, stream, start_ns, end_ns;
	uint32_t node, place; /* place: in the order of starts */
};

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_starts(const void *a_item, const void *b_item)
{
	const struct timed_work *a = a_item, *b = b_item;

	int order = compare_numbers(a->device, b->device);

	if (order == 0)
		order = compare_numbers(a->stream, b->stream);
	if (order == 0)
		order = compare_numbers(a->start_ns, b->start_ns);
	if (order == 0)
		order = compare_numbers(a->end_ns, b->end_ns);
	return order ? order : compare_numbers(a->node, b->node);
}

static int compare_ends(const void *a_item, const void *b_item)
{
	const struct timed_work *a = a_item, *b = b_item;

	return compare_numbers(a->end_ns, b->end_ns) ?: compare_numbers(a->place, b->place);
}

static bool same_stream(const struct timed_work *a, const struct timed_work *b)
{
	return a->device == b->device && a->stream == b->stream;
}

/* `ended` of them, in the order of ends, had ended when `work` began; the last to begin is `last`.
 */
static int add_ended(struct chakra_graph *graph, const struct timed_work *work,
	const struct timed_work *by_end, size_t ended, const struct timed_work *last)
{
	int r = chakra_graph_add(graph, work->node, last->node, CHAKRA_DEP_STREAM);

	for (size_t i = ended; r == 0 && i > 0 && ended - i < MAX_SIDE_BY_SIDE &&
			       by_end[i - 1].end_ns > last->start_ns;
		i--)
		r = chakra_graph_add(graph, work->node, by_end[i - 1].node, CHAKRA_DEP_STREAM);
	return r;
}

/* Of one stream, by start. */
static int order_stream(struct chakra_graph *graph, const struct timed_work *works, size_t count,
	struct timed_work *by_end)
{
	const struct timed_work *last = NULL;
	size_t ended = 0;
	int r = 0;

	for (size_t i = 0; i < count; i++)
		by_end[i] = works[i];
	qsort(by_end, count, sizeof(*by_end), compare_ends);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct timed_work *work = &works[i];

		for (; ended < count && by_end[ended].end_ns <= work->start_ns &&
			by_end[ended].place < work->place;
			ended++) {
			if (!last || by_end[ended].place > last->place)
				last = &by_end[ended];
		}
		if (last)
			r = add_ended(graph, work, by_end, ended, last);
	}
	return r;
}

static int64_t end_ns(const struct execution_node *node)
{
	int64_t end;

	if (node->inclusive_ns == TRACE_NO_NUMBER || node->inclusive_ns < 0 ||
		__builtin_add_overflow(node->start_ns, node->inclusive_ns, &end))
		return node->start_ns;
	return end;
}

static bool is_ordered(const struct chakra_graph *graph, const struct execution_node *node)
{
	return node->work != MODEL_NONE && node->start_ns != TRACE_NO_NUMBER &&
	       graph->trace->works.items[node->work].stream != TRACE_NO_NUMBER;
}

/* What events say; what is on its own stream was ordered by times. */
static int add_events(struct chakra_graph *graph, uint32_t node)
{
	const struct execution_trace *trace = graph->trace;
	const struct execution_node *source = chakra_source(graph, node);
	bool ordered = is_ordered(graph, source);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < source->order_dep_count; i++) {
		uint32_t on =
			chakra_graph_find(graph, trace->deps.items[source->first_order_dep + i]);
		const struct execution_node *other;
		const struct execution_work *own, *others;

		if (on == MODEL_NONE)
			continue;
		other = chakra_source(graph, on);
		if (other->work == MODEL_NONE)
			continue;
		own = &trace->works.items[source->work];
		others = &trace->works.items[other->work];
		if (own->device != others->device || own->stream != others->stream)
			r = chakra_graph_add(graph, node, on, CHAKRA_DEP_EVENT);
		else if (!ordered || !is_ordered(graph, other))
			r = chakra_graph_add(graph, node, on, CHAKRA_DEP_STREAM);
	}
	return r;
}

int chakra_order_streams(struct chakra_graph *graph)
{
	_cleanup_free_ struct timed_work *works = malloc((graph->nodes.count + 1) * sizeof(*works));
	_cleanup_free_ struct timed_work *by_end =
		malloc((graph->nodes.count + 1) * sizeof(*by_end));
	size_t count = 0;
	int r = works && by_end ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		const struct execution_node *node = chakra_source(graph, i);

		if (is_ordered(graph, node))
			works[count++] = (struct timed_work){
				.device = graph->trace->works.items[node->work].device,
				.stream = graph->trace->works.items[node->work].stream,
				.start_ns = node->start_ns,
				.end_ns = end_ns(node),
				.node = i};
	}
	if (r == 0)
		qsort(works, count, sizeof(*works), compare_starts);
	for (size_t i = 0; i < count; i++)
		works[i].place = (uint32_t)i;
	for (size_t first = 0, end; r == 0 && first < count; first = end) {
		for (end = first + 1; end < count && same_stream(&works[first], &works[end]); end++)
			;
		r = order_stream(graph, works + first, end - first, by_end);
	}
	for (uint32_t i = 0; r == 0 && i < graph->nodes.count; i++) {
		if (chakra_source(graph, i)->work != MODEL_NONE)
			r = add_events(graph, i);
	}
	return r;
}
