/* SPDX-License-Identifier: Apache-2.0 */
/* Device traces alone, as linked execution traces: operators, launches and what waits for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "chakra/convert/from_trace.h"

static uint32_t string_of(struct trace *trace, const char *text)
{
	uint32_t id;

	assert_true(intern_add(&trace->strings, text, strlen(text), &id) >= 0);
	return id;
}

static struct trace *new_trace(uint32_t tracks)
{
	struct trace *trace = trace_new("example");

	assert_non_null(trace);
	for (uint32_t i = 0; i < tracks; i++)
		assert_int_equal(array_append(&trace->tracks,
					 (struct trace_track){.pid = 1, .tid = (int64_t)i + 1}),
			0);
	return trace;
}

static struct trace_event *add(struct trace *trace, uint32_t track, enum trace_category category,
	const char *name, int64_t start_us, int64_t duration_us)
{
	struct trace_event event = {
		.start_ns = start_us * 1000,
		.duration_ns = duration_us * 1000,
		.external_id = TRACE_NO_ID,
		.name = string_of(trace, name),
		.category_name = string_of(trace, category == TRACE_KERNEL ? "kernel" : "cpu_op"),
		.track = track,
		.detail = MODEL_NONE,
		.file_index = (uint32_t)trace->events.count,
		.category = (uint8_t)category,
	};

	assert_int_equal(array_append(&trace->events, event), 0);
	return &trace->events.items[trace->events.count - 1];
}

static void add_kernel(struct trace *trace, const char *name, uint64_t correlation, int64_t stream,
	int64_t start_us, int64_t duration_us)
{
	struct trace_event *event = add(trace, 1, TRACE_KERNEL, name, start_us, duration_us);

	event->correlation = correlation;
	event->detail = (uint32_t)trace->works.count;
	assert_int_equal(array_append(&trace->works, (struct trace_work){.stream = stream,
							     .sync_kind = 0,
							     .collective = MODEL_NONE,
							     .wait_stream = TRACE_NO_NUMBER,
							     .wait_event = TRACE_NO_NUMBER}),
		0);
}

static const struct execution_node *find(const struct execution_trace *linked, const char *name)
{
	array_foreach (&linked->nodes, node) {
		if (execution_text_equals(node->name, name))
			return node;
	}
	return NULL;
}

static void test_operators_calls_and_work(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = new_trace(2);
	_cleanup_execution_trace_ struct execution_trace *linked = NULL;
	const struct execution_node *mm, *free_launch;
	struct chakra_link_result result;
	struct errmsg err = {{0}};

	add(trace, 0, TRACE_CPU_OP, "aten::linear", 10, 20);
	add(trace, 0, TRACE_CPU_OP, "aten::mm", 12, 10);
	add(trace, 0, TRACE_RUNTIME, "cudaLaunchKernel", 14, 2)->correlation = 1;
	add(trace, 0, TRACE_RUNTIME, "cudaLaunchKernel outside", 50, 2)->correlation = 2;
	add(trace, 0, TRACE_RUNTIME, "cudaStreamQuery", 60, 2)->correlation = 3;
	add_kernel(trace, "gemm", 1, 7, 30, 5);
	add_kernel(trace, "alone", 2, 7, 60, 5);
	add_kernel(trace, "lost", 9, 7, 70, 5);
	assert_int_equal(trace_finish(trace), 0);
	assert_int_equal(chakra_from_trace(&linked, trace, &result, &err), 0);
	assert_int_equal(result.device_rows, 3);
	assert_int_equal(result.linked, 2);
	mm = find(linked, "aten::mm");
	free_launch = find(linked, "cudaLaunchKernel outside");
	assert_non_null(mm);
	assert_non_null(free_launch);
	assert_null(find(linked, "cudaLaunchKernel"));
	assert_null(find(linked, "cudaStreamQuery"));
	assert_int_equal(mm->parent, find(linked, "aten::linear")->id);
	assert_int_equal(mm->start_ns, 12000);
	assert_int_equal(find(linked, "aten::linear")->exclusive_ns, 10000);
	assert_int_equal(find(linked, "gemm")->parent, mm->id);
	assert_int_equal(find(linked, "alone")->parent, free_launch->id);
	assert_null(find(linked, "lost"));
}

static void test_nothing_to_make_a_trace_of(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = new_trace(2);
	struct execution_trace *linked = NULL;
	struct chakra_link_result result;
	struct errmsg err = {{0}};

	add_kernel(trace, "lost", 9, 7, 70, 5);
	assert_int_equal(trace_finish(trace), 0);
	assert_int_equal(chakra_from_trace(&linked, trace, &result, &err), -ENODATA);
	assert_non_null(strstr(err.text, "neither operators nor launches"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operators_calls_and_work),
		cmocka_unit_test(test_nothing_to_make_a_trace_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
