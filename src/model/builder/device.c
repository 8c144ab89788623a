/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work and the stacks of launches come as records of their own, in any order, and are put
 * together by process and correlation id.
 */
#include <stdlib.h>
#include <string.h>

#include "model/builder/internal.h"

const char *model_unattributed_to_string(enum model_unattributed reason)
{
	static const char *const names[MODEL_UNATTRIBUTED_MAX] = {
		[MODEL_ATTRIBUTED] = "attributed",
		[MODEL_NO_STACK] = "no launch stack",
		[MODEL_STACKS_OFF] = "launch stacks were off",
		[MODEL_LAUNCHED_ON_DEVICE] = "launched on the device",
	};

	return reason < MODEL_UNATTRIBUTED_MAX ? names[reason] : NULL;
}

/* One correlation id of one process. */
struct join_key {
	uint64_t correlation, pid;
};

int device_joins_add(struct device_joins *joins, uint32_t pid, uint64_t correlation,
	struct device_join **ret_join)
{
	struct join_key key = {.correlation = correlation, .pid = pid};
	uint32_t id;
	int r = intern_add(&joins->keys, &key, sizeof(key), &id);

	if (r > 0)
		r = array_append(&joins->items, (struct device_join){0});
	if (r < 0)
		return r;
	*ret_join = &joins->items.items[id];
	return 0;
}

struct device_join *device_joins_find(
	struct device_joins *joins, uint32_t pid, uint64_t correlation)
{
	struct join_key key = {.correlation = correlation, .pid = pid};
	uint32_t id;

	return intern_find(&joins->keys, &key, sizeof(key), &id) ? &joins->items.items[id] : NULL;
}

uint32_t device_join_stack(const struct model_builder *builder, const struct device_join *join)
{
	return join && join->stack ? builder->launch_stacks.items[join->stack - 1].callstack - 1
				   : MODEL_NONE;
}

static bool is_wait(const struct capture_launch *launch)
{
	return launch->kind == WIRE_DEVICE_FINISH || launch->kind == WIRE_DEVICE_WAIT;
}

static int add_wait(struct model_builder *builder, const struct capture_launch *launch)
{
	struct model_launches *counts = &builder->model->launches;
	struct model_device_wait wait = {
		.start_ns = launch->time_ns,
		.end_ns = launch->time_ns + launch->duration_ns,
		.correlation = launch->correlation,
		.stack = MODEL_NONE,
		.kind = (uint8_t)launch->kind,
	};
	uint32_t process;
	int r = builder_process_at(builder, launch->pid, launch->time_ns, &process);

	counts->wait_count++;
	counts->wait_ns += launch->duration_ns;
	r = r ?: builder_thread(builder, process, launch->tid, &wait.thread);
	return r ?: array_append(&builder->model->device_waits, wait);
}

/* Its nodes may be replayed at any time that was chosen. */
static int join_captured(struct model_builder *builder, struct device_joins *joins, size_t index)
{
	const struct capture_launch *launch = &builder->launches.items[index];
	struct device_join *join;
	int r;

	if (launch->untimed != WIRE_DEVICE_CAPTURED)
		return 0;
	r = device_joins_add(joins, launch->pid, launch->correlation, &join);
	if (r < 0)
		return r;
	join->captured = (uint32_t)index + 1;
	join->is_elsewhere = !builder_is_chosen(builder, launch->time_ns);
	return 0;
}

static int join_launches(struct model_builder *builder, struct device_joins *joins)
{
	struct device_join *join;
	int r = 0;

	for (size_t i = 0; r == 0 && i < builder->launches.count; i++) {
		const struct capture_launch *launch = &builder->launches.items[i];

		r = join_captured(builder, joins, i);
		if (r < 0 || !builder_is_chosen(builder, launch->time_ns))
			continue;
		if (is_wait(launch)) {
			r = add_wait(builder, launch);
			continue;
		}
		r = device_joins_add(joins, launch->pid, launch->correlation, &join);
		/* What says why there is no work says more than that there should be. */
		if (r == 0 && (!join->launch || launch->untimed != WIRE_DEVICE_TIMED))
			join->launch = (uint32_t)i + 1;
	}
	return r;
}

/* Those that launch nothing, whenever they were: so is what is theirs known. */
static int join_calls(struct model_builder *builder, struct device_joins *joins)
{
	struct device_join *join;
	int r = 0;

	for (size_t i = 0; r == 0 && i < builder->launches.count; i++) {
		const struct capture_launch *launch = &builder->launches.items[i];

		if (!is_wait(launch) || !launch->correlation)
			continue;
		r = device_joins_add(joins, launch->pid, launch->correlation, &join);
		if (r == 0)
			join->is_call = true;
	}
	for (size_t i = 0; r == 0 && i < builder->device_events.count; i++) {
		const struct capture_device_event *event = &builder->device_events.items[i];

		if (event->kind != CAPTURE_DEVICE_CALL || !event->call.correlation)
			continue;
		r = device_joins_add(joins, event->pid, event->call.correlation, &join);
		if (r == 0) {
			join->is_call = true;
			join->other_call = (uint32_t)i + 1;
		}
	}
	return r;
}

static bool is_stack(const struct model_builder *builder, const struct capture_launch_stack *stack)
{
	return stack->callstack && stack->callstack < builder->stacks.count;
}

static void count_stack(
	struct model_builder *builder, const struct device_join *join, capture_id callstack)
{
	struct model_launches *counts = &builder->model->launches;

	if (join->is_call)
		return;
	counts->stacks++;
	counts->complete_stacks += builder->stacks.items[callstack].stop == WIRE_STOP_COMPLETE;
}

/* The stacks that were taken. Those of other windows may be later launches', too. */
static int join_stacks(struct model_builder *builder, struct device_joins *joins)
{
	struct device_join *join;
	int r = 0;

	for (size_t i = 0; r == 0 && i < builder->launch_stacks.count; i++) {
		const struct capture_launch_stack *stack = &builder->launch_stacks.items[i];

		if (!is_stack(builder, stack))
			continue;
		r = device_joins_add(joins, stack->pid, stack->correlation, &join);
		if (r < 0)
			break;
		join->stack = (uint32_t)i + 1;
		join->is_elsewhere = !builder_is_chosen(builder, stack->time_ns);
		if (!join->is_elsewhere)
			count_stack(builder, join, stack->callstack);
	}
	return r;
}

/* The same frames, each at the same instruction or line. */
static bool is_same_stack(const struct model_builder *builder, const struct device_join *join,
	const struct device_join *other)
{
	const struct raw_stack *a =
		&builder->stacks.items[builder->launch_stacks.items[join->stack - 1].callstack];
	const struct raw_stack *b =
		&builder->stacks.items[builder->launch_stacks.items[other->stack - 1].callstack];

	return a->count == b->count &&
	       (!a->count || memcmp(&builder->stack_frames.items[a->first],
				     &builder->stack_frames.items[b->first],
				     a->count * sizeof(*builder->stack_frames.items)) == 0);
}

/* Of a launch that could have had the other's stack. Stacks that were lost say nothing. */
static void check_stack(struct model_builder *builder, const struct device_join *join,
	const struct device_join *other)
{
	struct model_launches *counts = &builder->model->launches;

	if (!join->stack || !other->stack || join->is_call)
		return;
	counts->checked_stacks++;
	counts->wrong_stacks += !is_same_stack(builder, join, other);
}

/* The stacks of earlier launches, which were all taken. */
static int join_known_stacks(struct model_builder *builder, struct device_joins *joins)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < builder->launch_stacks.count; i++) {
		const struct capture_launch_stack *stack = &builder->launch_stacks.items[i];
		struct device_join other, *join;

		if (!stack->same_as || !builder_is_chosen(builder, stack->time_ns))
			continue;
		r = device_joins_add(joins, stack->pid, stack->same_as, &join);
		if (r < 0)
			break;
		other = *join;
		r = device_joins_add(joins, stack->pid, stack->correlation, &join);
		if (r < 0)
			break;
		if (stack->is_check) {
			check_stack(builder, join, &other);
		} else if (other.stack && !join->stack) {
			join->stack = other.stack;
			builder->model->launches.known_stacks += !join->is_call;
			count_stack(builder, join,
				builder->launch_stacks.items[other.stack - 1].callstack);
		}
	}
	return r;
}

static void add_stacks_of_waits(struct model_builder *builder, struct device_joins *joins)
{
	const struct model *model = builder->model;

	array_foreach (&builder->model->device_waits, wait) {
		uint32_t process = model->threads.items[wait->thread].process;

		if (wait->correlation)
			wait->stack = device_join_stack(builder,
				device_joins_find(joins, model->processes.items[process].pid,
					wait->correlation));
	}
}

static enum model_unattributed unattributed(
	const struct model_builder *builder, const struct capture_device_work *raw, uint32_t stack)
{
	if (stack != MODEL_NONE)
		return MODEL_ATTRIBUTED;
	if (raw->launcher && !raw->correlation)
		return MODEL_LAUNCHED_ON_DEVICE;
	if (builder->model->session.launch_stacks[0] == 'o')
		return MODEL_STACKS_OFF;
	return MODEL_NO_STACK;
}

static struct model_device_work start_work(const struct capture_device_work *raw)
{
	return (struct model_device_work){
		.start_ns = raw->start_ns,
		.end_ns = MAX(raw->end_ns, raw->start_ns),
		.queued_ns = raw->queued_ns,
		.submit_ns = raw->submit_ns,
		.launch_ns = raw->launch_ns,
		.launch_duration_ns = raw->launch_duration_ns,
		.bytes = raw->bytes,
		.global_size = {raw->global_size[0], raw->global_size[1], raw->global_size[2]},
		.name = *raw->name ? raw->name : wire_device_kind_name(raw->kind),
		.device = raw->device,
		.thread = MODEL_NONE,
		.queue = raw->queue,
		.kind = (uint8_t)raw->kind,
		.launch_kind = (uint8_t)raw->kind,
		.replayed = raw->graph || raw->graph_node,
		.is_pageable = raw->from_memory == WIRE_MEMORY_PAGEABLE ||
			       raw->to_memory == WIRE_MEMORY_PAGEABLE,
		.gpu = MODEL_NONE,
		.context = raw->context,
		.stream = raw->stream,
		.registers = raw->registers,
		.static_shared_bytes = raw->static_shared_bytes,
		.dynamic_shared_bytes = raw->dynamic_shared_bytes,
		.block_size = {raw->local_size[0], raw->local_size[1], raw->local_size[2]},
		.graph = raw->graph,
		.graph_node = raw->graph_node,
		.correlation = raw->correlation,
		.launcher = raw->launcher,
		.has_priority = raw->priority != 0,
		.priority = raw->priority ? capture_priority_value(raw->priority) : 0,
	};
}

/* What its launch says that came as a record of its own. */
static void add_launch(const struct model_builder *builder, const struct device_join *join,
	struct model_device_work *work, uint32_t *tid)
{
	const struct capture_launch *launch;

	if (!work->launch_ns && join->launch) {
		launch = &builder->launches.items[join->launch - 1];
		work->launch_kind = (uint8_t)launch->kind;
		work->launch_ns = launch->time_ns;
		work->launch_duration_ns = launch->duration_ns;
		*tid = launch->tid;
	}
	/* When the driver queues is not known: it has when the call returns. */
	if (!work->queued_ns && !work->submit_ns && work->launch_ns)
		work->queued_ns = MIN(work->launch_ns + work->launch_duration_ns, work->start_ns);
}

/* Of a node of a graph: the call that made it, and its stack. */
static int add_origin(struct model_builder *builder, struct device_joins *joins,
	const struct capture_device_work *raw, struct model_device_work *work)
{
	struct device_join *captured =
		raw->capture ? device_joins_find(joins, raw->pid, raw->capture) : NULL;
	uint32_t stack = device_join_stack(builder, captured);

	work->capture_known = stack != MODEL_NONE;
	work->stack = work->capture_known ? stack : work->stack;
	if (!raw->graph_node)
		return 0;
	work->capture = raw->capture ? MODEL_CAPTURE_NO_CALL : MODEL_CAPTURE_UNSEEN;
	if (!captured || !captured->captured)
		return 0;
	work->capture = MODEL_CAPTURE_KNOWN;
	return builder_captured_call(builder, captured, &work->captured_call);
}

static int add_work(struct model_builder *builder, struct device_joins *joins,
	const struct map_u64 *gpus, const struct capture_device_work *raw,
	const struct device_join *join)
{
	struct model_device_work work = start_work(raw);
	uint32_t tid = raw->tid;
	uint64_t gpu;
	int r = builder_process_at(builder, raw->pid, raw->start_ns, &work.process);

	add_launch(builder, join, &work, &tid);
	if (join->stack) /* the kernel's word, in our PID namespace */
		tid = builder->launch_stacks.items[join->stack - 1].tid;
	work.stack = work.launch_stack = device_join_stack(builder, join);
	r = r ?: add_origin(builder, joins, raw, &work);
	work.unattributed = (uint8_t)unattributed(builder, raw, work.stack);
	if (raw->gpu && map_u64_get(gpus, DEVICE_GPU_KEY(raw->pid, raw->gpu), &gpu)) {
		work.gpu = (uint32_t)gpu;
		work.device = builder->model->gpus.items[gpu].label;
	}
	if (tid)
		r = r ?: builder_thread(builder, work.process, tid, &work.thread);
	return r ?: array_append(&builder->model->device_works, work);
}

static int join_work(struct model_builder *builder, struct device_joins *joins,
	const struct map_u64 *gpus, const struct capture_device_work *work)
{
	static const struct device_join no_join;
	struct device_join *join;
	int r;

	if (work->launcher && !work->correlation)
		return add_work(builder, joins, gpus, work, &no_join);
	r = device_joins_add(joins, work->pid, work->correlation, &join);
	if (r < 0)
		return r;
	join->has_work = true;
	return add_work(builder, joins, gpus, work, join);
}

static int compare_works(const void *left, const void *right)
{
	const struct model_device_work *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

/* A stack without work is a launch, too: its work did not end, or the record was lost. */
static void count_launches(struct model_builder *builder, const struct device_joins *joins)
{
	struct model_launches *counts = &builder->model->launches;

	array_foreach (&joins->items, join) {
		enum wire_device_untimed why =
			join->launch ? builder->launches.items[join->launch - 1].untimed
				     : WIRE_DEVICE_TIMED;

		if ((join->is_graph_call || join->is_call || join->is_elsewhere) && !join->launch &&
			!join->has_work)
			continue;
		counts->launches += join->has_work || why != WIRE_DEVICE_CAPTURED;
		counts->without_work[why] += !join->has_work;
	}
}

int builder_resolve_device(struct model_builder *builder)
{
	struct model *model = builder->model;
	struct device_joins joins = {0};
	struct map_u64 gpus = {0};
	int r;

	model->launches = (struct model_launches){0};
	r = builder_charge_device_graphs(builder);
	r = r ?: join_launches(builder, &joins);
	r = r ?: join_calls(builder, &joins);
	r = r ?: join_stacks(builder, &joins);
	r = r ?: join_known_stacks(builder, &joins);
	if (r == 0)
		add_stacks_of_waits(builder, &joins);
	r = r ?: builder_resolve_device_events(builder, &joins, &gpus);
	for (size_t i = 0; r == 0 && i < builder->device_works.count; i++) {
		const struct capture_device_work *work = &builder->device_works.items[i];

		if (builder_is_chosen(builder, work->start_ns))
			r = join_work(builder, &joins, &gpus, work);
	}
	if (r == 0)
		count_launches(builder, &joins);
	if (r == 0 && model->device_works.count)
		qsort(model->device_works.items, model->device_works.count,
			sizeof(*model->device_works.items), compare_works);
	r = r ?: builder_join_device_syncs(model);
	map_u64_done(&gpus);
	intern_done(&joins.keys);
	array_done(&joins.items);
	return r;
}
