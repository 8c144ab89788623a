/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "store/clickhouse/internal.h"

/* ---- transactions ---- */

static int64_t realtime_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec;
}

static int take_newest(void *context, const struct store_value *values, size_t count)
{
	if (values[0].type == STORE_INTEGER)
		*(int64_t *)context = values[0].integer;
	return 0;
}

/* Later than every row that is there, even where a clock was set back. */
static int find_version(
	struct clickhouse_store *clickhouse, uint64_t *ret_version, struct errmsg *err)
{
	static const char *const tables[] = {
		"SELECT max(version) FROM runs_rows", "SELECT max(version) FROM tags_rows"};
	int64_t version = realtime_now_ns(), newest = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++) {
		r = clickhouse_ask(clickhouse, tables[i], NULL, 0, take_newest, &newest, err);
		version = MAX(version, newest + 1);
	}
	if (r == 0)
		*ret_version = (uint64_t)version;
	return r;
}

/* A time, for compaction, and chance, since two machines may begin at once. */
static uint64_t make_ingest(void)
{
	const uint64_t chance_bits = 20; /* 1 ms */
	uint64_t now = (uint64_t)realtime_now_ns(), chance = now;

	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		chance = now * 0x9e3779b97f4a7c15ULL;
	return (now >> chance_bits << chance_bits) | (chance >> (64 - chance_bits));
}

static int begin(struct store *store, struct errmsg *err)
{
	struct clickhouse_store *clickhouse = clickhouse_of(store);
	uint64_t version = 0;
	int r = find_version(clickhouse, &version, err);

	if (r < 0)
		return r;
	clickhouse_batch_clear(&clickhouse->batch);
	clickhouse->batch.version = version;
	clickhouse->batch.ingest = make_ingest();
	clickhouse->batch.is_open = true;
	return 0;
}

static void rollback(struct store *store)
{
	clickhouse_batch_clear(&clickhouse_of(store)->batch);
}

static int commit(struct store *store, struct errmsg *err)
{
	struct clickhouse_store *clickhouse = clickhouse_of(store);
	int r = clickhouse_batch_send(clickhouse, err);

	clickhouse_batch_clear(&clickhouse->batch);
	return r;
}

/* What changes something, in the transaction that is open, or in one of its own. */
struct change {
	int (*make)(struct clickhouse_store *clickhouse, const struct change *change,
		struct errmsg *err);
	enum store_table_id table;
	const struct store_value *values;
	int64_t run;
	const int64_t *runs;
	const struct store_change *changes;
	size_t count;
	const char *tag;
};

static int apply(struct store *store, const struct change *change, struct errmsg *err)
{
	struct clickhouse_store *clickhouse = clickhouse_of(store);
	int r;

	if (clickhouse->batch.is_open)
		return change->make(clickhouse, change, err);
	r = begin(store, err);
	if (r == 0)
		r = change->make(clickhouse, change, err);
	if (r == 0)
		return commit(store, err);
	rollback(store);
	return r;
}

/* ---- rows that are there ---- */

struct old_row {
	struct clickhouse_store *clickhouse;
	const struct change *change;
	struct errmsg *err;
	bool is_found;
	uint64_t ingest;
};

static int take_ingest(void *context, const struct store_value *values, size_t count)
{
	struct old_row *row = context;

	row->is_found = true;
	row->ingest = (uint64_t)values[0].integer;
	return 0;
}

static int find_ingest(
	struct clickhouse_store *clickhouse, int64_t run, struct old_row *row, struct errmsg *err)
{
	const struct store_value number = store_integer(run);

	row->is_found = map_u64_get(&clickhouse->batch.runs, (uint64_t)run, NULL);
	row->ingest = clickhouse->batch.ingest;
	if (row->is_found)
		return 0;
	return clickhouse_ask(clickhouse,
		"SELECT ingest FROM runs_rows FINAL WHERE is_deleted = 0 AND number = ?1", &number,
		1, take_ingest, row, err);
}

/* ---- inserting ---- */

static int make_tag(struct clickhouse_store *clickhouse, int64_t run, const char *tag,
	bool is_deleted, struct errmsg *err)
{
	const struct store_value values[] = {store_integer(run), {.type = STORE_TEXT, .text = tag}};
	struct old_row row = {0};
	int r = find_ingest(clickhouse, run, &row, err);

	if (r < 0)
		return r;
	if (!row.is_found)
		return errmsg_set(err, -EEXIST, "a tag refers to a run that is not there");
	return clickhouse_batch_add(clickhouse, STORE_TAGS, values,
		&(struct clickhouse_mark){.ingest = row.ingest, .is_deleted = is_deleted}, err);
}

static int make_insert(
	struct clickhouse_store *clickhouse, const struct change *change, struct errmsg *err)
{
	const struct clickhouse_mark mark = {.ingest = clickhouse->batch.ingest};

	if (change->table == STORE_TAGS && change->values[0].type == STORE_INTEGER &&
		change->values[1].type == STORE_TEXT)
		return make_tag(
			clickhouse, change->values[0].integer, change->values[1].text, false, err);
	return clickhouse_batch_add(clickhouse, change->table, change->values, &mark, err);
}

static int insert(struct store *store, enum store_table_id table, const struct store_value *values,
	struct errmsg *err)
{
	return apply(store, &(struct change){.make = make_insert, .table = table, .values = values},
		err);
}

static int take_tag(void *context, const struct store_value *values, size_t count)
{
	const struct clickhouse_mark mark = {
		.ingest = (uint64_t)values[2].integer, .is_deleted = true};
	struct old_row *row = context;

	return clickhouse_batch_add(row->clickhouse, STORE_TAGS, values, &mark, row->err);
}

static int make_tag_end(
	struct clickhouse_store *clickhouse, const struct change *change, struct errmsg *err)
{
	const struct store_value number = store_integer(change->run);
	struct old_row row = {.clickhouse = clickhouse, .err = err};

	if (!change->tag)
		return clickhouse_ask(clickhouse,
			"SELECT run, tag, ingest FROM tags_rows FINAL WHERE is_deleted = 0 AND "
			"run = ?1",
			&number, 1, take_tag, &row, err);
	return make_tag(clickhouse, change->run, change->tag, true, err);
}

static int delete_tag(struct store *store, int64_t run, const char *tag, struct errmsg *err)
{
	return apply(store, &(struct change){.make = make_tag_end, .run = run, .tag = tag}, err);
}

/* ---- changing a run: its row is written anew ---- */

/* The columns of the run, then its ingest. */
static int take_old_run(void *context, const struct store_value *values, size_t count)
{
	struct store_value changed[STORE_RUN_COLUMN_MAX];
	struct old_row *row = context;

	if (count != STORE_RUN_COLUMN_MAX + 1)
		return errmsg_set(row->err, -EPROTO, "the database gave other columns than wanted");
	memcpy(changed, values, sizeof(changed));
	for (size_t i = 0; i < row->change->count; i++)
		changed[row->change->changes[i].column] = row->change->changes[i].value;
	row->is_found = true;
	return clickhouse_batch_add(row->clickhouse, STORE_RUNS, changed,
		&(struct clickhouse_mark){.ingest = (uint64_t)values[count - 1].integer}, row->err);
}

static int make_update(
	struct clickhouse_store *clickhouse, const struct change *change, struct errmsg *err)
{
	const struct store_table *table = &store_tables[STORE_RUNS];
	const struct store_value number = store_integer(change->run);
	struct old_row row = {.clickhouse = clickhouse, .change = change, .err = err};
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_add(&sql, "SELECT ");
	for (size_t i = 0; i < table->count; i++)
		strbuf_addf(&sql, "%s, ", table->columns[i].name);
	strbuf_add(&sql, "ingest FROM runs_rows FINAL WHERE is_deleted = 0 AND number = ?1");
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while changing a run");
	return clickhouse_ask(clickhouse, sql.data, &number, 1, take_old_run, &row, err);
}

static int update_run(struct store *store, int64_t run, const struct store_change *changes,
	size_t count, struct errmsg *err)
{
	return apply(store,
		&(struct change){
			.make = make_update, .run = run, .changes = changes, .count = count},
		err);
}

/* ---- deleting runs: a row says that they are gone ---- */

struct deletion {
	struct clickhouse_store *clickhouse;
	struct map_u64 numbers;
	struct errmsg *err;
};

static int take_deleted(void *context, const struct store_value *values, size_t count)
{
	struct store_value gone[STORE_RUN_COLUMN_MAX] = {0};
	struct deletion *deletion = context;

	if (!map_u64_get(&deletion->numbers, (uint64_t)values[0].integer, NULL))
		return 0;
	gone[STORE_RUN_NUMBER] = values[0];
	gone[STORE_RUN_ID] = (struct store_value){.type = STORE_TEXT, .text = ""};
	gone[STORE_RUN_PATH] = gone[STORE_RUN_ID];
	gone[STORE_RUN_ADDED] = store_integer(0);
	return clickhouse_batch_add(deletion->clickhouse, STORE_RUNS, gone,
		&(struct clickhouse_mark){
			.ingest = (uint64_t)values[1].integer, .is_deleted = true},
		deletion->err);
}

static int make_deletion(
	struct clickhouse_store *clickhouse, const struct change *change, struct errmsg *err)
{
	struct deletion deletion = {.clickhouse = clickhouse, .err = err};
	int r = 0;

	for (size_t i = 0; r == 0 && i < change->count; i++)
		r = map_u64_set(&deletion.numbers, (uint64_t)change->runs[i], 1);
	r = r < 0 ? errmsg_set(err, r, "memory ran out while deleting runs")
		  : clickhouse_ask(clickhouse,
			    "SELECT number, ingest FROM runs_rows FINAL WHERE is_deleted = 0", NULL,
			    0, take_deleted, &deletion, err);
	map_u64_done(&deletion.numbers);
	return r;
}

static int delete_runs(struct store *store, const int64_t *runs, size_t count, struct errmsg *err)
{
	return apply(
		store, &(struct change){.make = make_deletion, .runs = runs, .count = count}, err);
}

/* ---- reading ---- */

static int run(struct store *store, const char *sql, const struct store_value *parameters,
	size_t count, store_row_function *take, void *context, struct errmsg *err)
{
	return clickhouse_ask(clickhouse_of(store), sql, parameters, count, take, context, err);
}

/* ---- care ---- */

/* Each counts what should not be there. */
static const struct {
	const char *sql, *fault;
} checks[] = {
	{"SELECT count(*) - uniqExact(number) FROM runs", "runs have the same number"},
	{"SELECT count(*) - uniqExact(id) FROM runs", "runs have the same id"},
	{"SELECT count(*) FROM figures WHERE name NOT IN (SELECT name FROM figure_names)",
		"rows of figures refer to a name that is not there"},
	{"SELECT count(*) FROM tags WHERE run NOT IN (SELECT number FROM runs)",
		"tags refer to a run that is not there"},
};

static int check(struct store *store, store_fault_function *say, void *context, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(checks); i++) {
		_cleanup_strbuf_ struct strbuf text = {0};
		int64_t found = 0;

		r = store_count(store, checks[i].sql, NULL, 0, &found, err);
		if (found) {
			strbuf_addf(&text, "%lld %s", (long long)found, checks[i].fault);
			say(context, strbuf_cstr(&text));
		}
	}
	return r;
}

static int bytes(struct store *store, uint64_t *ret_bytes, struct errmsg *err)
{
	const struct store_value database = store_text(clickhouse_of(store)->database);
	int64_t found = 0;
	int r = store_count(store,
		"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = ?1",
		&database, 1, &found, err);

	if (r == 0)
		*ret_bytes = (uint64_t)found;
	return r;
}

/* What nobody sees and nobody is writing: it is that old, or of a run that was deleted. */
#define ABANDONED_AFTER_NS (3600LL * 1000000000)

static int compact_details(
	struct clickhouse_store *clickhouse, enum store_table_id table, struct errmsg *err)
{
	const char *database = clickhouse->database;
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_addf(&sql,
		"ALTER TABLE %s_rows DELETE WHERE ((run, ingest) NOT IN (SELECT number, ingest "
		"FROM %s.runs_rows FINAL WHERE is_deleted = 0)) AND (ingest < %lld OR "
		"(run, ingest) IN (SELECT number, ingest FROM %s.runs_rows FINAL WHERE is_deleted "
		"= 1))",
		store_tables[table].name, database,
		(long long)(realtime_now_ns() - ABANDONED_AFTER_NS), database);
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while compacting");
	return clickhouse_do(clickhouse, sql.data, err);
}

static int compact(struct store *store, struct errmsg *err)
{
	struct clickhouse_store *clickhouse = clickhouse_of(store);
	int r = 0;

	for (int table = 0; r == 0 && table < STORE_TABLE_MAX; table++) {
		if (table != STORE_RUNS && table != STORE_FIGURE_NAMES)
			r = compact_details(clickhouse, (enum store_table_id)table, err);
	}
	return r;
}

static void close_store(struct store *store)
{
	struct clickhouse_store *clickhouse = clickhouse_of(store);

	clickhouse_batch_done(&clickhouse->batch);
	free(clickhouse->url);
	free(clickhouse->database);
	free(clickhouse->user);
	free(clickhouse->password);
	free(store->address);
	free(clickhouse);
}

const struct store_ops clickhouse_ops = {
	.close = close_store,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.insert = insert,
	.update_run = update_run,
	.delete_tag = delete_tag,
	.delete_runs = delete_runs,
	.run = run,
	.check = check,
	.bytes = bytes,
	.compact = compact,
};
