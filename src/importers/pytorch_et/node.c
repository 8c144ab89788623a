/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of nodes. Which schema a file has is identified by the fields that are there:
 *   1.0.1            "parent", "rf_id" … in the node, "inputs" and "input_shapes" are lists
 *   1.0.2 and later  "ctrl_deps", "inputs" is an object of lists, the rest is in "attrs"
 *   linked           "ts", "inclusive_dur" … besides; "cat" in nodes of device work
 */
#include "importers/pytorch_et/node.h"

#include <errno.h>

#include "model/trace.h"

struct parse {
	struct json_reader *reader;
	struct execution_trace *trace;
	struct execution_node *node;
	struct execution_work work; /* of the node, when it has a category */
	/* Attributes that have no field: one piece of the text while they are neighbours. */
	const char *others_begin, *others_end;
	struct strbuf others;
	int error;
};

static enum json_status out_of_memory(struct parse *parse)
{
	parse->error = -ENOMEM;
	return JSON_BAD;
}

static enum json_status take_raw(struct parse *parse, struct execution_text *ret_text)
{
	struct json_text text;
	enum json_status status = json_reader_value(parse->reader, &text);

	if (status == JSON_OK && text.length > UINT32_MAX)
		return JSON_BAD;
	if (status == JSON_OK)
		*ret_text = (struct execution_text){text.bytes, (uint32_t)text.length};
	return status;
}

/* A string without its escapes, or the bytes of another value. */
static enum json_status keep_text(
	struct parse *parse, const struct json_text *value, struct execution_text *ret_text)
{
	struct json_text inside = json_text_inside(value);
	_cleanup_strbuf_ struct strbuf plain = {0};

	if (inside.length > UINT32_MAX)
		return JSON_BAD;
	*ret_text = (struct execution_text){inside.bytes, (uint32_t)inside.length};
	if (!inside.escaped)
		return JSON_OK;
	json_text_unescape(&plain, &inside);
	if (strbuf_status(&plain) < 0)
		return out_of_memory(parse);
	*ret_text = execution_trace_keep(parse->trace, strbuf_cstr(&plain), plain.length);
	return ret_text->bytes ? JSON_OK : out_of_memory(parse);
}

static enum json_status take_text(struct parse *parse, struct execution_text *ret_text)
{
	struct json_text value;
	enum json_status status = json_reader_value(parse->reader, &value);

	return status == JSON_OK ? keep_text(parse, &value, ret_text) : status;
}

/* What is no number of that kind leaves the value as it was. */
static enum json_status take_u64(struct parse *parse, uint64_t *ret_value)
{
	struct json_text value;
	enum json_status status = json_reader_value(parse->reader, &value);

	if (status == JSON_OK)
		json_text_u64(&value, ret_value);
	return status;
}

static enum json_status take_i64(struct parse *parse, int64_t *ret_value)
{
	struct json_text value;
	enum json_status status = json_reader_value(parse->reader, &value);

	if (status == JSON_OK)
		json_text_i64(&value, ret_value);
	return status;
}

/* Microseconds. */
static enum json_status take_ns(struct parse *parse, int64_t *ret_ns)
{
	struct json_text value;
	enum json_status status = json_reader_value(parse->reader, &value);

	if (status == JSON_OK)
		json_text_fixed(&value, 3, ret_ns);
	return status;
}

/* An id, or a list of them, of which the first counts. */
static enum json_status take_parent(struct parse *parse)
{
	struct json_text value;
	enum json_status status;
	bool has_parent = false;

	if (json_reader_peek(parse->reader) != '[')
		return take_u64(parse, &parse->node->parent);
	status = json_reader_enter(parse->reader, '[');
	while (status == JSON_OK && (status = json_reader_item(parse->reader)) == JSON_OK) {
		status = json_reader_value(parse->reader, &value);
		if (status == JSON_OK && !has_parent)
			has_parent = json_text_u64(&value, &parse->node->parent) == 0;
	}
	return status == JSON_DONE ? JSON_OK : status;
}

/* A list of ids, to the end of trace->deps. */
static enum json_status take_ids(struct parse *parse, uint32_t *ret_first, uint32_t *ret_count)
{
	size_t first = parse->trace->deps.count;
	struct json_text value;
	enum json_status status;
	uint64_t id;

	if (json_reader_peek(parse->reader) != '[')
		return json_reader_value(parse->reader, &value);
	status = json_reader_enter(parse->reader, '[');
	while (status == JSON_OK && (status = json_reader_item(parse->reader)) == JSON_OK) {
		status = json_reader_value(parse->reader, &value);
		if (status != JSON_OK || json_text_u64(&value, &id) < 0)
			continue;
		if (array_append(&parse->trace->deps, id) < 0)
			return out_of_memory(parse);
	}
	if (status != JSON_DONE || parse->trace->deps.count > UINT32_MAX)
		return status == JSON_DONE ? JSON_BAD : status;
	*ret_first = (uint32_t)first;
	*ret_count = (uint32_t)(parse->trace->deps.count - first);
	return JSON_OK;
}

static enum json_status take_size(struct parse *parse, uint32_t size[3])
{
	enum json_status status = json_reader_enter(parse->reader, '[');
	struct json_text value;
	uint64_t number;

	for (unsigned i = 0;
		status == JSON_OK && (status = json_reader_item(parse->reader)) == JSON_OK; i++) {
		status = json_reader_value(parse->reader, &value);
		if (status == JSON_OK && i < 3 && json_text_u64(&value, &number) == 0 &&
			number <= UINT32_MAX)
			size[i] = (uint32_t)number;
	}
	return status == JSON_DONE ? JSON_OK : status;
}

/* "inputs" or "outputs": an object of lists, or before 1.0.2 the list of values. */
static enum json_status take_values(struct parse *parse, struct execution_values *values)
{
	struct json_text key, rest;
	enum json_status status;

	if (json_reader_peek(parse->reader) != '{')
		return take_raw(parse, &values->values);
	status = json_reader_enter(parse->reader, '{');
	while (status == JSON_OK && (status = json_reader_member(parse->reader, &key)) == JSON_OK) {
		if (json_text_equals(&key, "values"))
			status = take_raw(parse, &values->values);
		else if (json_text_equals(&key, "shapes"))
			status = take_raw(parse, &values->shapes);
		else if (json_text_equals(&key, "types"))
			status = take_raw(parse, &values->types);
		else if (json_text_equals(&key, "strides"))
			status = take_raw(parse, &values->strides);
		else
			status = json_reader_value(parse->reader, &rest);
	}
	return status == JSON_DONE ? JSON_OK : status;
}

/* A field that is an attribute since 1.0.2. False: of another name. */
static bool set_field(struct parse *parse, const struct json_text *name,
	const struct json_text *value, enum json_status *ret_status)
{
	struct execution_node *node = parse->node;

	*ret_status = JSON_OK;
	if (json_text_equals(name, "rf_id"))
		json_text_u64(value, &node->rf_id);
	else if (json_text_equals(name, "fw_parent"))
		json_text_u64(value, &node->fw_parent);
	else if (json_text_equals(name, "seq_id"))
		json_text_i64(value, &node->seq_id);
	else if (json_text_equals(name, "scope"))
		json_text_u64(value, &node->scope);
	else if (json_text_equals(name, "tid"))
		json_text_u64(value, &node->tid);
	else if (json_text_equals(name, "fw_tid"))
		json_text_u64(value, &node->fw_tid);
	else if (json_text_equals(name, "op_schema"))
		*ret_status = keep_text(parse, value, &node->op_schema);
	else
		return false;
	return true;
}

static void add_other(struct parse *parse, const char *begin, const char *end, bool adjoins)
{
	if (!parse->others_begin) {
		parse->others_begin = begin;
	} else if (!adjoins || parse->others.length) {
		if (!parse->others.length)
			strbuf_add_bytes(&parse->others, parse->others_begin,
				(size_t)(parse->others_end - parse->others_begin));
		strbuf_add_char(&parse->others, ',');
		strbuf_add_bytes(&parse->others, begin, (size_t)(end - begin));
	}
	parse->others_end = end;
}

/* One object of "attrs". *is_other: it has no field of its own. */
static enum json_status take_attribute(struct parse *parse, bool *is_other)
{
	struct json_text name = {0}, value = {0}, rest, key;
	const char *begin = (json_reader_peek(parse->reader), parse->reader->at);
	enum json_status status = json_reader_enter(parse->reader, '{');
	bool adjoins = *is_other;

	while (status == JSON_OK && (status = json_reader_member(parse->reader, &key)) == JSON_OK) {
		if (json_text_equals(&key, "name"))
			status = json_reader_string(parse->reader, &name);
		else if (json_text_equals(&key, "value"))
			status = json_reader_value(parse->reader, &value);
		else
			status = json_reader_value(parse->reader, &rest);
	}
	if (status != JSON_DONE)
		return status;
	*is_other = !name.bytes || !value.bytes || !set_field(parse, &name, &value, &status);
	if (*is_other) {
		add_other(parse, begin, parse->reader->at, adjoins);
		status = JSON_OK;
	}
	return status;
}

static enum json_status take_attributes(struct parse *parse)
{
	enum json_status status = json_reader_enter(parse->reader, '[');
	bool is_other = false;

	while (status == JSON_OK && (status = json_reader_item(parse->reader)) == JSON_OK)
		status = take_attribute(parse, &is_other);
	return status == JSON_DONE ? JSON_OK : status;
}

/* What linking adds to all nodes. False: of another name. */
static bool take_linked(
	struct parse *parse, const struct json_text *key, enum json_status *ret_status)
{
	struct execution_node *node = parse->node;
	struct execution_text match;

	if (json_text_equals(key, "ts")) {
		*ret_status = take_ns(parse, &node->start_ns);
	} else if (json_text_equals(key, "inclusive_dur")) {
		*ret_status = take_ns(parse, &node->inclusive_ns);
	} else if (json_text_equals(key, "exclusive_dur")) {
		*ret_status = take_ns(parse, &node->exclusive_ns);
	} else if (json_text_equals(key, "inter_thread_dep")) {
		*ret_status = take_u64(parse, &node->inter_thread_dep);
	} else if (json_text_equals(key, "sync_dep")) {
		*ret_status = take_ids(parse, &node->first_sync_dep, &node->sync_dep_count);
	} else if (json_text_equals(key, "order_dep")) {
		*ret_status = take_ids(parse, &node->first_order_dep, &node->order_dep_count);
	} else if (json_text_equals(key, "match")) {
		*ret_status = take_text(parse, &match);
		if (*ret_status == JSON_OK)
			node->match = (uint8_t)execution_match_from_text(match);
	} else {
		return false;
	}
	return true;
}

static bool take_work_text(
	struct parse *parse, const struct json_text *key, enum json_status *ret_status)
{
	const struct {
		const char *name;
		struct execution_text *text;
	} texts[] = {
		{"cat", &parse->work.category},
		{"pg_name", &parse->work.group_name},
		{"pg_ranks", &parse->work.group_ranks},
		{"collective_name", &parse->work.collective},
		{"dtype", &parse->work.dtype},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (json_text_equals(key, texts[i].name)) {
			*ret_status = take_text(parse, texts[i].text);
			return true;
		}
	}
	return false;
}

static bool take_work_number(
	struct parse *parse, const struct json_text *key, enum json_status *ret_status)
{
	struct execution_work *work = &parse->work;
	const struct {
		const char *name;
		int64_t *number;
	} numbers[] = {
		{"stream", &work->stream},
		{"device", &work->device},
		{"in_msg_nelems", &work->in_elements},
		{"out_msg_nelems", &work->out_elements},
		{"pg_size", &work->group_size},
		{"src_rank", &work->source},
		{"dst_rank", &work->destination},
	};
	const struct {
		const char *name;
		uint64_t *number;
	} counts[] = {
		{"correlation", &work->correlation},
		{"bytes", &work->bytes},
		{"graph_id", &work->graph},
		{"graph_node_id", &work->graph_node},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (json_text_equals(key, numbers[i].name)) {
			*ret_status = take_i64(parse, numbers[i].number);
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (json_text_equals(key, counts[i].name)) {
			*ret_status = take_u64(parse, counts[i].number);
			return true;
		}
	}
	return false;
}

/* What linking adds to nodes of device work, and what no reader knows. */
static enum json_status take_work(struct parse *parse, const struct json_text *key)
{
	struct json_text rest;
	enum json_status status;

	if (take_work_text(parse, key, &status) || take_work_number(parse, key, &status))
		return status;
	if (json_text_equals(key, "grid"))
		return take_size(parse, parse->work.grid);
	if (json_text_equals(key, "block"))
		return take_size(parse, parse->work.block);
	return json_reader_value(parse->reader, &rest);
}

/* Before 1.0.2. */
static enum json_status take_flat(struct parse *parse, const struct json_text *key)
{
	struct execution_node *node = parse->node;
	struct json_reader before = *parse->reader;
	struct json_text value;
	enum json_status status;

	if (json_text_equals(key, "input_shapes"))
		return take_raw(parse, &node->inputs.shapes);
	if (json_text_equals(key, "input_types"))
		return take_raw(parse, &node->inputs.types);
	if (json_text_equals(key, "output_shapes"))
		return take_raw(parse, &node->outputs.shapes);
	if (json_text_equals(key, "output_types"))
		return take_raw(parse, &node->outputs.types);
	status = json_reader_value(parse->reader, &value);
	if (status != JSON_OK || set_field(parse, key, &value, &status))
		return status;
	*parse->reader = before;
	return take_work(parse, key);
}

static enum json_status take_member(struct parse *parse, const struct json_text *key)
{
	struct execution_node *node = parse->node;
	enum json_status status;

	if (json_text_equals(key, "id"))
		return take_u64(parse, &node->id);
	if (json_text_equals(key, "name"))
		return take_text(parse, &node->name);
	if (json_text_equals(key, "ctrl_deps") || json_text_equals(key, "parent"))
		return take_parent(parse);
	if (json_text_equals(key, "inputs"))
		return take_values(parse, &node->inputs);
	if (json_text_equals(key, "outputs"))
		return take_values(parse, &node->outputs);
	if (json_text_equals(key, "attrs"))
		return take_attributes(parse);
	return take_linked(parse, key, &status) ? status : take_flat(parse, key);
}

/* Attributes without a field, and the work of a node that has a category. */
static enum json_status end_node(struct parse *parse)
{
	struct execution_node *node = parse->node;
	struct execution_trace *trace = parse->trace;
	size_t length = (size_t)(parse->others_end - parse->others_begin);

	if (node->id == EXECUTION_NO_ID || parse->others.length > UINT32_MAX || length > UINT32_MAX)
		return JSON_BAD;
	if (strbuf_status(&parse->others) < 0)
		return out_of_memory(parse);
	if (parse->others.length) {
		node->other_attrs = execution_trace_keep(
			trace, strbuf_cstr(&parse->others), parse->others.length);
		if (!node->other_attrs.bytes)
			return out_of_memory(parse);
	} else if (length) {
		node->other_attrs = (struct execution_text){parse->others_begin, (uint32_t)length};
	}
	if (!parse->work.category.length)
		return JSON_OK;
	node->work = (uint32_t)trace->works.count;
	return array_append(&trace->works, parse->work) < 0 ? out_of_memory(parse) : JSON_OK;
}

enum json_status pytorch_et_node(struct json_reader *reader, struct execution_trace *trace,
	struct execution_node *ret_node, int *ret_error)
{
	const struct execution_text none = {"", 0};
	const struct execution_values no_values = {none, none, none, none};
	struct execution_node node = {
		.id = EXECUTION_NO_ID,
		.parent = EXECUTION_NO_ID,
		.name = none,
		.op_schema = none,
		.rf_id = EXECUTION_NO_ID,
		.seq_id = -1,
		.inputs = no_values,
		.outputs = no_values,
		.other_attrs = none,
		.start_ns = TRACE_NO_NUMBER,
		.inclusive_ns = TRACE_NO_NUMBER,
		.exclusive_ns = TRACE_NO_NUMBER,
		.work = MODEL_NONE,
		.inter_thread_dep = EXECUTION_NO_ID,
	};
	struct parse parse = {
		.reader = reader,
		.trace = trace,
		.node = &node,
		.work = {.category = none,
			.device = TRACE_NO_NUMBER,
			.stream = TRACE_NO_NUMBER,
			.group_name = none,
			.group_ranks = none,
			.collective = none,
			.dtype = none,
			.in_elements = TRACE_NO_NUMBER,
			.out_elements = TRACE_NO_NUMBER,
			.group_size = TRACE_NO_NUMBER,
			.source = TRACE_NO_NUMBER,
			.destination = TRACE_NO_NUMBER},
	};
	enum json_status status = json_reader_enter(reader, '{');
	struct json_text key;

	while (status == JSON_OK && (status = json_reader_member(reader, &key)) == JSON_OK)
		status = take_member(&parse, &key);
	if (status == JSON_DONE)
		status = end_node(&parse);
	strbuf_done(&parse.others);
	*ret_error = parse.error;
	if (status == JSON_OK)
		*ret_node = node;
	return status;
}
