/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waited for what on devices: from the trace's rows of waits ("cuda_sync"), and where it has
 * none for a call, from the call's name and the work that ended just before it did.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/device/syncs.h"
#include "analyses/path/path.h"

/* How many pieces of work that a call cannot have waited for are passed over to find one. */
#define MOST_PASSED 64

/* Work by its end. */
struct ended {
	int64_t end_ns;
	uint32_t work;
};

struct trace_path_waits {
	ARRAY_OF(struct ended) ended;
	struct map_u64 of_calls; /* row → work */
	struct map_u64 of_works; /* work → work */
	uint32_t *before;        /* of work: that of its stream before it; MODEL_NONE: none */
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

/* ---- work by its launch, and by its end ---- */

static int add_work(struct trace_path_source *source, uint32_t work)
{
	const struct trace_view_work *item = work_of(source, work);
	int64_t launch_ns =
		item->launch == MODEL_NONE ? item->start_ns : start_of(source, item->launch);
	int r = array_append(
		&source->launched, (struct trace_path_launched){launch_ns, item->launch, work});

	return r ?: array_append(&source->waits->ended, (struct ended){item->end_ns, work});
}

static int compare_launched(const void *left, const void *right)
{
	const struct trace_path_launched *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int compare_ended(const void *left, const void *right)
{
	const struct ended *a = left, *b = right;

	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static int add_works(struct trace_path_source *source)
{
	struct trace_path_waits *waits = source->waits;
	int r = 0;

	for (uint32_t work = 0; r == 0 && work < source->view->works.count; work++)
		r = add_work(source, work);
	if (r < 0 || !waits->ended.count)
		return r;
	qsort(source->launched.items, source->launched.count, sizeof(*source->launched.items),
		compare_launched);
	qsort(waits->ended.items, waits->ended.count, sizeof(struct ended), compare_ended);
	return 0;
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

static int add_given(struct trace_path_source *source)
{
	_cleanup_device_syncs_ struct device_syncs syncs = {0};
	int r = device_syncs_init(&syncs, source->view);

	for (size_t i = 0; r == 0 && i < syncs.items.count; i++) {
		const struct device_sync *sync = &syncs.items.items[i];

		if (sync->kind == DEVICE_SYNC_HOST_FUNCTION)
			continue;
		source->paths->sync_rows++;
		if (sync->call == MODEL_NONE)
			continue;
		if (sync->kind != DEVICE_SYNC_STREAM_WAIT)
			r = set_wait(source, &source->waits->of_calls, sync->call, sync->waited);
		else if (sync->next != MODEL_NONE)
			r = set_wait(source, &source->waits->of_works, sync->next, sync->waited);
	}
	return r;
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

/* How many pieces of work ended up to the time. */
static size_t count_ended(const struct trace_path_waits *waits, int64_t time_ns)
{
	size_t first = 0, last = waits->ended.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (waits->ended.items[middle].end_ns <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* What ended last before the call did, of what had been launched when it began. */
static uint32_t infer_wait(const struct trace_path_source *source, uint32_t call)
{
	const struct trace_path_waits *waits = source->waits;
	int64_t start_ns = start_of(source, call);
	size_t index = count_ended(waits, end_of(source, call));

	assert(!index || waits->ended.items);
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
	r = add_works(source);
	r = r ?: find_before(source);
	r = r ?: add_given(source);
	return r ?: infer_waits(source);
}

void trace_path_waits_done(struct trace_path_source *source)
{
	struct trace_path_waits *waits = source->waits;

	if (!waits)
		return;
	array_done(&waits->ended);
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
