/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "report/render.h"
#include "store/documents.h"

#define VERSION 1

static const struct report_column list_columns[] = {
	{.key = "format", .kind = REPORT_TEXT},
	{.key = "version", .kind = REPORT_INTEGER},
	{.key = "store", .kind = REPORT_TEXT},
	{.key = "runs", .kind = REPORT_ROWS, .shape = &store_run_shape, .total = "runs_total"},
};
static const struct report_shape list_shape = REPORT_SHAPE(list_columns);
static const struct report_column document = {.kind = REPORT_OBJECT, .shape = &list_shape};

static void add_runs(
	struct result *result, const struct store *store, const struct run_rows *rows, size_t total)
{
	uint32_t table;

	result->column = &document;
	result_open(result);
	result_text(result, "sonde-runs-list");
	result_u64(result, VERSION);
	result_text(result, store->address);
	table = result_open(result);
	array_foreach (&rows->items, row)
		store_add_run(result, rows, row);
	result_leave_out(result, total - MIN(total, rows->items.count));
	result_close(result);
	result_close(result);
	if (!total)
		result_sentencef(
			result, 0, "No run in %s is left by these filters.", store->address);
	else
		result_show(result, table, &(struct result_show){.noun = "runs"});
}

int store_list(struct store *store, const struct store_filter *filter,
	const struct store_order *order, struct result *result, struct errmsg *err)
{
	_cleanup_run_rows_ struct run_rows rows = {0};
	int64_t total = 0;
	int r = store_read_runs(store, filter, order, &rows, err);

	/* Fewer than were asked for: these are all. */
	total = (int64_t)rows.items.count;
	if (r == 0 && order &&
		(order->offset || (order->limit && rows.items.count == order->limit)))
		r = store_count_runs(store, filter, &total, err);
	if (r < 0)
		return r;
	add_runs(result, store, &rows, (size_t)total);
	r = result_status(result);
	return r < 0 ? errmsg_set(err, r, "memory ran out while listing runs") : 0;
}

int store_list_schema(struct strbuf *out)
{
	return report_render_schema_document(&list_shape, "sonde runs list --json", out);
}
