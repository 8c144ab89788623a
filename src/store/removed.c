/* SPDX-License-Identifier: Apache-2.0 */
#include "report/render.h"
#include "store/change.h"

#define VERSION 1

static const struct report_column columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "store", .kind = REPORT_TEXT},
	{.key = "is_done",
		.kind = REPORT_FLAG,
		.help = "they were deleted; false: they would be. Captures stay"},
	{.key = "runs", .kind = REPORT_ROWS, .shape = &store_run_shape},
};
static const struct report_shape shape = REPORT_SHAPE(columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &shape};

int store_removed(struct store *store, const struct run_rows *rows, bool is_done,
	struct result *result, struct errmsg *err)
{
	uint32_t table;
	int r;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs-removed");
	result_u64(result, VERSION);
	result_text(result, store->address);
	result_flag(result, is_done);
	table = result_open(result);
	array_foreach (&rows->items, row)
		store_add_run(result, rows, row);
	result_close(result);
	result_close(result);
	result_show(result, table, &(struct result_show){.noun = "runs"});
	result_sentencef(result, 0, "%zu %s %s.", rows->items.count,
		rows->items.count == 1 ? "run" : "runs",
		is_done ? "deleted; captures stay" : "would be deleted; captures stay");
	r = result_status(result);
	return r < 0 ? errmsg_set(err, r, "memory ran out while listing runs") : 0;
}

int store_removed_schema(struct strbuf *out)
{
	return report_render_schema_document(&shape, "sonde runs retention --json", out);
}
