/* SPDX-License-Identifier: Apache-2.0 */
/* Execution traces of every schema, whole, damaged and cut at every byte. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "importers/pytorch_et/pytorch_et.h"
#include "model/trace.h"

static struct errmsg err;

/* The text must outlive the trace. */
static int parse(const char *bytes, size_t length, struct execution_trace **ret_trace)
{
	_cleanup_execution_trace_ struct execution_trace *trace = execution_trace_new("et.json");
	int r;

	assert_non_null(trace);
	trace->bytes = bytes;
	trace->length = length;
	r = pytorch_et_parse(trace, &err);
	if (r == 0)
		*ret_trace = TAKE_PTR(trace);
	return r;
}

static struct execution_trace *parsed(const char *text)
{
	struct execution_trace *trace = NULL;

	assert_int_equal(parse(text, strlen(text), &trace), 0);
	return trace;
}

static void assert_text(struct execution_text text, const char *expected)
{
	assert_int_equal(text.length, strlen(expected));
	assert_memory_equal(text.bytes, expected, text.length);
}

#define NODES(...)                                                                                 \
	"{\"schema\":\"1.0.2-chakra.0.0.4\",\"pid\":7,\"time\":\"2026\",\"start_ts\":3,"           \
	"\n\"nodes\":[\n" __VA_ARGS__ "\n],\"finish_ts\":9}\n"
#define NODE(id, name)                                                                             \
	"{\"id\":" id ",\"name\":\"" name "\",\"ctrl_deps\":1,\"inputs\":{\"values\":[],"          \
	"\"shapes\":[],\"types\":[]},\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},"      \
	"\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":" id "}]}"

static void test_the_layout_before_1_0_2(void **state)
{
	_cleanup_execution_trace_ struct execution_trace *trace = parsed(
		"{\"schema\": \"1.0.1\", \"pid\": 5, \"time\": \"t\", \"start_ts\": 1, \"nodes\": "
		"[\n"
		"  {\"name\": \"aten::to\", \"id\": 5, \"rf_id\": 4, \"parent\": 2, \"fw_parent\": "
		"3, \"seq_id\": -1, \"scope\": 7, \"tid\": 1, \"fw_tid\": 6, \"op_schema\": "
		"\"to(\\\"x\\\")\",\n"
		"   \"inputs\": [[3,4],\"<None>\"], \"input_shapes\": [[4],[]], \"input_types\": "
		"[\"T\",\"N\"],\n"
		"   \"outputs\": [1], \"output_shapes\": [[]], \"output_types\": [\"Int\"]}\n] }");
	const struct execution_node *node = &trace->nodes.items[0];

	assert_int_equal(trace->nodes.count, 1);
	assert_int_equal(trace->pid, 5);
	assert_false(trace->has_finish);
	assert_text(trace->schema, "1.0.1");
	assert_text(node->name, "aten::to");
	assert_text(node->op_schema, "to(\"x\")");
	assert_text(node->inputs.values, "[[3,4],\"<None>\"]");
	assert_text(node->inputs.shapes, "[[4],[]]");
	assert_text(node->outputs.types, "[\"Int\"]");
	assert_int_equal(node->id, 5);
	assert_int_equal(node->rf_id, 4);
	assert_int_equal(node->parent, 2);
	assert_int_equal(node->fw_parent, 3);
	assert_int_equal(node->seq_id, -1);
	assert_int_equal(node->scope, 7);
	assert_int_equal(node->tid, 1);
	assert_int_equal(node->fw_tid, 6);
	assert_int_equal(node->start_ns, TRACE_NO_NUMBER);
	assert_int_equal(node->work, MODEL_NONE);
}

static void test_attributes_without_a_field_are_kept(void **state)
{
	_cleanup_execution_trace_ struct execution_trace *trace = parsed(
		NODES("{\"id\":4,\"name\":\"n\",\"ctrl_deps\":[2,3],\"inputs\":{\"values\":[1],"
		      "\"shapes\":[[]],\"types\":[\"Int\"],\"strides\":[[]]},\"attrs\":["
		      "{\"name\":\"a\",\"value\":1},{\"name\":\"tid\",\"value\":9},{\"name\":\"b\","
		      "\"value\":2}]},"
		      "{\"id\":5,\"attrs\":[{\"name\":\"rf_id\",\"value\":8},{\"name\":\"a\","
		      "\"value\":1}, "
		      "{\"name\":\"b\",\"value\":[{}]}]}"));
	const struct execution_node *first = &trace->nodes.items[0], *second = first + 1;

	assert_int_equal(trace->nodes.count, 2);
	assert_int_equal(first->parent, 2);
	assert_int_equal(first->tid, 9);
	assert_int_equal(first->rf_id, EXECUTION_NO_ID);
	assert_text(first->inputs.strides, "[[]]");
	assert_text(
		first->other_attrs, "{\"name\":\"a\",\"value\":1},{\"name\":\"b\",\"value\":2}");
	assert_int_equal(second->parent, EXECUTION_NO_ID);
	assert_int_equal(second->rf_id, 8);
	assert_text(second->other_attrs,
		"{\"name\":\"a\",\"value\":1}, {\"name\":\"b\",\"value\":[{}]}");
	assert_true(trace->has_finish);
	assert_int_equal(trace->finish_ts, 9);
}

static void test_fields_of_linked_traces(void **state)
{
	_cleanup_execution_trace_ struct execution_trace *trace = parsed(NODES(
		"{\"id\":1,\"name\":\"op\",\"ts\":17.25,\"inclusive_dur\":5,\"exclusive_dur\":2."
		"001,"
		"\"inter_thread_dep\":null,\"sync_dep\":[3,4],\"match\":\"tree\"},"
		"{\"id\":2,\"name\":\"gemm\",\"ts\":20,\"inclusive_dur\":1,\"exclusive_dur\":1,"
		"\"inter_thread_dep\":0,\"cat\":\"kernel\",\"ph\":\"X\",\"stream\":7,\"pg_name\":"
		"\"0\","
		"\"grid\":[1,2,3],\"order_dep\":[9],\"bytes\":11}"));
	const struct execution_node *op = &trace->nodes.items[0], *kernel = op + 1;

	assert_int_equal(op->start_ns, 17250);
	assert_int_equal(op->inclusive_ns, 5000);
	assert_int_equal(op->exclusive_ns, 2001);
	assert_int_equal(op->inter_thread_dep, EXECUTION_NO_ID);
	assert_int_equal(op->sync_dep_count, 2);
	assert_int_equal(trace->deps.items[op->first_sync_dep + 1], 4);
	assert_int_equal(op->match, EXECUTION_BY_TREE);
	assert_int_equal(kernel->inter_thread_dep, 0);
	assert_int_equal(kernel->order_dep_count, 1);
	assert_int_equal(kernel->work, 0);
	assert_text(trace->works.items[0].category, "kernel");
	assert_text(trace->works.items[0].group_name, "0");
	assert_int_equal(trace->works.items[0].stream, 7);
	assert_int_equal(trace->works.items[0].device, TRACE_NO_NUMBER);
	assert_int_equal(trace->works.items[0].grid[2], 3);
	assert_int_equal(trace->works.items[0].bytes, 11);
}

/* The nodes' ids as digits; they are below 10 here. */
static void assert_ids(const char *text, const char *ids, uint64_t skipped)
{
	_cleanup_execution_trace_ struct execution_trace *trace = parsed(text);

	assert_int_equal(trace->nodes.count, strlen(ids));
	for (size_t i = 0; i < trace->nodes.count; i++)
		assert_int_equal(trace->nodes.items[i].id, ids[i] - '0');
	assert_int_equal(trace->skipped_nodes, skipped);
	assert_true(skipped == 0 || trace->skipped_bytes > 0);
}

static void test_a_broken_node_costs_itself(void **state)
{
	assert_ids(NODES(NODE("1", "a") "," NODE("2", "b")), "12", 0);
	assert_ids(NODES(NODE("1", "a") NODE("2", "b") ",," NODE("3", "c")), "123", 0);
	/* A name that ends in its middle, one that was cut, and one without an id. */
	assert_ids(NODES(NODE("1", "say \"hi\" loud") "," NODE("2", "b")), "12", 0);
	assert_ids(
		NODES(NODE("1", "a") ",{\"id\":2,\"name\":\"b\",\"inputs\":{\"val," NODE("3", "c")),
		"13", 1);
	assert_ids(NODES(NODE("1", "a") ",{\"name\":\"x\"}," NODE("3", "c")), "13", 1);
	/* Two threads that wrote into one another. */
	assert_ids(
		NODES(NODE("1",
			"a") ",{\"id\":2,\"name\":{\"id\":3,\"na\"b\",\"x\":[]}me\":1}," NODE("4",
			"c")),
		"14", 2);
	/* Objects within a node that begin as nodes do. */
	assert_ids(
		NODES("{\"id\":1,\"inputs\":{\"values\":[{\"id\":5},{\"id\":6}]}}," NODE("2", "b")),
		"12", 0);
}

static void test_a_broken_beginning(void **state)
{
	assert_ids(
		"\"schema\":\"1.0\",\"nodes\":[" NODE("1", "a") "," NODE("2", "b") "]}", "12", 0);
	assert_ids("{\"schema\":1.0.1],\n\"no" NODE("1", "a") "," NODE("2", "b") "]", "12", 0);
}

static void test_a_quote_in_a_name(void **state)
{
	_cleanup_execution_trace_ struct execution_trace *trace =
		parsed(NODES(NODE("1", "say \"hi\" loud") "," NODE("2", "b")));

	assert_text(trace->nodes.items[0].name, "say \"hi\" loud");
	assert_int_equal(trace->nodes.items[0].rf_id, 1);
}

static void test_cut_at_every_byte(void **state)
{
	static const char text[] = NODES(NODE("2", "a{\\\"id\\\":") "," NODE("3", "b") ",\n" NODE(
		"4", "\xc3\xa9\x01") "," NODE("5", "c"));
	size_t before = 0;

	for (size_t length = 0; length < sizeof(text); length++) {
		_cleanup_execution_trace_ struct execution_trace *trace = NULL;
		_cleanup_free_ char *bytes = malloc(length + 1);
		int r;

		assert_non_null(bytes);
		memcpy(bytes, text, length);
		r = parse(bytes, length, &trace);
		assert_true(r == 0 || r == -ENODATA);
		if (r < 0) {
			assert_int_equal(before, 0);
			continue;
		}
		/* Whole nodes are there, and what is there is right. */
		assert_true(trace->nodes.count >= before);
		before = trace->nodes.count;
		for (size_t i = 0; i < trace->nodes.count; i++)
			assert_int_equal(trace->nodes.items[i].id, i + 2);
		assert_true(length + 3 >= sizeof(text) || trace->truncated);
	}
	assert_int_equal(before, 4);
}

static void test_what_is_no_execution_trace(void **state)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"nodes\":[]}", "{\"nodes\":7}", "\"",
		"{\"nodes\":[{\"name\":\"x\"}]}"};
	struct execution_trace *trace = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(parse(texts[i], strlen(texts[i]), &trace), -ENODATA);
	assert_int_equal(parse("{\"traceEvents\":[{\"id\":1}]}", 26, &trace), -ENODATA);
	assert_non_null(strstr(err.text, "Kineto"));
}

static void test_sizes_that_nobody_expects(void **state)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_execution_trace_ struct execution_trace *trace = NULL;

	strbuf_add(&text, "{\"nodes\":[{\"id\":18446744073709551614,\"name\":\"");
	for (unsigned i = 0; i < 1 << 20; i++)
		strbuf_add_char(&text, 'n');
	strbuf_add(&text, "\",\"inputs\":{\"values\":");
	for (unsigned i = 0; i < 1000000; i++)
		strbuf_add_char(&text, '[');
	for (unsigned i = 0; i < 1000000; i++)
		strbuf_add_char(&text, ']');
	strbuf_add(&text, "}},{\"id\":18446744073709551614}]}");
	assert_int_equal(strbuf_status(&text), 0);
	assert_int_equal(parse(text.data, text.length, &trace), 0);
	assert_int_equal(trace->nodes.count, 2);
	assert_int_equal(trace->nodes.items[0].name.length, 1 << 20);
	assert_int_equal(trace->nodes.items[0].inputs.values.length, 2000000);
	assert_int_equal(trace->repeated_ids, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_layout_before_1_0_2),
		cmocka_unit_test(test_attributes_without_a_field_are_kept),
		cmocka_unit_test(test_fields_of_linked_traces),
		cmocka_unit_test(test_a_broken_node_costs_itself),
		cmocka_unit_test(test_a_broken_beginning),
		cmocka_unit_test(test_a_quote_in_a_name),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_what_is_no_execution_trace),
		cmocka_unit_test(test_sizes_that_nobody_expects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
