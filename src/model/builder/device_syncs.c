/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits wait for. A wait for an event names the event, which may be recorded again and again:
 * the record that it means has the same event_sync, and where the tracing library has no such ids
 * (CUPTI before CUDA 12.8) it is the last that was made before. Neither says its device, only a
 * context, of which work says it.
 */
#include <assert.h>
#include <stdlib.h>

#include "model/builder/internal.h"

enum sync_key_kind {
	KEY_CONTEXT,
	KEY_EVENT, /* its event_sync */
	KEY_CALL,  /* its correlation */
};

/* Of a process; hashed as bytes. */
struct sync_key {
	uint64_t id;
	uint32_t process;
	uint32_t kind;
};

struct sync_joins {
	struct model *model;
	struct intern keys;                /* struct sync_key → index in the next */
	ARRAY_OF(const char *) devices;    /* of contexts; NULL: the key is another's */
	ARRAY_OF(uint32_t) rows;           /* of the others, their index; MODEL_NONE likewise */
	ARRAY_OF(uint32_t) ordered;        /* records of events by compare_records() */
	ARRAY_OF(const char *) of_process; /* its only device; "" where it has several */
};

static int add_key(struct sync_joins *joins, struct sync_key key, uint32_t *ret_id)
{
	int r = intern_add(&joins->keys, &key, sizeof(key), ret_id);

	if (r > 0) {
		r = array_append(&joins->devices, NULL);
		r = r ?: array_append(&joins->rows, MODEL_NONE);
	}
	return MIN(r, 0);
}

static const char **only_device(const struct sync_joins *joins, uint32_t process)
{
	assert(joins->of_process.items && process < joins->of_process.count);
	return &joins->of_process.items[process];
}

static int add_device(struct sync_joins *joins, const struct model_device_work *work)
{
	const char **only = only_device(joins, work->process);
	uint32_t id;
	int r = add_key(joins, (struct sync_key){work->context, work->process, KEY_CONTEXT}, &id);

	if (r < 0)
		return r;
	joins->devices.items[id] = work->device;
	/* Equal names are equal pointers. */
	*only = !*only || *only == work->device ? work->device : "";
	return 0;
}

static int add_devices(struct sync_joins *joins)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < joins->model->processes.count; i++)
		r = array_append(&joins->of_process, NULL);
	for (size_t i = 0; r == 0 && i < joins->model->device_works.count; i++) {
		const struct model_device_work *work = &joins->model->device_works.items[i];

		if (work->gpu != MODEL_NONE)
			r = add_device(joins, work);
	}
	return r;
}

static const char *device_of(const struct sync_joins *joins, const struct model_device_sync *sync)
{
	const struct sync_key key = {sync->sync.context, sync->process, KEY_CONTEXT};
	const char *only = *only_device(joins, sync->process);
	uint32_t id;

	if (intern_find(&joins->keys, &key, sizeof(key), &id) && joins->devices.items[id])
		return joins->devices.items[id];
	return only ? only : "";
}

static int compare_events(const struct model_device_sync *a, const struct model_device_sync *b)
{
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->sync.context != b->sync.context)
		return a->sync.context < b->sync.context ? -1 : 1;
	if (a->sync.event != b->sync.event)
		return a->sync.event < b->sync.event ? -1 : 1;
	return 0;
}

static int compare_records(const void *left, const void *right, void *syncs)
{
	const struct model_device_sync *items = syncs;
	const struct model_device_sync *a = &items[*(const uint32_t *)left];
	const struct model_device_sync *b = &items[*(const uint32_t *)right];
	int order = compare_events(a, b);

	if (order)
		return order;
	return a->sync.correlation < b->sync.correlation
		       ? -1
		       : a->sync.correlation > b->sync.correlation;
}

static int add_records(struct sync_joins *joins)
{
	struct model_device_sync *syncs = joins->model->device_syncs.items;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < joins->model->device_syncs.count; i++) {
		uint32_t id;

		if (syncs[i].sync.type != WIRE_SYNC_RECORD)
			continue;
		r = array_append(&joins->ordered, i);
		if (r < 0 || !syncs[i].sync.event_sync)
			continue;
		r = add_key(joins,
			(struct sync_key){syncs[i].sync.event_sync, syncs[i].process, KEY_EVENT},
			&id);
		if (r == 0)
			joins->rows.items[id] = i;
	}
	if (r == 0 && joins->ordered.count)
		qsort_r(joins->ordered.items, joins->ordered.count, sizeof(uint32_t),
			compare_records, syncs);
	return r;
}

/* The last of the event that was recorded before; NULL: there is none. */
static const struct model_device_sync *last_record(
	const struct sync_joins *joins, const struct model_device_sync *wait)
{
	const struct model_device_sync *syncs = joins->model->device_syncs.items, *found;
	size_t first = 0, last = joins->ordered.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const struct model_device_sync *record = &syncs[joins->ordered.items[middle]];
		int order = compare_events(record, wait);

		if (order < 0 || (order == 0 && record->sync.correlation < wait->sync.correlation))
			first = middle + 1;
		else
			last = middle;
	}
	found = first ? &syncs[joins->ordered.items[first - 1]] : NULL;
	return found && compare_events(found, wait) == 0 ? found : NULL;
}

static const struct model_device_sync *record_of(
	const struct sync_joins *joins, const struct model_device_sync *wait)
{
	const struct sync_key key = {wait->sync.event_sync, wait->process, KEY_EVENT};
	uint32_t id;

	if (!wait->sync.event_sync)
		return last_record(joins, wait);
	if (!intern_find(&joins->keys, &key, sizeof(key), &id) ||
		joins->rows.items[id] == MODEL_NONE)
		return NULL;
	return &joins->model->device_syncs.items[joins->rows.items[id]];
}

static int add_calls(struct sync_joins *joins)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < joins->model->device_calls.count; i++) {
		const struct model_device_call *call = &joins->model->device_calls.items[i];
		uint32_t id;

		r = add_key(
			joins, (struct sync_key){call->correlation, call->process, KEY_CALL}, &id);
		if (r == 0)
			joins->rows.items[id] = i;
	}
	return r;
}

/* Where the tracing library gives no time, that of the call is near enough. */
static void take_time(const struct sync_joins *joins, struct model_device_sync *sync)
{
	const struct sync_key key = {sync->sync.correlation, sync->process, KEY_CALL};
	uint32_t id;

	if (!sync->start_ns && intern_find(&joins->keys, &key, sizeof(key), &id))
		sync->start_ns = sync->end_ns =
			joins->model->device_calls.items[joins->rows.items[id]].start_ns;
}

static void join(const struct sync_joins *joins, struct model_device_sync *sync)
{
	const struct model_device_sync *record;

	if (sync->sync.type != WIRE_SYNC_EVENT && sync->sync.type != WIRE_SYNC_WAIT)
		return;
	record = record_of(joins, sync);
	if (!record)
		return;
	sync->event_correlation = record->sync.correlation;
	sync->event_device = device_of(joins, record);
	sync->event_stream = record->sync.stream;
}

int builder_join_device_syncs(struct model *model)
{
	struct sync_joins joins = {.model = model};
	int r = model->device_syncs.count ? add_devices(&joins) : 0;

	r = r ?: add_records(&joins);
	r = r ?: add_calls(&joins);
	for (size_t i = 0; r == 0 && i < model->device_syncs.count; i++) {
		struct model_device_sync *sync = &model->device_syncs.items[i];

		sync->device = device_of(&joins, sync);
		take_time(&joins, sync);
		join(&joins, sync);
	}
	intern_done(&joins.keys);
	array_done(&joins.devices);
	array_done(&joins.rows);
	array_done(&joins.ordered);
	array_done(&joins.of_process);
	return r;
}
