/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/internal.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

static struct sqlite_store *sqlite_of(struct store *store)
{
	return (struct sqlite_store *)store;
}

/* ---- faults ---- */

static int errno_of(int status)
{
	switch (status & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EROFS;
	case SQLITE_CANTOPEN:
		return -EACCES;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_CONSTRAINT:
		return -EEXIST;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -EFBIG;
	default:
		return -EIO;
	}
}

static const char *remedy_of(int error)
{
	switch (-error) {
	case EBUSY:
		return "another program writes to it; try again when that has ended";
	case EACCES:
	case EROFS:
		return "it may not be opened or changed: check its permissions and those of its folder, or "
		       "name another file with --store";
	case ENOSPC:
		return "there is no space left; make room, or name a file elsewhere with --store";
	case EBADMSG:
		return "it is damaged, or not a database: 'sonde runs check' says where; go back "
		       "to a copy of it, or to what 'sonde runs export' wrote";
	case ENOMEM:
		return "memory ran out";
	default:
		return "check its disk, and 'sonde runs check'";
	}
}

int sqlite_failed(sqlite3 *database, const char *path, int status, struct errmsg *err)
{
	int error = errno_of(status);

	/* Its log needs room even to be read. */
	if (error == -EIO && database && sqlite3_system_errno(database) == ENOSPC)
		error = -ENOSPC;
	return errmsg_set(err, error, "the runs database %s cannot be used (%s): %s", path,
		database ? sqlite3_errmsg(database) : sqlite3_errstr(status), remedy_of(error));
}

static int failed(struct sqlite_store *sqlite, int status, struct errmsg *err)
{
	return sqlite_failed(sqlite->database, sqlite->store.address, status, err);
}

int sqlite_do(sqlite3 *database, const char *path, const char *sql, struct errmsg *err)
{
	int status = sqlite3_exec(database, sql, NULL, NULL, NULL);

	return status == SQLITE_OK ? 0 : sqlite_failed(database, path, status, err);
}

int sqlite_pragma(sqlite3 *database, const char *path, const char *sql, int64_t *ret_value,
	struct errmsg *err)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return status == SQLITE_ROW ? 0 : sqlite_failed(database, path, status, err);
}

/* ---- transactions ---- */

static int begin(struct store *store, struct errmsg *err)
{
	struct sqlite_store *sqlite = sqlite_of(store);
	int r = sqlite_do(sqlite->database, store->address, "BEGIN IMMEDIATE", err);

	sqlite->in_transaction = r == 0;
	return r;
}

static void rollback(struct store *store)
{
	struct sqlite_store *sqlite = sqlite_of(store);

	/* Some faults have ended it already. */
	if (sqlite->in_transaction && !sqlite3_get_autocommit(sqlite->database))
		sqlite3_exec(sqlite->database, "ROLLBACK", NULL, NULL, NULL);
	sqlite->in_transaction = false;
}

static int commit(struct store *store, struct errmsg *err)
{
	struct sqlite_store *sqlite = sqlite_of(store);
	int r = sqlite_do(sqlite->database, store->address, "COMMIT", err);

	if (r < 0)
		rollback(store);
	sqlite->in_transaction = false;
	return r;
}

/* ---- statements ---- */

static int bind(sqlite3_stmt *statement, int place, const struct store_value *value)
{
	switch (value->type) {
	case STORE_INTEGER:
		return sqlite3_bind_int64(statement, place, value->integer);
	case STORE_NUMBER:
		return sqlite3_bind_double(statement, place, value->number);
	case STORE_TEXT:
		return sqlite3_bind_text(statement, place, value->text, -1, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(statement, place);
	}
}

static int bind_all(sqlite3_stmt *statement, const struct store_value *values, size_t count)
{
	int status = SQLITE_OK;

	for (size_t i = 0; status == SQLITE_OK && i < count; i++)
		status = bind(statement, (int)i + 1, &values[i]);
	return status;
}

static struct store_value column_value(sqlite3_stmt *statement, int column)
{
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		return store_integer(sqlite3_column_int64(statement, column));
	case SQLITE_FLOAT:
		return store_number(sqlite3_column_double(statement, column));
	case SQLITE_TEXT:
		return (struct store_value){.type = STORE_TEXT,
			.text = (const char *)sqlite3_column_text(statement, column)};
	default:
		return store_null();
	}
}

#define COLUMNS_MOST 128

static int give_row(sqlite3_stmt *statement, store_row_function *take, void *context)
{
	struct store_value values[COLUMNS_MOST];
	int count = MIN(sqlite3_column_count(statement), COLUMNS_MOST);

	for (int i = 0; i < count; i++)
		values[i] = column_value(statement, i);
	return take ? take(context, values, (size_t)count) : 0;
}

static int run(struct store *store, const char *sql, const struct store_value *parameters,
	size_t count, store_row_function *take, void *context, struct errmsg *err)
{
	struct sqlite_store *sqlite = sqlite_of(store);
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(sqlite->database, sql, -1, &statement, NULL), r = 0;

	if (status == SQLITE_OK)
		status = bind_all(statement, parameters, count);
	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	while (status == SQLITE_ROW && r == 0) {
		r = give_row(statement, take, context);
		status = r == 0 ? sqlite3_step(statement) : SQLITE_DONE;
	}
	if (status != SQLITE_DONE)
		r = failed(sqlite, status, err);
	sqlite3_finalize(statement);
	return r;
}

/* ---- rows ---- */

static int prepare_insert(struct sqlite_store *sqlite, enum store_table_id id)
{
	const struct store_table *table = &store_tables[id];
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_addf(&sql, "INSERT %sINTO %s VALUES (", id == STORE_FIGURE_NAMES ? "OR IGNORE " : "",
		table->name);
	for (size_t i = 0; i < table->count; i++)
		strbuf_addf(&sql, "%s?%zu", i ? ", " : "", i + 1);
	strbuf_add(&sql, id == STORE_TAGS ? ") ON CONFLICT DO NOTHING" : ")");
	if (strbuf_status(&sql) < 0)
		return SQLITE_NOMEM;
	return sqlite3_prepare_v3(sqlite->database, sql.data, -1, SQLITE_PREPARE_PERSISTENT,
		&sqlite->inserts[id], NULL);
}

static int insert(struct store *store, enum store_table_id id, const struct store_value *values,
	struct errmsg *err)
{
	struct sqlite_store *sqlite = sqlite_of(store);
	int status = sqlite->inserts[id] ? SQLITE_OK : prepare_insert(sqlite, id), r = 0;

	if (status == SQLITE_OK)
		status = bind_all(sqlite->inserts[id], values, store_tables[id].count);
	if (status == SQLITE_OK)
		status = sqlite3_step(sqlite->inserts[id]);
	if (status != SQLITE_DONE)
		r = failed(sqlite, status, err);
	sqlite3_reset(sqlite->inserts[id]);
	return r;
}

/* ---- changes ---- */

static int update_run(struct store *store, int64_t number, const struct store_change *changes,
	size_t count, struct errmsg *err)
{
	struct store_value values[STORE_RUN_COLUMN_MAX + 1] = {store_integer(number)};
	_cleanup_strbuf_ struct strbuf sql = {0};

	if (!count)
		return 0;
	strbuf_add(&sql, "UPDATE runs SET ");
	for (size_t i = 0; i < MIN(count, (size_t)STORE_RUN_COLUMN_MAX); i++) {
		strbuf_addf(&sql, "%s%s = ?%zu", i ? ", " : "",
			store_tables[STORE_RUNS].columns[changes[i].column].name, i + 2);
		values[i + 1] = changes[i].value;
	}
	strbuf_add(&sql, " WHERE number = ?1");
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while changing a run");
	return run(store, sql.data, values, count + 1, NULL, NULL, err);
}

static int delete_tag(struct store *store, int64_t number, const char *tag, struct errmsg *err)
{
	const struct store_value values[] = {
		store_integer(number), {.type = STORE_TEXT, .text = tag}};

	return tag ? run(store, "DELETE FROM tags WHERE run = ?1 AND tag = ?2", values, 2, NULL,
			     NULL, err)
		   : run(store, "DELETE FROM tags WHERE run = ?1", values, 1, NULL, NULL, err);
}

static int delete_runs(
	struct store *store, const int64_t *numbers, size_t count, struct errmsg *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct store_value number = store_integer(numbers[i]);

		r = run(store, "DELETE FROM runs WHERE number = ?1", &number, 1, NULL, NULL, err);
	}
	return r;
}

/* ---- care ---- */

struct checking {
	store_fault_function *say;
	void *context;
	size_t faults;
};

static int take_integrity(void *context, const struct store_value *values, size_t count)
{
	struct checking *checking = context;

	if (strcmp(store_as_text(&values[0]), "ok") != 0) {
		checking->say(checking->context, store_as_text(&values[0]));
		checking->faults++;
	}
	return 0;
}

/* A row, its table, and the table that it refers to in vain. */
static int take_reference(void *context, const struct store_value *values, size_t count)
{
	struct checking *checking = context;
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "a row of %s refers to a row of %s that is not there",
		store_as_text(&values[0]), count > 2 ? store_as_text(&values[2]) : "");
	checking->say(checking->context, strbuf_cstr(&text));
	checking->faults++;
	return 0;
}

static int check(struct store *store, store_fault_function *say, void *context, struct errmsg *err)
{
	struct checking checking = {.say = say, .context = context};
	int r = store_select(store, "PRAGMA integrity_check(100)", take_integrity, &checking, err);

	if (r < 0 || checking.faults)
		return r;
	return store_select(store, "PRAGMA foreign_key_check", take_reference, &checking, err);
}

static int bytes(struct store *store, uint64_t *ret_bytes, struct errmsg *err)
{
	struct sqlite_store *sqlite = sqlite_of(store);
	int64_t pages = 0, size = 0;
	int r = sqlite_pragma(sqlite->database, store->address, "PRAGMA page_count", &pages, err);

	if (r == 0)
		r = sqlite_pragma(sqlite->database, store->address, "PRAGMA page_size", &size, err);
	if (r == 0)
		*ret_bytes = (uint64_t)pages * (uint64_t)size;
	return r;
}

static int compact(struct store *store, struct errmsg *err)
{
	return sqlite_do(sqlite_of(store)->database, store->address, "VACUUM", err);
}

static void close_store(struct store *store)
{
	struct sqlite_store *sqlite = sqlite_of(store);

	rollback(store);
	for (size_t i = 0; i < STORE_TABLE_MAX; i++)
		sqlite3_finalize(sqlite->inserts[i]);
	sqlite3_close(sqlite->database);
	free(store->address);
	free(sqlite);
}

const struct store_ops sqlite_ops = {
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
