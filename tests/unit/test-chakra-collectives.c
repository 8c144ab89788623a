/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes communicate and compute, by what PyTorch and the device trace say of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chakra-example.h"

#define ALL_REDUCE_KERNEL "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"

/* 3 is the operator that PyTorch describes, 4 the kernel below it. */
static struct execution_node *add_communication(
	struct execution_trace *trace, const char *kernel, struct execution_work **ret_work)
{
	struct execution_work *work;

	add_roots(trace);
	add_host(trace, 2, 1, "c10d::something", 10, 9);
	add_host(trace, 3, 2, "record_param_comms", 11, 7);
	work = add_device(trace, 4, 3, kernel, 24, 30, 100);
	if (ret_work)
		*ret_work = work;
	return &trace->nodes.items[3];
}

static void test_by_what_the_device_trace_says(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_work *work;

	add_communication(
		trace, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", &work);
	work->collective = text_of("_reduce_scatter_base");
	work->dtype = text_of("BFloat16");
	work->in_elements = 1000;
	work->group_name = text_of("3");
	work->group_ranks = text_of("[0, 2, 4]");
	work->group_size = 3;
	converted = convert(trace, NULL);
	assert_attribute(&converted, 4, "comm_type", "7");
	assert_attribute(&converted, 4, "comm_size", "2000");
	assert_attribute(&converted, 4, "pg_name", "3");
	assert_attribute(&converted, 4, "pg_ranks", "0, 2, 4");
	assert_attribute(&converted, 4, "pg_size", "3");
	assert_attribute(&converted, 4, "num_ops", "none");
	assert_deps(&converted, 4, "3 | 3");
	assert_int_equal(converted.result.types[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE], 1);
}

/* Schema 1.1.0: attributes; the group's ranks are in a node of their own. */
static void test_by_attributes_of_the_operator(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node = add_communication(trace, "ncclDevKernel_SendRecv(x)", NULL);

	node->other_attrs = text_of(
		"{\"name\": \"collective_name\", \"type\": \"string\", \"value\": "
		"\"all_to_allv\"},{\"name\": \"dtype\", \"type\": \"string\", \"value\": "
		"\"Float\"}, {\"name\": \"in_msg_nelems\", \"type\": \"uint64\", \"value\": "
		"12},{\"name\": \"pg_name\", \"type\": \"string\", \"value\": \"0\"},{\"name\": "
		"\"pg_size\", \"type\": \"uint64\", \"value\": 2}");
	node = add_host(trace, 9, 1, "## process_group:init ##", 5, 1);
	node->inputs.values = text_of("[\"[{\\\"pg_name\\\": \\\"0\\\", \\\"pg_desc\\\": "
				      "\\\"default_pg\\\", \\\"ranks\\\": [0, 1], "
				      "\\\"group_size\\\": 2}]\"]");
	converted = convert(trace, NULL);
	assert_attribute(&converted, 4, "comm_type", "6");
	assert_attribute(&converted, 4, "comm_size", "48");
	assert_attribute(&converted, 4, "pg_name", "0");
	assert_attribute(&converted, 4, "pg_desc", "default_pg");
	assert_attribute(&converted, 4, "pg_ranks", "0, 1");
	assert_int_equal(converted.result.types[CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE], 1);
}

/* Schema 1.0.3: all is in the operator's inputs. */
static void test_by_inputs_of_the_operator(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node = add_communication(trace, "ncclDevKernel_SendRecv(x)", NULL);
	static const struct chakra_convert_options options = {.has_rank = true, .rank = 5};

	node->inputs.values = text_of("[[[461, 462, 0, 100, 4, \"cuda:0\"]], 31, [\"0\", "
				      "\"default_pg\"], 3, \"send\", [], [], 0, 1, 8]");
	node->inputs.types = text_of("[\"GenericList[Tensor(float)]\", \"Int\", "
				     "\"Tuple[String,String]\", \"Int\", \"String\", "
				     "\"GenericList[]\", \"GenericList[]\", \"Int\", \"Int\", "
				     "\"Int\"]");
	converted = convert(trace, &options);
	assert_attribute(&converted, 4, "comm_type", "none");
	assert_attribute(&converted, 4, "comm_size", "400");
	assert_attribute(&converted, 4, "comm_src", "5");
	assert_attribute(&converted, 4, "comm_dst", "3");
	assert_attribute(&converted, 4, "comm_tag", "0");
	assert_attribute(&converted, 4, "pg_name", "0");
	assert_int_equal(converted.result.types[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE], 1);
}

static void test_by_name_alone(void **state _unused_)
{
	static const struct {
		const char *kernel, *kind;
	} cases[] = {
		{ALL_REDUCE_KERNEL, "0"},
		{"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "2"},
		{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "7"},
		{"ncclKernel_Broadcast_RING_LL_Sum_int8_t", "5"},
		{"ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", "1"},
		{"ncclDevKernel_SendRecv(x)", "6"},
		{"ncclDevKernel_Generic(x)", "none"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_execution_trace_ struct execution_trace *trace = new_example();
		_cleanup_converted_ struct converted converted = {0};

		add_communication(trace, cases[i].kernel, NULL);
		converted = convert(trace, NULL);
		assert_attribute(&converted, 4, "comm_type", cases[i].kind);
		assert_int_equal(
			converted.result.unknown_collectives, strcmp(cases[i].kind, "none") == 0);
	}
}

/* With gloo there is no kernel: the operator itself is the collective, unless it only waits. */
static void test_collectives_of_the_host(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node;

	add_roots(trace);
	node = add_host(trace, 2, 1, "record_param_comms", 10, 5);
	node->inputs.values = text_of("[[[4, 5, 0, 10, 8, \"cpu\"]], \"allgather\"]");
	node->inputs.types = text_of("[\"GenericList[Tensor(double)]\", \"String\"]");
	node = add_host(trace, 3, 1, "record_param_comms", 20, 5);
	node->inputs.values = text_of("[\"wait\"]");
	node->inputs.types = text_of("[\"String\"]");
	converted = convert(trace, NULL);
	assert_attribute(&converted, 2, "comm_type", "2");
	assert_attribute(&converted, 2, "comm_size", "80");
	assert_attribute(&converted, 2, "is_cpu_op", "true");
	assert_attribute(&converted, 3, "comm_type", "none");
}

/* As PyTorch 2.13 writes them: what the operator of c10d says, gloo does. */
static void test_collectives_of_gloo(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node;

	add_roots(trace);
	node = add_host(trace, 2, 1, "c10d::send", 10, 9);
	node->inputs.values = text_of("[[[4, 5, 0, 10, 8, \"cpu\"]], \"<Object>\", 1, 0]");
	node->inputs.types =
		text_of("[\"GenericList[Tensor(double)]\", \"Object\", \"Int\", \"Int\"]");
	node = add_host(trace, 3, 2, "gloo:send", 11, 5);
	node->inputs.values = text_of("[[4, 5, 0, 10, 8, \"cpu\"]]");
	node->inputs.types = text_of("[\"Tensor(double)\"]");
	node = add_host(trace, 4, 1, "gloo:all_reduce", 20, 5);
	node->inputs.values = text_of("[[4, 5, 0, 10, 8, \"cpu\"]]");
	node->inputs.types = text_of("[\"Tensor(double)\"]");
	add_host(trace, 5, 1, "gloo:barrier", 30, 5);
	converted = convert(trace, NULL);
	assert_attribute(&converted, 3, "comm_dst", "1");
	assert_attribute(&converted, 3, "comm_size", "80");
	assert_attribute(&converted, 4, "comm_type", "0");
	assert_attribute(&converted, 4, "comm_size", "80");
	assert_int_equal(converted.result.types[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE], 1);
	assert_int_equal(converted.result.types[CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE], 1);
}

static void test_operations_by_kind(void **state _unused_)
{
	static const struct {
		const char *name, *values, *shapes, *outputs, *operations, *rule;
	} cases[] = {
		{"aten::mm", "[]", "[[4, 5], [5, 6]]", "[[4, 6]]", "240", "formula"},
		{"aten::bmm", "[]", "[[3, 4, 5], [3, 5, 6]]", "[[3, 4, 6]]", "720", "formula"},
		{"aten::addmm", "[]", "[[6], [4, 5], [5, 6], [], []]", "[[4, 6]]", "240",
			"formula"},
		{"aten::linear", "[]", "[[2, 4, 5], [6, 5], [6]]", "[[2, 4, 6]]", "480", "formula"},
		{"aten::convolution", "[0, 0, 0, [1, 1], [0, 0], [1, 1], false, [0, 0], 1]",
			"[[1, 3, 8, 8], [16, 3, 3, 3], [16]]", "[[1, 16, 6, 6]]", "31104",
			"formula"},
		{"aten::convolution", "[0, 0, 0, [1, 1], [0, 0], [1, 1], true, [0, 0], 1]",
			"[[1, 16, 6, 6], [16, 3, 3, 3], []]", "[[1, 3, 8, 8]]", "31104", "formula"},
		{"aten::convolution_backward",
			"[0, 0, 0, [0], [1], [0], [1], false, [0], 1, [true, true, false]]",
			"[[1, 16, 6, 6], [1, 3, 8, 8], [16, 3, 3, 3]]", "[]", "62208", "formula"},
		{"aten::_scaled_dot_product_flash_attention", "[]",
			"[[2, 4, 10, 8], [2, 4, 12, 8], [2, 4, 12, 8]]", "[]", "30720", "formula"},
		{"aten::_scaled_dot_product_flash_attention_backward", "[]",
			"[[2, 4, 10, 8], [2, 4, 10, 8], [2, 4, 12, 8], [2, 4, 12, 8]]", "[]",
			"76800", "formula"},
		{"aten::mm", "[]", "[]", "[]", "1", "unknown"},
		{"aten::mystery", "[]", "[[4, 5]]", "[[4, 5]]", "1", "unknown"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_execution_trace_ struct execution_trace *trace = new_example();
		_cleanup_converted_ struct converted converted = {0};
		struct execution_node *node;

		add_roots(trace);
		node = add_host(trace, 2, 1, cases[i].name, 10, 5);
		node->inputs.values = text_of(cases[i].values);
		node->inputs.shapes = text_of(cases[i].shapes);
		node->outputs.shapes = text_of(cases[i].outputs);
		add_device(trace, 3, 2, "short", 7, 20, 1);
		add_device(trace, 4, 2, "long", 7, 30, 9);
		converted = convert(trace, NULL);
		assert_attribute(&converted, 4, "num_ops", cases[i].operations);
		assert_attribute(&converted, 4, "num_ops_rule", cases[i].rule);
		assert_attribute(&converted, 3, "num_ops_rule", "unknown");
		assert_attribute(&converted, 2, "num_ops", "none"); /* the device's, not its own */
	}
}

static void test_sizes_by_tensors(void **state _unused_)
{
	_cleanup_execution_trace_ struct execution_trace *trace = new_example();
	_cleanup_converted_ struct converted converted = {0};
	struct execution_node *node;

	add_roots(trace);
	node = add_host(trace, 2, 1, "aten::add", 10, 5);
	node->inputs.values = text_of("[[1, 2, 0, 20, 4, \"cuda:0\"], [[3, 4, 0, 7, 2, \"cpu\"], "
				      "[5, 6, 0, 8, 2, \"cpu\"]], 1]");
	node->inputs.types =
		text_of("[\"Tensor(float)\", \"GenericList[Tensor(c10::Half),Tensor(c10::Half)]\", "
			"\"Int\"]");
	node->outputs.values = text_of("[[7, 8, 0, 20, 4, \"cuda:0\"]]");
	node->outputs.types = text_of("[\"Tensor(float)\"]");
	add_device(trace, 3, 2, "vectorized_elementwise_kernel", 7, 20, 1);
	converted = convert(trace, NULL);
	assert_attribute(&converted, 3, "tensor_size", "190");
	assert_attribute(&converted, 3, "num_ops", "20");
	assert_attribute(&converted, 3, "num_ops_rule", "elements");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_what_the_device_trace_says),
		cmocka_unit_test(test_by_attributes_of_the_operator),
		cmocka_unit_test(test_by_inputs_of_the_operator),
		cmocka_unit_test(test_by_name_alone),
		cmocka_unit_test(test_collectives_of_the_host),
		cmocka_unit_test(test_collectives_of_gloo),
		cmocka_unit_test(test_operations_by_kind),
		cmocka_unit_test(test_sizes_by_tensors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
