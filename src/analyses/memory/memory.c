/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyses/memory/stacks.h"
#include "analyses/trace_order.h"

/* An event, by device and time. */
struct change {
	const struct trace_memory *memory;
	int64_t time_ns;
	uint32_t event, op, stack; /* row; name; in trace_memory_use.stacks */
	bool is_given;             /* the stack, in the file */
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

static int64_t time_of(const void *change)
{
	return ((const struct change *)change)->time_ns;
}

static int64_t device_of(const void *change)
{
	return ((const struct change *)change)->memory->device_id;
}

static int64_t type_of(const void *change)
{
	return ((const struct change *)change)->memory->device_type;
}

/* By device, then by time, then as in the file. */
static int sort_changes(struct changes *changes)
{
	static int64_t (*const keys[])(const void *) = {time_of, device_of, type_of};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
		r = trace_order_items(changes->items.items, changes->items.count,
			sizeof(struct change), keys[i], trace_order_stable);
	return r;
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

static int list_changes(
	const struct trace *trace, struct memory_stacks *stacks, struct changes *changes)
{
	const uint32_t *parents = trace_parents(trace, false);
	int r = 0;

	if (!parents)
		return -ENOMEM;
	for (uint32_t row = 0; r == 0 && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];
		struct change change = {.time_ns = event->start_ns, .event = row};

		if (event->category != TRACE_CPU_INSTANT || event->detail == MODEL_NONE)
			continue;
		change.memory = &trace->memory.items[event->detail];
		if (change.memory->bytes == TRACE_NO_NUMBER)
			continue;
		change.op = op_of(trace, parents, row);
		r = memory_stacks_find(stacks, row, &change.stack, &change.is_given);
		if (r == 0)
			r = array_append(&changes->items, change);
	}
	return r ?: sort_changes(changes);
}

/* A block: addresses are of a process. */
struct block_key {
	uint64_t address;
	int64_t process;
};

/* A block that is held: bytes 0: released. */
struct held {
	uint64_t bytes;
	uint32_t event, op, stack;
	bool is_given;
};

/* What is kept while a device's events are read. */
struct reading {
	const struct trace *trace;
	struct intern blocks; /* keys → place in held */
	ARRAY_OF(struct held) held;
	uint64_t held_bytes;   /* of all of them */
	struct map_u64 ops;    /* name → place in device.ops */
	struct map_u64 stacks; /* → place in device.stacks */
	size_t peak;           /* the change behind which most is allocated */
};

static void reading_done(struct reading *reading)
{
	intern_done(&reading->blocks);
	array_done(&reading->held);
	map_u64_done(&reading->ops);
	map_u64_done(&reading->stacks);
}

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

/* NULL: memory ran out. */
static struct trace_memory_stack *find_stack(
	struct trace_memory_device *device, struct reading *reading, const struct change *change)
{
	struct trace_memory_stack *found;
	uint64_t place;

	if (map_u64_get(&reading->stacks, change->stack, &place))
		return &device->stacks.items[place];
	if (array_reserve(&device->stacks, 1) < 0 ||
		map_u64_set(&reading->stacks, change->stack, device->stacks.count) < 0)
		return NULL;
	found = &device->stacks.items[device->stacks.count++];
	*found = (struct trace_memory_stack){
		.stack = change->stack, .recorded = change->memory->recorded};
	return found;
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
		r = array_append(&reading->held, (struct held){0});
	if (r < 0)
		return r;
	reading->held_bytes += bytes - reading->held.items[id].bytes;
	reading->held.items[id] =
		(struct held){bytes, change->event, change->op, change->stack, change->is_given};
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

	int64_t unused = point.reserved == TRACE_NO_NUMBER
				 ? TRACE_NO_NUMBER
				 : (int64_t)((uint64_t)point.reserved - (uint64_t)point.allocated);

	if (point.allocated > device->peak) {
		device->peak = point.allocated;
		device->peak_ns = point.time_ns;
		device->unused_at_peak = unused;
		reading->peak = device->points.count;
	}
	if (unused > device->most_unused) {
		device->most_unused = unused;
		device->most_unused_ns = point.time_ns;
	}
	device->peak_reserved = MAX(device->peak_reserved, point.reserved);
	return array_append(&device->points, point);
}

static int add_change(
	struct trace_memory_device *device, struct reading *reading, const struct change *change)
{
	int64_t bytes = change->memory->bytes;
	struct trace_memory_op *op = find_op(device, reading, change->op);
	struct trace_memory_stack *stack = bytes < 0 ? NULL : find_stack(device, reading, change);
	int r = op && (stack || bytes < 0) ? hold(reading, change) : -ENOMEM;

	if (r < 0)
		return r;
	op->kept = (int64_t)((uint64_t)op->kept + (uint64_t)bytes);
	if (bytes < 0) {
		device->releases++;
		device->released_bytes += 0 - (uint64_t)bytes;
	} else {
		device->allocations++;
		device->allocated_bytes += (uint64_t)bytes;
		op->allocations++;
		op->bytes += (uint64_t)bytes;
		stack->allocations++;
		stack->bytes += (uint64_t)bytes;
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

static int compare_stacks(const void *left, const void *right)
{
	const struct trace_memory_stack *a = left, *b = right;

	if (a->at_peak != b->at_peak)
		return a->at_peak > b->at_peak ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* Once more, up to the peak: whose blocks are held then. */
static int find_holders(
	struct trace_memory_device *device, struct reading *first, const struct change *changes)
{
	struct reading again = {.trace = first->trace};
	uint64_t place;
	int r = 0;

	for (size_t i = 0; r == 0 && i <= first->peak; i++)
		r = hold(&again, &changes[i]);
	array_foreach (&again.held, held) {
		if (r < 0 || !held->bytes)
			continue;
		if (map_u64_get(&first->ops, held->op, &place))
			device->ops.items[place].at_peak += held->bytes;
		if (map_u64_get(&first->stacks, held->stack, &place))
			device->stacks.items[place].at_peak += held->bytes;
		r = array_append(
			&device->blocks, (struct trace_memory_block){held->bytes, held->event,
						 held->stack, held->is_given});
	}
	if (device->peak > 0 && (uint64_t)device->peak > again.held_bytes)
		device->peak_unseen = (uint64_t)device->peak - again.held_bytes;
	reading_done(&again);
	return r;
}

static void find_unreleased(struct trace_memory_device *device, const struct reading *reading)
{
	uint64_t place;

	array_foreach (&reading->held, held) {
		device->unreleased += held->bytes != 0;
		device->unreleased_bytes += held->bytes;
		if (held->bytes && map_u64_get(&reading->stacks, held->stack, &place))
			device->stacks.items[place].unreleased_bytes += held->bytes;
	}
}

static int read_device(const struct trace *trace, struct trace_memory_device *device,
	const struct change *changes, size_t count)
{
	_cleanup_(reading_done) struct reading reading = {.trace = trace};
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_change(device, &reading, &changes[i]);
	find_unreleased(device, &reading);
	if (r == 0 && count)
		r = find_holders(device, &reading, changes);
	if (device->ops.count)
		qsort(device->ops.items, device->ops.count, sizeof(*device->ops.items),
			compare_ops);
	if (device->stacks.count)
		qsort(device->stacks.items, device->stacks.count, sizeof(*device->stacks.items),
			compare_stacks);
	return r;
}

int trace_memory_init(struct trace_memory_use *use, const struct trace *trace)
{
	struct memory_stacks stacks;
	struct changes changes = {0};
	const struct change *items;
	int r;

	*use = (struct trace_memory_use){0};
	r = memory_stacks_init(&stacks, trace, &use->stacks);
	if (r == 0)
		r = list_changes(trace, &stacks, &changes);
	memory_stacks_done(&stacks);
	items = changes.items.items;
	for (size_t first = 0, next; r == 0 && first < changes.items.count; first = next) {
		struct trace_memory_device device = {
			.type = items[first].memory->device_type,
			.id = items[first].memory->device_id,
			.peak = TRACE_NO_NUMBER,
			.peak_reserved = TRACE_NO_NUMBER,
			.unused_at_peak = TRACE_NO_NUMBER,
			.most_unused = TRACE_NO_NUMBER,
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
		array_done(&device->stacks);
		array_done(&device->blocks);
	}
	array_done(&use->devices);
	intern_done(&use->stacks);
}

bool trace_memory_is_host(int64_t device_type)
{
	return device_type == 0;
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
