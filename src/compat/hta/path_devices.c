/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of devices as HTA has them, faults included: one row of a device for each call, the
 * last one of the file; queues by the number of their stream alone; waits from rows of "cuda_sync".
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "compat/hta/path_state.h"

/* Work that begins later than this after the one before it waited for something else. */
#define KERNEL_DELAY_LIMIT_NS (1500 * (int64_t)NS_PER_US)

static int64_t stream_of(const struct hta_path *path, uint32_t row)
{
	const struct trace_work *work = trace_work(path->trace, hta_path_event(path, row));

	return work && work->stream != TRACE_NO_NUMBER ? work->stream : -1;
}

static int64_t start_of(const struct hta_path *path, uint32_t row)
{
	return trace_view_start_ns(path->view, hta_path_event(path, row));
}

/* ---- calls and their work ---- */

bool hta_path_is_of_device(const struct hta_path *path, uint32_t row)
{
	const struct trace_event *event = hta_path_event(path, row);

	return (stream_of(path, row) >= 0 && event->correlation) ||
	       event->name == path->event_sync || event->name == path->context_sync;
}

static int pair_rows(struct hta_path *path)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < path->trace->events.count; row++) {
		const struct trace_event *event = hta_path_event(path, row);

		if (event->duration_ns == TRACE_NO_DURATION || !event->correlation)
			continue;
		r = map_u64_set(
			hta_path_is_of_device(path, row) ? &path->device_rows : &path->calls,
			event->correlation, row);
	}
	return r;
}

/* HTA's index_correlation; MODEL_NONE: not above 0. */
uint32_t hta_path_partner(const struct hta_path *path, uint32_t row)
{
	uint64_t correlation = hta_path_event(path, row)->correlation, found;
	const struct map_u64 *map =
		hta_path_is_of_device(path, row) ? &path->calls : &path->device_rows;

	if (!correlation || !map_u64_get(map, correlation, &found) ||
		!hta_path_event(path, (uint32_t)found)->file_index)
		return MODEL_NONE;
	return (uint32_t)found;
}

/* ---- length of queues ---- */

static bool counts_for_queue(const struct hta_path *path, uint32_t row)
{
	return trace_view_has(path->view, hta_path_event(path, row)) &&
	       hta_path_name_is(path, row, HTA_PATH_LAUNCHING) &&
	       hta_path_partner(path, row) != MODEL_NONE;
}

/* Calls of launches first, then the work of their correlations. */
static int list_queued(struct hta_path *path, uint32_t *rows, size_t *ret_calls, size_t *ret_count)
{
	struct map_u64 correlations = {0};
	size_t count = 0;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < path->trace->events.count; row++) {
		if (!counts_for_queue(path, row))
			continue;
		rows[count++] = row;
		r = map_u64_set(&correlations, hta_path_event(path, row)->correlation, 1);
	}
	*ret_calls = count;
	array_foreach (&path->view->works, work) {
		if (map_u64_get(&correlations, hta_path_event(path, work->row)->correlation, NULL))
			rows[count++] = work->row;
	}
	*ret_count = count;
	map_u64_done(&correlations);
	return r;
}

static int measure_queues(struct hta_path *path)
{
	size_t rows_count = path->trace->events.count, calls, count;
	_cleanup_free_ uint32_t *rows = malloc((rows_count + 1) * sizeof(*rows));
	_cleanup_free_ uint32_t *order = malloc((rows_count + 1) * sizeof(*order));
	_cleanup_free_ int64_t *times = malloc((rows_count + 1) * sizeof(*times));
	struct map_u64 lengths = {0};
	int32_t *queue_lengths = malloc((rows_count + 1) * sizeof(*queue_lengths));
	int r;

	path->queue_lengths = queue_lengths;
	if (!rows || !order || !times || !queue_lengths)
		return -ENOMEM;
	for (size_t i = 0; i < rows_count; i++)
		queue_lengths[i] = INT32_MIN;
	r = list_queued(path, rows, &calls, &count);
	for (size_t i = 0; i < count; i++)
		times[i] = start_of(path, rows[i]);
	r = r ?: hta_order(times, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t row = rows[order[i]];
		bool is_call = order[i] < calls;
		uint32_t work = is_call ? hta_path_partner(path, row) : row;
		uint64_t stream = (uint64_t)stream_of(path, work), length = 0;

		(void)map_u64_get(&lengths, stream, &length);
		length += is_call ? 1 : UINT64_MAX;
		queue_lengths[row] = (int32_t)(int64_t)length;
		r = map_u64_set(&lengths, stream, length);
	}
	map_u64_done(&lengths);
	return r;
}

/* ---- which launch came before, or after ---- */

static int compare_keys(const struct hta_path_launch *a, const struct hta_path_launch *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return 0;
}

static int compare_launches(const void *left, const void *right)
{
	const struct hta_path_launch *a = left, *b = right;
	int order = compare_keys(a, b);

	if (order)
		return order;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int list_launches(struct hta_path *path)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < path->trace->events.count; row++) {
		const struct trace_track *thread, *device;
		struct hta_path_launch launch;
		uint32_t work;

		if (!counts_for_queue(path, row))
			continue;
		work = hta_path_partner(path, row);
		if (stream_of(path, work) == -1)
			continue;
		thread = &path->trace->tracks.items[hta_path_event(path, row)->track];
		device = &path->trace->tracks.items[hta_path_event(path, work)->track];
		launch = (struct hta_path_launch){thread->pid, thread->tid, stream_of(path, work),
			start_of(path, row), row, row};
		r = array_append(&path->by_thread.items, launch);
		launch.pid = device->pid;
		launch.tid = 0;
		r = r ?: array_append(&path->by_process.items, launch);
	}
	if (r == 0 && path->by_thread.items.count) {
		qsort(path->by_thread.items.items, path->by_thread.items.count,
			sizeof(struct hta_path_launch), compare_launches);
		qsort(path->by_process.items.items, path->by_process.items.count,
			sizeof(struct hta_path_launch), compare_launches);
	}
	return r;
}

/* How many launches come at or before `key`. */
static size_t count_until(
	const struct hta_path_launches *launches, const struct hta_path_launch *key)
{
	size_t first = 0, last = launches->items.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_launches(&launches->items.items[middle], key) <= 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* The call that launched on the stream last before cudaEventRecord(). */
static uint32_t launch_before_record(const struct hta_path *path, uint64_t correlation)
{
	const struct trace_work *wait;
	struct hta_path_launch key = {.order = UINT32_MAX};
	uint64_t record, row;
	size_t index;

	if (!correlation || !map_u64_get(&path->calls, correlation, &record) ||
		hta_path_event(path, (uint32_t)record)->name != path->record ||
		!map_u64_get(&path->records, correlation, &row))
		return MODEL_NONE;
	wait = trace_work(path->trace, hta_path_event(path, (uint32_t)row));
	key.pid = path->trace->tracks.items[hta_path_event(path, (uint32_t)row)->track].pid;
	key.stream = wait->wait_stream;
	key.start_ns = start_of(path, (uint32_t)record);
	index = count_until(&path->by_process, &key);
	if (!index || compare_keys(&path->by_process.items.items[index - 1], &key) != 0)
		return MODEL_NONE;
	return path->by_process.items.items[index - 1].call;
}

/* The call that launches on the wait's stream next after cudaStreamWaitEvent(), on its thread. */
static uint32_t launch_after_wait(const struct hta_path *path, uint32_t call)
{
	const struct trace_track *thread =
		&path->trace->tracks.items[hta_path_event(path, call)->track];
	uint32_t wait = hta_path_partner(path, call);
	struct hta_path_launch key = {
		thread->pid, thread->tid, 0, start_of(path, call), UINT32_MAX, 0};
	size_t index;

	if (wait == MODEL_NONE || hta_path_event(path, call)->name != path->stream_wait_call)
		return MODEL_NONE;
	key.stream = stream_of(path, wait);
	index = count_until(&path->by_thread, &key);
	if (index == path->by_thread.items.count ||
		compare_keys(&path->by_thread.items.items[index], &key) != 0)
		return MODEL_NONE;
	return path->by_thread.items.items[index].call;
}

static int find_records(struct hta_path *path)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < path->trace->events.count; row++) {
		const struct trace_event *event = hta_path_event(path, row);
		const struct trace_work *work = trace_work(path->trace, event);

		if (!work || event->category != TRACE_SYNC || !work->wait_correlation ||
			work->wait_stream == TRACE_NO_NUMBER || work->wait_stream < 0)
			continue;
		r = map_u64_set(&path->records, work->wait_correlation, row);
	}
	return r;
}

int hta_path_devices_init(struct hta_path *path)
{
	int r;

	path->stream_wait = hta_find_name(path->trace, "Stream Wait Event");
	path->event_sync = hta_find_name(path->trace, "Event Sync");
	path->context_sync = hta_find_name(path->trace, "Context Sync");
	path->record = hta_find_name(path->trace, "cudaEventRecord");
	path->stream_wait_call = hta_find_name(path->trace, "cudaStreamWaitEvent");
	r = pair_rows(path);
	r = r ?: measure_queues(path);
	r = r ?: list_launches(path);
	return r ?: find_records(path);
}

void hta_path_devices_done(struct hta_path *path)
{
	map_u64_done(&path->device_rows);
	map_u64_done(&path->calls);
	map_u64_done(&path->records);
	array_done(&path->by_thread.items);
	array_done(&path->by_process.items);
	free(path->queue_lengths);
}

/* ---- work and waits ---- */

struct last_work {
	int64_t stream;
	uint32_t node; /* where its last work ends */
};

struct works {
	struct hta_path *path;
	ARRAY_OF(struct last_work) last; /* in order of their first work */
	struct map_u64 last_of_stream;   /* index in last */
	struct map_u64 waits;            /* row of work → row of the work that it waited for */
};

static uint32_t last_node(const struct works *works, int64_t stream)
{
	uint64_t index;

	if (!map_u64_get(&works->last_of_stream, (uint64_t)stream, &index))
		return MODEL_NONE;
	assert(index < works->last.count);
	return works->last.items[index].node;
}

static int set_last_node(struct works *works, int64_t stream, uint32_t node)
{
	uint64_t index;
	int r;

	if (map_u64_get(&works->last_of_stream, (uint64_t)stream, &index)) {
		assert(index < works->last.count);
		works->last.items[index].node = node;
		return 0;
	}
	r = map_u64_set(&works->last_of_stream, (uint64_t)stream, works->last.count);
	return r < 0 ? r : array_append(&works->last, (struct last_work){stream, node});
}

/* The call's end waited for what ends at `node`. */
static int add_wait_of_call(struct works *works, uint32_t node, uint32_t call)
{
	uint32_t end = call == MODEL_NONE ? MODEL_NONE : works->path->graph.end_nodes[call];

	if (node == MODEL_NONE || end == MODEL_NONE)
		return 0;
	return hta_path_connect(works->path, node, end, TRACE_PATH_SYNC, false, MODEL_NONE);
}

static int add_event_wait(struct works *works, uint32_t row, const struct trace_work *wait)
{
	const struct hta_path *path = works->path;
	uint32_t launch = launch_before_record(path, wait->wait_correlation), next;
	uint32_t waited_for = launch == MODEL_NONE ? MODEL_NONE : hta_path_partner(path, launch);
	uint32_t call = hta_path_partner(path, row);

	if (waited_for == MODEL_NONE)
		return 0;
	if (hta_path_event(path, row)->name != path->stream_wait)
		return add_wait_of_call(works, path->graph.end_nodes[waited_for], call);
	next = call == MODEL_NONE ? MODEL_NONE : launch_after_wait(path, call);
	next = next == MODEL_NONE ? MODEL_NONE : hta_path_partner(path, next);
	return next == MODEL_NONE ? 0 : map_u64_set(&works->waits, next, waited_for);
}

static int add_wait(struct works *works, uint32_t row)
{
	const struct hta_path *path = works->path;
	const struct trace_event *event = hta_path_event(path, row);
	const struct trace_work *wait = trace_work(path->trace, event);
	uint32_t call = hta_path_partner(path, row);
	int r = 0;

	path->paths->sync_rows++;
	if (event->name == path->stream_wait || event->name == path->event_sync)
		return wait ? add_event_wait(works, row, wait) : 0;
	if (event->name != path->context_sync)
		return add_wait_of_call(works, last_node(works, stream_of(path, row)), call);
	for (size_t i = 0; r == 0 && i < works->last.count; i++)
		r = add_wait_of_call(works, works->last.items[i].node, call);
	return r;
}

static int add_delay(struct works *works, uint32_t row, uint32_t waited_for)
{
	const struct hta_path *path = works->path;
	const struct trace_path_node *nodes = works->path->graph.nodes.items;
	const int32_t *lengths = path->queue_lengths;
	uint32_t start = path->graph.start_nodes[row], call = hta_path_partner(path, row);
	uint32_t last = last_node(works, stream_of(path, row));
	int64_t call_ns = call == MODEL_NONE ? INT64_MIN : start_of(path, call);

	if (call != MODEL_NONE && lengths[call] == 1 && lengths[row] == 0 &&
		path->graph.start_nodes[call] != MODEL_NONE &&
		(last == MODEL_NONE || nodes[last].time_ns < call_ns) &&
		(waited_for == MODEL_NONE || nodes[waited_for].time_ns < call_ns))
		return hta_path_connect(works->path, path->graph.start_nodes[call], start,
			TRACE_PATH_LAUNCH_DELAY, true, MODEL_NONE);
	if (last != MODEL_NONE &&
		nodes[start].time_ns - nodes[last].time_ns < KERNEL_DELAY_LIMIT_NS &&
		(waited_for == MODEL_NONE || nodes[waited_for].time_ns < nodes[last].time_ns))
		return hta_path_connect(
			works->path, last, start, TRACE_PATH_KERNEL_DELAY, true, nodes[last].event);
	return 0;
}

static int add_work(struct works *works, uint32_t row)
{
	const struct hta_path *path = works->path;
	uint32_t start = path->graph.start_nodes[row], end = path->graph.end_nodes[row];
	uint32_t waited_for = MODEL_NONE;
	uint64_t other;
	int r;

	if (start == MODEL_NONE)
		return 0;
	r = hta_path_connect(works->path, start, end, TRACE_PATH_OPERATOR, true, row);
	if (r == 0 && map_u64_get(&works->waits, row, &other)) {
		waited_for = path->graph.end_nodes[other];
		if (waited_for != MODEL_NONE)
			r = hta_path_connect(
				works->path, waited_for, start, TRACE_PATH_SYNC, false, MODEL_NONE);
	}
	r = r ?: add_delay(works, row, waited_for);
	return r ?: set_last_node(works, stream_of(path, row), end);
}

/* Work of the window, and waits that are on no stream. Returns how many. */
static size_t list_rows(const struct hta_path *path, uint32_t *rows)
{
	size_t count = 0;

	array_foreach (&path->rows, row) {
		if (hta_path_is_of_device(path, row->event) &&
			hta_path_event(path, row->event)->correlation)
			rows[count++] = row->event;
	}
	array_foreach (&path->works, work)
		rows[count++] = *work;
	return count;
}

int hta_path_add_works(struct hta_path *path)
{
	size_t most = path->rows.count + path->works.count + 1, count = 0;
	_cleanup_free_ uint32_t *rows = malloc(most * sizeof(*rows));
	_cleanup_free_ uint32_t *order = malloc(most * sizeof(*order));
	_cleanup_free_ int64_t *times = malloc(most * sizeof(*times));
	struct works works = {.path = path};
	int r;

	if (!rows || !order || !times)
		return -ENOMEM;
	/* The order in which HTA sorts them is the file's. */
	count = list_rows(path, rows);
	qsort(rows, count, sizeof(*rows), hta_path_compare_rows);
	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = hta_path_event(path, rows[i]);

		times[i] = event->category == TRACE_SYNC ? trace_view_end_ns(path->view, event)
							 : start_of(path, rows[i]);
	}
	r = hta_order(times, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t row = rows[order[i]];

		r = hta_path_event(path, row)->category == TRACE_SYNC ? add_wait(&works, row)
								      : add_work(&works, row);
	}
	array_done(&works.last);
	map_u64_done(&works.last_of_stream);
	map_u64_done(&works.waits);
	return r;
}
