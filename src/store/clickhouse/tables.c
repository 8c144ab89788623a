/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as ClickHouse has them; clickhouse.h says why. */
#include <errno.h>

#include "store/clickhouse/internal.h"

/* How many of the first columns are never null; those of runs are named below. */
static const size_t required[STORE_TABLE_MAX] = {
	[STORE_TAGS] = 2,
	[STORE_FIGURE_NAMES] = 5,
	[STORE_FIGURES] = 3,
	[STORE_RAILS] = 2,
	[STORE_POWER] = 4,
	[STORE_REQUESTS] = 2,
	[STORE_TOKENS] = 3,
	[STORE_LAYERS] = 2,
};

bool clickhouse_is_required(enum store_table_id table, size_t column)
{
	if (table == STORE_RUNS)
		return column == STORE_RUN_NUMBER || column == STORE_RUN_ID ||
		       column == STORE_RUN_PATH || column == STORE_RUN_ADDED;
	return column < required[table];
}

bool clickhouse_has_version(enum store_table_id table)
{
	return table == STORE_RUNS || table == STORE_TAGS;
}

static void add_names(struct strbuf *out, const struct store_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		strbuf_addf(out, "%s%s", i ? ", " : "", table->columns[i].name);
}

void clickhouse_add_columns(struct strbuf *out, enum store_table_id table)
{
	add_names(out, &store_tables[table]);
	if (table != STORE_FIGURE_NAMES)
		strbuf_add(out, ", ingest");
	if (clickhouse_has_version(table))
		strbuf_add(out, ", version, is_deleted");
}

/* ---- making them ---- */

static void add_type(struct strbuf *out, enum store_table_id table, size_t column)
{
	static const char *const types[] = {
		[STORE_INTEGER] = "Int64", [STORE_NUMBER] = "Float64", [STORE_TEXT] = "String"};
	const char *type = types[store_tables[table].columns[column].type];

	strbuf_addf(out, clickhouse_is_required(table, column) ? "%s" : "Nullable(%s)", type);
}

static int make_table(
	struct clickhouse_store *clickhouse, enum store_table_id id, struct errmsg *err)
{
	const struct store_table *table = &store_tables[id];
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_addf(&sql, "CREATE TABLE IF NOT EXISTS %s_rows (", table->name);
	for (size_t i = 0; i < table->count; i++) {
		strbuf_addf(&sql, "%s%s ", i ? ", " : "", table->columns[i].name);
		add_type(&sql, id, i);
	}
	if (id != STORE_FIGURE_NAMES)
		strbuf_add(&sql, ", ingest UInt64");
	if (clickhouse_has_version(id))
		strbuf_add(&sql, ", version UInt64, is_deleted UInt8");
	strbuf_addf(&sql, ") ENGINE = %s ORDER BY (%s",
		clickhouse_has_version(id) ? "ReplacingMergeTree(version)"
		: id == STORE_FIGURE_NAMES ? "ReplacingMergeTree"
					   : "MergeTree",
		table->columns[0].name);
	/* The rows of a transaction stand together. */
	for (size_t i = 1; i < table->key_count; i++)
		strbuf_addf(&sql, "%s, %s", i == 1 ? ", ingest" : "", table->columns[i].name);
	strbuf_add_char(&sql, ')');
	/* These are looked for one by one. */
	if (clickhouse_has_version(id))
		strbuf_add(&sql, " SETTINGS index_granularity = 256");
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making the database");
	return clickhouse_do(clickhouse, sql.data, err);
}

struct known_columns {
	const struct store_table *table;
	bool is_there[STORE_RUN_COLUMN_MAX];
};

static int take_column(void *context, const struct store_value *values, size_t count)
{
	struct known_columns *known = context;
	const struct store_column *column =
		store_column_find(known->table, store_as_text(&values[0]));

	if (column)
		known->is_there[column - known->table->columns] = true;
	return 0;
}

static int add_column(struct clickhouse_store *clickhouse, enum store_table_id id, size_t column,
	struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_addf(&sql, "ALTER TABLE %s_rows ADD COLUMN %s ", store_tables[id].name,
		store_tables[id].columns[column].name);
	add_type(&sql, id, column);
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making the database");
	return clickhouse_do(clickhouse, sql.data, err);
}

/* Columns that a version behind that of the table added. */
static int add_missing_columns(
	struct clickhouse_store *clickhouse, enum store_table_id id, struct errmsg *err)
{
	const struct store_table *table = &store_tables[id];
	struct known_columns known = {.table = table};
	char name[64];
	int r;

	snprintf(name, sizeof(name), "%s_rows", table->name);
	r = clickhouse_ask(clickhouse,
		"SELECT name FROM system.columns WHERE database = ?1 AND table = ?2",
		STORE_PARAMETERS(store_text(clickhouse->database), store_text(name)), 2,
		take_column, &known, err);
	for (size_t i = 0; r == 0 && i < table->count; i++) {
		if (!known.is_there[i])
			r = add_column(clickhouse, id, i, err);
	}
	return r;
}

/* What a reader sees of it. */
static int make_view(
	struct clickhouse_store *clickhouse, enum store_table_id id, struct errmsg *err)
{
	const struct store_table *table = &store_tables[id];
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_addf(&sql, "CREATE VIEW IF NOT EXISTS %s AS SELECT ", table->name);
	add_names(&sql, table);
	strbuf_addf(&sql, " FROM %s.%s_rows", clickhouse->database, table->name);
	if (clickhouse_has_version(id) || id == STORE_FIGURE_NAMES)
		strbuf_add(&sql, " FINAL");
	if (clickhouse_has_version(id))
		strbuf_add(&sql, " WHERE is_deleted = 0");
	if (id != STORE_RUNS && id != STORE_FIGURE_NAMES)
		strbuf_addf(&sql,
			" %s (run, ingest) IN (SELECT number, ingest FROM %s.runs_rows FINAL WHERE "
			"is_deleted = 0)",
			clickhouse_has_version(id) ? "AND" : "WHERE", clickhouse->database);
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making the database");
	return clickhouse_do(clickhouse, sql.data, err);
}

static int make_view_anew(
	struct clickhouse_store *clickhouse, enum store_table_id id, struct errmsg *err)
{
	char sql[64];
	int r;

	snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s", store_tables[id].name);
	r = clickhouse_do(clickhouse, sql, err);
	return r < 0 ? r : make_view(clickhouse, id, err);
}

/* The version comes last: where this was interrupted, it is done again. */
int clickhouse_make_tables(struct clickhouse_store *clickhouse, struct errmsg *err)
{
	char sql[128];
	int r = 0;

	for (int id = 0; r == 0 && id < STORE_TABLE_MAX; id++) {
		r = make_table(clickhouse, (enum store_table_id)id, err);
		if (r == 0)
			r = add_missing_columns(clickhouse, (enum store_table_id)id, err);
		if (r == 0)
			r = make_view_anew(clickhouse, (enum store_table_id)id, err);
	}
	if (r == 0)
		r = clickhouse_do(clickhouse,
			"CREATE TABLE IF NOT EXISTS sonde_versions (version Int64) ENGINE = "
			"ReplacingMergeTree ORDER BY version",
			err);
	snprintf(sql, sizeof(sql), "INSERT INTO sonde_versions (version) VALUES (%d)",
		STORE_VERSION);
	return r < 0 ? r : clickhouse_do(clickhouse, sql, err);
}
