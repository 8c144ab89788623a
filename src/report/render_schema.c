/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schema (draft 2020-12) of what render_json.c writes. */
#include "report/render.h"

/* Null is the value of what is not known. */
static void write_type(struct json_writer *json, const char *type)
{
	json_key(json, "type");
	json_begin_array(json);
	json_string(json, type);
	json_string(json, "null");
	json_end_array(json);
}

static const char *type_of(const struct report_column *column)
{
	switch (column->kind) {
	case REPORT_TEXT:
		return "string";
	case REPORT_INTEGER:
	case REPORT_COUNT:
	case REPORT_BYTES:
		return "integer";
	case REPORT_FLAG:
		return "boolean";
	case REPORT_OBJECT:
	case REPORT_MAP:
		return "object";
	case REPORT_ROWS:
	case REPORT_LIST:
		return "array";
	default:
		return "number";
	}
}

static void write_member(const struct report_column *column, struct json_writer *json)
{
	static const struct report_column total = {
		.kind = REPORT_COUNT, .help = "rows in all: --limit leaves some out"};

	json_key(json, column->key);
	report_render_schema(column, json);
	if (!column->total)
		return;
	json_key(json, column->total);
	report_render_schema(&total, json);
}

void report_render_schema_members(const struct report_shape *shape, struct json_writer *json)
{
	for (size_t i = 0; i < shape->count; i++) {
		if (shape->columns[i].key)
			write_member(&shape->columns[i], json);
	}
}

void report_render_schema_section(const struct report_column *section, struct json_writer *json)
{
	if (section->key)
		write_member(section, json);
	else if (section->shape)
		report_render_schema_members(section->shape, json);
}

void report_render_schema_closed(const struct report_shape *shape, struct json_writer *json)
{
	json_key(json, "required");
	json_begin_array(json);
	for (size_t i = 0; i < shape->count; i++) {
		if (shape->columns[i].key)
			json_string(json, shape->columns[i].key);
		if (shape->columns[i].total)
			json_string(json, shape->columns[i].total);
	}
	json_end_array(json);
	json_key(json, "additionalProperties");
	json_bool(json, false);
}

/* Every member is there, null where it is not known. */
static void write_members(const struct report_shape *shape, struct json_writer *json)
{
	json_key(json, "properties");
	json_begin_object(json);
	report_render_schema_members(shape, json);
	json_end_object(json);
	report_render_schema_closed(shape, json);
}

static void write_tuple(const struct report_shape *shape, struct json_writer *json)
{
	json_begin_object(json);
	json_member_text(json, "type", "array");
	json_key(json, "prefixItems");
	json_begin_array(json);
	for (size_t i = 0; i < shape->count; i++)
		report_render_schema(&shape->columns[i], json);
	json_end_array(json);
	json_key(json, "items");
	json_bool(json, false);
	json_end_object(json);
}

static void write_rows(const struct report_column *column, struct json_writer *json)
{
	const struct report_shape *shape = column->shape;

	switch (column->kind) {
	case REPORT_OBJECT:
		write_members(shape, json);
		return;
	case REPORT_MAP:
		json_key(json, "additionalProperties");
		report_render_schema(&shape->columns[1], json);
		return;
	case REPORT_LIST:
		json_key(json, "items");
		if (shape->count > 1)
			write_tuple(shape, json);
		else
			report_render_schema(&shape->columns[0], json);
		return;
	default:
		json_key(json, "items");
		json_begin_object(json);
		json_member_text(json, "type", "object");
		write_members(shape, json);
		json_end_object(json);
	}
}

void report_render_schema(const struct report_column *column, struct json_writer *json)
{
	json_begin_object(json);
	write_type(json, type_of(column));
	if (column->help)
		json_member_text(json, "description", column->help);
	if (report_kind_has_rows(column->kind))
		write_rows(column, json);
	json_end_object(json);
}

void report_render_schema_head(const char *title, struct json_writer *json)
{
	json_begin_object(json);
	json_member_text(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_member_text(json, "title", title);
	json_member_text(json, "type", "object");
}

int report_render_schema_document(
	const struct report_shape *shape, const char *title, struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};

	report_render_schema_head(title, &json);
	write_members(shape, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return strbuf_status(out);
}
