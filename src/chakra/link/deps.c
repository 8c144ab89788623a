/* SPDX-License-Identifier: Apache-2.0 */
/* What threads wait for: other threads after a pause, and the device. */
#include "chakra/link/state.h"

/* A matched operator's time. */
struct span {
	int64_t start_ns, end_ns;
	uint32_t track, node;
};

static int compare_ends(const void *a, const void *b)
{
	const struct span *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return left->node < right->node ? -1 : 1;
}

/* The matched operators by end, and for each the last one before it that ran on another thread. */
struct ends {
	ARRAY_OF(struct span) spans;
	uint32_t *other;
};

static void ends_done(struct ends *ends)
{
	array_done(&ends->spans);
	free(ends->other);
}

static int collect_ends(const struct link *link, struct ends *ends)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < link->device->events.count; row++) {
		const struct trace_event *event = link_event(link, row);
		struct span span = {
			event->start_ns, trace_end_ns(event), event->track, link->node_of_row[row]};

		if (link_is_operator(event) && span.node != MODEL_NONE)
			r = array_append(&ends->spans, span);
	}
	ends->other = malloc((ends->spans.count + 1) * sizeof(*ends->other));
	if (r < 0 || !ends->other)
		return -ENOMEM;
	if (ends->spans.count)
		qsort(ends->spans.items, ends->spans.count, sizeof(struct span), compare_ends);
	for (uint32_t i = 0; i < ends->spans.count; i++) {
		const struct span *span = &ends->spans.items[i];

		if (i == 0)
			ends->other[i] = MODEL_NONE;
		else if (span[-1].track != span->track)
			ends->other[i] = i - 1;
		else
			ends->other[i] = ends->other[i - 1];
	}
	return 0;
}

/* The operator of another thread that ended last before this time; NULL: none. */
static const struct span *last_of_others(const struct ends *ends, uint32_t track, int64_t time_ns)
{
	size_t low = 0, high = ends->spans.count;
	uint32_t last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ends->spans.items[middle].end_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	last = (uint32_t)low - 1;
	if (ends->spans.items[last].track == track)
		last = ends->other[last];
	return last == MODEL_NONE ? NULL : &ends->spans.items[last];
}

static void thread_deps_of_track(
	struct link *link, const struct ends *ends, const struct trace_track *track)
{
	uint32_t number = (uint32_t)(track - link->device->tracks.items);
	int64_t reach_ns = INT64_MIN;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t row = link->device->rows.items[track->first + i];
		const struct trace_event *event = link_event(link, row);
		const struct span *dep = NULL;

		if (!link_is_operator(event) || link->node_of_row[row] == MODEL_NONE)
			continue;
		if (reach_ns == INT64_MIN ||
			event->start_ns - reach_ns > link->options.thread_gap_ns)
			dep = last_of_others(ends, number, event->start_ns);
		reach_ns = MAX(reach_ns, trace_end_ns(event));
		if (!dep)
			continue;
		link->host->nodes.items[link->node_of_row[row]].inter_thread_dep = dep->node;
		link->result->inter_thread_deps++;
	}
}

/* Work that was launched outside of operators comes after the operator before it. */
static void deps_of_loose_work(struct link *link)
{
	array_foreach (&link->works, work) {
		if (work->before == MODEL_NONE ||
			trace_end_ns(link_event(link, work->before)) > work->launch_ns)
			continue;
		link->host->nodes.items[work->node].inter_thread_dep =
			link->node_of_row[work->before];
		link->result->inter_thread_deps++;
	}
}

int link_thread_deps(struct link *link)
{
	struct ends ends = {0};
	int r = collect_ends(link, &ends);

	if (r == 0) {
		array_foreach (&link->device->tracks, track)
			thread_deps_of_track(link, &ends, track);
		deps_of_loose_work(link);
	}
	ends_done(&ends);
	return r;
}
