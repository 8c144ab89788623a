/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of devices beside their work: GPUs, graphs, overhead, allocations, waits, calls,
 * counts, notes. */
#include "model/builder/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool model_is_device_memory(const struct model_device_memory *memory)
{
	return memory->memory.memory != WIRE_MEMORY_PAGEABLE &&
	       memory->memory.memory != WIRE_MEMORY_PINNED;
}

const char *model_gpu_label(const struct model *model, uint32_t process, uint32_t number)
{
	array_foreach (&model->gpus, gpu) {
		if (gpu->process == process && gpu->facts.number == number)
			return gpu->label;
	}
	return "";
}

/* "GPU-…" or "MIG-…", as other programs write a UUID. */
static void format_uuid(const struct capture_gpu *gpu, char *ret_text, size_t bytes)
{
	ret_text[0] = '\0';
	if (gpu->uuid_high || gpu->uuid_low)
		snprintf(ret_text, bytes, "%s-%08llx-%04llx-%04llx-%04llx-%012llx",
			gpu->is_mig ? "MIG" : "GPU", (unsigned long long)(gpu->uuid_high >> 32),
			(unsigned long long)(gpu->uuid_high >> 16 & 0xffff),
			(unsigned long long)(gpu->uuid_high & 0xffff),
			(unsigned long long)(gpu->uuid_low >> 48),
			(unsigned long long)(gpu->uuid_low & 0xffffffffffff));
}

/* Two GPUs of one name are distinguished by their UUIDs, whose beginning is enough for people. */
static int label_gpu(struct model_builder *builder, const struct capture_device_event *event,
	struct model_gpu *gpu)
{
	_cleanup_strbuf_ struct strbuf label = {0};
	char uuid[48];
	int r;

	format_uuid(&event->gpu, uuid, sizeof(uuid));
	strbuf_add(&label, *event->text ? event->text : "GPU");
	if (*uuid)
		strbuf_addf(&label, " (%.12s)", uuid);
	else
		strbuf_addf(&label, " %u", event->gpu.number - 1);
	if (strbuf_status(&label) < 0)
		return -ENOMEM;
	r = builder_keep(builder, strbuf_cstr(&label), &gpu->label);
	return r ?: builder_keep(builder, uuid, &gpu->uuid);
}

/* Written again when a process opens its device again: the last counts. */
static int add_gpu(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, struct map_u64 *gpus)
{
	uint64_t key = DEVICE_GPU_KEY(event->pid, event->gpu.number), index;
	struct model_gpu gpu = {.process = process, .facts = event->gpu};
	int r = label_gpu(builder, event, &gpu);

	if (r < 0)
		return r;
	if (map_u64_get(gpus, key, &index)) {
		builder->model->gpus.items[index] = gpu;
		return 0;
	}
	r = map_u64_set(gpus, key, builder->model->gpus.count);
	return r ?: array_append(&builder->model->gpus, gpu);
}

static int add_graph_call(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, struct device_joins *joins)
{
	struct model_graph_call call = {.time_ns = event->time_ns,
		.process = process,
		.stack = MODEL_NONE,
		.call = event->graph};
	struct device_join *join = NULL;

	if (event->graph.correlation)
		join = device_joins_find(joins, event->pid, event->graph.correlation);
	if (join) {
		join->is_graph_call = true;
		call.stack = device_join_stack(builder, join);
	}
	return array_append(&builder->model->graph_calls, call);
}

static int add_graph_node(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, struct device_joins *joins)
{
	const struct model_graph_node node = {
		.process = process,
		.stack = device_join_stack(
			builder, device_joins_find(joins, event->pid, event->node.correlation)),
		.name = event->text,
		.node = event->node,
	};

	return array_append(&builder->model->graph_nodes, node);
}

/* The counts of each process are its last. */
static int add_counts(struct model_builder *builder, const struct capture_device_event *event,
	struct map_u64 *last)
{
	return map_u64_set(last, event->pid, (uint64_t)(event - builder->device_events.items));
}

static void sum_counts(struct model_builder *builder, const struct map_u64 *last)
{
	struct capture_device_counts *sum = &builder->model->device_counts;
	uint64_t pid, index;
	size_t position = 0;

	while (map_u64_next(last, &position, &pid, &index)) {
		const struct capture_device_counts *one =
			&builder->device_events.items[index].counts;

		sum->launches += one->launches;
		sum->captured += one->captured;
		sum->activities += one->activities;
		sum->untimed += one->untimed;
		sum->dropped += one->dropped;
		sum->unknown_nodes += one->unknown_nodes;
		sum->lost_graph_events += one->lost_graph_events;
		sum->refused_buffers += one->refused_buffers;
		sum->foreign_buffers += one->foreign_buffers;
		sum->repeated += one->repeated;
		sum->waited_out += one->waited_out;
	}
}

static int add_sync(
	struct model_builder *builder, const struct capture_device_event *event, uint32_t process)
{
	const struct model_device_sync sync = {
		.start_ns = event->time_ns,
		.end_ns = event->time_ns + event->sync.duration_ns,
		.process = process,
		.event_stream = WIRE_SYNC_NO_STREAM,
		.device = "",
		.event_device = "",
		.sync = event->sync,
	};

	if (event->time_ns && !builder_is_chosen(builder, event->time_ns))
		return 0;
	return array_append(&builder->model->device_syncs, sync);
}

/* The device's clock may place it a bit beside its call. */
static void place_in_call(
	struct model_device_memory *memory, uint64_t start_ns, uint64_t duration_ns)
{
	memory->time_ns = MIN(MAX(memory->time_ns, start_ns), start_ns + duration_ns);
}

static int add_memory(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, struct device_joins *joins)
{
	const struct device_join *join =
		event->memory.correlation
			? device_joins_find(joins, event->pid, event->memory.correlation)
			: NULL;
	struct model_device_memory memory = {
		.time_ns = event->time_ns,
		.process = process,
		.thread = MODEL_NONE,
		.stack = device_join_stack(builder, join),
		.memory = event->memory,
	};
	int r = 0;

	if (join && join->other_call) {
		const struct capture_device_event *call =
			&builder->device_events.items[join->other_call - 1];

		place_in_call(&memory, call->time_ns, call->call.duration_ns);
		r = builder_thread(builder, process, call->call.tid, &memory.thread);
	} else if (join && join->launch) {
		const struct capture_launch *launch = &builder->launches.items[join->launch - 1];

		place_in_call(&memory, launch->time_ns, launch->duration_ns);
		r = builder_thread(builder, process, launch->tid, &memory.thread);
	}
	return r ?: array_append(&builder->model->device_memory, memory);
}

static int add_call(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, struct device_joins *joins)
{
	struct model_device_call call = {
		.start_ns = event->time_ns,
		.end_ns = event->time_ns + event->call.duration_ns,
		.process = process,
		.stack = MODEL_NONE,
		.correlation = event->call.correlation,
		.name = event->text && *event->text ? event->text : "[call]",
		.failed = event->call.failed,
	};
	int r;

	if (!builder_is_chosen(builder, event->time_ns))
		return 0;
	if (call.correlation)
		call.stack = device_join_stack(
			builder, device_joins_find(joins, event->pid, call.correlation));
	r = builder_thread(builder, process, event->call.tid, &call.thread);
	return r ?: array_append(&builder->model->device_calls, call);
}

/* GPUs get their names when all are known. */
static int add_unified(
	struct model_builder *builder, const struct capture_device_event *event, uint32_t process)
{
	const struct model_unified_memory unified = {
		.start_ns = event->time_ns,
		.end_ns = event->time_ns + event->unified.duration_ns,
		.process = process,
		.from = "",
		.to = "",
		.unified = event->unified,
	};

	if (!builder_is_chosen(builder, event->time_ns) || unified.end_ns < unified.start_ns)
		return 0;
	return array_append(&builder->model->unified_memory, unified);
}

static int compare_unified(const void *left, const void *right)
{
	const struct model_unified_memory *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return a->unified.address < b->unified.address ? -1
						       : a->unified.address > b->unified.address;
}

static void sort_unified(struct model *model)
{
	if (model->unified_memory.count)
		qsort(model->unified_memory.items, model->unified_memory.count,
			sizeof(*model->unified_memory.items), compare_unified);
	array_foreach (&model->unified_memory, item) {
		if (item->unified.from)
			item->from = model_gpu_label(model, item->process, item->unified.from);
		if (item->unified.to)
			item->to = model_gpu_label(model, item->process, item->unified.to);
	}
}

/* Of one builder_resolve_device_events(). */
struct resolving {
	struct device_joins *joins;
	struct map_u64 *gpus;
	struct map_u64 last_counts; /* pid → index of its event */
	struct map_u64 pc_texts;
};

static int add_event(struct model_builder *builder, const struct capture_device_event *event,
	struct resolving *resolving)
{
	struct model *model = builder->model;
	uint32_t process;
	int r = builder_process_at(
		builder, event->pid, event->time_ns ? event->time_ns : UINT64_MAX, &process);

	if (r < 0)
		return r;
	switch (event->kind) {
	case CAPTURE_GPU:
		return add_gpu(builder, event, process, resolving->gpus);
	case CAPTURE_GRAPH_CALL:
		return add_graph_call(builder, event, process, resolving->joins);
	case CAPTURE_GRAPH_NODE:
		return add_graph_node(builder, event, process, resolving->joins);
	case CAPTURE_OVERHEAD:
		return array_append(
			&model->overheads, (struct model_overhead){.time_ns = event->time_ns,
						   .process = process,
						   .overhead = event->overhead});
	case CAPTURE_MEMORY:
		return add_memory(builder, event, process, resolving->joins);
	case CAPTURE_DEVICE_SYNC:
		return add_sync(builder, event, process);
	case CAPTURE_DEVICE_CALL:
		return add_call(builder, event, process, resolving->joins);
	case CAPTURE_UNIFIED_MEMORY:
		return add_unified(builder, event, process);
	case CAPTURE_DEVICE_COUNTS:
		return add_counts(builder, event, &resolving->last_counts);
	case CAPTURE_DEVICE_NOTE:
		return array_append(&model->device_notes,
			(struct model_device_note){
				.process = process, .note = event->note.note, .text = event->text});
	case CAPTURE_PC_TEXT:
		return builder_add_pc_text(event, process, &resolving->pc_texts);
	case CAPTURE_PC:
		return builder_add_pc(builder, event, process, &resolving->pc_texts);
	case CAPTURE_PC_COUNTS:
		return builder_add_pc_counts(builder, event);
	default: /* pairs of clocks were used when the times were written */
		return 0;
	}
}

static void clear_events(struct model *model)
{
	array_clear(&model->gpus);
	array_clear(&model->graph_calls);
	array_clear(&model->graph_nodes);
	array_clear(&model->overheads);
	array_clear(&model->device_memory);
	array_clear(&model->device_syncs);
	array_clear(&model->device_calls);
	array_clear(&model->unified_memory);
	array_clear(&model->device_notes);
	array_clear(&model->pcs);
	model->pc_counts = (struct capture_pc_counts){0};
	model->device_counts = (struct capture_device_counts){0};
}

int builder_resolve_device_events(
	struct model_builder *builder, struct device_joins *joins, struct map_u64 *ret_gpus)
{
	struct resolving resolving = {.joins = joins, .gpus = ret_gpus};
	int r = 0;

	clear_events(builder->model);
	for (size_t i = 0; r == 0 && i < builder->device_events.count; i++)
		r = add_event(builder, &builder->device_events.items[i], &resolving);
	sum_counts(builder, &resolving.last_counts);
	sort_unified(builder->model);
	map_u64_done(&resolving.last_counts);
	map_u64_done(&resolving.pc_texts);
	return r;
}
