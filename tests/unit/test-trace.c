/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a trace: their order, launches, and which lies in which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/execution_trace.h"
#include "model/trace.h"

static uint32_t add(struct trace *trace, enum trace_category category, uint32_t track,
	int64_t start_ns, int64_t duration_ns, uint64_t correlation)
{
	struct trace_event event = {
		.category = category,
		.track = track,
		.start_ns = start_ns,
		.duration_ns = duration_ns,
		.correlation = correlation,
		.external_id = TRACE_NO_ID,
		.detail = MODEL_NONE,
		.file_index = (uint32_t)trace->events.count,
	};

	assert_int_equal(array_append(&trace->events, event), 0);
	return event.file_index;
}

static struct trace *make(uint32_t tracks)
{
	struct trace *trace = trace_new("made");

	assert_non_null(trace);
	for (uint32_t i = 0; i < tracks; i++)
		assert_int_equal(array_append(&trace->tracks, (struct trace_track){.tid = i}), 0);
	return trace;
}

static void rows_of_a_track_are_sorted(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = make(3);
	static const uint32_t wanted[] = {3, 0, 1, 5, 4};

	add(trace, TRACE_CPU_OP, 1, 10, 20, 0);
	add(trace, TRACE_CPU_OP, 1, 10, 5, 0);
	add(trace, TRACE_CPU_OP, 0, 7, 1, 0);
	add(trace, TRACE_CPU_OP, 1, -4, 2, 0);
	add(trace, TRACE_CPU_INSTANT, 1, 12, TRACE_NO_DURATION, 0);
	add(trace, TRACE_CPU_OP, 1, 10, 5, 0);
	assert_int_equal(trace_finish(trace), 0);
	assert_int_equal(trace->tracks.items[0].count, 1);
	assert_int_equal(trace->tracks.items[1].count, 5);
	assert_int_equal(trace->tracks.items[2].count, 0);
	assert_memory_equal(
		trace->rows.items + trace->tracks.items[1].first, wanted, sizeof(wanted));
}

static void work_finds_its_launch(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = make(2);
	uint32_t first = add(trace, TRACE_RUNTIME, 0, 0, 5, 7);
	uint32_t second = add(trace, TRACE_DRIVER, 0, 10, 5, 8);
	uint32_t graph_a = add(trace, TRACE_KERNEL, 1, 20, 5, 8);
	uint32_t graph_b = add(trace, TRACE_MEMSET, 1, 30, 5, 8);
	uint32_t alone = add(trace, TRACE_KERNEL, 1, 40, 5, 9);

	assert_int_equal(trace_finish(trace), 0);
	assert_int_equal(trace_launch(trace, &trace->events.items[graph_a]), second);
	assert_int_equal(trace_launch(trace, &trace->events.items[graph_b]), second);
	assert_int_equal(trace_launch(trace, &trace->events.items[alone]), MODEL_NONE);
	assert_int_equal(trace->repeated_correlations, 0);
	add(trace, TRACE_RUNTIME, 0, 50, 5, 7);
	assert_int_equal(trace_finish(trace), 0);
	assert_int_equal(trace->repeated_correlations, 1);
	assert_int_not_equal(first, second);
}

static void rows_know_what_encloses_them(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = make(2);
	uint32_t outer = add(trace, TRACE_USER_ANNOTATION, 0, 0, 100, 0);
	uint32_t inner = add(trace, TRACE_CPU_OP, 0, 10, 20, 0);
	uint32_t launch = add(trace, TRACE_RUNTIME, 0, 12, 3, 1);
	/* Ends after `inner`, which it begins in: a neighbour, not a child. */
	uint32_t across = add(trace, TRACE_CPU_OP, 0, 25, 20, 0);
	uint32_t in_across = add(trace, TRACE_RUNTIME, 0, 26, 2, 2);
	uint32_t python = add(trace, TRACE_PYTHON_FUNCTION, 0, 60, 20, 0);
	uint32_t in_python = add(trace, TRACE_CPU_OP, 0, 61, 5, 0);
	uint32_t after = add(trace, TRACE_CPU_OP, 0, 100, 5, 0);
	uint32_t moment = add(trace, TRACE_CPU_INSTANT, 0, 101, TRACE_NO_DURATION, 0);
	uint32_t elsewhere = add(trace, TRACE_CPU_OP, 1, 10, 5, 0);
	const uint32_t *parents, *with_python;

	assert_int_equal(trace_finish(trace), 0);
	parents = trace_parents(trace, false);
	with_python = trace_parents(trace, true);
	assert_int_equal(parents[outer], MODEL_NONE);
	assert_int_equal(parents[inner], outer);
	assert_int_equal(parents[launch], inner);
	assert_int_equal(parents[across], outer);
	assert_int_equal(parents[in_across], across);
	assert_int_equal(parents[in_python], outer);
	assert_int_equal(with_python[python], outer);
	assert_int_equal(with_python[in_python], python);
	assert_int_equal(parents[after], MODEL_NONE);
	assert_int_equal(parents[moment], after);
	assert_int_equal(parents[elsewhere], MODEL_NONE);
}

static void a_row_without_time_lies_where_it_begins(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = make(1);
	uint32_t outer = add(trace, TRACE_CPU_OP, 0, 0, 10, 0);
	uint32_t next = add(trace, TRACE_CPU_OP, 0, 10, 0, 0);
	uint32_t in_next = add(trace, TRACE_RUNTIME, 0, 10, 0, 0);
	const uint32_t *parents;

	assert_int_equal(trace_finish(trace), 0);
	parents = trace_parents(trace, false);
	assert_int_equal(parents[outer], MODEL_NONE);
	assert_int_equal(parents[next], MODEL_NONE);
	assert_int_equal(parents[in_next], next);
}

/* So many that several threads sort them: in each track an operator, and the call that lies in it
 * before it in the file. */
static void many_rows_are_sorted_by_track(void **state _unused_)
{
	enum { TRACKS = 5, ROWS = 600000 };
	_cleanup_trace_ struct trace *trace = make(TRACKS);
	const uint32_t *parents;

	for (uint32_t i = 0; i < ROWS; i += 2) {
		add(trace, TRACE_RUNTIME, i / 2 % TRACKS, 10 * (int64_t)i + 1, 3, i + 1);
		add(trace, TRACE_CPU_OP, i / 2 % TRACKS, 10 * (int64_t)i, 9, 0);
	}
	assert_int_equal(trace_finish(trace), 0);
	parents = trace_parents(trace, false);
	assert_non_null(parents);
	assert_ptr_equal(trace_parents(trace, true), parents);
	for (uint32_t i = 0; i < ROWS; i += 2) {
		const struct trace_track *track = &trace->tracks.items[i / 2 % TRACKS];
		const uint32_t *rows = trace->rows.items + track->first + i / 2 / TRACKS * 2;

		if (rows[0] != i + 1 || rows[1] != i || parents[i] != i + 1 ||
			parents[i + 1] != MODEL_NONE)
			fail_msg("row %u of track %u", i, i / 2 % TRACKS);
	}
	assert_int_equal(
		trace_launch(trace, &(struct trace_event){.correlation = ROWS - 1}), ROWS - 2);
}

static void nodes_are_found_by_id(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = execution_trace_new("made");

	assert_non_null(trace);
	for (uint64_t id = 1; id <= 3; id++) {
		struct execution_node node = {.id = id * 5, .seq_id = (int64_t)id};

		assert_int_equal(array_append(&trace->nodes, node), 0);
	}
	assert_int_equal(
		array_append(&trace->nodes, (struct execution_node){.id = 5, .seq_id = 9}), 0);
	assert_int_equal(execution_trace_index(trace), 0);
	assert_int_equal(execution_trace_find(trace, 5)->seq_id, 1);
	assert_int_equal(execution_trace_find(trace, 15)->seq_id, 3);
	assert_null(execution_trace_find(trace, 4));
	assert_int_equal(trace->repeated_ids, 1);
	assert_true(execution_text_equals(execution_trace_keep(trace, "aten::mm", 8), "aten::mm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_track_are_sorted),
		cmocka_unit_test(work_finds_its_launch),
		cmocka_unit_test(rows_know_what_encloses_them),
		cmocka_unit_test(a_row_without_time_lies_where_it_begins),
		cmocka_unit_test(many_rows_are_sorted_by_track),
		cmocka_unit_test(nodes_are_found_by_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
