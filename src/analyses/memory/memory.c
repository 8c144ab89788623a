/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* An event, by device and time. */
struct change {
	const struct trace_memory *memory;
	int64_t time_ns;
	uint32_t event, op; /* row; name */
};

struct changes {
	ARRAY_OF(struct change) items;
};

static int compare_devices(const struct trace_memory *a, const struct trace_memory *b)
{
	if (a->device_type != b->device_type)
		return a->device_type < b->device_type ? -1 : 1;
	return a->device_id < b->device_id ? -1 : a->device_id > b->device_id;
}

static int compare_changes(const void *left, const void *right)
{
	const struct change *a = left, *b = right;
	int order = compare_devices(a->memory, b->memory);

	if (order)
		return order;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->event < b->event ? -1 : 1;
}

/* So many calls may lie in one another. */
#define MOST_CALLS 4

/* The operator that the event lies in, or whose call it lies in. */
static uint32_t op_of(const struct trace *trace, const uint32_t *parents, uint32_t row)
{
	for (int i = 0; i < MOST_CALLS && parents[row] != MODEL_NONE; i++) {
		row = parents[row];
		if (trace->events.items[row].category == TRACE_CPU_OP)
			return trace->events.items[row].name;
	}
	return 0;
}

static int list_changes(const struct trace *trace, struct changes *changes)
{
	_cleanup_free_ uint32_t *parents = trace_parents(trace, false);
	int r = 0;

	if (!parents)
		return -ENOMEM;
	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		const struct trace_memory *memory;

		if (event->category != TRACE_CPU_INSTANT || event->detail == MODEL_NONE)
			continue;
		memory = &trace->memory.items[event->detail];
		if (memory->bytes != TRACE_NO_NUMBER)
			r = array_append(&changes->items, (struct change){memory, event->start_ns,
								  row, op_of(trace, parents, row)});
	}
	if (changes->items.count)
		qsort(changes->items.items, changes->items.count, sizeof(struct change),
			compare_changes);
	return r;
}

/* A block: addresses are of a process. */
struct block_key {
	uint64_t address;
	int64_t process;
};

/* What is kept while a device's events are read. */
struct reading {
	const struct trace *trace;
	struct intern blocks;    /* keys → place in held */
	ARRAY_OF(uint64_t) held; /* bytes; 0: released */
	uint64_t held_bytes;     /* of all of them */
	struct map_u64 ops;      /* name → place in device.ops */
};

/* NULL: memory ran out. */
static struct trace_memory_op *find_op(
	struct trace_memory_device *device, struct reading *reading, uint32_t name)
{
	struct trace_memory_op *op;
	uint64_t place;

	if (map_u64_get(&reading->ops, name, &place))
		return &device->ops.items[place];
	if (array_reserve(&device->ops, 1) < 0 ||
		map_u64_set(&reading->ops, name, device->ops.count) < 0)
		return NULL;
	op = &device->ops.items[device->ops.count++];
	*op = (struct trace_memory_op){.name = name};
	return op;
}

/* What is released without having been seen was allocated before. */
static int hold(struct reading *reading, const struct change *change)
{
	const struct trace_event *event = &reading->trace->events.items[change->event];
	const struct block_key key = {
		.address = change->memory->address,
		.process = reading->trace->tracks.items[event->track].pid,
	};
	uint64_t bytes = (uint64_t)MAX(change->memory->bytes, (int64_t)0);
	uint32_t id;
	int r = intern_add(&reading->blocks, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&reading->held, (uint64_t)0);
	if (r < 0)
		return r;
	reading->held_bytes += bytes - reading->held.items[id];
	reading->held.items[id] = bytes;
	return 0;
}

/* Where the allocator does not say how much is in use, it is what was seen of it. */
static int add_point(
	struct trace_memory_device *device, struct reading *reading, const struct change *change)
{
	const struct trace_memory *memory = change->memory;
	const struct trace_memory_point point = {
		.time_ns = change->time_ns,
		.allocated = memory->total_allocated == TRACE_NO_NUMBER
				     ? (int64_t)reading->held_bytes
				     : memory->total_allocated,
		.reserved = memory->total_reserved,
	};

	if (point.allocated > device->peak) {
		device->peak = point.allocated;
		device->peak_ns = point.time_ns;
	}
	device->peak_reserved = MAX(device->peak_reserved, point.reserved);
	return array_append(&device->points, point);
}

static int add_change(
	struct trace_memory_device *device, struct reading *reading, const struct change *change)
{
	int64_t bytes = change->memory->bytes;
	struct trace_memory_op *op = find_op(device, reading, change->op);
	int r = op ? hold(reading, change) : -ENOMEM;

	if (r < 0)
		return r;
	op->kept += bytes;
	if (bytes < 0) {
		device->releases++;
		device->released_bytes += 0 - (uint64_t)bytes;
	} else {
		device->allocations++;
		device->allocated_bytes += (uint64_t)bytes;
		op->allocations++;
		op->bytes += (uint64_t)bytes;
	}
	return add_point(device, reading, change);
}

static int compare_ops(const void *left, const void *right)
{
	const struct trace_memory_op *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int read_device(const struct trace *trace, struct trace_memory_device *device,
	const struct change *changes, size_t count)
{
	struct reading reading = {.trace = trace};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_change(device, &reading, &changes[i]);
	array_foreach (&reading.held, bytes) {
		device->unreleased += *bytes != 0;
		device->unreleased_bytes += *bytes;
	}
	if (device->ops.count)
		qsort(device->ops.items, device->ops.count, sizeof(*device->ops.items),
			compare_ops);
	intern_done(&reading.blocks);
	array_done(&reading.held);
	map_u64_done(&reading.ops);
	return r;
}

int trace_memory_init(struct trace_memory_use *use, const struct trace *trace)
{
	struct changes changes = {0};
	const struct change *items;
	int r;

	*use = (struct trace_memory_use){0};
	r = list_changes(trace, &changes);
	items = changes.items.items;
	for (size_t first = 0, next; r == 0 && first < changes.items.count; first = next) {
		struct trace_memory_device device = {
			.type = items[first].memory->device_type,
			.id = items[first].memory->device_id,
			.peak = TRACE_NO_NUMBER,
			.peak_reserved = TRACE_NO_NUMBER,
		};

		for (next = first + 1;
			next < changes.items.count &&
			compare_devices(items[next].memory, items[first].memory) == 0;)
			next++;
		r = array_append(&use->devices, device);
		if (r == 0)
			r = read_device(trace, &use->devices.items[use->devices.count - 1],
				items + first, next - first);
	}
	array_done(&changes.items);
	if (r < 0)
		trace_memory_done(use);
	return r;
}

void trace_memory_done(struct trace_memory_use *use)
{
	array_foreach (&use->devices, device) {
		array_done(&device->points);
		array_done(&device->ops);
	}
	array_done(&use->devices);
}

void trace_memory_device_name(const struct trace_memory_device *device, char *name, size_t size)
{
	static const char *const kinds[] = {"CPU", "GPU"};
	bool known = device->type == 0 || device->type == TRACE_DEVICE_CUDA;

	if (device->type == TRACE_NO_NUMBER)
		snprintf(name, size, "unknown");
	else if (device->type == 0 || device->id == TRACE_NO_NUMBER || device->id < 0)
		snprintf(name, size, "%s", known ? kinds[device->type] : "device");
	else if (known)
		snprintf(name, size, "GPU %" PRId64, device->id);
	else
		snprintf(name, size, "device %" PRId64 ":%" PRId64, device->type, device->id);
}
