/* SPDX-License-Identifier: Apache-2.0 */
/* Are two traces the same, row for row and argument for argument? Flows in any order. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "model/trace.h"

static void assert_same_text(
	const struct trace *a, uint32_t left, const struct trace *b, uint32_t right)
{
	assert_string_equal(trace_text(a, left), trace_text(b, right));
}

#define assert_same(a, b, member)                assert_int_equal((uint64_t)(a)->member, (uint64_t)(b)->member)
#define assert_same_string(at, a, bt, b, member) assert_same_text(at, (a)->member, bt, (b)->member)

static void assert_same_collective(
	const struct trace *at, uint32_t left, const struct trace *bt, uint32_t right)
{
	const struct trace_collective *a, *b;

	assert_int_equal(left == MODEL_NONE, right == MODEL_NONE);
	if (left == MODEL_NONE)
		return;
	a = &at->collectives.items[left];
	b = &bt->collectives.items[right];
	assert_same_string(at, a, bt, b, name);
	assert_same_string(at, a, bt, b, dtype);
	assert_same(a, b, in_elements);
	assert_same(a, b, out_elements);
	assert_same(a, b, group_size);
	assert_same_string(at, a, bt, b, group_name);
	assert_same_string(at, a, bt, b, group_description);
	assert_same_string(at, a, bt, b, group_ranks);
	assert_same_string(at, a, bt, b, in_split);
	assert_same_string(at, a, bt, b, out_split);
	assert_same(a, b, source);
	assert_same(a, b, destination);
	assert_same(a, b, sequence);
	assert_same(a, b, communicator);
}

static void assert_same_op(const struct trace *at, const struct trace_op *a, const struct trace *bt,
	const struct trace_op *b)
{
	assert_same(a, b, rf_id);
	assert_same(a, b, sequence);
	assert_same(a, b, forward_thread);
	assert_same(a, b, ev_idx);
	assert_same(a, b, python_id);
	assert_same(a, b, python_parent_id);
	assert_same(a, b, python_module_id);
	assert_same_string(at, a, bt, b, input_dims);
	assert_same_string(at, a, bt, b, input_types);
	assert_same_string(at, a, bt, b, input_strides);
	assert_same_string(at, a, bt, b, concrete_inputs);
	assert_same_string(at, a, bt, b, call_stack);
	assert_same_string(at, a, bt, b, module_hierarchy);
	assert_same_string(at, a, bt, b, others);
	assert_same_collective(at, a->collective, bt, b->collective);
}

static void assert_same_work(const struct trace *at, const struct trace_work *a,
	const struct trace *bt, const struct trace_work *b)
{
	assert_same(a, b, device);
	assert_same(a, b, context);
	assert_same(a, b, stream);
	assert_same(a, b, bytes);
	for (unsigned i = 0; i < 3; i++) {
		assert_same(a, b, grid[i]);
		assert_same(a, b, block[i]);
	}
	assert_same(a, b, registers);
	assert_same(a, b, shared_bytes);
	assert_same(a, b, graph);
	assert_same(a, b, graph_node);
	assert_same(a, b, queued_ns);
	assert_memory_equal(&a->bandwidth_gbps, &b->bandwidth_gbps, sizeof(a->bandwidth_gbps));
	assert_same_string(at, a, bt, b, sync_kind);
	assert_same(a, b, wait_stream);
	assert_same(a, b, wait_event);
	assert_same(a, b, wait_correlation);
	assert_same_string(at, a, bt, b, others);
	assert_same_collective(at, a->collective, bt, b->collective);
}

static void assert_same_memory(const struct trace *at, const struct trace_memory *a,
	const struct trace *bt, const struct trace_memory *b)
{
	assert_same(a, b, address);
	assert_same(a, b, bytes);
	assert_same(a, b, total_allocated);
	assert_same(a, b, total_reserved);
	assert_same(a, b, device_type);
	assert_same(a, b, device_id);
	assert_same_string(at, a, bt, b, others);
}

static void assert_same_event(const struct trace *at, const struct trace_event *a,
	const struct trace *bt, const struct trace_event *b)
{
	assert_same(a, b, start_ns);
	assert_same(a, b, duration_ns);
	assert_same(a, b, correlation);
	assert_same(a, b, external_id);
	assert_same_string(at, a, bt, b, name);
	assert_same_string(at, a, bt, b, category_name);
	assert_same(a, b, track);
	assert_same(a, b, file_index);
	assert_same(a, b, category);
	assert_int_equal(a->detail == MODEL_NONE, b->detail == MODEL_NONE);
	if (trace_op(at, a))
		assert_same_op(at, trace_op(at, a), bt, trace_op(bt, b));
	else if (trace_work(at, a))
		assert_same_work(at, trace_work(at, a), bt, trace_work(bt, b));
	else if (a->detail != MODEL_NONE)
		assert_same_memory(
			at, &at->memory.items[a->detail], bt, &bt->memory.items[b->detail]);
}

static void assert_same_track(const struct trace *at, const struct trace_track *a,
	const struct trace *bt, const struct trace_track *b)
{
	assert_same(a, b, pid);
	assert_same(a, b, tid);
	assert_same_string(at, a, bt, b, pid_text);
	assert_same_string(at, a, bt, b, tid_text);
	assert_same_string(at, a, bt, b, process_name);
	assert_same_string(at, a, bt, b, thread_name);
	assert_same_string(at, a, bt, b, process_labels);
	assert_same(a, b, process_sort);
	assert_same(a, b, thread_sort);
	assert_same(a, b, is_device);
	assert_same(a, b, first);
	assert_same(a, b, count);
}

static int compare_flows(const void *left, const void *right)
{
	const struct trace_flow *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return a->is_end - b->is_end;
}

static void assert_same_flows(struct trace *at, struct trace *bt)
{
	assert_same(at, bt, flows.count);
	if (!at->flows.count)
		return;
	qsort(at->flows.items, at->flows.count, sizeof(*at->flows.items), compare_flows);
	qsort(bt->flows.items, bt->flows.count, sizeof(*bt->flows.items), compare_flows);
	for (size_t i = 0; i < at->flows.count; i++) {
		const struct trace_flow *a = &at->flows.items[i], *b = &bt->flows.items[i];

		assert_int_equal(compare_flows(a, b), 0);
		assert_same_string(at, a, bt, b, category_name);
	}
}

static void assert_same_header(const struct trace *at, const struct trace *bt)
{
	assert_string_equal(at->path, bt->path);
	assert_same(at, bt, base_ns);
	assert_same(at, bt, rank);
	assert_same(at, bt, world_size);
	assert_same_string(at, at, bt, bt, backend);
	assert_same_string(at, at, bt, bt, header);
	assert_same(at, bt, has_fractions);
	assert_same(at, bt, arguments_kept);
	assert_memory_equal(&at->damage, &bt->damage, sizeof(at->damage));
	assert_same(at, bt, repeated_correlations);
	assert_same(at, bt, groups.count);
	for (size_t i = 0; i < at->groups.count; i++) {
		const struct trace_group *a = &at->groups.items[i], *b = &bt->groups.items[i];

		assert_same_string(at, a, bt, b, name);
		assert_same_string(at, a, bt, b, description);
		assert_same_string(at, a, bt, b, backend);
		assert_same_string(at, a, bt, b, ranks);
		assert_same(a, b, size);
	}
	assert_same(at, bt, counters.count);
	for (size_t i = 0; i < at->counters.count; i++) {
		const struct trace_counter *a = &at->counters.items[i], *b = &bt->counters.items[i];

		assert_same(a, b, time_ns);
		assert_same(a, b, track);
		assert_same(a, b, device);
		assert_same_string(at, a, bt, b, name);
		assert_same_string(at, a, bt, b, series);
		assert_memory_equal(&a->value, &b->value, sizeof(a->value));
	}
}

/* Sorts the flows of both. */
static void assert_same_trace(struct trace *at, struct trace *bt)
{
	assert_same_header(at, bt);
	assert_same(at, bt, tracks.count);
	for (size_t i = 0; i < at->tracks.count; i++)
		assert_same_track(at, &at->tracks.items[i], bt, &bt->tracks.items[i]);
	assert_same(at, bt, events.count);
	for (size_t i = 0; i < at->events.count; i++)
		assert_same_event(at, &at->events.items[i], bt, &bt->events.items[i]);
	for (size_t i = 0; i < at->rows.count; i++)
		assert_same(at, bt, rows.items[i]);
	assert_same_flows(at, bt);
}
