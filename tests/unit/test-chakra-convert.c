/* SPDX-License-Identifier: Apache-2.0 */
/* Linked traces made by hand as Chakra traces: nodes, times and what waits for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "chakra-example.h"
#include "compat/chakra_converter/chakra_converter.h"

#define TYPE(name) CHAKRA_PROTO_MSG__NODE_TYPE__##name

static void assert_type(const struct converted *converted, uint64_t id, int type)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	const et_node *node = node_of(converted, id, &reader);

	assert_non_null(node);
	assert_int_equal(node->type, type);
}

/* Two operators, one in the other, and a kernel of the inner one. */
static void add_operators(struct execution_trace *trace)
{
	add_roots(trace);
	add_host(trace, 2, 1, "aten::linear", 10, 5);
	add_host(trace, 3, 2, "aten::mm", 11, 3);
	add_device(trace, 4, 3, "gemm", 7, 20, 6);
	add_host(trace, 5, 1, "aten::relu", 16, 2);
}

static void test_callers_and_the_order_of_a_thread(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	const et_node *node;

	add_operators(trace);
	converted = convert(trace, NULL);
	assert_int_equal(converted.status, 0);
	assert_null(node_of(&converted, 0, &reader));
	assert_deps(&converted, 1, "|");
	assert_deps(&converted, 2, "1 | 1");
	assert_deps(&converted, 3, "2 | 2");
	assert_deps(&converted, 4, "3 | 3");
	assert_deps(&converted, 5, "1 | 3");
	assert_int_equal(converted.result.nodes, 5);
	assert_int_equal(converted.result.device_nodes, 1);
	assert_attribute(&converted, 4, "is_cpu_op", "false");
	assert_attribute(&converted, 4, "stream", "7");
	assert_attribute(&converted, 4, "duration_ns", "6000");
	node = node_of(&converted, 4, &reader);
	assert_int_equal(node->start_time_micros, 20);
	assert_int_equal(node->duration_micros, 6);
	assert_string_equal(node->inputs->values, "[]");
}

/* The process's root goes, and what chakra_converter says of it stays: that is what it does. */
static void test_compat_keeps_the_dependency_on_what_it_removes(void **state _unused_)
{
	static const struct chakra_convert_options compat = {.definition = &chakra_converter};
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	_cleanup_et_reader_ struct et_reader *reader = NULL;

	add_operators(trace);
	converted = convert(trace, &compat);
	assert_null(node_of(&converted, 0, &reader));
	assert_deps(&converted, 1, "0 |");
	assert_deps(&converted, 4, "3 | 3");
	assert_int_equal(converted.result.removed, 1);
	assert_int_equal(node_of(&converted, 4, &reader)->start_time_micros, 0);
	assert_attribute(&converted, 4, "duration_ns", "none");
}

static void test_microseconds_are_rounded_and_compat_cuts_them(void **state _unused_)
{
	static const struct chakra_convert_options compat = {.definition = &chakra_converter};
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted ours = {0}, theirs = {0};
	_cleanup_et_reader_ struct et_reader *reader = NULL;

	add_roots(trace);
	add_host(trace, 2, 1, "aten::mm", 10, 1)->exclusive_ns = 1700;
	add_host(trace, 3, 1, "Optimizer.step#SGD.step", 20, 8);
	ours = convert(trace, NULL);
	theirs = convert(trace, &compat);
	assert_int_equal(node_of(&ours, 2, &reader)->duration_micros, 2);
	assert_int_equal(node_of(&theirs, 2, &reader)->duration_micros, 1);
	assert_int_equal(node_of(&ours, 3, &reader)->duration_micros, 8);
	assert_int_equal(node_of(&theirs, 3, &reader)->duration_micros, 0);
}

static void test_work_waits_for_what_ended_before_on_its_stream(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};

	add_roots(trace);
	add_host(trace, 2, 1, "aten::mm", 10, 5);
	add_device(trace, 3, 2, "a", 7, 20, 10);
	add_device(trace, 4, 2, "b", 7, 30, 10); /* begins when a ends */
	add_device(trace, 5, 2, "beside b", 7, 35, 10);
	add_device(trace, 6, 2, "after both", 7, 50, 5);
	add_device(trace, 7, 2, "elsewhere", 9, 60, 5);
	add_device(trace, 8, 2, "nothing long", 7, 55, 0);
	add_device(trace, 9, 2, "at the same time", 7, 55, 1);
	converted = convert(trace, NULL);
	assert_deps(&converted, 3, "2 | 2");
	assert_deps(&converted, 4, "2 | 2 3");
	assert_deps(&converted, 5, "2 | 2 3");
	assert_deps(&converted, 6, "2 | 2 5 4");
	assert_deps(&converted, 7, "2 | 2");
	assert_deps(&converted, 8, "2 | 2 6");
	assert_deps(&converted, 9, "2 | 2 8");
	assert_int_equal(converted.result.deps[CHAKRA_DEP_STREAM], 6);
}

static uint32_t add_dep(struct execution_trace *trace, uint64_t id)
{
	assert_int_equal(array_append(&trace->deps, id), 0);
	return (uint32_t)trace->deps.count - 1;
}

static void test_events_threads_and_the_device(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node;

	add_roots(trace);
	add_host(trace, 2, 1, "aten::mm", 10, 5);
	add_device(trace, 3, 2, "a", 7, 20, 10);
	add_device(trace, 4, 2, "b", 9, 35, 10);
	node = &trace->nodes.items[4];
	node->first_order_dep = add_dep(trace, 3);
	node->order_dep_count = 1;
	node = add_host(trace, 5, 1, "aten::item", 50, 5);
	node->first_sync_dep = add_dep(trace, 4);
	add_dep(trace, 99);
	add_dep(trace, 7);
	node->sync_dep_count = 3; /* one of them is not there, one begins later */
	add_host(trace, 6, 0, "[pytorch|profiler|execution_trace|thread]", -1, 0)->tid = 2;
	node = add_host(trace, 7, 6, "autograd::engine", 60, 5);
	node->tid = 2;
	node->inter_thread_dep = 5;
	add_device(trace, 8, 1, "outside of operators", 11, 70, 1);
	trace->nodes.items[trace->nodes.count - 1].inter_thread_dep = 5;
	converted = convert(trace, NULL);
	assert_deps(&converted, 4, "2 | 2 3");
	assert_deps(&converted, 5, "1 | 4 2");
	assert_deps(&converted, 8, "1 | 1 5");
	assert_deps(&converted, 6, "|");
	assert_deps(&converted, 7, "6 | 5 6");
	assert_int_equal(converted.result.missing_deps, 1);
	assert_int_equal(converted.result.late_deps, 1);
	assert_int_equal(converted.result.deps[CHAKRA_DEP_EVENT], 1);
}

static void test_operators_without_their_caller(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};

	add_roots(trace);
	add_host(trace, 2, 1, "aten::mm", 10, 5);
	add_host(trace, 5, 4, "aten::relu", 20, 5); /* 4 was not written any more */
	add_host(trace, 6, 5, "aten::clamp_min", 21, 2);
	add_device(trace, 7, 4, "lost", 7, 30, 2);
	converted = convert(trace, NULL);
	assert_deps(&converted, 5, "1 | 2");
	assert_deps(&converted, 6, "5 | 5");
	assert_deps(&converted, 7, "|");
	assert_int_equal(converted.result.missing_deps, 2);
}

static void test_repeated_ids_and_any_order_of_the_file(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_execution_trace_ struct execution_trace *other = new_example();
	_cleanup_converted_ struct converted converted = {0}, reversed = {0};

	add_operators(trace);
	for (size_t i = trace->nodes.count; i > 0; i--)
		assert_int_equal(array_append(&other->nodes, trace->nodes.items[i - 1]), 0);
	array_foreach (&trace->works, work)
		assert_int_equal(array_append(&other->works, *work), 0);
	add_host(trace, 3, 1, "aten::mm again", 60, 1);
	converted = convert(trace, NULL);
	reversed = convert(other, NULL);
	assert_int_equal(converted.result.repeated_ids, 1);
	assert_int_equal(reversed.result.repeated_ids, 0);
	assert_int_equal(converted.bytes.length, reversed.bytes.length);
	assert_memory_equal(converted.bytes.data, reversed.bytes.data, reversed.bytes.length);
}

/* 2 → 3 in its thread, and 3 is what 2 waited for in another one, as if nothing had a time. */
static void test_cycles_are_told_and_cut(void **state _unused_)
{
	static const struct chakra_convert_options cut = {.break_cycles = true};
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted whole = {0}, broken = {0};

	add_roots(trace);
	add_host(trace, 2, 1, "aten::mm", -1, 0)->inter_thread_dep = 4;
	add_host(trace, 3, 1, "aten::relu", -1, 0);
	add_host(trace, 4, 1, "aten::add", -1, 0);
	whole = convert(trace, NULL);
	assert_int_equal(whole.status, -ELOOP);
	assert_non_null(strstr(whole.err.text,
		"3 nodes of example wait for themselves, such as 2 aten::mm -> 4 aten::add -> 3 "
		"aten::relu -> 2"));
	assert_non_null(strstr(whole.err.text, "--break-cycles"));
	broken = convert(trace, &cut);
	assert_int_equal(broken.status, 0);
	assert_int_equal(broken.result.cycles, 1);
	assert_int_equal(broken.result.cut_deps, 1);
	assert_deps(&broken, 2, "1 | 1");
	assert_deps(&broken, 4, "1 | 3");
}

/* Callers of one another, and one that called itself: foreign files have anything. */
static void test_callers_in_a_circle(void **state _unused_)
{
	static const struct chakra_convert_options cut = {.break_cycles = true},
						   compat = {.definition = &chakra_converter};
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted whole = {0}, broken = {0}, theirs = {0};

	add_host(trace, 2, 3, "a", 10, 1);
	add_host(trace, 3, 2, "b", 11, 1);
	add_host(trace, 4, 4, "c", 12, 1);
	whole = convert(trace, NULL);
	assert_int_equal(whole.status, -ELOOP);
	broken = convert(trace, &cut);
	assert_int_equal(broken.status, 0);
	assert_deps(&broken, 2, "|");
	assert_deps(&broken, 3, "2 |");
	assert_deps(&broken, 4, "|");
	theirs = convert(trace, &compat);
	assert_int_equal(theirs.status, 0); /* nothing depends on anything: nothing is left */
	assert_int_equal(theirs.result.nodes, 0);
}

static void test_copies_are_memory_nodes(void **state _unused_)
{
	static const struct chakra_convert_options none = {.no_memory_nodes = true};
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0}, without = {0};

	add_roots(trace);
	add_host(trace, 2, 1, "aten::copy_", 10, 5);
	add_device(trace, 3, 2, "Memcpy HtoD (Pinned -> Device)", 7, 20, 1)->bytes = 4096;
	add_device(trace, 4, 2, "Memcpy DtoH (Device -> Pinned)", 7, 30, 1)->bytes = 64;
	add_device(trace, 5, 2, "Memcpy DtoD (Device -> Device)", 7, 40, 1)->bytes = 32;
	add_device(trace, 6, 2, "Memset (Device)", 7, 50, 1)->category = text_of("gpu_memset");
	converted = convert(trace, NULL);
	assert_type(&converted, 3, TYPE(MEM_LOAD_NODE));
	assert_type(&converted, 4, TYPE(MEM_STORE_NODE));
	assert_type(&converted, 5, TYPE(COMP_NODE));
	assert_type(&converted, 6, TYPE(COMP_NODE));
	assert_attribute(&converted, 3, "tensor_size", "4096");
	assert_attribute(&converted, 3, "num_ops", "none");
	assert_attribute(&converted, 5, "num_ops", "1");
	assert_attribute(&converted, 5, "num_ops_rule", "copy");
	without = convert(trace, &none);
	assert_type(&without, 3, TYPE(COMP_NODE));
	assert_attribute(&without, 3, "num_ops_rule", "copy");
}

static void test_nothing_to_convert(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = convert(trace, NULL);

	assert_int_equal(converted.status, -ENODATA);
	assert_non_null(strstr(converted.err.text, "nothing to convert"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_and_the_order_of_a_thread),
		cmocka_unit_test(test_compat_keeps_the_dependency_on_what_it_removes),
		cmocka_unit_test(test_microseconds_are_rounded_and_compat_cuts_them),
		cmocka_unit_test(test_work_waits_for_what_ended_before_on_its_stream),
		cmocka_unit_test(test_events_threads_and_the_device),
		cmocka_unit_test(test_operators_without_their_caller),
		cmocka_unit_test(test_repeated_ids_and_any_order_of_the_file),
		cmocka_unit_test(test_cycles_are_told_and_cut),
		cmocka_unit_test(test_callers_in_a_circle),
		cmocka_unit_test(test_copies_are_memory_nodes),
		cmocka_unit_test(test_nothing_to_convert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
