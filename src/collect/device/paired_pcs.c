/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of instructions, whose texts are written once for each process. */
#include "collect/device/paired_state.h"

/* One process cannot fill the capture with names. */
#define MAX_TEXTS (1 << 20)

/* The id as the capture has it: 0 where the process has not said what it stands for. */
static int write_text(struct paired_collector *collector, struct paired_process *process,
	uint32_t id, uint32_t *ret_id)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_PC_TEXT,
		.pid = process->pid,
		.text = device_names_get(
			collector->names, process->pid, WIRE_RECORD_DEVICE_NAME, id),
		.pc_text = {.id = id},
	};
	uint64_t known;
	int result;

	*ret_id = 0;
	if (!id || !event.text)
		return 0;
	*ret_id = id;
	if (map_u64_get(&process->pc_texts, id, &known))
		return 0;
	if (process->pc_texts.count >= MAX_TEXTS) {
		*ret_id = 0;
		return 0;
	}
	result = map_u64_set(&process->pc_texts, id, 1);
	return result < 0 ? result : device_output_event(collector->output, &event);
}

int paired_add_pc(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pc *record)
{
	struct capture_device_event event = {
		.kind = CAPTURE_PC,
		.pid = process->pid,
		.time_ns = record->time_ns,
		.pc = {.cubin = record->cubin,
			.pc_offset = record->pc_offset,
			.samples = record->samples,
			.not_issued = record->not_issued,
			.line = record->line},
	};
	int r;

	if (!record->time_ns || record->time_ns >= DEVICE_MAX_NS ||
		record->samples >= DEVICE_MAX_NS || record->not_issued > record->samples)
		return paired_drop(collector);
	r = write_text(collector, process, record->function, &event.pc.function);
	if (r < 0)
		return r;
	r = write_text(collector, process, record->reason, &event.pc.reason);
	if (r < 0)
		return r;
	r = write_text(collector, process, record->file, &event.pc.file);
	return r < 0 ? r : device_output_event(collector->output, &event);
}

int paired_add_pc_counts(struct paired_collector *collector, struct paired_process *process,
	const struct wire_device_pc_counts *record)
{
	const struct capture_device_event event = {
		.kind = CAPTURE_PC_COUNTS,
		.pid = process->pid,
		.time_ns = record->time_ns,
		.pc_counts = {.samples = record->samples,
			.dropped = record->dropped,
			.foreign = record->foreign,
			.lost = record->lost,
			.reads = record->reads,
			.full_reads = record->full_reads,
			.failed_reads = record->failed_reads,
			.period_cycles = record->period_cycles},
	};

	if (!record->time_ns || record->time_ns >= DEVICE_MAX_NS ||
		record->samples >= DEVICE_MAX_NS || record->dropped >= DEVICE_MAX_NS ||
		record->foreign >= DEVICE_MAX_NS || record->lost >= DEVICE_MAX_NS)
		return paired_drop(collector);
	return device_output_event(collector->output, &event);
}
