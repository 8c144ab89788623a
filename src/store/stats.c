/* SPDX-License-Identifier: Apache-2.0 */
#include "model/format.h"
#include "report/render.h"
#include "store/documents.h"

#define VERSION 1

static const struct report_column table_columns[] = {
	{.key = "table", .kind = REPORT_TEXT},
	{.key = "rows", .kind = REPORT_COUNT},
};
static const struct report_shape table_shape = REPORT_SHAPE(table_columns);

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "store", .kind = REPORT_TEXT},
	{.key = "bytes", .kind = REPORT_BYTES},
	{.key = "runs", .kind = REPORT_COUNT},
	{.key = "oldest_ns", .kind = REPORT_NS, .help = "Unix time of the oldest recording"},
	{.key = "newest_ns", .kind = REPORT_NS},
	{.key = "tables", .kind = REPORT_MAP, .shape = &table_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

struct counts {
	int64_t rows[STORE_TABLE_MAX];
	struct store_value oldest, newest;
	uint64_t bytes;
};

static int take_ends(void *context, const struct store_value *values, size_t count)
{
	struct counts *counts = context;

	counts->oldest = values[0];
	counts->newest = values[1];
	return 0;
}

static int count_all(struct store *store, struct counts *counts, struct errmsg *err)
{
	int r = store->ops->bytes(store, &counts->bytes, err);

	for (int i = 0; r == 0 && i < STORE_TABLE_MAX; i++) {
		_cleanup_strbuf_ struct strbuf sql = {0};

		strbuf_addf(&sql, "SELECT count(*) FROM %s", store_tables[i].name);
		r = store_count(store, strbuf_cstr(&sql), NULL, 0, &counts->rows[i], err);
	}
	return r < 0 ? r
		     : store_select(store, "SELECT min(time_ns), max(time_ns) FROM runs", take_ends,
			       counts, err);
}

static void add_time(struct result *result, const struct store_value *time)
{
	if (time->type == STORE_INTEGER)
		result_i64(result, time->integer);
	else
		result_null(result);
}

static void say(struct result *result, const struct store *store, const struct counts *counts)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t rows = 0;

	for (int i = 0; i < STORE_TABLE_MAX; i++)
		rows += (uint64_t)counts->rows[i];
	strbuf_addf(&text, "%s: ", store->address);
	format_plural(&text, (uint64_t)counts->rows[STORE_RUNS], "run", "runs");
	strbuf_add(&text, ", ");
	format_plural(&text, rows, "row", "rows");
	strbuf_add(&text, ", ");
	format_bytes(&text, counts->bytes);
	if (counts->oldest.type == STORE_INTEGER) {
		strbuf_add(&text, ", recorded from ");
		store_add_time(&text, &counts->oldest);
		strbuf_add(&text, " to ");
		store_add_time(&text, &counts->newest);
	}
	strbuf_add_char(&text, '.');
	result_say(result, 0, &text);
}

int store_stats(struct store *store, struct result *result, struct errmsg *err)
{
	struct counts counts = {0};
	int r = count_all(store, &counts, err);

	if (r < 0)
		return r;
	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs-stats");
	result_u64(result, VERSION);
	result_text(result, store->address);
	result_u64(result, counts.bytes);
	result_i64(result, counts.rows[STORE_RUNS]);
	add_time(result, &counts.oldest);
	add_time(result, &counts.newest);
	result_open(result);
	for (int i = 0; i < STORE_TABLE_MAX; i++) {
		result_text(result, store_tables[i].name);
		result_i64(result, counts.rows[i]);
	}
	result_close(result);
	result_close(result);
	say(result, store, &counts);
	r = result_status(result);
	return r < 0 ? errmsg_set(err, r, "memory ran out while counting") : 0;
}

int store_stats_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde runs stats --json", out);
}
