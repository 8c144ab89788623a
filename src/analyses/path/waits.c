/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waited for what on devices: from the trace's rows of waits ("cuda_sync"), and where it has
 * none for a call, from the call's name and the work that ended just before it did.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/path/path.h"

/* How many pieces of work that a call cannot have waited for are passed over to find one. */
#define MOST_PASSED 64

/* Work by the queue that it was put on, then by its launch. */
struct queued {
	uint32_t queue; /* a stream, after those a device, after those all devices */
	uint32_t work;
	uint32_t latest; /* of those up to this one, the work that ends last */
	int64_t launch_ns;
};

struct trace_path_waits {
	ARRAY_OF(struct queued) queued;
	ARRAY_OF(struct queued) ended; /* by the work's end */
	struct intern queues;          /* struct queue_key → index in queue_numbers */
	ARRAY_OF(uint32_t) queue_numbers;
	struct map_u64 of_calls; /* row → work */
	struct map_u64 of_works; /* work → work */
	uint32_t *before;        /* of work: that of its stream before it; MODEL_NONE: none */
};

struct queue_key {
	int64_t device, stream; /* TRACE_NO_NUMBER: the device as a whole */
};

static const struct trace_view_work *work_of(const struct trace_path_source *source, uint32_t work)
{
	return &source->view->works.items[work];
}

static int64_t start_of(const struct trace_path_source *source, uint32_t row)
{
	return trace_view_start_ns(source->view, &source->trace->events.items[row]);
}

static int64_t end_of(const struct trace_path_source *source, uint32_t row)
{
	return trace_view_end_ns(source->view, &source->trace->events.items[row]);
}

/* ---- queues ---- */

static int name_queue(struct trace_path_waits *waits, struct queue_key key, size_t queue)
{
	uint32_t id;
	int r = intern_add(&waits->queues, &key, sizeof(key), &id);

	/* The first of equal ones is meant. */
	return r > 0 ? array_append(&waits->queue_numbers, (uint32_t)queue) : r;
}

static int name_queues(struct trace_path_source *source)
{
	const struct trace_view *view = source->view;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->streams.count; i++) {
		const struct trace_view_stream *stream = &view->streams.items[i];
		int64_t device = view->devices.items[stream->device].number;

		if (stream->number != TRACE_NO_NUMBER)
			r = name_queue(
				source->waits, (struct queue_key){device, stream->number}, i);
	}
	for (size_t i = 0; r == 0 && i < view->devices.count; i++)
		r = name_queue(source->waits,
			(struct queue_key){view->devices.items[i].number, TRACE_NO_NUMBER},
			view->streams.count + i);
	return r;
}

/* MODEL_NONE: no work was put there. */
static uint32_t find_queue(const struct trace_path_source *source, int64_t device, int64_t stream)
{
	const struct trace_path_waits *waits = source->waits;
	struct queue_key key = {device, stream};
	uint32_t id;

	if (!intern_find(&waits->queues, &key, sizeof(key), &id))
		return MODEL_NONE;
	assert(id < waits->queue_numbers.count);
	return waits->queue_numbers.items[id];
}

static uint32_t all_devices(const struct trace_path_source *source)
{
	return (uint32_t)(source->view->streams.count + source->view->devices.count);
}

static int compare_queued(const void *left, const void *right)
{
	const struct queued *a = left, *b = right;

	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	if (a->launch_ns != b->launch_ns)
		return a->launch_ns < b->launch_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int add_queued(struct trace_path_source *source, uint32_t work)
{
	const struct trace_view_work *item = work_of(source, work);
	int64_t launch_ns =
		item->launch == MODEL_NONE ? item->start_ns : start_of(source, item->launch);
	uint32_t device = source->view->streams.items[item->stream].device;
	uint32_t queues[] = {
		item->stream, (uint32_t)source->view->streams.count + device, all_devices(source)};
	int r = array_append(
		&source->launched, (struct trace_path_launched){launch_ns, item->launch, work});

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(queues); i++)
		r = array_append(
			&source->waits->queued, (struct queued){queues[i], work, work, launch_ns});
	if (r == 0)
		r = array_append(
			&source->waits->ended, (struct queued){0, work, work, item->end_ns});
	return r;
}

static int compare_launched(const void *left, const void *right)
{
	const struct trace_path_launched *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int add_all_queued(struct trace_path_source *source)
{
	struct trace_path_waits *waits = source->waits;
	int r = 0;

	for (uint32_t work = 0; r == 0 && work < source->view->works.count; work++)
		r = add_queued(source, work);
	if (r < 0 || !waits->queued.count)
		return r;
	qsort(source->launched.items, source->launched.count, sizeof(*source->launched.items),
		compare_launched);
	/* Those of `ended` hold the end in place of the launch. */
	qsort(waits->ended.items, waits->ended.count, sizeof(struct queued), compare_queued);
	qsort(waits->queued.items, waits->queued.count, sizeof(struct queued), compare_queued);
	for (size_t i = 1; i < waits->queued.count; i++) {
		struct queued *queued = &waits->queued.items[i];
		const struct queued *before = queued - 1;

		if (before->queue == queued->queue && work_of(source, before->latest)->end_ns >
							      work_of(source, queued->work)->end_ns)
			queued->latest = before->latest;
	}
	return 0;
}

/* How many of them are of an earlier queue, or of this one and launched before the time. */
static size_t count_before(
	const struct queued *queued, size_t count, uint32_t queue, int64_t time_ns)
{
	size_t first = 0, last = count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const struct queued *item = &queued[middle];

		if (item->queue < queue || (item->queue == queue && item->launch_ns < time_ns))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* Of the work put on the queue before the time, what ended last. */
static uint32_t latest_before(
	const struct trace_path_source *source, uint32_t queue, int64_t time_ns)
{
	const struct trace_path_waits *waits = source->waits;
	size_t count;

	if (queue == MODEL_NONE)
		return MODEL_NONE;
	count = count_before(waits->queued.items, waits->queued.count, queue, time_ns);
	if (!count || waits->queued.items[count - 1].queue != queue)
		return MODEL_NONE;
	return waits->queued.items[count - 1].latest;
}

static uint32_t next_after(const struct trace_path_source *source, uint32_t queue, int64_t time_ns)
{
	const struct trace_path_waits *waits = source->waits;
	size_t index;

	if (queue == MODEL_NONE)
		return MODEL_NONE;
	index = count_before(waits->queued.items, waits->queued.count, queue, time_ns);
	if (index == waits->queued.count || waits->queued.items[index].queue != queue)
		return MODEL_NONE;
	return waits->queued.items[index].work;
}

/* ---- waits that the trace tells of ---- */

/* Keeps the work that ends last. */
static int set_wait(
	const struct trace_path_source *source, struct map_u64 *map, uint64_t key, uint32_t work)
{
	uint64_t known;

	if (work == MODEL_NONE)
		return 0;
	if (map_u64_get(map, key, &known) &&
		work_of(source, (uint32_t)known)->end_ns >= work_of(source, work)->end_ns)
		return 0;
	return map_u64_set(map, key, work);
}

/* What had to end for the event that a row waits for. */
static uint32_t work_before_event(
	const struct trace_path_source *source, const struct trace_work *wait)
{
	uint64_t record;

	if (!wait->wait_correlation || wait->wait_stream == TRACE_NO_NUMBER ||
		!id_map_get(&source->trace->launches, wait->wait_correlation, &record))
		return MODEL_NONE;
	return latest_before(source, find_queue(source, wait->device, wait->wait_stream),
		start_of(source, (uint32_t)record));
}

static int add_given(struct trace_path_source *source, const struct trace_event *event)
{
	struct trace_path_waits *waits = source->waits;
	const struct trace_work *wait = trace_work(source->trace, event);
	const char *name = trace_text(source->trace, event->name);
	uint32_t call = trace_launch(source->trace, event), work, queue;

	source->paths->sync_rows++;
	if (!wait || call == MODEL_NONE)
		return 0;
	if (strcmp(name, "Stream Wait Event") == 0) {
		queue = find_queue(source, wait->device, wait->stream);
		work = next_after(source, queue, start_of(source, call));
		return work == MODEL_NONE ? 0
					  : set_wait(source, &waits->of_works, work,
						    work_before_event(source, wait));
	}
	if (strcmp(name, "Event Sync") == 0)
		work = work_before_event(source, wait);
	else
		work = latest_before(source,
			find_queue(source, wait->device,
				strcmp(name, "Context Sync") == 0 ? TRACE_NO_NUMBER : wait->stream),
			start_of(source, call));
	return set_wait(source, &waits->of_calls, call, work);
}

/* ---- waits that are worked out ---- */

static bool could_wait_for(
	const struct trace_path_source *source, uint32_t call, const struct trace_view_work *work)
{
	return work->end_ns > start_of(source, call) && work->end_ns <= end_of(source, call);
}

/* A copy that ended within its call: the call waited for it. */
static int infer_copies(struct trace_path_source *source)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < source->view->works.count; i++) {
		const struct trace_view_work *work = work_of(source, i);

		if (work->launch == MODEL_NONE ||
			!trace_path_name_is(source, work->launch, TRACE_PATH_BLOCKING) ||
			map_u64_get(&source->waits->of_calls, work->launch, NULL) ||
			!could_wait_for(source, work->launch, work))
			continue;
		source->paths->inferred_waits++;
		r = map_u64_set(&source->waits->of_calls, work->launch, i);
	}
	return r;
}

/* What ended last before the call did, of what had been launched when it began. */
static uint32_t infer_wait(const struct trace_path_source *source, uint32_t call)
{
	const struct trace_path_waits *waits = source->waits;
	int64_t start_ns = start_of(source, call);
	size_t index =
		count_before(waits->ended.items, waits->ended.count, 0, end_of(source, call) + 1);

	for (unsigned passed = 0; index-- > 0 && passed < MOST_PASSED; passed++) {
		uint32_t work = waits->ended.items[index].work;
		const struct trace_view_work *item = work_of(source, work);

		if (item->end_ns <= start_ns)
			break;
		if (item->launch != MODEL_NONE && start_of(source, item->launch) < start_ns)
			return work;
	}
	return MODEL_NONE;
}

static int infer_waits(struct trace_path_source *source)
{
	int r = infer_copies(source);

	array_foreach (&source->rows, row) {
		const struct trace_event *event = &source->trace->events.items[row->event];
		uint32_t work;

		if (r < 0 || !(source->names[event->name] & TRACE_PATH_BLOCKING) ||
			event->category == TRACE_CPU_OP ||
			!strcasestr(trace_text(source->trace, event->name), "synchronize") ||
			map_u64_get(&source->waits->of_calls, row->event, NULL))
			continue;
		work = infer_wait(source, row->event);
		if (work == MODEL_NONE)
			continue;
		source->paths->inferred_waits++;
		r = map_u64_set(&source->waits->of_calls, row->event, work);
	}
	return r;
}

/* ---- */

static int find_before(struct trace_path_source *source)
{
	size_t count = source->view->works.count;
	_cleanup_free_ uint32_t *last = NULL;

	source->waits->before = malloc((count + 1) * sizeof(*source->waits->before));
	last = malloc((source->view->streams.count + 1) * sizeof(*last));
	if (!source->waits->before || !last)
		return -ENOMEM;
	memset(last, 0xff, (source->view->streams.count + 1) * sizeof(*last));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t stream = work_of(source, i)->stream;

		source->waits->before[i] = last[stream];
		last[stream] = i;
	}
	return 0;
}

int trace_path_waits_init(struct trace_path_source *source)
{
	int r;

	source->waits = calloc(1, sizeof(*source->waits));
	if (!source->waits)
		return -ENOMEM;
	r = name_queues(source);
	r = r ?: add_all_queued(source);
	r = r ?: find_before(source);
	array_foreach (&source->trace->events, event) {
		if (r == 0 && event->category == TRACE_SYNC && trace_view_has(source->view, event))
			r = add_given(source, event);
	}
	return r ?: infer_waits(source);
}

void trace_path_waits_done(struct trace_path_source *source)
{
	struct trace_path_waits *waits = source->waits;

	if (!waits)
		return;
	array_done(&waits->queued);
	array_done(&waits->ended);
	array_done(&waits->queue_numbers);
	intern_done(&waits->queues);
	map_u64_done(&waits->of_calls);
	map_u64_done(&waits->of_works);
	free(waits->before);
	free(waits);
}

static uint32_t find_work(const struct map_u64 *map, uint32_t key)
{
	uint64_t work;

	return map_u64_get(map, key, &work) ? (uint32_t)work : MODEL_NONE;
}

uint32_t trace_path_waited_by_call(const struct trace_path_source *source, uint32_t call)
{
	return find_work(&source->waits->of_calls, call);
}

uint32_t trace_path_waited_by_work(const struct trace_path_source *source, uint32_t work)
{
	return find_work(&source->waits->of_works, work);
}

uint32_t trace_path_before(const struct trace_path_source *source, uint32_t work)
{
	return source->waits->before[work];
}
