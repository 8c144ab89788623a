/* SPDX-License-Identifier: Apache-2.0 */
#include "report/render.h"

/* Significant digits of figures that were computed: more than any of them is right to. */
#define DIGITS 9

static void write_member(const struct result *result, const struct report_column *column,
	const struct result_value *value, struct json_writer *json)
{
	const struct result_table *table =
		value->state == REPORT_TABLE ? &result->tables.items[value->table] : NULL;

	json_key(json, column->key);
	report_render_value(result, value, json);
	if (column->total)
		json_member_known(json, column->total, table,
			table ? result_rows(table) + table->left_out : 0);
}

/* Without `values` all are null. */
static void write_fields(const struct result *result, const struct report_shape *shape,
	const struct result_value *values, struct json_writer *json)
{
	static const struct result_value unknown = {.state = REPORT_UNKNOWN};

	for (size_t i = 0; i < shape->count; i++) {
		if (shape->columns[i].key)
			write_member(
				result, &shape->columns[i], values ? &values[i] : &unknown, json);
	}
}

static void write_members(const struct result *result, const struct report_shape *shape,
	const struct result_value *values, struct json_writer *json)
{
	json_begin_object(json);
	write_fields(result, shape, values, json);
	json_end_object(json);
}

static void write_rows(
	const struct result *result, const struct result_table *table, struct json_writer *json)
{
	const struct report_shape *shape = table->column->shape;

	json_begin_array(json);
	for (size_t i = 0; i < table->values.count; i += shape->count)
		write_members(result, shape, &table->values.items[i], json);
	json_end_array(json);
}

static void write_map(
	const struct result *result, const struct result_table *table, struct json_writer *json)
{
	const struct report_shape *shape = table->column->shape;

	json_begin_object(json);
	for (size_t i = 0; i < table->values.count; i += shape->count) {
		const struct result_value *values = &table->values.items[i];

		json_key(json,
			values->state == REPORT_STRING ? result_string(result, values->text) : "");
		report_render_value(result, &values[1], json);
	}
	json_end_object(json);
}

static void write_list(
	const struct result *result, const struct result_table *table, struct json_writer *json)
{
	const struct report_shape *shape = table->column->shape;

	json_begin_array(json);
	for (size_t i = 0; i < table->values.count; i += shape->count) {
		if (shape->count > 1)
			json_begin_array(json);
		for (size_t j = 0; j < shape->count; j++)
			report_render_value(result, &table->values.items[i + j], json);
		if (shape->count > 1)
			json_end_array(json);
	}
	json_end_array(json);
}

static void write_table(
	const struct result *result, const struct result_table *table, struct json_writer *json)
{
	switch (table->column->kind) {
	case REPORT_OBJECT:
		write_members(result, table->column->shape, table->values.items, json);
		return;
	case REPORT_MAP:
		write_map(result, table, json);
		return;
	case REPORT_LIST:
		write_list(result, table, json);
		return;
	default:
		write_rows(result, table, json);
	}
}

void report_render_value(
	const struct result *result, const struct result_value *value, struct json_writer *json)
{
	switch (value->state) {
	case REPORT_UNKNOWN:
		json_null(json);
		return;
	case REPORT_U64:
		json_u64(json, value->u64);
		return;
	case REPORT_I64:
		json_i64(json, value->i64);
		return;
	case REPORT_DOUBLE:
		json_double(json, value->number, DIGITS);
		return;
	case REPORT_BOOL:
		json_bool(json, value->flag);
		return;
	case REPORT_STRING:
		json_string(json, result_string(result, value->text));
		return;
	case REPORT_TABLE:
		write_table(result, &result->tables.items[value->table], json);
		return;
	}
}

int report_render_json(const struct result *result, struct json_writer *json)
{
	int r = result_status(result);

	if (r < 0)
		return r;
	report_render_value(result, &result->value, json);
	return strbuf_status(json->out);
}

int report_render_member(const struct result *result, struct json_writer *json)
{
	const struct result_value *values = NULL;
	int r = result_status(result);

	if (r < 0)
		return r;
	if (result->value.state == REPORT_TABLE)
		values = result->tables.items[result->value.table].values.items;
	if (result->column->key)
		write_member(result, result->column, &result->value, json);
	else if (result->column->shape)
		write_fields(result, result->column->shape, values, json);
	return strbuf_status(json->out);
}

static void write_advice(
	const struct result *result, const struct result_advice *advice, struct json_writer *json)
{
	json_begin_object(json);
	json_key(json, "section");
	json_string(json, result->column->key ? result->column->key : result->column->title);
	json_key(json, "id");
	json_string(json, advice->id);
	json_key(json, "sentence");
	json_string(json, result_string(result, advice->sentence));
	json_key(json, "evidence");
	json_begin_object(json);
	for (size_t i = 0; i < REPORT_EVIDENCE_MAX && advice->evidence[i].key; i++) {
		json_key(json, advice->evidence[i].key);
		json_double(json, advice->evidence[i].value, DIGITS);
	}
	json_end_object(json);
	json_key(json, "saves_ns");
	if (advice->saves_ns == REPORT_SAVES_UNKNOWN)
		json_null(json);
	else
		json_u64(json, advice->saves_ns);
	json_member_text(json, "docs", advice->docs);
	json_end_object(json);
}

void report_render_advice_json(const struct result *result, struct json_writer *json)
{
	array_foreach (&result->advice, advice)
		write_advice(result, advice, json);
}

int report_render(const struct result *result, enum report_form form,
	const struct terminal *terminal, struct strbuf *out)
{
	struct json_writer json = {.out = out, .pretty = true};
	int r;

	if (form == REPORT_FORM_TERMINAL)
		return report_render_terminal(result, terminal, out);
	if (form == REPORT_FORM_CSV)
		return report_render_csv(result, out);
	r = report_render_json(result, &json);
	if (r == 0)
		strbuf_add_char(out, '\n');
	return r < 0 ? r : strbuf_status(out);
}
