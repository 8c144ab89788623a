/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the database: where it is, who asks, and its tables brought up to date. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/http.h"
#include "store/clickhouse/internal.h"

#define DEFAULT_DATABASE "sonde"
#define DATABASE_MOST    64
#define PASSWORD_MOST    4096
/* Servers before it do not know parameters; none of them is later than 19.13. */
#define FIRST_WITH_PARAMETERS 20

/* ---- the address ---- */

/* It becomes part of SQL. */
static bool is_database(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	}
	return length && length <= DATABASE_MOST && !isdigit((unsigned char)*name);
}

static int read_database(
	const char *address, const char *query, char **ret_database, struct errmsg *err)
{
	static const char wanted[] = "database=";
	const char *name = DEFAULT_DATABASE;

	if (query && *query && strncmp(query, wanted, sizeof(wanted) - 1) != 0)
		return errmsg_set(err, -EINVAL,
			"--store %s: behind the '?' only database=NAME can stand", address);
	if (query && *query)
		name = query + sizeof(wanted) - 1;
	if (!is_database(name, strlen(name)))
		return errmsg_set(err, -EINVAL,
			"--store %s: a database is named by letters, digits and '_'", address);
	*ret_database = strdup(name);
	return *ret_database ? 0 : errmsg_set(err, -ENOMEM, "memory ran out");
}

static int read_address(
	struct clickhouse_store *clickhouse, const char *address, struct errmsg *err)
{
	const char *query = strchr(address, '?');
	size_t length = query ? (size_t)(query - address) : strlen(address);
	bool has_path = strchr(strstr(address, "://") + 3, '/') != NULL;
	_cleanup_strbuf_ struct strbuf url = {0}, full = {0};
	int r;

	if (memchr(address, '@', length))
		return errmsg_set(err, -EINVAL,
			"a password in --store would be seen in lists of processes: give it in "
			"$SONDE_STORE_USER and $SONDE_STORE_PASSWORD, or a file in "
			"$SONDE_STORE_PASSWORD_FILE");
	r = http_check_url(address, err);
	if (r == 0)
		r = read_database(address, query ? query + 1 : NULL, &clickhouse->database, err);
	if (r < 0)
		return r;
	strbuf_add_bytes(&url, address, length);
	strbuf_add(&url, has_path ? "" : "/");
	strbuf_addf(&full, "%s?database=%s", strbuf_cstr(&url), clickhouse->database);
	if (strbuf_status(&url) < 0 || strbuf_status(&full) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out");
	clickhouse->url = TAKE_PTR(url.data);
	clickhouse->store.address = TAKE_PTR(full.data);
	return 0;
}

/* ---- who asks ---- */

static int read_password_file(const char *path, char **ret_password, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = read_whole_file(path, PASSWORD_MOST, &text);

	if (r < 0)
		return errmsg_set(err, r, "cannot read $SONDE_STORE_PASSWORD_FILE %s: %s", path,
			strerror(-r));
	*ret_password = strndup(strbuf_cstr(&text), strcspn(strbuf_cstr(&text), "\r\n"));
	return *ret_password ? 0 : errmsg_set(err, -ENOMEM, "memory ran out");
}

static int read_variable(const char *name, char **ret_value, struct errmsg *err)
{
	const char *value = getenv(name);

	if (!value || !*value)
		return 0;
	*ret_value = strdup(value);
	return *ret_value ? 0 : errmsg_set(err, -ENOMEM, "memory ran out");
}

static int read_user(struct clickhouse_store *clickhouse, struct errmsg *err)
{
	const char *path = getenv("SONDE_STORE_PASSWORD_FILE");
	int r = read_variable("SONDE_STORE_USER", &clickhouse->user, err);

	if (r < 0)
		return r;
	return path && *path ? read_password_file(path, &clickhouse->password, err)
			     : read_variable("SONDE_STORE_PASSWORD", &clickhouse->password, err);
}

/* ---- the server and its tables ---- */

static int take_version(void *context, const struct store_value *values, size_t count)
{
	*(int *)context = (int)strtol(store_as_text(&values[0]), NULL, 10);
	return 0;
}

/* Outside of the database, which may not be there yet. */
static int look_at_server(struct clickhouse_store *clickhouse, struct errmsg *err)
{
	char *database = clickhouse->database;
	int version = 0, r;

	clickhouse->database = "default";
	r = clickhouse_ask(clickhouse, "SELECT version()", NULL, 0, take_version, &version, err);
	clickhouse->database = database;
	clickhouse->is_old = version < FIRST_WITH_PARAMETERS;
	return r;
}

static int take_tables(void *context, const struct store_value *values, size_t count)
{
	if (values[0].type == STORE_INTEGER)
		*(int64_t *)context = values[0].integer;
	return 0;
}

/* 0: they are not there, or not all of them. */
static int find_tables(
	struct clickhouse_store *clickhouse, int64_t *ret_version, struct errmsg *err)
{
	int r = clickhouse_ask(clickhouse, "SELECT max(version) FROM sonde_versions", NULL, 0,
		take_tables, ret_version, err);

	return r == -ENOENT ? 0 : r;
}

static int make_all(struct clickhouse_store *clickhouse, struct errmsg *err)
{
	char sql[128];
	int r;

	snprintf(sql, sizeof(sql), "CREATE DATABASE IF NOT EXISTS %s", clickhouse->database);
	r = clickhouse_do_outside(clickhouse, sql, err);
	return r < 0 ? r : clickhouse_make_tables(clickhouse, err);
}

static int open_tables(
	struct clickhouse_store *clickhouse, enum store_mode mode, struct errmsg *err)
{
	const char *address = clickhouse->store.address;
	int64_t version = 0;
	int r = find_tables(clickhouse, &version, err);

	if (r < 0)
		return r;
	if (version > STORE_VERSION)
		return errmsg_set(err, -EPROTO,
			"the runs database %s was made by a newer sonde (version %lld of the "
			"tables, this sonde knows %d); use that one",
			address, (long long)version, STORE_VERSION);
	if (mode == STORE_READ && !version)
		return errmsg_set(err, -ENOENT,
			"there is no runs database %s yet: 'sonde runs add' makes it", address);
	return version < STORE_VERSION ? make_all(clickhouse, err) : 0;
}

int store_clickhouse_open(
	struct store **ret_store, const char *address, enum store_mode mode, struct errmsg *err)
{
	struct clickhouse_store *clickhouse = calloc(1, sizeof(*clickhouse));
	int r;

	if (!clickhouse)
		return errmsg_set(err, -ENOMEM, "memory ran out while opening %s", address);
	clickhouse->store.ops = &clickhouse_ops;
	r = read_address(clickhouse, address, err);
	if (r == 0)
		r = read_user(clickhouse, err);
	if (r == 0)
		r = look_at_server(clickhouse, err);
	if (r == 0)
		r = open_tables(clickhouse, mode, err);
	if (r < 0) {
		store_close(&clickhouse->store);
		return r;
	}
	*ret_store = &clickhouse->store;
	return 0;
}
