/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/clickhouse/internal.h"

#define LINE_MOST ((size_t)8 << 20) /* bytes of a row */

/* ---- values ---- */

static enum store_type type_of(const char *name)
{
	if (strstr(name, "Int"))
		return STORE_INTEGER;
	if (strstr(name, "Float"))
		return STORE_NUMBER;
	return strstr(name, "Nothing") ? STORE_NULL : STORE_TEXT;
}

static char unescaped(char character)
{
	static const char from[] = "bfrnt0", to[] = "\b\f\r\n\t";
	const char *place = strchr(from, character);

	return place && character ? to[place - from] : character;
}

/* In place. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '\\' && text[1])
			*out++ = unescaped(*++text);
		else
			*out++ = *text;
	}
	*out = '\0';
}

static int read_integer(const char *text, struct store_value *ret_value)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return -EPROTO;
	*ret_value = store_integer(value);
	return 0;
}

/* What is no number, "nan" or "inf", is not known. */
static int read_number(const char *text, struct store_value *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end)
		return -EPROTO;
	*ret_value = store_number(value);
	return 0;
}

static int read_value(enum store_type type, char *text, struct store_value *ret_value)
{
	*ret_value = store_null();
	if (strcmp(text, "\\N") == 0)
		return 0;
	if (type == STORE_INTEGER)
		return read_integer(text, ret_value);
	if (type == STORE_NUMBER)
		return read_number(text, ret_value);
	if (type == STORE_TEXT) {
		unescape(text);
		*ret_value = (struct store_value){.type = STORE_TEXT, .text = text};
	}
	return 0;
}

/* ---- rows ---- */

/* Cuts the row where its tabs are. The number of its columns; 0: there are too many. */
static size_t split(char *line, char *cells[CLICKHOUSE_COLUMNS_MOST])
{
	size_t count = 0;

	for (char *cell = line; cell;) {
		char *tab = strchr(cell, '\t');

		if (count == CLICKHOUSE_COLUMNS_MOST)
			return 0;
		cells[count++] = cell;
		if (tab)
			*tab++ = '\0';
		cell = tab;
	}
	return count;
}

/* The names of the columns, then their types. */
static int take_head(struct clickhouse_answer *answer, char **cells, size_t count)
{
	if (answer->heads++ == 0) {
		answer->columns = count;
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		answer->types[i] = type_of(cells[i]);
	return count == answer->columns ? 0 : -EPROTO;
}

static int take_line(struct clickhouse_answer *answer, char *line)
{
	struct store_value values[CLICKHOUSE_COLUMNS_MOST];
	char *cells[CLICKHOUSE_COLUMNS_MOST];
	size_t count = split(line, cells);

	if (!count)
		return -EPROTO;
	if (answer->heads < 2)
		return take_head(answer, cells, count);
	if (count != answer->columns)
		return -EPROTO;
	for (size_t i = 0; i < count; i++) {
		if (read_value(answer->types[i], cells[i], &values[i]) < 0)
			return -EPROTO;
	}
	answer->rows++;
	answer->taken = answer->take ? answer->take(answer->context, values, count) : 0;
	return answer->taken ? -ECANCELED : 0;
}

/* A NUL would hide what comes behind it. */
static int add_part(struct clickhouse_answer *answer, const char *bytes, size_t length)
{
	if (memchr(bytes, '\0', length) || answer->line.length + length > LINE_MOST)
		return -EPROTO;
	strbuf_add_bytes(&answer->line, bytes, length);
	return strbuf_status(&answer->line);
}

int clickhouse_answer_read(struct clickhouse_answer *answer, const char *bytes, size_t length)
{
	int r = 0;

	while (r == 0 && length) {
		const char *end = memchr(bytes, '\n', length);
		size_t part = end ? (size_t)(end - bytes) : length;

		r = add_part(answer, bytes, part);
		if (r < 0 || !end)
			return r;
		strbuf_add_char(&answer->line, '\0');
		r = strbuf_status(&answer->line);
		if (r == 0)
			r = take_line(answer, answer->line.data);
		strbuf_clear(&answer->line);
		bytes += part + 1;
		length -= part + 1;
	}
	return r;
}

int clickhouse_answer_end(const struct clickhouse_answer *answer)
{
	return answer->heads == 2 && !answer->line.length ? 0 : -EPROTO;
}

void clickhouse_answer_done(struct clickhouse_answer *answer)
{
	strbuf_done(&answer->line);
}
