/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that became nodes of graphs, and the ranges in which they were made: what replays of the
 * graphs come from. A graph may be captured in one window and replayed in another.
 */
#include <stdlib.h>

#include "model/builder/internal.h"

int builder_captured_call(
	struct model_builder *builder, struct device_join *join, uint32_t *ret_call)
{
	const struct capture_launch *launch = &builder->launches.items[join->captured - 1];
	struct model_captured_call call = {
		.start_ns = launch->time_ns,
		.end_ns = launch->time_ns + launch->duration_ns,
		.correlation = launch->correlation,
		.kind = (uint8_t)launch->kind,
		.is_elsewhere = !builder_is_chosen(builder, launch->time_ns),
	};
	uint32_t tid = launch->tid;
	int r;

	if (join->call) {
		*ret_call = join->call - 1;
		return 0;
	}
	if (join->stack) /* the kernel's word, in our PID namespace */
		tid = builder->launch_stacks.items[join->stack - 1].tid;
	r = builder_process_at(builder, launch->pid, launch->time_ns, &call.process);
	r = r ?: builder_thread(builder, call.process, tid, &call.thread);
	r = r ?: array_append(&builder->model->captured_calls, call);
	if (r < 0)
		return r;
	join->call = (uint32_t)builder->model->captured_calls.count;
	*ret_call = join->call - 1;
	return 0;
}

static int compare_spans(const void *left, const void *right)
{
	const struct captured_span *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

int captured_spans_init(struct captured_spans *spans, const struct model *model)
{
	int r = 0;

	*spans = (struct captured_spans){0};
	array_foreach (&model->captured_calls, call) {
		const struct captured_span span = {
			.start_ns = call->start_ns,
			.end_ns = call->end_ns,
			.pid = model->processes.items[call->process].pid,
			.tid = model->threads.items[call->thread].tid,
		};

		r = r ?: array_append(&spans->items, span);
	}
	if (r == 0 && spans->items.count)
		qsort(spans->items.items, spans->items.count, sizeof(*spans->items.items),
			compare_spans);
	return r;
}

void captured_spans_done(struct captured_spans *spans)
{
	array_done(&spans->items);
}

/* Calls of a thread follow each other: if the first one after the range's begin is not in it, no
 * other is. */
bool captured_spans_are_in(const struct captured_spans *spans, const struct raw_range *range)
{
	const struct captured_span begin = {
		.start_ns = range->range.start_ns, .pid = range->pid, .tid = range->tid};
	size_t low = 0, high = spans->items.count;

	if (!range->tid || range->range.is_mark)
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_spans(&spans->items.items[middle], &begin) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < spans->items.count && spans->items.items[low].pid == range->pid &&
	       spans->items.items[low].tid == range->tid &&
	       (range->range.is_open || spans->items.items[low].end_ns <= range->range.end_ns);
}
