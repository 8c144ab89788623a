/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "store/documents.h"

static const struct report_column tag_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape tag_shape = REPORT_SHAPE(tag_columns);

/* The terminal has the name and the time first, texts last. */
static const struct report_column columns[] = {
	{.title = "Run", .kind = REPORT_TEXT},
	{.title = "When", .kind = REPORT_TEXT},
#define COLUMN(id, name, type, of_kind, of_title)                                                  \
	{.key = (name), .title = (of_title), .kind = REPORT_##of_kind, .hide = REPORT_HIDE_EMPTY},
	STORE_RUN_COLUMNS(COLUMN)
#undef COLUMN
		{.key = "tags", .kind = REPORT_LIST, .shape = &tag_shape},
	{.title = "Model", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY, .shrinks_to = 10},
	{.title = "Experiment", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY, .shrinks_to = 10},
	{.title = "Commit", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY, .shrinks_to = 8},
	{.title = "Tags", .kind = REPORT_TEXT, .hide = REPORT_HIDE_EMPTY, .shrinks_to = 8},
	{.title = "Capture", .kind = REPORT_TEXT, .is_path = true, .shrinks_to = 12},
};

const struct report_shape store_run_shape = REPORT_SHAPE(columns);

void store_add_time(struct strbuf *out, const struct store_value *time_ns)
{
	time_t seconds;
	struct tm parts;
	char text[64];

	if (time_ns->type != STORE_INTEGER)
		return;
	seconds = (time_t)(time_ns->integer / (int64_t)NS_PER_S);
	if (localtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts))
		strbuf_add(out, text);
}

static void add_value(
	struct result *result, const struct report_column *column, const struct store_value *value)
{
	if (value->type == STORE_NULL)
		result_null(result);
	else if (column->kind == REPORT_TEXT)
		result_text(result, store_as_text(value));
	else if (value->type == STORE_INTEGER && column->kind >= REPORT_INTEGER &&
		 column->kind <= REPORT_BYTES)
		result_i64(result, value->integer);
	else
		result_number(result, store_as_number(value));
}

static void add_tags(struct result *result, const struct run_rows *rows, const struct run_row *row)
{
	result_open(result);
	for (uint32_t i = 0; i < row->tag_count; i++)
		result_text(result, rows->tags.items[row->first_tag + i]);
	result_close(result);
}

void store_add_run(struct result *result, const struct run_rows *rows, const struct run_row *row)
{
	_cleanup_strbuf_ struct strbuf when = {0}, tags = {0};

	store_add_time(&when, &row->values[STORE_RUN_TIME]);
	for (uint32_t i = 0; i < row->tag_count; i++)
		strbuf_addf(&tags, "%s%s", i ? ", " : "", rows->tags.items[row->first_tag + i]);
	strbuf_inherit_status(&result->texts, &tags);
	result_textf(result, "%.*s", STORE_SHORT_ID, run_text(row, STORE_RUN_ID));
	result_text(result, strbuf_cstr(&when));
	for (int i = 0; i < STORE_RUN_COLUMN_MAX; i++)
		add_value(result, &columns[2 + i], &row->values[i]);
	add_tags(result, rows, row);
	result_text(result, run_text(row, STORE_RUN_MODEL));
	result_text(result, run_text(row, STORE_RUN_EXPERIMENT));
	result_text(result, run_text(row, STORE_RUN_COMMIT));
	result_text(result, strbuf_cstr(&tags));
	result_text(result, run_text(row, STORE_RUN_PATH));
}
