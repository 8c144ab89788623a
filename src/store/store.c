/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "store/clickhouse/clickhouse.h"
#include "store/sqlite/sqlite.h"

static int default_address(char **ret_address, struct errmsg *err)
{
	_cleanup_free_ char *folder = state_directory();
	_cleanup_strbuf_ struct strbuf path = {0};

	if (!folder)
		return errmsg_set(err, -ENOENT,
			"there is no place for a runs database: $XDG_STATE_HOME and $HOME name no "
			"folder that is yours alone; name a file with --store");
	strbuf_addf(&path, "%s/runs.db", folder);
	if (strbuf_status(&path) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while opening the runs database");
	*ret_address = TAKE_PTR(path.data);
	return 0;
}

int store_open(
	struct store **ret_store, const char *address, enum store_mode mode, struct errmsg *err)
{
	_cleanup_free_ char *path = NULL;
	int r = 0;

	if (!address)
		r = default_address(&path, err);
	else if (strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0)
		return store_clickhouse_open(ret_store, address, mode, err);
	else if (!(path = strdup(address)))
		r = errmsg_set(err, -ENOMEM, "memory ran out while opening %s", address);
	return r < 0 ? r : store_sqlite_open(ret_store, path, mode, err);
}

struct store *store_close(struct store *store)
{
	if (store)
		store->ops->close(store);
	return NULL;
}

void store_closep(struct store **store)
{
	*store = store_close(*store);
}

int store_select(struct store *store, const char *sql, store_row_function *take, void *context,
	struct errmsg *err)
{
	return store->ops->run(store, sql, NULL, 0, take, context, err);
}

static int take_count(void *context, const struct store_value *values, size_t count)
{
	if (values[0].type == STORE_INTEGER)
		*(int64_t *)context = values[0].integer;
	return 0;
}

int store_count(struct store *store, const char *sql, const struct store_value *parameters,
	size_t count, int64_t *ret_count, struct errmsg *err)
{
	*ret_count = 0;
	return store->ops->run(store, sql, parameters, count, take_count, ret_count, err);
}
