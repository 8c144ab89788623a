/* SPDX-License-Identifier: Apache-2.0 */
/* One line of an export, as anybody may have written it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "store/exchange.h"

void store_line_done(struct store_line *line)
{
	strbuf_done(&line->texts);
}

/* Where a text begins in line->texts, until all are there and no longer move. */
struct reading {
	struct store_line *line;
	const struct store_table *table; /* NULL: the head, or not known yet */
	size_t starts[STORE_COLUMNS_MOST];
	bool has_table, is_head;
};

static int damaged(struct errmsg *reason)
{
	return errmsg_set(reason, -EINVAL, "it is no line that 'sonde runs export' writes");
}

/* ---- values ---- */

static int read_text(
	struct reading *reading, size_t column, const struct json_text *text, struct errmsg *reason)
{
	struct json_text inside = json_text_inside(text);
	struct strbuf *texts = &reading->line->texts;
	size_t start = texts->length;

	json_text_unescape(texts, &inside);
	if (texts->data && memchr(texts->data + start, '\0', texts->length - start))
		return damaged(reason);
	strbuf_add_bytes(texts, "", 1);
	if (strbuf_status(texts) < 0)
		return errmsg_set(reason, -ENOMEM, "memory ran out");
	reading->starts[column] = start;
	reading->line->values[column].type = STORE_TEXT;
	return 0;
}

static int read_number(const struct json_text *text, struct store_value *ret_value)
{
	char digits[64];
	char *end;

	if (!text->length || text->length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text->bytes, text->length);
	digits[text->length] = '\0';
	*ret_value = store_number(strtod(digits, &end));
	return *end || ret_value->type == STORE_NULL ? -EINVAL : 0;
}

static int read_integer(const struct json_text *text, struct store_value *ret_value)
{
	int64_t integer;
	int r = json_text_i64(text, &integer);

	if (r == 0)
		*ret_value = store_integer(integer);
	return r;
}

static int read_value(
	struct reading *reading, size_t column, const struct json_text *text, struct errmsg *reason)
{
	const struct store_column *of = &reading->table->columns[column];
	struct store_value *value = &reading->line->values[column];
	int r;

	if (json_text_equals(text, "null")) {
		*value = store_null();
		return 0;
	}
	if (json_text_is_string(text) != (of->type == STORE_TEXT))
		r = -EINVAL;
	else if (of->type == STORE_TEXT)
		return read_text(reading, column, text, reason);
	else
		r = of->type == STORE_NUMBER ? read_number(text, value) : read_integer(text, value);
	return r < 0 ? errmsg_set(
			       reason, r, "the column %s has a value that it cannot have", of->name)
		     : 0;
}

/* ---- members ---- */

static int read_table(struct reading *reading, const struct json_text *value, struct errmsg *reason)
{
	struct json_text name = json_text_inside(value);

	for (int i = 0; i < STORE_TABLE_MAX; i++) {
		if (!json_text_equals(&name, store_tables[i].name))
			continue;
		reading->table = &store_tables[i];
		reading->line->table = (enum store_table_id)i;
		reading->has_table = true;
		return 0;
	}
	return errmsg_set(reason, -EINVAL, "the table %.*s is not known",
		(int)MIN(name.length, (size_t)60), name.bytes);
}

static int read_head_member(struct reading *reading, const struct json_text *key,
	const struct json_text *value, struct errmsg *reason)
{
	struct json_text inside = json_text_inside(value);

	if (json_text_equals(key, "format")) {
		reading->is_head = json_text_equals(&inside, "sonde-runs");
		return reading->is_head ? 0 : damaged(reason);
	}
	if (json_text_equals(key, "version") && reading->is_head)
		return json_text_i64(value, &reading->line->version) < 0 ? damaged(reason) : 0;
	if (json_text_equals(key, "table"))
		return read_table(reading, value, reason);
	return reading->is_head ? 0 : damaged(reason);
}

/* The table's name comes first. */
static int read_member(struct reading *reading, const struct json_text *key,
	const struct json_text *value, struct errmsg *reason)
{
	if (!reading->has_table)
		return read_head_member(reading, key, value, reason);
	for (size_t i = 0; i < reading->table->count; i++) {
		if (json_text_equals(key, reading->table->columns[i].name))
			return read_value(reading, i, value, reason);
	}
	return errmsg_set(reason, -EINVAL, "the column %.*s of %s is not known",
		(int)MIN(key->length, (size_t)60), key->bytes, reading->table->name);
}

static int read_members(
	struct reading *reading, const char *bytes, size_t length, struct errmsg *reason)
{
	struct json_reader reader = {.at = bytes, .end = bytes + length, .is_last = true};
	enum json_status status = json_reader_enter(&reader, '{');
	struct json_text key, value;
	int r = 0;

	while (r == 0 && status == JSON_OK &&
		(status = json_reader_member(&reader, &key)) == JSON_OK) {
		status = json_reader_value(&reader, &value);
		if (status == JSON_OK)
			r = read_member(reading, &key, &value, reason);
	}
	if (r < 0)
		return r;
	if (status != JSON_DONE || json_reader_peek(&reader) != '\0' || reader.mended)
		return damaged(reason);
	return 0;
}

int store_line_parse(
	struct store_line *line, const char *bytes, size_t length, struct errmsg *reason)
{
	struct reading reading = {.line = line};
	int r;

	strbuf_clear(&line->texts);
	line->table = STORE_TABLE_MAX;
	line->version = 0;
	memset(line->values, 0, sizeof(line->values));
	r = read_members(&reading, bytes, length, reason);
	if (r < 0)
		return r;
	if (!reading.has_table)
		return reading.is_head ? 0 : damaged(reason);
	for (size_t i = 0; i < reading.table->count; i++) {
		if (line->values[i].type == STORE_TEXT)
			line->values[i].text = line->texts.data + reading.starts[i];
	}
	return 0;
}
