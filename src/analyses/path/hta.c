/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of devices as HTA f4d0062 has them, faults included: one row of a device for each call,
 * the last one of the file; queues by the number of their stream alone; waits from rows of
 * "cuda_sync"; and calls that take turns.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path.h"

/* Work that begins later than this after the one before it waited for something else. */
#define KERNEL_DELAY_LIMIT_NS (1500 * (int64_t)NS_PER_US)

/* A call that launched, in the order of calls. */
struct launch {
	int64_t pid, tid; /* of what it is looked up by: its thread, or the process of its work */
	int64_t stream;   /* of its work */
	int64_t start_ns;
	uint32_t order, call;
};

struct launches {
	ARRAY_OF(struct launch) items;
};

struct trace_path_hta {
	struct map_u64 works;   /* correlation → the last row of a device */
	struct map_u64 calls;   /* correlation → the last other row */
	struct map_u64 records; /* correlation of cudaEventRecord() → a row that waits for it */
	struct launches by_thread;  /* by thread, stream, start */
	struct launches by_process; /* by process of the work, stream, start */
	int32_t *queue_lengths;     /* of rows; INT32_MIN: none */
	uint32_t stream_wait, event_sync, context_sync, record, stream_wait_call; /* names */
};

static const struct trace_event *event_of(const struct trace_path_source *source, uint32_t row)
{
	return &source->trace->events.items[row];
}

static int64_t stream_of(const struct trace_path_source *source, uint32_t row)
{
	const struct trace_work *work = trace_work(source->trace, event_of(source, row));

	return work && work->stream != TRACE_NO_NUMBER ? work->stream : -1;
}

static int64_t start_of(const struct trace_path_source *source, uint32_t row)
{
	return trace_view_start_ns(source->view, event_of(source, row));
}

/* ---- calls and their work ---- */

static bool is_of_device(const struct trace_path_source *source, uint32_t row)
{
	const struct trace_event *event = event_of(source, row);

	return (stream_of(source, row) >= 0 && event->correlation) ||
	       event->name == source->hta->event_sync || event->name == source->hta->context_sync;
}

static int pair_rows(struct trace_path_source *source)
{
	struct trace_path_hta *hta = source->hta;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < source->trace->events.count; row++) {
		const struct trace_event *event = event_of(source, row);

		if (event->duration_ns == TRACE_NO_DURATION || !event->correlation)
			continue;
		r = map_u64_set(is_of_device(source, row) ? &hta->works : &hta->calls,
			event->correlation, row);
	}
	return r;
}

/* HTA's index_correlation; MODEL_NONE: not above 0. */
static uint32_t partner(const struct trace_path_source *source, uint32_t row)
{
	const struct trace_path_hta *hta = source->hta;
	uint64_t correlation = event_of(source, row)->correlation, found;
	const struct map_u64 *map = is_of_device(source, row) ? &hta->calls : &hta->works;

	if (!correlation || !map_u64_get(map, correlation, &found) ||
		!event_of(source, (uint32_t)found)->file_index)
		return MODEL_NONE;
	return (uint32_t)found;
}

static int add_launched(struct trace_path_source *source)
{
	int r = 0;

	array_foreach (&source->rows, row) {
		uint32_t work;

		if (r < 0 || is_of_device(source, row->event))
			continue;
		work = partner(source, row->event);
		if (work != MODEL_NONE && stream_of(source, work) != -1)
			r = array_append(&source->launched,
				(struct trace_path_launched){row->start_ns, row->event, work});
	}
	return r;
}

/* ---- length of queues ---- */

static bool counts_for_queue(const struct trace_path_source *source, uint32_t row)
{
	const struct trace_event *event = event_of(source, row);

	return event->duration_ns != TRACE_NO_DURATION && trace_view_has(source->view, event) &&
	       trace_path_name_is(source, row, TRACE_PATH_LAUNCHING) &&
	       partner(source, row) != MODEL_NONE;
}

/* Calls of launches first, then the work of their correlations. */
static int list_queued(
	struct trace_path_source *source, uint32_t *rows, size_t *ret_calls, size_t *ret_count)
{
	struct map_u64 correlations = {0};
	size_t count = 0;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < source->trace->events.count; row++) {
		if (!counts_for_queue(source, row))
			continue;
		rows[count++] = row;
		r = map_u64_set(&correlations, event_of(source, row)->correlation, 1);
	}
	*ret_calls = count;
	array_foreach (&source->view->works, work) {
		if (map_u64_get(&correlations, event_of(source, work->row)->correlation, NULL))
			rows[count++] = work->row;
	}
	*ret_count = count;
	map_u64_done(&correlations);
	return r;
}

static int measure_queues(struct trace_path_source *source)
{
	size_t rows_count = source->trace->events.count, calls, count;
	_cleanup_free_ uint32_t *rows = malloc((rows_count + 1) * sizeof(*rows));
	_cleanup_free_ uint32_t *order = malloc((rows_count + 1) * sizeof(*order));
	_cleanup_free_ int64_t *times = malloc((rows_count + 1) * sizeof(*times));
	struct map_u64 lengths = {0};
	int32_t *queue_lengths = malloc((rows_count + 1) * sizeof(*queue_lengths));
	int r;

	source->hta->queue_lengths = queue_lengths;
	if (!rows || !order || !times || !queue_lengths)
		return -ENOMEM;
	for (size_t i = 0; i < rows_count; i++)
		queue_lengths[i] = INT32_MIN;
	r = list_queued(source, rows, &calls, &count);
	for (size_t i = 0; i < count; i++)
		times[i] = start_of(source, rows[i]);
	r = r ?: trace_view_sort(source->view, times, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t row = rows[order[i]];
		bool is_call = order[i] < calls;
		uint32_t work = is_call ? partner(source, row) : row;
		uint64_t stream = (uint64_t)stream_of(source, work), length = 0;

		(void)map_u64_get(&lengths, stream, &length);
		length += is_call ? 1 : UINT64_MAX;
		queue_lengths[row] = (int32_t)(int64_t)length;
		r = map_u64_set(&lengths, stream, length);
	}
	map_u64_done(&lengths);
	return r;
}

/* ---- which launch came before, or after ---- */

static int compare_keys(const struct launch *a, const struct launch *b)
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
	const struct launch *a = left, *b = right;
	int order = compare_keys(a, b);

	if (order)
		return order;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int list_launches(struct trace_path_source *source)
{
	struct trace_path_hta *hta = source->hta;
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < source->trace->events.count; row++) {
		const struct trace_track *thread, *device;
		struct launch launch;
		uint32_t work;

		if (!counts_for_queue(source, row))
			continue;
		work = partner(source, row);
		if (stream_of(source, work) == -1)
			continue;
		thread = &source->trace->tracks.items[event_of(source, row)->track];
		device = &source->trace->tracks.items[event_of(source, work)->track];
		launch = (struct launch){thread->pid, thread->tid, stream_of(source, work),
			start_of(source, row), row, row};
		r = array_append(&hta->by_thread.items, launch);
		launch.pid = device->pid;
		launch.tid = 0;
		r = r ?: array_append(&hta->by_process.items, launch);
	}
	if (r == 0 && hta->by_thread.items.count) {
		qsort(hta->by_thread.items.items, hta->by_thread.items.count, sizeof(struct launch),
			compare_launches);
		qsort(hta->by_process.items.items, hta->by_process.items.count,
			sizeof(struct launch), compare_launches);
	}
	return r;
}

/* How many launches come at or before `key`. */
static size_t count_until(const struct launches *launches, const struct launch *key)
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
static uint32_t launch_before_record(const struct trace_path_source *source, uint64_t correlation)
{
	const struct trace_path_hta *hta = source->hta;
	const struct trace_work *wait;
	struct launch key = {.order = UINT32_MAX};
	uint64_t record, row;
	size_t index;

	if (!correlation || !map_u64_get(&hta->calls, correlation, &record) ||
		event_of(source, (uint32_t)record)->name != hta->record ||
		!map_u64_get(&hta->records, correlation, &row))
		return MODEL_NONE;
	wait = trace_work(source->trace, event_of(source, (uint32_t)row));
	key.pid = source->trace->tracks.items[event_of(source, (uint32_t)row)->track].pid;
	key.stream = wait->wait_stream;
	key.start_ns = start_of(source, (uint32_t)record);
	index = count_until(&hta->by_process, &key);
	if (!index || compare_keys(&hta->by_process.items.items[index - 1], &key) != 0)
		return MODEL_NONE;
	return hta->by_process.items.items[index - 1].call;
}

/* The call that launches on the wait's stream next after cudaStreamWaitEvent(), on its thread. */
static uint32_t launch_after_wait(const struct trace_path_source *source, uint32_t call)
{
	const struct trace_path_hta *hta = source->hta;
	const struct trace_track *thread =
		&source->trace->tracks.items[event_of(source, call)->track];
	uint32_t wait = partner(source, call);
	struct launch key = {thread->pid, thread->tid, 0, start_of(source, call), UINT32_MAX, 0};
	size_t index;

	if (wait == MODEL_NONE || event_of(source, call)->name != hta->stream_wait_call)
		return MODEL_NONE;
	key.stream = stream_of(source, wait);
	index = count_until(&hta->by_thread, &key);
	if (index == hta->by_thread.items.count ||
		compare_keys(&hta->by_thread.items.items[index], &key) != 0)
		return MODEL_NONE;
	return hta->by_thread.items.items[index].call;
}

static int find_records(struct trace_path_source *source)
{
	int r = 0;

	for (uint32_t row = 0; r == 0 && row < source->trace->events.count; row++) {
		const struct trace_event *event = event_of(source, row);
		const struct trace_work *work = trace_work(source->trace, event);

		if (!work || event->category != TRACE_SYNC || !work->wait_correlation ||
			work->wait_stream == TRACE_NO_NUMBER || work->wait_stream < 0)
			continue;
		r = map_u64_set(&source->hta->records, work->wait_correlation, row);
	}
	return r;
}

static uint32_t find_name(const struct trace *trace, const char *name)
{
	uint32_t id;

	return intern_find(&trace->strings, name, strlen(name), &id) ? id : MODEL_NONE;
}

int trace_path_hta_init(struct trace_path_source *source)
{
	struct trace_path_hta *hta = source->hta = calloc(1, sizeof(*hta));
	int r;

	if (!hta)
		return -ENOMEM;
	hta->stream_wait = find_name(source->trace, "Stream Wait Event");
	hta->event_sync = find_name(source->trace, "Event Sync");
	hta->context_sync = find_name(source->trace, "Context Sync");
	hta->record = find_name(source->trace, "cudaEventRecord");
	hta->stream_wait_call = find_name(source->trace, "cudaStreamWaitEvent");
	r = pair_rows(source);
	r = r ?: add_launched(source);
	r = r ?: measure_queues(source);
	r = r ?: list_launches(source);
	return r ?: find_records(source);
}

void trace_path_hta_done(struct trace_path_source *source)
{
	struct trace_path_hta *hta = source->hta;

	if (!hta)
		return;
	map_u64_done(&hta->works);
	map_u64_done(&hta->calls);
	map_u64_done(&hta->records);
	array_done(&hta->by_thread.items);
	array_done(&hta->by_process.items);
	free(hta->queue_lengths);
	free(hta);
}

/* ---- calls that take turns ---- */

int trace_path_add_locks(struct trace_path_window *window)
{
	const struct trace_path_source *source = window->source;
	const struct trace_path_node *nodes = window->graph->nodes.items;
	ARRAY_OF(uint32_t) starts = {0};
	uint32_t last = MODEL_NONE;
	int r = 0;

	for (uint32_t node = 0; r == 0 && node < window->graph->nodes.count; node++) {
		if (!trace_path_name_is(source, nodes[node].event, TRACE_PATH_LOCKING))
			continue;
		if (nodes[node].is_start)
			r = array_append(&starts, node);
		while (r == 0 && !nodes[node].is_start && starts.count) {
			uint32_t start = starts.items[--starts.count];
			bool own = nodes[start].event == nodes[node].event;

			r = trace_path_connect(window, start, node,
				own ? TRACE_PATH_OPERATOR : TRACE_PATH_DEPENDENCY, own,
				own ? nodes[start].event : MODEL_NONE);
		}
		if (r == 0 && !nodes[node].is_start && last != MODEL_NONE && !nodes[last].is_start)
			r = trace_path_connect(
				window, last, node, TRACE_PATH_DEPENDENCY, false, MODEL_NONE);
		last = node;
	}
	array_done(&starts);
	return r;
}

/* ---- work and waits ---- */

struct last_work {
	int64_t stream;
	uint32_t node; /* where its last work ends */
};

struct works {
	struct trace_path_window *window;
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
	uint32_t end = call == MODEL_NONE ? MODEL_NONE : works->window->source->end_nodes[call];

	if (node == MODEL_NONE || end == MODEL_NONE)
		return 0;
	return trace_path_connect(works->window, node, end, TRACE_PATH_SYNC, false, MODEL_NONE);
}

static int add_event_wait(struct works *works, uint32_t row, const struct trace_work *wait)
{
	const struct trace_path_source *source = works->window->source;
	uint32_t launch = launch_before_record(source, wait->wait_correlation), next;
	uint32_t waited_for = launch == MODEL_NONE ? MODEL_NONE : partner(source, launch);
	uint32_t call = partner(source, row);

	if (waited_for == MODEL_NONE)
		return 0;
	if (event_of(source, row)->name != source->hta->stream_wait)
		return add_wait_of_call(works, source->end_nodes[waited_for], call);
	next = call == MODEL_NONE ? MODEL_NONE : launch_after_wait(source, call);
	next = next == MODEL_NONE ? MODEL_NONE : partner(source, next);
	return next == MODEL_NONE ? 0 : map_u64_set(&works->waits, next, waited_for);
}

static int add_wait(struct works *works, uint32_t row)
{
	const struct trace_path_source *source = works->window->source;
	const struct trace_event *event = event_of(source, row);
	const struct trace_work *wait = trace_work(source->trace, event);
	uint32_t call = partner(source, row);
	int r = 0;

	works->window->source->paths->sync_rows++;
	if (event->name == source->hta->stream_wait || event->name == source->hta->event_sync)
		return wait ? add_event_wait(works, row, wait) : 0;
	if (event->name != source->hta->context_sync)
		return add_wait_of_call(works, last_node(works, stream_of(source, row)), call);
	for (size_t i = 0; r == 0 && i < works->last.count; i++)
		r = add_wait_of_call(works, works->last.items[i].node, call);
	return r;
}

static int add_delay(struct works *works, uint32_t row, uint32_t waited_for)
{
	const struct trace_path_source *source = works->window->source;
	const struct trace_path_node *nodes = works->window->graph->nodes.items;
	const int32_t *lengths = source->hta->queue_lengths;
	uint32_t start = source->start_nodes[row], call = partner(source, row);
	uint32_t last = last_node(works, stream_of(source, row));
	int64_t call_ns = call == MODEL_NONE ? INT64_MIN : start_of(source, call);

	if (call != MODEL_NONE && lengths[call] == 1 && lengths[row] == 0 &&
		source->start_nodes[call] != MODEL_NONE &&
		(last == MODEL_NONE || nodes[last].time_ns < call_ns) &&
		(waited_for == MODEL_NONE || nodes[waited_for].time_ns < call_ns))
		return trace_path_connect(works->window, source->start_nodes[call], start,
			TRACE_PATH_LAUNCH_DELAY, true, MODEL_NONE);
	if (last != MODEL_NONE &&
		nodes[start].time_ns - nodes[last].time_ns < KERNEL_DELAY_LIMIT_NS &&
		(waited_for == MODEL_NONE || nodes[waited_for].time_ns < nodes[last].time_ns))
		return trace_path_connect(works->window, last, start, TRACE_PATH_KERNEL_DELAY, true,
			nodes[last].event);
	return 0;
}

static int add_work(struct works *works, uint32_t row)
{
	const struct trace_path_source *source = works->window->source;
	uint32_t start = source->start_nodes[row], end = source->end_nodes[row];
	uint32_t waited_for = MODEL_NONE;
	uint64_t other;
	int r;

	if (start == MODEL_NONE)
		return 0;
	r = trace_path_connect(works->window, start, end, TRACE_PATH_OPERATOR, true, row);
	if (r == 0 && map_u64_get(&works->waits, row, &other)) {
		waited_for = source->end_nodes[other];
		if (waited_for != MODEL_NONE)
			r = trace_path_connect(works->window, waited_for, start, TRACE_PATH_SYNC,
				false, MODEL_NONE);
	}
	r = r ?: add_delay(works, row, waited_for);
	return r ?: set_last_node(works, stream_of(source, row), end);
}

/* Work of the window, and waits that are on no stream. Returns how many. */
static size_t list_rows(const struct trace_path_window *window, uint32_t *rows)
{
	const struct trace_path_source *source = window->source;
	size_t count = 0;

	for (size_t i = 0; i < window->row_count; i++) {
		if (is_of_device(source, window->rows[i].event) &&
			event_of(source, window->rows[i].event)->correlation)
			rows[count++] = window->rows[i].event;
	}
	array_foreach (&window->works, work)
		rows[count++] = *work;
	return count;
}

static int compare_row_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

int trace_path_hta_add_works(struct trace_path_window *window)
{
	const struct trace_path_source *source = window->source;
	size_t most = window->row_count + window->works.count + 1, count = 0;
	_cleanup_free_ uint32_t *rows = malloc(most * sizeof(*rows));
	_cleanup_free_ uint32_t *order = malloc(most * sizeof(*order));
	_cleanup_free_ int64_t *times = malloc(most * sizeof(*times));
	struct works works = {.window = window};
	int r;

	if (!rows || !order || !times)
		return -ENOMEM;
	/* The order in which HTA sorts them is the file's. */
	count = list_rows(window, rows);
	qsort(rows, count, sizeof(*rows), compare_row_numbers);
	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = event_of(source, rows[i]);

		times[i] = event->category == TRACE_SYNC ? trace_view_end_ns(source->view, event)
							 : start_of(source, rows[i]);
	}
	r = trace_view_sort(source->view, times, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t row = rows[order[i]];

		r = event_of(source, row)->category == TRACE_SYNC ? add_wait(&works, row)
								  : add_work(&works, row);
	}
	array_done(&works.last);
	map_u64_done(&works.last_of_stream);
	map_u64_done(&works.waits);
	return r;
}
