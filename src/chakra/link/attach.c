/* SPDX-License-Identifier: Apache-2.0 */
/* Which node device work belongs to: that of the operator which encloses its launch. */
#include "chakra/link/state.h"

/* The first operator of a thread is hardly ever below more than a few. */
#define DEPTH_MAX 4096
/* Of 10 pieces of work whose launch is there, so many must say the operator by External id. */
#define AGREE_OF_TEN 9

struct attach {
	struct link *link;
	uint32_t *matched; /* row → innermost matched operator around it, itself included */
	uint32_t *before;  /* row → last outermost matched operator of its thread before it */
	uint32_t *threads; /* track → node of its thread; MODEL_NONE: not known */
};

/* For each row the operators around and before it. */
static void find_places(struct attach *attach)
{
	struct link *link = attach->link;

	array_foreach (&link->device->tracks, track) {
		uint32_t last = MODEL_NONE;

		for (uint32_t i = 0; i < track->count; i++) {
			uint32_t row = link->device->rows.items[track->first + i];
			uint32_t outer = link->operators[row];
			bool is_matched = link->node_of_row[row] != MODEL_NONE;

			attach->before[row] = last;
			attach->matched[row] = is_matched            ? row
					       : outer == MODEL_NONE ? outer
								     : attach->matched[outer];
			if (is_matched &&
				(outer == MODEL_NONE || attach->matched[outer] == MODEL_NONE))
				last = row;
		}
	}
}

/* The node of the thread that this one ran on: the outermost but the process. */
static uint32_t thread_of(const struct execution_trace *host, uint32_t node)
{
	uint64_t parent;

	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		const struct execution_node *at = &host->nodes.items[node];

		if (link_is_process_or_thread(at))
			return node;
		if (at->parent == at->id || !id_map_get(&host->index, at->parent, &parent))
			return MODEL_NONE;
		node = (uint32_t)parent;
	}
	return MODEL_NONE;
}

static void find_threads(struct attach *attach)
{
	struct link *link = attach->link;

	for (size_t t = 0; t < link->device->tracks.count; t++) {
		const struct trace_track *track = &link->device->tracks.items[t];

		attach->threads[t] = MODEL_NONE;
		for (uint32_t i = 0; i < track->count; i++) {
			uint32_t row = link->device->rows.items[track->first + i];

			if (link->node_of_row[row] == MODEL_NONE)
				continue;
			attach->threads[t] = thread_of(link->host, link->node_of_row[row]);
			break;
		}
	}
}

/* The node for work whose launch is there. */
static void attach_to_launch(struct attach *attach, struct link_work *work)
{
	struct link *link = attach->link;
	uint32_t outer = attach->matched[work->launch];

	if (outer != MODEL_NONE) {
		work->host = link->node_of_row[outer];
		return;
	}
	work->host = attach->threads[link_event(link, work->launch)->track];
	work->before = attach->before[work->launch];
	if (work->host == MODEL_NONE)
		link->result->without_operator++;
	else
		link->result->linked_to_threads++;
}

/* Do External ids of device work name the operator? Before 2024 they did not. */
static bool external_ids_hold(const struct attach *attach)
{
	const struct link *link = attach->link;
	uint64_t agree = 0, total = 0;

	array_foreach (&link->works, work) {
		uint32_t outer =
			work->launch == MODEL_NONE ? MODEL_NONE : link->operators[work->launch];

		if (outer == MODEL_NONE)
			continue;
		total++;
		agree += link_event(link, outer)->external_id ==
			 link_event(link, work->row)->external_id;
	}
	return agree && agree * 10 >= total * AGREE_OF_TEN;
}

/* The node for work whose launch is not in the trace. */
static int attach_by_external_id(struct attach *attach)
{
	struct link *link = attach->link;
	struct map_u64 rows = {0};
	bool hold = external_ids_hold(attach);
	uint64_t row;
	int r = 0;

	for (uint32_t i = 0; hold && r == 0 && i < link->device->events.count; i++) {
		const struct trace_event *event = link_event(link, i);

		if (link_is_operator(event) && event->external_id != TRACE_NO_ID)
			r = map_u64_set(&rows, event->external_id, i);
	}
	array_foreach (&link->works, work) {
		if (work->launch != MODEL_NONE)
			continue;
		if (map_u64_get(&rows, link_event(link, work->row)->external_id, &row) &&
			attach->matched[row] != MODEL_NONE &&
			link_event(link, (uint32_t)row)->start_ns <= work->start_ns) {
			work->host = link->node_of_row[attach->matched[row]];
			link->result->linked_by_external_id++;
		} else {
			link->result->without_launch++;
		}
	}
	map_u64_done(&rows);
	return r;
}

static int compare_works(const void *a, const void *b)
{
	const struct link_work *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

static int collect_works(struct link *link)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < link->device->events.count; row++) {
		const struct trace_event *event = link_event(link, row);
		struct link_work work = {
			.row = row,
			.host = MODEL_NONE,
			.before = MODEL_NONE,
			.start_ns = event->start_ns,
			.end_ns = trace_end_ns(event),
		};

		if (!trace_is_work(event))
			continue;
		work.launch = trace_launch(link->device, event);
		work.launch_ns = work.launch == MODEL_NONE
					 ? event->start_ns
					 : link_event(link, work.launch)->start_ns;
		r = array_append(&link->works, work);
	}
	link->result->device_rows = link->works.count;
	if (link->works.count)
		qsort(link->works.items, link->works.count, sizeof(struct link_work),
			compare_works);
	return r;
}

/* Finds each work's node, and forgets those that have none. */
static int attach_works(struct attach *attach)
{
	struct link *link = attach->link;
	size_t kept = 0;
	int r;

	array_foreach (&link->works, work) {
		if (work->launch != MODEL_NONE)
			attach_to_launch(attach, work);
	}
	r = attach_by_external_id(attach);
	array_foreach (&link->works, work) {
		if (work->host == MODEL_NONE)
			continue;
		if (work->launch != MODEL_NONE &&
			strstr(trace_text(link->device, link_event(link, work->launch)->name),
				"GraphLaunch"))
			link->result->linked_graphs++;
		link->works.items[kept++] = *work;
	}
	link->works.count = kept;
	link->result->linked = kept;
	return r;
}

int link_attach(struct link *link)
{
	size_t events = link->device->events.count, tracks = link->device->tracks.count;
	_cleanup_free_ uint32_t *matched = malloc((events + 1) * sizeof(*matched));
	_cleanup_free_ uint32_t *before = malloc((events + 1) * sizeof(*before));
	_cleanup_free_ uint32_t *threads = malloc((tracks + 1) * sizeof(*threads));
	struct attach attach = {link, matched, before, threads};
	int r;

	if (!matched || !before || !threads)
		return -ENOMEM;
	find_places(&attach);
	find_threads(&attach);
	r = collect_works(link);
	return r ?: attach_works(&attach);
}
