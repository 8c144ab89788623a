/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/cuda_json.h"

#include "analyses/device/graphs.h"
#include "analyses/selection.h"
#include "report/tables_json.h"

static void write_gpu(
	struct json_writer *json, const struct model *model, const struct model_gpu *gpu)
{
	const struct capture_gpu *facts = &gpu->facts;

	json_begin_object(json);
	json_member_text(json, "name", gpu->label);
	json_member_text(json, "uuid", gpu->uuid);
	json_member_u64(json, "pid", model->processes.items[gpu->process].pid);
	json_member_u64(json, "ordinal", facts->number - 1);
	json_member_u64(json, "memory_bytes", facts->memory_bytes);
	json_member_u64(json, "capability_major", facts->capability_major);
	json_member_u64(json, "capability_minor", facts->capability_minor);
	json_member_u64(json, "multiprocessors", facts->multiprocessors);
	json_member_u64(json, "multiprocessor_warps", facts->multiprocessor_warps);
	json_member_u64(json, "multiprocessor_blocks", facts->multiprocessor_blocks);
	json_member_u64(json, "multiprocessor_registers", facts->multiprocessor_registers);
	json_member_u64(json, "multiprocessor_shared_bytes", facts->multiprocessor_shared_bytes);
	json_member_u64(json, "core_clock_khz", facts->core_clock_khz);
	json_end_object(json);
}

static void write_place(
	struct json_writer *json, const char *key, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	json_key(json, key);
	if (!frame) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_text(json, "function", model_function_name(model, frame->function));
	json_member_text(json, "module", model_function_module(model, frame->function));
	json_member_text(json, "source_file", frame->source_file);
	json_member_known(json, "line", frame->line, frame->line);
	json_end_object(json);
}

static void write_node(
	struct json_writer *json, const struct model *model, const struct device_graph_node *node)
{
	json_begin_object(json);
	json_member_u64(json, "node", node->id);
	json_member_text(json, "name", node->name);
	json_member_text(json, "kind", wire_device_kind_name(node->kind));
	json_member_u64(json, "count", node->count);
	json_member_known(json, "total_ns", node->count, node->total_ns);
	json_member_known(json, "minimum_ns", node->count, node->minimum_ns);
	json_member_known(json, "maximum_ns", node->count, node->maximum_ns);
	write_place(json, "captured_by", model, node->frame);
	json_end_object(json);
}

/* `next_node`: nodes are in the order of their graphs. */
static void write_graph(struct json_writer *json, const struct model *model,
	const struct device_graphs *graphs, const struct device_graph *graph, size_t *next_node)
{
	json_begin_object(json);
	json_member_u64(json, "pid", model->processes.items[graph->process].pid);
	json_member_u64(json, "graph", graph->id);
	json_member_known(json, "captured_graph", graph->source, graph->source);
	json_member_known(json, "capture_ns", graph->has_capture, graph->capture_ns);
	json_member_known(json, "capture_bytes", graph->has_capture, graph->capture_bytes);
	json_member_known(json, "captured_nodes", graph->has_capture, graph->captured_nodes);
	json_member_u64(json, "instantiations", graph->instantiations);
	json_member_known(json, "instantiate_ns", graph->instantiations, graph->instantiate_ns);
	json_member_u64(json, "replays", graph->replays);
	json_member_u64(json, "work_ns", graph->work_ns);
	json_member_u64(json, "span_ns", graph->span_ns);
	json_key(json, "timed_as_whole");
	json_bool(json, graph->is_whole);
	write_place(json, "captured_by", model, graph->capture_frame);
	write_place(json, "replayed_by", model, graph->replay_frame);
	json_key(json, "nodes");
	json_begin_array(json);
	while (*next_node < graphs->nodes.count &&
		graphs->nodes.items[*next_node].graph == graph->place)
		write_node(json, model, &graphs->nodes.items[(*next_node)++]);
	json_end_array(json);
	json_end_object(json);
}

static int write_graphs(struct json_writer *json, const struct model *model)
{
	_cleanup_device_graphs_ struct device_graphs graphs = {0};
	int r = device_graphs_init(&graphs, model);
	size_t next_node = 0;

	if (r < 0)
		return r;
	json_key(json, "graphs");
	if (selection_left_out(model, SELECTION_GRAPHS)) {
		json_null(json);
		return 0;
	}
	json_begin_array(json);
	array_foreach (&graphs.graphs, graph)
		write_graph(json, model, &graphs, graph, &next_node);
	json_end_array(json);
	return 0;
}

static void write_memory(struct json_writer *json, const struct model *model,
	const struct device_allocations *memory)
{
	json_key(json, "memory");
	if (selection_left_out(model, SELECTION_DEVICE_MEMORY)) {
		json_null(json);
		return;
	}
	json_begin_object(json);
	json_member_u64(json, "allocations", memory->allocations);
	json_member_u64(json, "releases", memory->releases);
	json_member_u64(json, "allocated_bytes", memory->allocated_bytes);
	json_member_u64(json, "peak_bytes", memory->peak_bytes);
	json_member_u64(json, "left_bytes", memory->left_bytes);
	json_end_object(json);
}

static void write_counts(struct json_writer *json, const struct capture_device_counts *counts)
{
	json_key(json, "counts");
	json_begin_object(json);
	json_member_u64(json, "launches", counts->launches);
	json_member_u64(json, "captured_launches", counts->captured);
	json_member_u64(json, "activities", counts->activities);
	json_member_u64(json, "without_times", counts->untimed);
	json_member_u64(json, "dropped", counts->dropped);
	json_member_u64(json, "unknown_nodes", counts->unknown_nodes);
	json_member_u64(json, "graph_events_lost", counts->lost_graph_events);
	json_member_u64(json, "buffers_refused", counts->refused_buffers);
	json_member_u64(json, "foreign_buffers", counts->foreign_buffers);
	json_end_object(json);
}

int report_json_cuda(
	struct json_writer *json, const struct model *model, const struct device_work *work)
{
	int r;

	json_key(json, "cuda");
	if (!model->gpus.count && !model->device_notes.count) {
		json_null(json);
		return 0;
	}
	json_begin_object(json);
	json_key(json, "tracers");
	json_begin_array(json);
	array_foreach (&model->device_notes, note) {
		if (note->note == WIRE_NOTE_TRACER)
			json_string(json, note->text);
	}
	json_end_array(json);
	json_key(json, "gpus");
	json_begin_array(json);
	array_foreach (&model->gpus, gpu)
		write_gpu(json, model, gpu);
	json_end_array(json);
	json_member_u64(json, "launch_calls", work->launch_calls);
	json_member_u64(json, "launch_call_ns", work->launch_call_ns);
	json_member_u64(json, "replayed", work->replayed);
	json_member_u64(json, "replayed_without_capture", work->replayed_without_capture);
	json_member_known(json, "overhead_count",
		!selection_left_out(model, SELECTION_DEVICE_MEMORY), work->overhead.count);
	json_member_known(json, "overhead_ns", !selection_left_out(model, SELECTION_DEVICE_MEMORY),
		work->overhead.total_ns);
	write_memory(json, model, &work->allocations);
	write_counts(json, &model->device_counts);
	r = write_graphs(json, model);
	json_end_object(json);
	return r;
}
