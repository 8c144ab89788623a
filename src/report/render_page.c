/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section for the page: the blocks that a terminal shows, as data, and the tables that they name
 * with what each column means. schema/page.schema.json describes it.
 */
#include <errno.h>

#include "base/escape.h"
#include "report/render.h"
#include "report/section.h"
#include "report/shown.h"

/* ---- tables ---- */

static void member_if(struct json_writer *json, const char *key, bool flag)
{
	if (!flag)
		return;
	json_key(json, key);
	json_bool(json, true);
}

static void member_if_u64(struct json_writer *json, const char *key, uint64_t value)
{
	if (value)
		json_member_u64(json, key, value);
}

static void member_if_text(struct json_writer *json, const char *key, const char *text)
{
	if (text)
		json_member_text(json, key, text);
}

static void write_column(const struct report_column *column, struct json_writer *json)
{
	json_begin_object(json);
	json_member_text(json, "key", column->key);
	json_member_text(json, "title", column->title);
	json_member_text(json, "kind", report_kind_name(column->kind));
	member_if_text(json, "help", column->help);
	member_if_text(json, "unknown", column->unknown);
	member_if_u64(json, "decimals", column->decimals);
	member_if_u64(json, "digits", column->digits);
	member_if(json, "is_change", column->is_change);
	member_if(json, "is_dim", column->is_dim);
	member_if(json, "is_path", column->is_path);
	member_if(json, "is_source", column->is_source);
	member_if(json, "is_name", column->is_name);
	member_if(json, "is_right", column->is_right);
	json_end_object(json);
}

/* Control characters become escapes, as in a terminal. */
static void write_text(const char *text, struct json_writer *json)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	json_string(json, strbuf_cstr(&plain));
	strbuf_inherit_status(json->out, &plain);
}

/* What is made of rows has no cell. */
static void write_cell(
	const struct result *result, const struct result_value *value, struct json_writer *json)
{
	if (value->state == REPORT_TABLE)
		json_null(json);
	else if (value->state == REPORT_STRING)
		write_text(result_string(result, value->text), json);
	else
		report_render_value(result, value, json);
}

static void write_rows(const struct result *result, const struct result_table *table, size_t rows,
	struct json_writer *json)
{
	size_t columns = table->column->shape->count;

	json_key(json, "rows");
	json_begin_array(json);
	for (size_t row = 0; row < rows; row++) {
		json_begin_array(json);
		for (size_t i = 0; i < columns; i++)
			write_cell(result, &table->values.items[row * columns + i], json);
		json_end_array(json);
	}
	json_end_array(json);
}

static void write_table(
	const struct result *result, const struct result_table *table, struct json_writer *json)
{
	const struct report_shape *shape = table->column->shape;
	size_t count = result_rows(table), rows = MIN(count, REPORT_PAGE_ROWS);

	json_begin_object(json);
	json_member_text(json, "key", table->is_apart ? NULL : table->column->key);
	json_member_u64(json, "left_out", table->left_out + (count - rows));
	json_key(json, "columns");
	json_begin_array(json);
	for (size_t i = 0; i < shape->count; i++)
		write_column(&shape->columns[i], json);
	json_end_array(json);
	write_rows(result, table, rows, json);
	json_end_object(json);
}

/* ---- blocks ---- */

/* What a table of a result is numbered here: only those that blocks show are written. */
typedef ARRAY_OF(uint32_t) table_numbers;

static int number_of_table(table_numbers *written, uint32_t table, size_t *ret_number)
{
	for (size_t i = 0; i < written->count; i++) {
		if (written->items[i] != table)
			continue;
		*ret_number = i;
		return 0;
	}
	*ret_number = written->count;
	return array_append(written, table);
}

static void write_show(
	const struct result *result, const struct result_block *block, struct json_writer *json)
{
	const struct result_table *table = &result->tables.items[block->table];
	const struct result_show *show = &block->show;
	const struct shown_columns columns = shown_columns(result, table, show->view);

	json_key(json, "columns");
	json_begin_array(json);
	for (size_t i = 0; i < columns.count; i++)
		json_u64(json, columns.items[i]);
	json_end_array(json);
	json_member_u64(json, "limit", show->limit);
	json_member_u64(json, "left_out", show->left_out);
	json_member_text(json, "noun", show->noun);
	if (show->rest_share > 0)
		json_member_double(json, "rest_share", show->rest_share);
	member_if_u64(json, "indent", show->indent);
}

static void write_bars(const struct result_bars *bars, struct json_writer *json)
{
	json_member_text(json, "title", bars->title);
	json_member_text(json, "unit", bars->unit);
	json_member_double(json, "scale", bars->scale);
}

static void write_block_text(
	const struct result *result, const struct result_block *block, struct json_writer *json)
{
	const char *text = result_string(result, block->text);
	_cleanup_strbuf_ struct strbuf lines = {0};

	json_key(json, "text");
	if (block->kind != REPORT_BLOCK_LINES) {
		write_text(text, json);
		return;
	}
	escape_lines(&lines, text);
	json_string(json, strbuf_cstr(&lines));
	strbuf_inherit_status(json->out, &lines);
}

static int write_block(const struct result *result, const struct result_block *block,
	table_numbers *written, struct json_writer *json)
{
	static const char *const names[] = {
		[REPORT_BLOCK_TITLE] = "title",
		[REPORT_BLOCK_HEADING] = "heading",
		[REPORT_BLOCK_SENTENCE] = "sentence",
		[REPORT_BLOCK_ADVICE] = "advice",
		[REPORT_BLOCK_LINES] = "lines",
		[REPORT_BLOCK_TABLE] = "table",
		[REPORT_BLOCK_BARS] = "bars",
	};
	bool is_table = block->kind == REPORT_BLOCK_TABLE,
	     is_bars = block->kind == REPORT_BLOCK_BARS;
	size_t number = 0;
	int r = is_table || is_bars ? number_of_table(written, block->table, &number) : 0;

	json_begin_object(json);
	json_member_text(json, "kind", names[block->kind]);
	if (is_table || is_bars)
		json_member_u64(json, "table", number);
	else
		write_block_text(result, block, json);
	if (is_table)
		write_show(result, block, json);
	else if (is_bars)
		write_bars(&block->bars, json);
	else
		member_if_u64(json, "indent", block->indent);
	json_end_object(json);
	return r;
}

/* Views that go through a table row by row have the rows that those shown were made of. */
static int add_originals(const struct result *result, table_numbers *written)
{
	size_t shown = written->count, number;
	int r = 0;

	for (size_t i = 0; r == 0 && i < shown; i++) {
		const struct result_table *table = &result->tables.items[written->items[i]];

		if (table->is_apart)
			r = number_of_table(written, table->like, &number);
	}
	return r;
}

int report_render_page(const struct result *result, struct json_writer *json)
{
	table_numbers written = {0};
	int r = result_status(result);

	if (r < 0)
		return r;
	json_key(json, "blocks");
	json_begin_array(json);
	array_foreach (&result->blocks, block) {
		if (write_block(result, block, &written, json) < 0)
			r = -ENOMEM;
	}
	json_end_array(json);
	if (add_originals(result, &written) < 0)
		r = -ENOMEM;
	json_key(json, "tables");
	json_begin_array(json);
	array_foreach (&written, table)
		write_table(result, &result->tables.items[*table], json);
	json_end_array(json);
	json_key(json, "advice");
	json_begin_array(json);
	report_render_advice_json(result, json);
	json_end_array(json);
	array_done(&written);
	return r < 0 ? r : strbuf_status(json->out);
}
