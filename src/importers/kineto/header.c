/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says about itself, outside of its events. */
#include "importers/kineto/parser.h"

#include <errno.h>

static struct json_reader inside_of(const struct json_text *value)
{
	return (struct json_reader){
		.at = value->bytes, .end = value->bytes + value->length, .is_last = true};
}

/* A number that fits; else what it was before. */
static void read_u32(const struct json_text *value, uint32_t *number)
{
	const struct json_text text = json_text_inside(value);
	uint64_t wide;

	if (json_text_u64(&text, &wide) == 0 && wide < UINT32_MAX)
		*number = (uint32_t)wide;
}

static int read_group_member(struct kineto_parser *parser, const struct json_text *key,
	const struct json_text *value, struct trace_group *group)
{
	const struct json_text text = json_text_inside(value);

	if (json_text_equals(key, "pg_name"))
		return kineto_add_string(parser, value, &group->name);
	if (json_text_equals(key, "pg_desc"))
		return kineto_add_string(parser, value, &group->description);
	if (json_text_equals(key, "backend_config"))
		return kineto_add_string(parser, value, &group->backend);
	if (json_text_equals(key, "ranks"))
		return kineto_add_json(parser, value, &group->ranks);
	if (json_text_equals(key, "pg_size") || json_text_equals(key, "group_size")) {
		if (json_text_i64(&text, &group->size) < 0)
			group->size = TRACE_NO_NUMBER;
	}
	return 0;
}

static int read_group(struct kineto_parser *parser, struct json_reader *reader)
{
	struct trace_group group = {.size = TRACE_NO_NUMBER};
	enum json_status status = json_reader_enter(reader, '{');
	struct json_text key, value;
	int r;

	while (status == JSON_OK) {
		status = json_reader_member(reader, &key);
		if (status == JSON_OK)
			status = json_reader_value(reader, &value);
		if (status != JSON_OK)
			break;
		r = read_group_member(parser, &key, &value, &group);
		if (r < 0)
			return r;
	}
	if (status != JSON_DONE)
		return (int)status;
	return array_append(&parser->trace->groups, group);
}

/* What cannot be read of the groups is left out: kept texts have it all the same. */
static int read_groups(struct kineto_parser *parser, const struct json_text *value)
{
	struct json_reader reader = inside_of(value);
	int r = (int)json_reader_enter(&reader, '[');

	while (r == JSON_OK && json_reader_item(&reader) == JSON_OK)
		r = read_group(parser, &reader);
	return MIN(r, 0);
}

static int read_distributed(struct kineto_parser *parser, const struct json_text *value)
{
	struct json_reader reader = inside_of(value);
	enum json_status status = json_reader_enter(&reader, '{');
	struct json_text key, member;
	int r = 0;

	while (status == JSON_OK && r == 0) {
		status = json_reader_member(&reader, &key);
		if (status == JSON_OK)
			status = json_reader_value(&reader, &member);
		if (status != JSON_OK)
			break;
		if (json_text_equals(&key, "rank"))
			read_u32(&member, &parser->trace->rank);
		else if (json_text_equals(&key, "world_size"))
			read_u32(&member, &parser->trace->world_size);
		else if (json_text_equals(&key, "backend"))
			r = kineto_add_string(parser, &member, &parser->trace->backend);
		else if (json_text_equals(&key, "pg_config"))
			r = read_groups(parser, &member);
	}
	return r;
}

/* Adds "key": value to what becomes trace.header. */
static void keep_member(
	struct kineto_parser *parser, const struct json_text *key, const struct json_text *value)
{
	if (parser->header.length)
		strbuf_add(&parser->header, ", ");
	strbuf_add_char(&parser->header, '"');
	strbuf_add_bytes(&parser->header, key->bytes, key->length);
	strbuf_add(&parser->header, "\": ");
	strbuf_add_bytes(&parser->header, value->bytes, value->length);
}

int kineto_read_header(
	struct kineto_parser *parser, const struct json_text *key, const struct json_text *value)
{
	const struct json_text text = json_text_inside(value);

	if (parser->keep_arguments) {
		keep_member(parser, key, value);
		if (strbuf_status(&parser->header) < 0)
			return -ENOMEM;
	}
	if (json_text_equals(key, "baseTimeNanoseconds")) {
		if (json_text_u64(&text, &parser->trace->base_ns) < 0 ||
			parser->trace->base_ns > INT64_MAX / 2)
			parser->trace->base_ns = 0;
		return 0;
	}
	if (json_text_equals(key, "distributedInfo"))
		return read_distributed(parser, value);
	if (json_text_equals(key, "deviceProperties"))
		return trace_read_devices(parser->trace, value);
	return 0;
}
