/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on their way: gathered in the format RowBinary, sent when there are many. */
#include <endian.h>
#include <errno.h>

#include "store/clickhouse/internal.h"

#define SENT_AT_BYTES ((size_t)8 << 20)   /* of a table */
#define RUNS_MOST     ((size_t)128 << 20) /* bytes of runs, which go all at once */

/* ---- values ---- */

static void add_u64(struct strbuf *out, uint64_t value)
{
	value = htole64(value);
	strbuf_add_bytes(out, &value, sizeof(value));
}

static void add_length(struct strbuf *out, size_t length)
{
	for (; length >= 0x80; length >>= 7)
		strbuf_add_char(out, (char)(length | 0x80));
	strbuf_add_char(out, (char)length);
}

/* An integer is a number where a number is wanted. */
static void add_value(struct strbuf *out, enum store_type type, const struct store_value *value)
{
	double number = store_as_number(value);
	uint64_t bits;

	switch (type) {
	case STORE_TEXT:
		add_length(out, strlen(value->text));
		strbuf_add(out, value->text);
		break;
	case STORE_NUMBER:
		memcpy(&bits, &number, sizeof(bits));
		add_u64(out, bits);
		break;
	default:
		add_u64(out, (uint64_t)value->integer);
	}
}

static bool fits(enum store_type type, const struct store_value *value)
{
	return value->type == type || (type == STORE_NUMBER && value->type == STORE_INTEGER);
}

static int add_cell(
	struct strbuf *out, enum store_table_id id, size_t column, const struct store_value *value)
{
	enum store_type type = store_tables[id].columns[column].type;
	bool is_null = value->type == STORE_NULL;

	if (clickhouse_is_required(id, column)) {
		if (!fits(type, value))
			return -EEXIST;
		add_value(out, type, value);
		return 0;
	}
	if (!is_null && !fits(type, value))
		return -EEXIST;
	strbuf_add_char(out, is_null ? 1 : 0);
	if (!is_null)
		add_value(out, type, value);
	return 0;
}

static int add_row(struct strbuf *out, enum store_table_id id, const struct store_value *values,
	uint64_t version, const struct clickhouse_mark *mark)
{
	size_t before = out->length;
	int r = 0;

	for (size_t i = 0; r == 0 && i < store_tables[id].count; i++)
		r = add_cell(out, id, i, &values[i]);
	if (id != STORE_FIGURE_NAMES)
		add_u64(out, mark->ingest);
	if (clickhouse_has_version(id)) {
		add_u64(out, version);
		strbuf_add_char(out, mark->is_deleted ? 1 : 0);
	}
	if (r < 0)
		out->length = before;
	return r;
}

/* ---- sending ---- */

static int send_table(
	struct clickhouse_store *clickhouse, enum store_table_id id, struct errmsg *err)
{
	struct strbuf *rows = &clickhouse->batch.rows[id];
	_cleanup_strbuf_ struct strbuf insert = {0};
	int r;

	if (!rows->length && strbuf_status(rows) == 0)
		return 0;
	strbuf_addf(&insert, "INSERT INTO %s_rows (", store_tables[id].name);
	clickhouse_add_columns(&insert, id);
	strbuf_add(&insert, ") FORMAT RowBinary");
	if (strbuf_status(&insert) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while writing to the database");
	r = clickhouse_send(clickhouse, insert.data, rows, err);
	strbuf_clear(rows);
	return r;
}

/* Which runs and names the transaction adds. A figure of another name would have none. */
static int check_names(struct clickhouse_batch *batch, enum store_table_id id,
	const struct store_value *values, const struct clickhouse_mark *mark, struct errmsg *err)
{
	int r = 0;

	if (id == STORE_RUNS && mark->ingest == batch->ingest)
		r = map_u64_set(&batch->runs, (uint64_t)values[0].integer, 1);
	else if (id == STORE_FIGURE_NAMES)
		r = map_u64_set(&batch->names, (uint64_t)values[0].integer, 1);
	else if (id == STORE_FIGURES &&
		 !map_u64_get(&batch->names, (uint64_t)values[1].integer, NULL))
		return errmsg_set(err, -EEXIST, "a figure has no name");
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing to the database") : 0;
}

int clickhouse_batch_add(struct clickhouse_store *clickhouse, enum store_table_id id,
	const struct store_value *values, const struct clickhouse_mark *mark, struct errmsg *err)
{
	struct clickhouse_batch *batch = &clickhouse->batch;
	struct strbuf *rows = &batch->rows[id];
	int r = add_row(rows, id, values, batch->version, mark);

	if (r < 0)
		return errmsg_set(err, r, "a row does not fit the table %s", store_tables[id].name);
	r = check_names(batch, id, values, mark, err);
	if (r < 0)
		return r;
	if (id == STORE_RUNS && rows->length > RUNS_MOST)
		return errmsg_set(err, -EFBIG,
			"these are too many runs to write at once: do it in smaller parts");
	return id != STORE_RUNS && rows->length > SENT_AT_BYTES ? send_table(clickhouse, id, err)
								: 0;
}

/* Runs last: with them the rest is seen. */
int clickhouse_batch_send(struct clickhouse_store *clickhouse, struct errmsg *err)
{
	int r = 0;

	for (int id = STORE_TABLE_MAX - 1; r == 0 && id >= 0; id--)
		r = send_table(clickhouse, (enum store_table_id)id, err);
	return r;
}

void clickhouse_batch_clear(struct clickhouse_batch *batch)
{
	for (int id = 0; id < STORE_TABLE_MAX; id++)
		strbuf_clear(&batch->rows[id]);
	map_u64_clear(&batch->runs);
	map_u64_clear(&batch->names);
	batch->is_open = false;
}

void clickhouse_batch_done(struct clickhouse_batch *batch)
{
	for (int id = 0; id < STORE_TABLE_MAX; id++)
		strbuf_done(&batch->rows[id]);
	map_u64_done(&batch->runs);
	map_u64_done(&batch->names);
}
