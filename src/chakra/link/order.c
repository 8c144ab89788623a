/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order that the device keeps, and calls that wait for it. What a call waited for is given by a
 * cuda_sync row with its correlation, where the trace has those; else a call waits for what its
 * thread launched last, and one for the device for all. A dependency that the times contradict is
 * not made.
 */
#include "chakra/link/state.h"

/* A call for the whole device looks at so many launches before it. */
#define LAUNCHES_MAX 4096

/* A dependency between nodes. */
struct edge {
	uint32_t node, on;
};

struct edges {
	ARRAY_OF(struct edge) items;
};

/* Work in groups: of streams, of threads. */
struct work_key {
	int64_t time_ns;
	uint32_t group, index;
};

struct work_list {
	struct work_key *keys; /* by group, then by time */
	uint32_t *first;       /* group → key; one more at the end */
	uint32_t groups, count;
};

enum wait_kind { WAITS_NOT, WAITS_FOR_DEVICE, WAITS_FOR_STREAM, WAITS_FOR_EVENT, WAITS_FOR_OWN };

struct order {
	struct link *link;
	struct map_u64 streams; /* device and number → stream */
	uint32_t stream_count;
	struct work_list of_streams, of_threads, all; /* by launch */
	struct map_u64 syncs;                         /* correlation → row of cuda_sync */
	uint8_t *kinds;                               /* string → enum wait_kind of calls */
	struct edges device_edges, thread_edges;
};

static void list_done(struct work_list *list)
{
	free(list->keys);
	free(list->first);
}

static void order_done(struct order *order)
{
	map_u64_done(&order->streams);
	map_u64_done(&order->syncs);
	list_done(&order->of_streams);
	list_done(&order->of_threads);
	list_done(&order->all);
	free(order->kinds);
	array_done(&order->device_edges.items);
	array_done(&order->thread_edges.items);
}

static const struct link_work *work_at(const struct order *order, uint32_t index)
{
	return &order->link->works.items[index];
}

static int add_edge(struct edges *edges, uint32_t node, uint32_t on)
{
	return array_append(&edges->items, (struct edge){node, on});
}

/* Calls of CUDA, HIP and others, by their names. */
static enum wait_kind kind_of_name(const char *name)
{
	if (strstr(name, "StreamSynchronize"))
		return WAITS_FOR_STREAM;
	if (strstr(name, "DeviceSynchronize") || strstr(name, "CtxSynchronize"))
		return WAITS_FOR_DEVICE;
	if (strstr(name, "EventSynchronize"))
		return WAITS_FOR_EVENT;
	if (strstr(name, "Memcpy") && !strstr(name, "Async"))
		return WAITS_FOR_OWN;
	return WAITS_NOT;
}

static uint64_t stream_key(int64_t device, int64_t stream)
{
	return (uint64_t)device << 40 ^ (uint64_t)stream;
}

/* Numbers the streams. Rows that say none are identified by their track. */
static int number_streams(struct order *order)
{
	const struct trace *device = order->link->device;
	int r = 0;

	array_foreach (&order->link->works, work) {
		const struct trace_event *event = link_event(order->link, work->row);
		const struct trace_work *details = trace_work(device, event);
		bool is_given = details && details->stream != TRACE_NO_NUMBER;
		uint64_t stream, key = is_given ? stream_key(details->device, details->stream)
						: ~(uint64_t)event->track;

		if (!map_u64_get(&order->streams, key, &stream)) {
			stream = order->stream_count++;
			r = map_u64_set(&order->streams, key, stream);
			if (r < 0)
				return r;
		}
		work->stream = (uint32_t)stream;
	}
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct work_key *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

/* Sorts the keys that were filled. */
static int list_finish(struct work_list *list, uint32_t groups)
{
	list->groups = groups;
	list->first = calloc((size_t)groups + 1, sizeof(*list->first));
	if (!list->first)
		return -ENOMEM;
	qsort(list->keys, list->count, sizeof(*list->keys), compare_keys);
	for (uint32_t i = 0; i < list->count; i++)
		list->first[list->keys[i].group + 1]++;
	for (uint32_t i = 0; i < groups; i++)
		list->first[i + 1] += list->first[i];
	return 0;
}

static int make_lists(struct order *order)
{
	struct work_list *lists[] = {&order->of_streams, &order->of_threads, &order->all};
	const struct link *link = order->link;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		lists[i]->keys = malloc((link->works.count + 1) * sizeof(*lists[i]->keys));
		if (!lists[i]->keys)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < link->works.count; i++) {
		const struct link_work *work = &link->works.items[i];
		struct work_key key = {work->launch_ns, work->stream, i};

		order->of_streams.keys[order->of_streams.count++] = key;
		key.group = 0;
		order->all.keys[order->all.count++] = key;
		if (work->launch == MODEL_NONE)
			continue;
		key.group = link_event(link, work->launch)->track;
		order->of_threads.keys[order->of_threads.count++] = key;
	}
	r = list_finish(&order->of_streams, order->stream_count);
	if (r == 0)
		r = list_finish(&order->of_threads, (uint32_t)link->device->tracks.count);
	return r < 0 ? r : list_finish(&order->all, 1);
}

/* The first key of the group that is not before this time; the group's end when all are. */
static uint32_t first_from(const struct work_list *list, uint32_t group, int64_t time_ns)
{
	uint32_t low = list->first[group], high = list->first[group + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->keys[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The work of the group that was launched last before this time, or NULL. */
static const struct link_work *launched_before(
	const struct order *order, const struct work_list *list, uint32_t group, int64_t time_ns)
{
	uint32_t key = first_from(list, group, time_ns);

	return key == list->first[group] ? NULL : work_at(order, list->keys[key - 1].index);
}

/*
 * Each work comes after the one of its stream that ended last before it began. Streams whose
 * kernels overlap, as with programmatic launches, have others between them.
 */
static int add_stream_order(struct order *order)
{
	const struct link *link = order->link;
	struct work_list ends = {.count = (uint32_t)link->works.count};
	_cleanup_free_ uint32_t *next = calloc((size_t)order->stream_count + 1, sizeof(*next));
	int r;

	ends.keys = malloc((link->works.count + 1) * sizeof(*ends.keys));
	if (!ends.keys || !next) {
		free(ends.keys);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < ends.count; i++)
		ends.keys[i] = (struct work_key){
			link->works.items[i].end_ns, link->works.items[i].stream, i};
	r = list_finish(&ends, order->stream_count);
	/* They are by start, and none waits for one that comes later in that order. */
	for (uint32_t i = 0; r == 0 && i < ends.count; i++) {
		const struct link_work *work = work_at(order, i);
		uint32_t first = ends.first[work->stream], *key = &next[work->stream];
		uint32_t count = ends.first[work->stream + 1] - first;

		while (*key < count && ends.keys[first + *key].time_ns <= work->start_ns &&
			ends.keys[first + *key].index < i)
			(*key)++;
		if (*key)
			r = add_edge(&order->device_edges, work->node,
				work_at(order, ends.keys[first + *key - 1].index)->node);
	}
	list_done(&ends);
	return r;
}

/* The number of a stream that a cuda_sync row names. */
static bool find_stream(const struct order *order, int64_t device, int64_t stream, uint32_t *ret)
{
	uint64_t number;

	if (stream == TRACE_NO_NUMBER ||
		!map_u64_get(&order->streams, stream_key(device, stream), &number))
		return false;
	*ret = (uint32_t)number;
	return true;
}

/* The work that an event stands for: what was launched last before it was recorded. */
static const struct link_work *work_of_event(
	const struct order *order, const struct trace_work *sync)
{
	uint32_t stream;
	uint64_t record;

	if (!sync->wait_correlation ||
		!id_map_get(&order->link->device->launches, sync->wait_correlation, &record) ||
		!find_stream(order, sync->device, sync->wait_stream, &stream))
		return NULL;
	return launched_before(order, &order->of_streams, stream,
		link_event(order->link, (uint32_t)record)->start_ns);
}

/* What is launched into a stream after it was made to wait comes after the event's work. */
static int add_event_wait(struct order *order, const struct trace_event *event)
{
	const struct trace_work *sync = trace_work(order->link->device, event);
	const struct link_work *on = work_of_event(order, sync), *work;
	uint32_t stream, key;
	uint64_t call;

	if (!on || !find_stream(order, sync->device, sync->stream, &stream) ||
		!id_map_get(&order->link->device->launches, event->correlation, &call))
		return 0;
	key = first_from(
		&order->of_streams, stream, link_event(order->link, (uint32_t)call)->start_ns);
	if (key == order->of_streams.first[stream + 1])
		return 0;
	work = work_at(order, order->of_streams.keys[key].index);
	if (work == on || work->start_ns < on->end_ns)
		return 0;
	/* Of equal times, that of no duration may be the later one. */
	return work < on ? 0 : add_edge(&order->device_edges, work->node, on->node);
}

static int read_syncs(struct order *order)
{
	const struct trace *device = order->link->device;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < device->events.count; row++) {
		const struct trace_event *event = link_event(order->link, row);

		if (event->category != TRACE_SYNC || !event->correlation ||
			!trace_work(device, event))
			continue;
		if (strcmp(trace_text(device, trace_work(device, event)->sync_kind),
			    "Stream Wait Event") == 0)
			r = add_event_wait(order, event);
		else
			r = map_u64_set(&order->syncs, event->correlation, row);
	}
	return r;
}

/* The thread went on after the work had ended, as it should. */
static int add_wait(struct order *order, const struct link_work *on, int64_t end_ns, uint32_t node)
{
	return on && on->end_ns <= end_ns ? add_edge(&order->thread_edges, node, on->node) : 0;
}

/* All streams: of each what was launched last before the call. */
static int wait_for_device(
	struct order *order, const struct trace_event *call, int64_t device, uint32_t node)
{
	uint32_t end = first_from(&order->all, 0, call->start_ns);
	struct map_u64 seen = {0};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < end && i < LAUNCHES_MAX; i++) {
		const struct link_work *work = work_at(order, order->all.keys[end - 1 - i].index);
		const struct trace_work *details =
			trace_work(order->link->device, link_event(order->link, work->row));

		if (map_u64_get(&seen, work->stream, NULL) ||
			(device != TRACE_NO_NUMBER && details && details->device != device))
			continue;
		r = map_u64_set(&seen, work->stream, 1);
		r = r ?: add_wait(order, work, trace_end_ns(call), node);
		if (seen.count == order->stream_count)
			break;
	}
	map_u64_done(&seen);
	return r;
}

/* What a call waited for, and the operator that came next on its thread. */
static int add_waits(struct order *order, uint32_t row, enum wait_kind kind, uint32_t node)
{
	const struct trace_event *call = link_event(order->link, row);
	const struct trace_work *sync = NULL;
	const struct link_work *last =
		launched_before(order, &order->of_threads, call->track, call->start_ns + 1);
	int64_t end_ns = trace_end_ns(call);
	uint32_t stream;
	uint64_t waited;

	if (call->correlation && map_u64_get(&order->syncs, call->correlation, &waited))
		sync = trace_work(order->link->device, link_event(order->link, (uint32_t)waited));
	switch (kind) {
	case WAITS_FOR_DEVICE:
		return wait_for_device(order, call, sync ? sync->device : TRACE_NO_NUMBER, node);
	case WAITS_FOR_EVENT:
		return sync ? add_wait(order, work_of_event(order, sync), end_ns, node) : 0;
	case WAITS_FOR_STREAM:
		if (sync && find_stream(order, sync->device, sync->stream, &stream))
			last = launched_before(
				order, &order->of_streams, stream, call->start_ns + 1);
		return add_wait(order, last, end_ns, node);
	case WAITS_FOR_OWN:
		return last && last->launch == row ? add_wait(order, last, end_ns, node) : 0;
	case WAITS_NOT:
		break;
	}
	return 0;
}

/* Rows of matched operators of one track, by start. */
struct operators {
	ARRAY_OF(uint32_t) rows;
};

/* The node of the first operator that began at this time or later, or MODEL_NONE. */
static uint32_t next_operator(
	const struct link *link, const struct operators *operators, int64_t time_ns)
{
	size_t low = 0, high = operators->rows.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (link_event(link, operators->rows.items[middle])->start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low == operators->rows.count ? MODEL_NONE
					    : link->node_of_row[operators->rows.items[low]];
}

static int add_waits_of_track(
	struct order *order, const struct trace_track *track, struct operators *operators)
{
	const struct link *link = order->link;
	int r = 0;

	array_clear(&operators->rows);
	for (uint32_t i = 0; r == 0 && i < track->count; i++) {
		uint32_t row = link->device->rows.items[track->first + i];

		if (link_is_operator(link_event(link, row)) && link->node_of_row[row] != MODEL_NONE)
			r = array_append(&operators->rows, row);
	}
	for (uint32_t i = 0; r == 0 && i < track->count && operators->rows.count; i++) {
		uint32_t row = link->device->rows.items[track->first + i], node;
		const struct trace_event *event = link_event(link, row);

		if (!link_is_call(event) || order->kinds[event->name] == WAITS_NOT)
			continue;
		node = next_operator(link, operators, trace_end_ns(event));
		if (node != MODEL_NONE)
			r = add_waits(order, row, (enum wait_kind)order->kinds[event->name], node);
	}
	return r;
}

static int add_thread_waits(struct order *order)
{
	const struct trace *device = order->link->device;
	struct operators operators = {0};
	int r = 0;

	order->kinds = calloc(device->strings.entries.count + 1, 1);
	if (!order->kinds)
		return -ENOMEM;
	for (uint32_t i = 0; i < device->strings.entries.count; i++)
		order->kinds[i] = (uint8_t)kind_of_name(trace_text(device, i));
	array_foreach (&device->tracks, track)
		r = r ?: add_waits_of_track(order, track, &operators);
	array_done(&operators.rows);
	return r;
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return (left->on > right->on) - (left->on < right->on);
}

/* Writes the edges to their nodes, each once. */
static int keep_edges(struct order *order, struct edges *edges, bool is_order, uint64_t *ret_count)
{
	struct execution_trace *host = order->link->host;
	int r = 0;

	if (edges->items.count)
		qsort(edges->items.items, edges->items.count, sizeof(struct edge), compare_edges);
	for (size_t i = 0; r == 0 && i < edges->items.count; i++) {
		const struct edge *edge = &edges->items.items[i];
		struct execution_node *node = &host->nodes.items[edge->node];
		uint32_t *first = is_order ? &node->first_order_dep : &node->first_sync_dep;
		uint32_t *count = is_order ? &node->order_dep_count : &node->sync_dep_count;

		if (i && edge[-1].node == edge->node && edge[-1].on == edge->on)
			continue;
		if (!*count)
			*first = (uint32_t)host->deps.count;
		(*count)++;
		(*ret_count)++;
		r = array_append(&host->deps, edge->on);
	}
	return r;
}

int link_device_deps(struct link *link)
{
	struct order order = {.link = link};
	int r = number_streams(&order);

	r = r ?: make_lists(&order);
	r = r ?: add_stream_order(&order);
	r = r ?: read_syncs(&order);
	r = r ?: add_thread_waits(&order);
	r = r ?: keep_edges(&order, &order.device_edges, true, &link->result->order_deps);
	r = r ?: keep_edges(&order, &order.thread_edges, false, &link->result->sync_deps);
	order_done(&order);
	return r;
}
