/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/escape.h"
#include "report/render.h"

static const struct result_table *find_rows(const struct result *result)
{
	const struct result_table *table;

	if (result->value.state != REPORT_TABLE)
		return NULL;
	table = &result->tables.items[result->value.table];
	if (table->column->kind != REPORT_OBJECT)
		return table;
	/* Members were opened in their order. */
	array_foreach (&result->tables, member) {
		if (member->column->kind == REPORT_ROWS && member->column->key)
			return member;
	}
	return NULL;
}

static bool is_field(const struct report_column *column)
{
	return column->key && !report_kind_has_rows(column->kind);
}

static void add_value(
	const struct result *result, const struct result_value *value, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text};

	switch (value->state) {
	case REPORT_U64:
		strbuf_addf(out, "%llu", (unsigned long long)value->u64);
		return;
	case REPORT_I64:
		strbuf_addf(out, "%lld", (long long)value->i64);
		return;
	case REPORT_DOUBLE:
		json_double(&json, value->number, 9);
		strbuf_inherit_status(out, &text);
		strbuf_add(out, strbuf_cstr(&text));
		return;
	case REPORT_BOOL:
		strbuf_add(out, value->flag ? "true" : "false");
		return;
	case REPORT_STRING:
		escape_csv(out, result_string(result, value->text));
		return;
	default: /* an empty field */
		return;
	}
}

static void add_row(const struct result *result, const struct report_shape *shape,
	const struct result_value *values, struct strbuf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < shape->count; i++) {
		if (!is_field(&shape->columns[i]))
			continue;
		strbuf_add(out, comma);
		if (values)
			add_value(result, &values[i], out);
		else
			strbuf_add(out, shape->columns[i].key);
		comma = ",";
	}
	strbuf_add(out, "\r\n");
}

int report_render_csv(const struct result *result, struct strbuf *out)
{
	const struct result_table *table = find_rows(result);
	int r = result_status(result);

	if (r < 0)
		return r;
	if (!table)
		return -ENODATA;
	add_row(result, table->column->shape, NULL, out);
	for (size_t i = 0; i < table->values.count; i += table->column->shape->count)
		add_row(result, table->column->shape, &table->values.items[i], out);
	return strbuf_status(out);
}

static bool has_fields(const struct report_column *column)
{
	for (size_t i = 0; i < column->shape->count; i++) {
		if (is_field(&column->shape->columns[i]))
			return true;
	}
	return false;
}

/* The first table of its columns that has rows: what else there is of them comes with it. */
static bool is_first(const struct result *result, size_t at)
{
	const struct result_table *table = &result->tables.items[at];

	if (table->column->kind != REPORT_ROWS || !table->column->key || !table->values.count ||
		!has_fields(table->column))
		return false;
	for (size_t i = 0; i < at; i++) {
		if (result->tables.items[i].column == table->column &&
			result->tables.items[i].values.count)
			return false;
	}
	return true;
}

static bool is_of(const struct result_table *table, const struct report_column *column)
{
	return table->column == column && !table->is_apart;
}

static void add_tables(
	const struct result *result, const struct report_column *column, struct strbuf *out)
{
	const struct report_shape *shape = column->shape;
	unsigned count = 0, number = 0;

	array_foreach (&result->tables, table)
		count += is_of(table, column);
	if (count > 1)
		strbuf_add(out, "table,");
	add_row(result, shape, NULL, out);
	array_foreach (&result->tables, table) {
		if (!is_of(table, column))
			continue;
		number++;
		for (size_t i = 0; i < table->values.count; i += shape->count) {
			if (count > 1)
				strbuf_addf(out, "%u,", number);
			add_row(result, shape, &table->values.items[i], out);
		}
	}
}

const struct report_column *report_render_next_table(
	const struct result *result, size_t *at, struct strbuf *out)
{
	while (*at < result->tables.count) {
		size_t index = (*at)++;

		if (!is_first(result, index))
			continue;
		add_tables(result, result->tables.items[index].column, out);
		return result->tables.items[index].column;
	}
	return NULL;
}
