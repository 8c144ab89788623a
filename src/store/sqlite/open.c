/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the file: where it is, whether it is ours, and its tables brought up to date. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/new_file.h"
#include "base/strbuf.h"
#include "store/sqlite/internal.h"

static unsigned patience_ms = 10000;

void store_sqlite_set_patience(unsigned milliseconds)
{
	patience_ms = milliseconds;
}

/* ---- the place ---- */

/* The folder may be reached through links, the file may not be one. */
static int resolve(const char *path, char **ret_path, struct errmsg *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	_cleanup_free_ char *resolved = folder ? realpath(folder, NULL) : NULL;
	_cleanup_strbuf_ struct strbuf full = {0};

	if (!resolved)
		return errmsg_set(err, -errno,
			"cannot open the runs database %s: its folder: %s; make the folder first",
			path, strerror(errno));
	strbuf_addf(&full, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved,
		slash ? slash + 1 : path);
	if (strbuf_status(&full) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while opening %s", path);
	*ret_path = TAKE_PTR(full.data);
	return 0;
}

static int make_file(const char *path, struct errmsg *err)
{
	_cleanup_close_ int fd = new_file_at(AT_FDCWD, path, O_RDWR, 0600);

	if (fd < 0 && fd != -EEXIST)
		return errmsg_set(err, fd,
			"cannot make the runs database %s: %s; name a file elsewhere with --store",
			path, strerror(-fd));
	return 0;
}

static int look_at(const char *path, struct errmsg *err)
{
	struct stat status;

	if (lstat(path, &status) < 0) {
		if (errno == ENOENT)
			return errmsg_set(err, -ENOENT,
				"there is no runs database %s; 'sonde runs add CAPTURE' makes one",
				path);
		return errmsg_set(
			err, -errno, "cannot open the runs database %s: %s", path, strerror(errno));
	}
	if (!S_ISREG(status.st_mode))
		return errmsg_set(err, -ELOOP,
			"the runs database %s is a link or no regular file; name the file itself",
			path);
	return 0;
}

/* ---- the file ---- */

/*
 * A database that is not being written can be read where nothing can be written, too; SQLite wants
 * to make files beside it otherwise.
 */
static bool is_still(const char *path)
{
	_cleanup_strbuf_ struct strbuf log = {0}, folder = {0};
	const char *slash = strrchr(path, '/');

	strbuf_addf(&log, "%s-wal", path);
	strbuf_add_bytes(&folder, path, (size_t)(slash - path) + 1);
	return strbuf_status(&log) == 0 && strbuf_status(&folder) == 0 &&
	       access(folder.data, W_OK) < 0 && access(log.data, F_OK) < 0;
}

static void add_uri(struct strbuf *out, const char *path)
{
	strbuf_add(out, "file:");
	for (; *path; path++) {
		if (strchr("%?# ", *path) || (unsigned char)*path < ' ')
			strbuf_addf(out, "%%%02x", (unsigned char)*path);
		else
			strbuf_add_char(out, *path);
	}
	strbuf_add(out, "?immutable=1");
}

static int open_file(sqlite3 **ret_database, const char *path, enum store_mode mode)
{
	_cleanup_strbuf_ struct strbuf uri = {0};
	int flags = SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;

	if (mode == STORE_WRITE)
		return sqlite3_open_v2(path, ret_database, flags | SQLITE_OPEN_READWRITE, NULL);
	if (!is_still(path))
		return sqlite3_open_v2(path, ret_database, flags | SQLITE_OPEN_READONLY, NULL);
	add_uri(&uri, path);
	if (strbuf_status(&uri) < 0)
		return SQLITE_NOMEM;
	return sqlite3_open_v2(
		uri.data, ret_database, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

/* A file of somebody else may hold triggers and views: nothing in it is run as ours. */
static int set_up(sqlite3 *database, const char *path, struct errmsg *err)
{
	int status;

	sqlite3_extended_result_codes(database, 1);
	sqlite3_busy_timeout(database, (int)patience_ms);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	status = sqlite_add_functions(database);
	if (status != SQLITE_OK)
		return sqlite_failed(database, path, status, err);
	return sqlite_do(database, path, "PRAGMA cell_size_check = ON", err);
}

/* Of an empty file: 0. */
static int version_of(sqlite3 *database, const char *path, int64_t *ret_version, struct errmsg *err)
{
	int64_t application = 0, version = 0, tables = 0;
	int r = sqlite_pragma(database, path, "PRAGMA application_id", &application, err);

	if (r == 0)
		r = sqlite_pragma(database, path, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = sqlite_pragma(
			database, path, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (r < 0)
		return r;
	if (application != STORE_APPLICATION_ID && (application || version || tables))
		return errmsg_set(err, -EINVAL,
			"%s is a database of another program; name another file with --store",
			path);
	if (version > STORE_VERSION)
		return errmsg_set(err, -EPROTO,
			"the runs database %s was made by a newer sonde (version %lld of the "
			"tables, this sonde knows %d); use that one",
			path, (long long)version, STORE_VERSION);
	*ret_version = version;
	return 0;
}

/* ---- migrations ---- */

static int migrate_steps(sqlite3 *database, const char *path, struct errmsg *err)
{
	int64_t version = 0;
	int r = version_of(database, path, &version, err);

	for (; r == 0 && version < STORE_VERSION; version++) {
		char sql[64];

		r = sqlite_do(database, path, sqlite_migrations[version], err);
		if (r < 0)
			return r;
		snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", (int)version + 1);
		r = sqlite_do(database, path, sql, err);
	}
	return r;
}

/* All steps in one transaction. */
static int migrate(sqlite3 *database, const char *path, struct errmsg *err)
{
	char sql[64];
	int r;

	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", STORE_APPLICATION_ID);
	r = sqlite_do(database, path, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	r = migrate_steps(database, path, err);
	if (r == 0)
		r = sqlite_do(database, path, sql, err);
	if (r == 0)
		r = sqlite_do(database, path, "COMMIT", err);
	if (r < 0)
		sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

/* Of a file that may be written: its tables are made, or brought up to date. */
static int bring_up(sqlite3 *database, const char *path, struct errmsg *err)
{
	int64_t version = 0;
	int r = version_of(database, path, &version, err);

	if (r == 0)
		r = sqlite_do(database, path,
			"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", err);
	if (r == 0 && version < STORE_VERSION)
		r = migrate(database, path, err);
	return r;
}

/* Of a file that is only read. */
static int check_version(sqlite3 *database, const char *path, struct errmsg *err)
{
	int64_t version = 0;
	int r = version_of(database, path, &version, err);

	return r == 0 && version < STORE_VERSION ? -ESTALE : r;
}

/* ---- a store ---- */

static int open_database(
	sqlite3 **ret_database, const char *path, enum store_mode mode, struct errmsg *err)
{
	sqlite3 *database = NULL;
	int r = mode == STORE_WRITE ? make_file(path, err) : 0, status;

	if (r == 0)
		r = look_at(path, err);
	if (r < 0)
		return r;
	status = open_file(&database, path, mode);
	r = status == SQLITE_OK ? set_up(database, path, err)
				: sqlite_failed(database, path, status, err);
	if (r == 0)
		r = mode == STORE_WRITE ? bring_up(database, path, err)
					: check_version(database, path, err);
	if (r < 0)
		sqlite3_close(database);
	else
		*ret_database = database;
	/* It is of an older sonde: its tables are brought up to date first. */
	return r == -ESTALE ? open_database(ret_database, path, STORE_WRITE, err) : r;
}

int store_sqlite_open(
	struct store **ret_store, const char *path, enum store_mode mode, struct errmsg *err)
{
	_cleanup_free_ struct sqlite_store *sqlite = calloc(1, sizeof(*sqlite));
	_cleanup_free_ char *full = NULL;
	int r;

	if (!sqlite)
		return errmsg_set(err, -ENOMEM, "memory ran out while opening %s", path);
	r = resolve(path, &full, err);
	if (!full)
		return r;
	r = open_database(&sqlite->database, full, mode, err);
	if (r < 0)
		return r;
	sqlite->store = (struct store){.ops = &sqlite_ops, .address = TAKE_PTR(full)};
	*ret_store = &TAKE_PTR(sqlite)->store;
	return 0;
}
