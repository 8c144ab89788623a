/* SPDX-License-Identifier: Apache-2.0 */
/* A small capture with device work, launches and their stacks, in all ways that they can be. */
#pragma once

#include "capture-example.h"

/* Reading: one line per callback, as in capture-example.h. */

static inline int text_device_work(void *context, const struct capture_device_work *work)
{
	struct strbuf *out = context;

	strbuf_addf(out,
		"work %s pid=%u tid=%u correlation=%" PRIu64 " times=%" PRIu64 "/%" PRIu64
		"/%" PRIu64 "/%" PRIu64 " launch=%" PRIu64 "+%" PRIu64,
		wire_device_kind_name(work->kind), work->pid, work->tid, work->correlation,
		work->queued_ns, work->submit_ns, work->start_ns, work->end_ns, work->launch_ns,
		work->launch_duration_ns);
	text_string(out, "name", work->name);
	text_string(out, "device", work->device);
	strbuf_addf(out, " queue=%u bytes=%" PRIu64 " failed=%d", work->queue, work->bytes,
		work->failed);
	strbuf_addf(out, " sizes=%" PRIu64 ",%" PRIu64 ",%" PRIu64 "/%u,%u,%u\n",
		work->global_size[0], work->global_size[1], work->global_size[2],
		work->local_size[0], work->local_size[1], work->local_size[2]);
	return 0;
}

static inline int text_launch(void *context, const struct capture_launch *launch)
{
	struct strbuf *out = context;

	strbuf_addf(out,
		"launch %s time=%" PRIu64 "+%" PRIu64 " pid=%u tid=%u correlation=%" PRIu64
		" queue=%u %s\n",
		wire_device_kind_name(launch->kind), launch->time_ns, launch->duration_ns,
		launch->pid, launch->tid, launch->correlation, launch->queue,
		wire_device_untimed_name(launch->untimed));
	return 0;
}

static inline int text_launch_stack(void *context, const struct capture_launch_stack *stack)
{
	struct strbuf *out = context;

	strbuf_addf(out,
		"launch_stack time=%" PRIu64 " pid=%u tid=%u correlation=%" PRIu64 " callstack=%u",
		stack->time_ns, stack->pid, stack->tid, stack->correlation, stack->callstack);
	if (stack->same_as)
		strbuf_addf(out, " same_as=%" PRIu64 "%s", stack->same_as,
			stack->is_check ? " check" : "");
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_device_stats(void *context, const struct capture_stats *stats)
{
	const struct capture_device_stats *device = &stats->device;
	struct strbuf *out = context;

	if (!device->processes)
		return text_stats(context, stats);
	strbuf_addf(out,
		"device_stats processes=%" PRIu64 " launches=%" PRIu64 " works=%" PRIu64
		" stacks=%" PRIu64 " lost=%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64,
		device->processes, device->launches, device->works, device->stacks,
		device->records_lost, device->records_without_ring, device->records_damaged,
		device->stacks_lost);
	strbuf_addf(out,
		" untimed=%" PRIu64 " early=%" PRIu64 " clock=%" PRIu64 " run=%" PRIu64 "/%" PRIu64
		"\n",
		device->launches_untimed, device->started_before_launch, device->clock_error_ns,
		device->stack_run_count, device->stack_run_time_ns);
	if (device->stacks_known)
		strbuf_addf(out,
			"device_stats known=%" PRIu64 " checked=%" PRIu64 " copied=%" PRIu64 "\n",
			device->stacks_known, device->stacks_checked, device->stacks_copied);
	return text_stats(context, stats);
}

static inline struct capture_visitor device_text_visitor(void)
{
	struct capture_visitor visitor = text_visitor;

	visitor.device_work = text_device_work;
	visitor.launch = text_launch;
	visitor.launch_stack = text_launch_stack;
	visitor.stats = text_device_stats;
	return visitor;
}

/* Writing. Each returns 0, or the first failure. */

static const struct capture_device_work example_device_works[] = {
	{.start_ns = 1000000002000,
		.end_ns = 1000000012000,
		.queued_ns = 1000000000500,
		.submit_ns = 1000000001000,
		.launch_ns = 1000000000400,
		.launch_duration_ns = 300,
		.pid = 4242,
		.tid = 4300,
		.correlation = 0x7fff010000000001,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "void scale<float>(float *, \xc3\xa9)",
		.device = "pthread-skylake",
		.queue = 7,
		.global_size = {4096, 2, 1},
		.local_size = {64, 1, 1}},
	/* Earlier than the one before; the device again; sizes as the runtime chose. */
	{.start_ns = 1000000001000,
		.end_ns = 1000000001000,
		.pid = 4242,
		.tid = 4242,
		.correlation = 2,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "empty",
		.device = "pthread-skylake",
		.queue = 1,
		.global_size = {18446744073709551615u, 0, 0}},
	/* Hardly anything is known. */
	{.start_ns = 1000000020000,
		.end_ns = 1000000030000,
		.pid = 4243,
		.kind = WIRE_DEVICE_GRAPH,
		.device = "",
		.failed = true},
};

static inline int write_device_works(struct capture_writer *writer)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < 3; i++)
		result = capture_writer_device_work(writer, &example_device_works[i]);
	for (unsigned kind = WIRE_DEVICE_READ; result == 0 && kind < WIRE_DEVICE_MAX; kind++) {
		const struct capture_device_work work = {.start_ns = 1000000100000 + kind * 1000,
			.end_ns = 1000000100500 + kind * 1000,
			.pid = 4242,
			.tid = 4242,
			.correlation = 100 + kind,
			.kind = (enum wire_device_kind)kind,
			.device = "another device",
			.queue = 2,
			.bytes = kind == WIRE_DEVICE_UNMAP ? 0 : 1ULL << (kind * 5)};

		if (wire_device_is_work(kind))
			result = capture_writer_device_work(writer, &work);
	}
	return result;
}

static inline int write_launches(struct capture_writer *writer)
{
	const struct capture_launch waits[] = {
		{1000000002500, 9500, 4242, 4242, 0, WIRE_DEVICE_FINISH, WIRE_DEVICE_TIMED, 7},
		{1000000002600, 0, 4242, 4300, 0, WIRE_DEVICE_WAIT, WIRE_DEVICE_TIMED, 0},
	};
	int result = capture_writer_launch(writer, &waits[0]);

	result = result < 0 ? result : capture_writer_launch(writer, &waits[1]);
	for (unsigned why = WIRE_DEVICE_NO_PROFILING; result == 0 && why < WIRE_DEVICE_UNTIMED_MAX;
		why++) {
		const struct capture_launch launch = {.time_ns = 1000000003000 + why,
			.duration_ns = why,
			.pid = 4242,
			.tid = 4242,
			.correlation = 200 + why,
			.kind = WIRE_DEVICE_COPY,
			.untimed = (enum wire_device_untimed)why,
			.queue = why};

		result = capture_writer_launch(writer, &launch);
	}
	return result;
}

static inline int write_launch_stacks(struct capture_writer *writer)
{
	static const capture_id frames[] = {1, 2, 5};
	capture_id callstack;
	int result = capture_writer_callstack(
		writer, frames, 3, WIRE_STOP_COMPLETE, WIRE_PYTHON_FRAMES, &callstack);
	const struct capture_launch_stack stacks[] = {
		{1000000000450, 4242, 4300, 0x7fff010000000001, callstack},
		{1000000000950, 4242, 4242, 2, 0},
		{1000000003001, 4242, 4242, 201, callstack},
		{1000000003100, 4242, 0, 202, 0, .same_as = 201},
		{1000000003200, 4242, 4242, 203, callstack},
		{1000000003200, 4242, 0, 203, 0, .same_as = 201, .is_check = true},
	};

	for (size_t i = 0; result == 0 && i < 6; i++)
		result = capture_writer_launch_stack(writer, &stacks[i]);
	return result;
}

static inline int write_device_example(struct capture_writer *writer)
{
	const struct capture_stats stats = {.end_time_ns = 1000001000000,
		.device = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		.exit_status = 0,
		.complete = true};
	int result = write_example_things(writer);

	result = result < 0 ? result : write_device_works(writer);
	result = result < 0 ? result : write_launches(writer);
	result = result < 0 ? result : write_launch_stacks(writer);
	return result < 0 ? result : capture_writer_stats(writer, &stats);
}
