/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as the page gets them, each with the text that a terminal shows for it:
 * schema/formats.json, which the page's own formats are held to (web/test/format.test.ts).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/render.h"

static const struct report_column columns[] = {
	{.key = "ns", .kind = REPORT_NS},
	{.key = "change_ns", .kind = REPORT_NS, .is_change = true},
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "bytes", .kind = REPORT_BYTES},
	{.key = "share", .kind = REPORT_SHARE},
	{.key = "share", .kind = REPORT_SHARE, .decimals = 1, .is_change = true},
	{.key = "joules", .kind = REPORT_JOULES},
	{.key = "watts", .kind = REPORT_WATTS},
	{.key = "number", .kind = REPORT_NUMBER},
	{.key = "number", .kind = REPORT_NUMBER, .digits = 3},
	{.key = "number", .kind = REPORT_NUMBER, .decimals = 3},
	{.key = "change", .kind = REPORT_NUMBER, .decimals = 2, .is_change = true},
	{.key = "line", .kind = REPORT_INTEGER},
};

static const double values[] = {0, 1, 7, 12.5, 99.95, 100, 999, 1000, 1023, 1024, 1500, 9994, 9996,
	99949, 99951, 123456, 999499, 999501, 1e6, 1234567, 9.995e6, 5e8, 999499999, 999500000, 1e9,
	1.5e9, 59.9e9, 599e9, 600e9, 3599e9, 3661e9, 86400e9, 0.5, 0.25, 0.0999, 0.012345678, 1e-3,
	9.99e-4, 1e-5, 1.2345e-7, -1, -1500, -2.5e6, -0.125};

static bool is_whole(enum report_kind kind)
{
	return kind == REPORT_NS || kind == REPORT_COUNT || kind == REPORT_BYTES ||
	       kind == REPORT_INTEGER;
}

static bool fits(const struct report_column *column, double value)
{
	if (!is_whole(column->kind))
		return true;
	return value == floor(value) && (value >= 0 || column->kind != REPORT_BYTES);
}

static void add_value(struct result *result, const struct report_column *column, double value)
{
	if (!is_whole(column->kind))
		result_number(result, value);
	else if (value < 0)
		result_i64(result, (int64_t)value);
	else
		result_u64(result, (uint64_t)value);
}

/* The rows of a table, without its head and the spaces that align them. */
static void write_lines(const struct strbuf *text, struct json_writer *json)
{
	const char *line = strchr(strbuf_cstr(text), '\n');

	json_key(json, "texts");
	json_begin_array(json);
	while (line && line[1]) {
		const char *begin = line + 1 + strspn(line + 1, " ");

		line = strchr(begin, '\n');
		json_string_n(json, begin, line ? (size_t)(line - begin) : strlen(begin));
	}
	json_end_array(json);
}

/* The first row is unknown. */
static uint32_t add_rows(struct result *result, const struct report_column *column)
{
	uint32_t table = result_open(result);

	result_null(result);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (fits(column, values[i]))
			add_value(result, column, values[i]);
	}
	result_close(result);
	return table;
}

static void print(const struct report_column *of, struct json_writer *json)
{
	struct report_column column = *of;
	const struct report_shape shape = {.columns = &column, .count = 1};
	const struct report_column rows = {.key = "rows", .kind = REPORT_ROWS, .shape = &shape};
	const struct terminal terminal = {.width = 100};
	_cleanup_result_ struct result result = {.column = &rows};
	_cleanup_strbuf_ struct strbuf text = {0};

	column.title = "Value";
	column.unknown = "?";
	result_show(&result, add_rows(&result, of), &(struct result_show){.limit = 0});
	json_begin_object(json);
	report_render_page(&result, json);
	report_render_terminal(&result, &terminal, &text);
	write_lines(&text, json);
	json_end_object(json);
	strbuf_add_char(json->out, '\n');
}

int main(void)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	json_begin_array(&json);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		print(&columns[i], &json);
	json_end_array(&json);
	puts(strbuf_cstr(&out));
	return strbuf_status(&out) < 0;
}
