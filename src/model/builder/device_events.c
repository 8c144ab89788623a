/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of devices beside their work: GPUs, graphs, overhead, allocations, counts, notes.
 */
#include "model/builder/internal.h"

#include <stdio.h>
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

static int add_event(struct model_builder *builder, const struct capture_device_event *event,
	struct device_joins *joins, struct map_u64 *gpus, struct map_u64 *last_counts)
{
	struct model *model = builder->model;
	uint32_t process;
	int r = builder_process_at(
		builder, event->pid, event->time_ns ? event->time_ns : UINT64_MAX, &process);

	if (r < 0)
		return r;
	switch (event->kind) {
	case CAPTURE_GPU:
		return add_gpu(builder, event, process, gpus);
	case CAPTURE_GRAPH_CALL:
		return add_graph_call(builder, event, process, joins);
	case CAPTURE_GRAPH_NODE:
		return add_graph_node(builder, event, process, joins);
	case CAPTURE_OVERHEAD:
		return array_append(
			&model->overheads, (struct model_overhead){.time_ns = event->time_ns,
						   .process = process,
						   .overhead = event->overhead});
	case CAPTURE_MEMORY:
		return array_append(&model->device_memory,
			(struct model_device_memory){.time_ns = event->time_ns,
				.process = process,
				.memory = event->memory});
	case CAPTURE_DEVICE_COUNTS:
		return add_counts(builder, event, last_counts);
	case CAPTURE_DEVICE_NOTE:
		return array_append(&model->device_notes,
			(struct model_device_note){
				.process = process, .note = event->note.note, .text = event->text});
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
	array_clear(&model->device_notes);
	model->device_counts = (struct capture_device_counts){0};
}

int builder_resolve_device_events(
	struct model_builder *builder, struct device_joins *joins, struct map_u64 *ret_gpus)
{
	struct map_u64 last_counts = {0};
	int r = 0;

	clear_events(builder->model);
	for (size_t i = 0; r == 0 && i < builder->device_events.count; i++)
		r = add_event(
			builder, &builder->device_events.items[i], joins, ret_gpus, &last_counts);
	sum_counts(builder, &last_counts);
	map_u64_done(&last_counts);
	return r;
}
