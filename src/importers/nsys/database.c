/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/nsys/database.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input_file.h"
#include "base/strbuf.h"

#define MAX_VALUE_BYTES (16 << 20)
#define MAX_COLUMNS     512

/* ---- the file ---- */

struct open_file {
	sqlite3_file base;
	int fd; /* the database's, which closes it */
};

static int fd_of(sqlite3_file *file)
{
	return ((struct open_file *)file)->fd;
}

static int file_close(sqlite3_file *file _unused_)
{
	return SQLITE_OK;
}

/* What is behind the end reads as zeros, as SQLite asks for. */
static int file_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset)
{
	size_t done = 0, wanted = (size_t)length;

	while (done < wanted) {
		ssize_t got = pread(fd_of(file), (char *)bytes + done, wanted - done,
			offset + (sqlite3_int64)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return SQLITE_IOERR_READ;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	memset((char *)bytes + done, 0, wanted - done);
	return done < wanted ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int file_write(sqlite3_file *file _unused_, const void *bytes _unused_, int length _unused_,
	sqlite3_int64 offset _unused_)
{
	return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *file _unused_, sqlite3_int64 size _unused_)
{
	return SQLITE_READONLY;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	struct stat status;

	if (fstat(fd_of(file), &status) < 0)
		return SQLITE_IOERR_FSTAT;
	*ret_size = status.st_size;
	return SQLITE_OK;
}

static int file_flags(sqlite3_file *file _unused_, int flags _unused_)
{
	return SQLITE_OK;
}

static int file_reserved(sqlite3_file *file _unused_, int *ret_reserved)
{
	*ret_reserved = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file _unused_, int what _unused_, void *value _unused_)
{
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file _unused_)
{
	return 4096;
}

static int file_traits(sqlite3_file *file _unused_)
{
	return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_flags,
	.xFileSize = file_size,
	.xLock = file_flags,
	.xUnlock = file_flags,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

/* The name is the descriptor's number. There is nothing but the database: no journal. */
static int vfs_open(
	sqlite3_vfs *vfs _unused_, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct open_file *open_file = (struct open_file *)file;

	open_file->base.pMethods = NULL;
	if (!name || !(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	open_file->fd = (int)strtol(name, NULL, 10);
	open_file->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = SQLITE_OPEN_READONLY;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs _unused_, const char *name _unused_, int sync _unused_)
{
	return SQLITE_IOERR_DELETE;
}

static int vfs_access(
	sqlite3_vfs *vfs _unused_, const char *name _unused_, int flags _unused_, int *ret_is_there)
{
	*ret_is_there = 0;
	return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs _unused_, const char *name, int size, char *ret_name)
{
	snprintf(ret_name, (size_t)size, "%s", name);
	return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs _unused_, int size, char *bytes)
{
	memset(bytes, 0, (size_t)size);
	return size;
}

static int vfs_sleep(sqlite3_vfs *vfs _unused_, int microseconds)
{
	return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs _unused_, double *ret_days)
{
	*ret_days = 0;
	return SQLITE_OK;
}

static sqlite3_vfs vfs = {
	.iVersion = 1,
	.szOsFile = sizeof(struct open_file),
	.mxPathname = 64,
	.zName = "sonde-descriptor",
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
	.xFullPathname = vfs_full_name,
	.xRandomness = vfs_random,
	.xSleep = vfs_sleep,
	.xCurrentTime = vfs_time,
};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void register_vfs(void)
{
	sqlite3_vfs_register(&vfs, 0);
}

/* ---- the database ---- */

static int error_of(int status)
{
	if (status == SQLITE_NOMEM)
		return -ENOMEM;
	return status == SQLITE_IOERR ? -EIO : -EBADMSG;
}

/* Its schema may hold anything: nothing of it is run, and sizes have an end. */
static void set_up(sqlite3 *handle)
{
	sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
	sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, MAX_COLUMNS);
	sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_exec(handle, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
}

int nsys_database_open(struct nsys_database *ret_database, const char *path, struct errmsg *err)
{
	_cleanup_close_ int fd = input_open(path, 0);
	sqlite3 *handle = NULL;
	struct stat file;
	char name[24];
	int status;

	if (fd < 0 || fstat(fd, &file) < 0)
		return errmsg_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	pthread_once(&once, register_vfs);
	snprintf(name, sizeof(name), "%d", fd);
	status = sqlite3_open_v2(
		name, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, vfs.zName);
	if (status != SQLITE_OK) {
		sqlite3_close(handle);
		return errmsg_set(
			err, error_of(status), "cannot read %s: %s", path, sqlite3_errstr(status));
	}
	set_up(handle);
	*ret_database = (struct nsys_database){handle, TAKE_FD(fd), (uint64_t)file.st_size};
	return 0;
}

void nsys_database_close(struct nsys_database *database)
{
	if (!database->handle)
		return;
	sqlite3_close(database->handle);
	database->handle = NULL;
	closep(&database->fd);
}

void nsys_statement_done(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

static int prepare(struct nsys_database *database, const char *sql, sqlite3_stmt **ret_statement)
{
	int status = sqlite3_prepare_v2(database->handle, sql, -1, ret_statement, NULL);

	return status == SQLITE_OK ? 0 : error_of(status);
}

int nsys_next(struct nsys_database *database, sqlite3_stmt *statement)
{
	int status = sqlite3_step(statement);

	if (status == SQLITE_ROW)
		return database->rows_left-- ? 1 : -EBADMSG;
	return status == SQLITE_DONE ? 0 : error_of(status & 0xff);
}

int64_t nsys_number(sqlite3_stmt *statement, int column, int64_t otherwise)
{
	if (sqlite3_column_type(statement, column) == SQLITE_NULL)
		return otherwise;
	return sqlite3_column_int64(statement, column);
}

/* ---- tables ---- */

/* A table that holds its rows itself: 1 or 0. */
static int has_table(struct nsys_database *database, const char *table)
{
	static const char sql[] = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 "
				  "AND rootpage > 0 AND sql NOT LIKE 'create virtual%'";
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	int r = prepare(database, sql, &statement);

	if (r < 0)
		return r;
	sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
	return nsys_next(database, statement);
}

/* Which of the columns are there: bits. */
static int find_columns(struct nsys_database *database, const char *table,
	const char *const *columns, uint64_t *ret_found)
{
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	int r = prepare(database, "SELECT name FROM pragma_table_info(?1)", &statement);

	*ret_found = 0;
	if (r < 0)
		return r;
	sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
	while ((r = nsys_next(database, statement)) > 0) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);

		for (unsigned i = 0; name && columns[i]; i++) {
			if (strcmp(name, columns[i]) == 0)
				*ret_found |= 1ULL << i;
		}
	}
	return r;
}

int nsys_select(struct nsys_database *database, const char *table, const char *const *columns,
	sqlite3_stmt **ret_statement)
{
	_cleanup_strbuf_ struct strbuf sql = {0};
	uint64_t found;
	int r = has_table(database, table);

	*ret_statement = NULL;
	if (r <= 0)
		return r;
	r = find_columns(database, table, columns, &found);
	if (r < 0 || !(found & 1))
		return r;
	strbuf_add(&sql, "SELECT ");
	for (unsigned i = 0; columns[i]; i++) {
		if (i)
			strbuf_add(&sql, ", ");
		if (found >> i & 1)
			strbuf_addf(&sql, "\"%s\"", columns[i]);
		else
			strbuf_add(&sql, "NULL");
	}
	strbuf_addf(&sql, " FROM \"%s\"", table);
	r = strbuf_status(&sql);
	return r < 0 ? r : prepare(database, sql.data, ret_statement);
}

/* Counting by SQLite itself has no end where pages of a damaged file lie in one another. */
int nsys_count(struct nsys_database *database, const char *table, uint64_t *ret_count)
{
	_cleanup_statement_ sqlite3_stmt *statement = NULL;
	char sql[128];
	int r = has_table(database, table);

	*ret_count = 0;
	if (r <= 0)
		return r;
	snprintf(sql, sizeof(sql), "SELECT 1 FROM \"%s\"", table);
	r = prepare(database, sql, &statement);
	while (r >= 0 && (r = nsys_next(database, statement)) > 0)
		(*ret_count)++;
	return r;
}
