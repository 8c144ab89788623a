/* SPDX-License-Identifier: Apache-2.0 */
/* Execution traces made by hand, converted in memory and read back. */
#pragma once

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chakra/convert/convert.h"
#include "model/trace.h"

#define US 1000

static struct execution_text text_of(const char *bytes)
{
	return (struct execution_text){bytes, (uint32_t)strlen(bytes)};
}

static struct execution_trace *new_example(void)
{
	struct execution_trace *trace = execution_trace_new("example");

	assert_non_null(trace);
	trace->schema = text_of("1.1.1-chakra.0.0.4");
	trace->time = text_of("2026-11-21 10:00:00");
	return trace;
}

/* Valid until the next one is added. */
static struct execution_node *add_host(struct execution_trace *trace, uint64_t id, uint64_t parent,
	const char *name, int64_t start_us, int64_t duration_us)
{
	struct execution_node node = {
		.id = id,
		.parent = parent,
		.name = text_of(name),
		.rf_id = id,
		.seq_id = -1,
		.tid = 1,
		.start_ns = start_us < 0 ? TRACE_NO_NUMBER : start_us * US,
		.inclusive_ns = start_us < 0 ? TRACE_NO_NUMBER : duration_us * US,
		.exclusive_ns = start_us < 0 ? TRACE_NO_NUMBER : duration_us * US,
		.work = MODEL_NONE,
		.inter_thread_dep = EXECUTION_NO_ID,
	};

	assert_int_equal(array_append(&trace->nodes, node), 0);
	return &trace->nodes.items[trace->nodes.count - 1];
}

static struct execution_work *add_device(struct execution_trace *trace, uint64_t id,
	uint64_t parent, const char *name, int64_t stream, int64_t start_us, int64_t duration_us)
{
	struct execution_work work = {
		.category = text_of(strncmp(name, "Mem", 3) ? "kernel" : "gpu_memcpy"),
		.device = 0,
		.stream = stream,
		.in_elements = TRACE_NO_NUMBER,
		.out_elements = TRACE_NO_NUMBER,
		.group_size = TRACE_NO_NUMBER,
		.source = TRACE_NO_NUMBER,
		.destination = TRACE_NO_NUMBER,
	};

	add_host(trace, id, parent, name, start_us, duration_us)->work =
		(uint32_t)trace->works.count;
	assert_int_equal(array_append(&trace->works, work), 0);
	return &trace->works.items[trace->works.count - 1];
}

/* The process, its one thread, and below it whatever comes. */
static void add_roots(struct execution_trace *trace)
{
	add_host(trace, 0, 0, "[pytorch|profiler|execution_trace|process]", -1, 0);
	add_host(trace, 1, 0, "[pytorch|profiler|execution_trace|thread]", -1, 0);
}

struct converted {
	struct strbuf bytes;
	struct chakra_convert_result result;
	struct errmsg err;
	int status;
};

static struct converted convert(
	struct execution_trace *trace, const struct chakra_convert_options *options)
{
	_cleanup_chakra_graph_ struct chakra_graph *graph = NULL;
	struct converted converted = {0};
	struct et_writer *writer;

	assert_int_equal(execution_trace_index(trace), 0);
	converted.status =
		chakra_convert(&graph, trace, options, &converted.result, &converted.err);
	if (converted.status < 0)
		return converted;
	assert_int_equal(et_writer_open_memory(&writer, &converted.bytes), 0);
	assert_int_equal(chakra_write(graph, options, writer), 0);
	assert_int_equal(et_writer_close(writer, NULL, NULL), 0);
	return converted;
}

static void converted_done(struct converted *converted)
{
	strbuf_done(&converted->bytes);
}
#define _cleanup_converted_ _cleanup_(converted_done)

/* The node of that id, which lives as long as *ret_reader. */
static const et_node *node_of(
	const struct converted *converted, uint64_t id, struct et_reader **ret_reader)
{
	const et_node *node = NULL;
	struct errmsg err;

	et_reader_free(*ret_reader);
	*ret_reader = NULL;
	assert_int_equal(et_reader_open_bytes(ret_reader, converted->bytes.data,
				 converted->bytes.length, "example", &err),
		0);
	while (et_reader_next(*ret_reader, &node, &err) == 1) {
		if (node->id == id)
			return node;
	}
	return NULL;
}

/* "ctrl | data": ids in their order. */
static void assert_deps(const struct converted *converted, uint64_t id, const char *wanted)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	_cleanup_strbuf_ struct strbuf text = {0};
	const et_node *node = node_of(converted, id, &reader);

	assert_non_null(node);
	for (size_t i = 0; i < node->n_ctrl_deps; i++)
		strbuf_addf(&text, "%llu ", (unsigned long long)node->ctrl_deps[i]);
	strbuf_add_char(&text, '|');
	for (size_t i = 0; i < node->n_data_deps; i++)
		strbuf_addf(&text, " %llu", (unsigned long long)node->data_deps[i]);
	assert_string_equal(strbuf_cstr(&text), wanted);
}

/* The attribute as text: numbers, "true", strings, "[1, 2]"; "none". */
static void assert_attribute(
	const struct converted *converted, uint64_t id, const char *name, const char *wanted)
{
	_cleanup_et_reader_ struct et_reader *reader = NULL;
	_cleanup_strbuf_ struct strbuf text = {0};
	const et_node *node = node_of(converted, id, &reader);
	const et_attribute *attribute;

	assert_non_null(node);
	attribute = et_find_attribute(node, name);
	if (!attribute)
		strbuf_add(&text, "none");
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL)
		strbuf_addf(&text, "%lld", (long long)attribute->int64_val);
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL)
		strbuf_addf(&text, "%d", attribute->int32_val);
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL)
		strbuf_addf(&text, "%llu", (unsigned long long)attribute->uint64_val);
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL)
		strbuf_add(&text, attribute->bool_val ? "true" : "false");
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL)
		strbuf_add(&text, attribute->string_val);
	else if (attribute->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_LIST)
		for (size_t i = 0; i < attribute->int64_list->n_values; i++)
			strbuf_addf(&text, "%s%lld", i ? ", " : "",
				(long long)attribute->int64_list->values[i]);
	assert_string_equal(strbuf_cstr(&text), wanted);
}
