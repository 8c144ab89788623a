/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small traces for tests: one process of pid 100 and its GPUs. Rows are in the order of the calls;
 * each call gives the row. Every call asserts success; example_trace_finish() is the last one.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/trace.h"

#define EXAMPLE_PID 100

static inline uint32_t example_text(struct trace *trace, const char *text)
{
	uint32_t id;

	assert_true(intern_add(&trace->strings, text, strlen(text), &id) >= 0);
	return id;
}

static inline struct trace *example_trace_new(void)
{
	struct trace *trace = trace_new("example.json");

	assert_non_null(trace);
	return trace;
}

static inline uint32_t example_track(struct trace *trace, int64_t pid, int64_t tid, bool is_device)
{
	struct trace_track track = {
		.pid = pid,
		.tid = tid,
		.process_sort = TRACE_NO_NUMBER,
		.thread_sort = TRACE_NO_NUMBER,
		.is_device = is_device,
	};

	for (uint32_t i = 0; i < trace->tracks.count; i++) {
		if (trace->tracks.items[i].pid == pid && trace->tracks.items[i].tid == tid)
			return i;
	}
	assert_int_equal(array_append(&trace->tracks, track), 0);
	return (uint32_t)trace->tracks.count - 1;
}

static inline uint32_t example_row(struct trace *trace, struct trace_event event)
{
	static const char *const categories[TRACE_CATEGORY_MAX] = {
		[TRACE_OTHER] = "other",
		[TRACE_CPU_OP] = "cpu_op",
		[TRACE_USER_ANNOTATION] = "user_annotation",
		[TRACE_PYTHON_FUNCTION] = "python_function",
		[TRACE_RUNTIME] = "cuda_runtime",
		[TRACE_DRIVER] = "cuda_driver",
		[TRACE_KERNEL] = "kernel",
		[TRACE_MEMCPY] = "gpu_memcpy",
		[TRACE_MEMSET] = "gpu_memset",
		[TRACE_GPU_ANNOTATION] = "gpu_user_annotation",
		[TRACE_SYNC] = "cuda_sync",
		[TRACE_OVERHEAD] = "overhead",
		[TRACE_CPU_INSTANT] = "cpu_instant_event",
	};

	event.category_name = example_text(trace, categories[event.category]);
	event.file_index = (uint32_t)trace->events.count;
	assert_int_equal(array_append(&trace->events, event), 0);
	return event.file_index;
}

/* A row of a thread of the process. */
static inline uint32_t example_host(struct trace *trace, enum trace_category category,
	const char *name, int64_t tid, int64_t start_ns, int64_t duration_ns, uint64_t correlation)
{
	return example_row(trace, (struct trace_event){
					  .start_ns = start_ns,
					  .duration_ns = duration_ns,
					  .correlation = correlation,
					  .external_id = TRACE_NO_ID,
					  .name = example_text(trace, name),
					  .track = example_track(trace, EXAMPLE_PID, tid, false),
					  .detail = MODEL_NONE,
					  .category = (uint8_t)category,
				  });
}

/* The fields of device work that are not told. */
static inline struct trace_work example_no_work(int64_t device, int64_t stream)
{
	return (struct trace_work){
		.device = device,
		.context = 1,
		.stream = stream,
		.queued_ns = TRACE_NO_NUMBER,
		.wait_stream = TRACE_NO_NUMBER,
		.wait_event = TRACE_NO_NUMBER,
		.collective = MODEL_NONE,
	};
}

/* A row of a stream of a device. */
static inline uint32_t example_device(struct trace *trace, enum trace_category category,
	const char *name, int64_t device, int64_t stream, int64_t start_ns, int64_t duration_ns,
	uint64_t correlation)
{
	uint32_t detail = (uint32_t)trace->works.count;

	assert_int_equal(array_append(&trace->works, example_no_work(device, stream)), 0);
	return example_row(trace, (struct trace_event){
					  .start_ns = start_ns,
					  .duration_ns = duration_ns,
					  .correlation = correlation,
					  .external_id = TRACE_NO_ID,
					  .name = example_text(trace, name),
					  .track = example_track(trace, device, stream, true),
					  .detail = detail,
					  .category = (uint8_t)category,
				  });
}

/* A call that launches, and the kernel that it launches. */
static inline uint32_t example_launch(struct trace *trace, const char *name, int64_t stream,
	int64_t call_ns, int64_t call_duration_ns, int64_t start_ns, int64_t duration_ns,
	uint64_t correlation)
{
	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", EXAMPLE_PID, call_ns,
		call_duration_ns, correlation);
	return example_device(
		trace, TRACE_KERNEL, name, 0, stream, start_ns, duration_ns, correlation);
}

static inline void example_trace_finish(struct trace *trace)
{
	assert_int_equal(trace_finish(trace), 0);
}
