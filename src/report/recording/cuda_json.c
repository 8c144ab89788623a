/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recording/cuda_json.h"

#include "analyses/selection.h"
#include "base/json.h"

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
	write_counts(json, &model->device_counts);
	json_end_object(json);
	return 0;
}
