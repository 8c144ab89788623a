/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of whatever bytes: what analyses index by is in range, and stacks keep the time of work. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "analyses/memory/memory.h"
#include "analyses/program/trace_programs.h"
#include "base/file.h"
#include "importers/importer.h"
#include "model/weigh.h"

static inline void rows_must(int must_hold)
{
	if (!must_hold)
		abort();
}

static inline void rows_check(const struct trace *trace)
{
	const uint32_t *parents = trace_parents(trace, true);

	rows_must(trace->rows.count == trace->events.count);
	array_foreach (&trace->events, event) {
		rows_must(event->track < trace->tracks.count);
		rows_must(event->name < trace->strings.entries.count);
		rows_must(event->duration_ns == TRACE_NO_DURATION || event->duration_ns >= 0);
		rows_must(trace_end_ns(event) >= event->start_ns);
	}
	array_foreach (&trace->tracks, track) {
		rows_must(track->first + track->count <= trace->rows.count);
		for (uint32_t i = 1; i < track->count; i++) {
			const uint32_t *rows = &trace->rows.items[track->first + i];

			rows_must(trace->events.items[rows[-1]].start_ns <=
				  trace->events.items[rows[0]].start_ns);
		}
	}
	for (size_t i = 0; parents && i < trace->events.count; i++)
		rows_must(parents[i] == MODEL_NONE || parents[i] < trace->events.count);
}

/* Of any rows there are stacks, and device work keeps its time in them. */
static inline void rows_check_stacks(const struct trace *trace)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_model_ struct model *model = model_new();
	uint64_t works_ns = 0, weighed_ns = 0;

	if (!model || trace_view_init(&view, trace, 0, &options) < 0 ||
		trace_programs_fill_stacks(model, &view, 1,
			&(struct trace_programs_options){
				.wants_thread_time = true, .joins_backward = true}) < 0)
		return;
	array_foreach (&model->samples, sample) {
		rows_must(sample->count > 0 && sample->stack < model->stacks.count);
		rows_must(sample->thread < model->threads.count);
	}
	array_foreach (&model->stacks, stack) {
		for (uint32_t i = 0; i < stack->count; i++)
			rows_must(
				model->stack_frames.items[stack->first + i] < model->frames.count);
	}
	array_foreach (&view.works, work)
		works_ns += (uint64_t)work->end_ns - (uint64_t)work->start_ns;
	if (model_weigh(model, MODEL_WEIGHT_GPU) < 0)
		return;
	array_foreach (&model->samples, sample)
		weighed_ns += sample->count;
	rows_must(weighed_ns == works_ns);
}

/* What was in use at devices' peaks, as far as it is memory at all. */
static inline uint64_t rows_held_bytes(const struct trace_memory_use *use)
{
	uint64_t bytes = 0;

	array_foreach (&use->devices, device) {
		if (trace_memory_is_host(device->type))
			continue;
		bytes += MIN(device->peak_unseen, MODEL_MOST_BYTES - bytes);
		array_foreach (&device->blocks, block)
			bytes += MIN(block->bytes, MODEL_MOST_BYTES - bytes);
	}
	return bytes;
}

/* All of it has a stack. */
static inline void rows_check_held(const struct trace *trace, uint64_t bytes)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_weight_spans_ struct weight_spans held = {0};
	_cleanup_model_ struct model *model = model_new();
	uint64_t weighed = 0;

	if (!model || trace_view_init(&view, trace, 0, &options) < 0 ||
		trace_programs_fill_stacks(
			model, &view, 1, &(struct trace_programs_options){.held = &held}) < 0 ||
		model_weigh_bytes(model, held.items.items, held.items.count) < 0)
		return;
	array_foreach (&model->samples, sample) {
		const struct model_stack *stack = &model->stacks.items[sample->stack];

		rows_must(sample->stack < model->stacks.count && stack->count >= 2);
		rows_must(sample->thread < model->threads.count);
		for (uint32_t i = 0; i < stack->count; i++)
			rows_must(
				model->stack_frames.items[stack->first + i] < model->frames.count);
		weighed += sample->count;
	}
	rows_must(weighed == bytes);
}

static inline void rows_check_memory(const struct trace *trace)
{
	_cleanup_trace_memory_ struct trace_memory_use use = {0};

	if (trace_memory_init(&use, trace) < 0)
		return;
	array_foreach (&use.devices, device)
		rows_must(device->points.count == device->allocations + device->releases);
	if (use.devices.count)
		rows_check_held(trace, rows_held_bytes(&use));
}

static inline int rows_take(void *context, struct trace *trace)
{
	(void)context;
	rows_check(trace);
	rows_check_stacks(trace);
	rows_check_memory(trace);
	trace_free(trace);
	return 0;
}

/* Has an importer read the bytes as a file, whatever they begin with. */
static inline void rows_fuzz(const struct importer *importer, const uint8_t *bytes, size_t length)
{
	const struct trace_read_options options = {
		.keep_arguments = true, .max_bytes = (uint64_t)256 << 20, .threads = 1};
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
	struct trace *trace = NULL;
	struct errmsg err = {{0}};
	char path[64];

	importer->knows((const char *)bytes, MIN(length, (size_t)IMPORT_HEAD_BYTES));
	if (fd < 0 || write_all(fd, bytes, length) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (importer->read_ranks)
		rows_must(importer->read_ranks(path, &options, rows_take, NULL, &err) == 0 ||
			  err.text[0]);
	else if (importer->read(&trace, path, &options, &err) < 0)
		rows_must(err.text[0] && !trace);
	else
		rows_take(NULL, trace);
}
