/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of instructions: ids become texts. */
#include "model/builder/internal.h"

static uint64_t key_of(uint32_t process, uint32_t id)
{
	return (uint64_t)process << 32 | id;
}

int builder_add_pc_text(
	const struct capture_device_event *event, uint32_t process, struct map_u64 *texts)
{
	uintptr_t text = (uintptr_t)event->text;

	return text ? map_u64_set(texts, key_of(process, event->pc_text.id), text) : 0;
}

static const char *text_of(
	const struct map_u64 *texts, uint32_t process, uint32_t id, const char *otherwise)
{
	uint64_t text;

	if (!id || !map_u64_get(texts, key_of(process, id), &text))
		return otherwise;
	return (const char *)(uintptr_t)text;
}

int builder_add_pc(struct model_builder *builder, const struct capture_device_event *event,
	uint32_t process, const struct map_u64 *texts)
{
	const struct capture_pc *pc = &event->pc;

	if (!builder_is_chosen(builder, event->time_ns))
		return 0;
	return array_append(&builder->model->pcs,
		(struct model_pc){
			.time_ns = event->time_ns,
			.cubin = pc->cubin,
			.pc_offset = pc->pc_offset,
			.samples = pc->samples,
			.not_issued = pc->not_issued,
			.process = process,
			.line = pc->line,
			.function = text_of(texts, process, pc->function, "[kernel]"),
			.reason = text_of(texts, process, pc->reason, "[unknown]"),
			.file = text_of(texts, process, pc->file, NULL),
		});
}

int builder_add_pc_counts(struct model_builder *builder, const struct capture_device_event *event)
{
	struct capture_pc_counts *sum = &builder->model->pc_counts;
	const struct capture_pc_counts *one = &event->pc_counts;

	if (!builder_is_chosen(builder, event->time_ns))
		return 0;
	sum->samples += one->samples;
	sum->dropped += one->dropped;
	sum->foreign += one->foreign;
	sum->lost += one->lost;
	sum->reads += one->reads;
	sum->full_reads += one->full_reads;
	sum->failed_reads += one->failed_reads;
	if (one->period_cycles)
		sum->period_cycles = one->period_cycles;
	return 0;
}
