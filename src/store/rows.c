/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rows.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "store/ingest/ingest.h"

void run_rows_done(struct run_rows *rows)
{
	array_done(&rows->items);
	array_done(&rows->tags);
	intern_done(&rows->texts);
}

/* ---- SQL ---- */

void store_sql_done(struct store_sql *sql)
{
	strbuf_done(&sql->text);
	array_done(&sql->parameters);
	array_foreach (&sql->patterns, pattern)
		free(*pattern);
	array_done(&sql->patterns);
}

/* Appends "?N" for the value. */
static int add_parameter(struct store_sql *sql, struct store_value value)
{
	int r = array_append(&sql->parameters, value);

	strbuf_addf(&sql->text, "?%zu", sql->parameters.count);
	return r;
}

static void add_condition(struct store_sql *sql, bool *has_any)
{
	strbuf_add(&sql->text, *has_any ? " AND " : " WHERE ");
	*has_any = true;
}

/* For LIKE: "*" becomes "%", and what LIKE would take for more than itself is escaped. */
static int add_pattern(struct store_sql *sql, const char *text)
{
	_cleanup_strbuf_ struct strbuf pattern = {0};
	int r;

	for (; *text; text++) {
		if (*text == '*') {
			strbuf_add_char(&pattern, '%');
			continue;
		}
		if (strchr("%_\\", *text))
			strbuf_add_char(&pattern, '\\');
		strbuf_add_char(&pattern, *text);
	}
	r = strbuf_status(&pattern);
	if (r == 0)
		r = array_append(&sql->patterns, pattern.data);
	if (r < 0)
		return r;
	strbuf_add(&sql->text, "lower(");
	r = add_parameter(
		sql, (struct store_value){.type = STORE_TEXT, .text = TAKE_PTR(pattern.data)});
	strbuf_add(&sql->text, ") ESCAPE '\\'");
	return r;
}

static int add_match(struct store_sql *sql, const char *column, const char *text, bool *has_any)
{
	if (!text)
		return 0;
	add_condition(sql, has_any);
	if (!strchr(text, '*')) {
		strbuf_addf(&sql->text, "%s = ", column);
		return add_parameter(sql, (struct store_value){.type = STORE_TEXT, .text = text});
	}
	strbuf_addf(&sql->text, "lower(%s) LIKE ", column);
	return add_pattern(sql, text);
}

static int add_search(struct store_sql *sql, const char *text, bool *has_any)
{
	static const char *const columns[] = {"path", "command", "notes", "model"};
	int r = 0;

	if (!text)
		return 0;
	sql->reads_all = true;
	add_condition(sql, has_any);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(columns); i++) {
		strbuf_addf(
			&sql->text, "%spositionCaseInsensitive(%s, ", i ? " OR " : "(", columns[i]);
		r = add_parameter(sql, (struct store_value){.type = STORE_TEXT, .text = text});
		strbuf_add(&sql->text, ") > 0");
	}
	strbuf_add_char(&sql->text, ')');
	return r;
}

static int add_time(struct store_sql *sql, const char *compared, int64_t time, bool *has_any)
{
	if (!time)
		return 0;
	add_condition(sql, has_any);
	strbuf_addf(&sql->text, "time_ns %s ", compared);
	return add_parameter(sql, store_integer(time));
}

int store_sql_add_filter(struct store_sql *sql, const struct store_filter *filter)
{
	bool has_any = false;
	int r = add_match(sql, "model", filter->model, &has_any);

	if (r == 0)
		r = add_match(sql, "experiment", filter->experiment, &has_any);
	if (r == 0)
		r = add_match(sql, "engine", filter->engine, &has_any);
	if (r == 0)
		r = add_match(sql, "commit_id", filter->commit, &has_any);
	if (r == 0)
		r = add_search(sql, filter->search, &has_any);
	if (r == 0)
		r = add_time(sql, ">=", filter->since_ns, &has_any);
	if (r == 0)
		r = add_time(sql, "<", filter->until_ns, &has_any);
	for (size_t i = 0; r == 0 && i < filter->tag_count; i++) {
		add_condition(sql, &has_any);
		strbuf_add(&sql->text, "number IN (SELECT run FROM tags WHERE tag = ");
		r = add_parameter(
			sql, (struct store_value){.type = STORE_TEXT, .text = filter->tags[i]});
		strbuf_add_char(&sql->text, ')');
	}
	return r < 0 ? r : strbuf_status(&sql->text);
}

void store_sql_add_order(struct store_sql *sql, const struct store_order *order)
{
	static const struct store_order newest = {0};
	const struct store_column *found;
	const char *column, *direction;

	order = order ? order : &newest;
	column = order->column ? order->column : "time_ns";
	direction = order->rising ? "ASC" : "DESC";
	found = store_column_find(&store_tables[STORE_RUNS], column);
	/* Those that have none come last; equal ones are in the order of their index, and then in
	 * that in which they were added, so that pages fit together. A name of ours, never a text
	 * of the user. */
	if (found)
		strbuf_addf(&sql->text, " ORDER BY %s%s %s NULLS LAST%s%s, added_ns %s, number %s",
			sql->reads_all ? "+" : "", column, direction,
			found->type == STORE_TEXT ? ", time_ns " : "",
			found->type == STORE_TEXT ? direction : "", direction, direction);
	if (order->limit || order->offset)
		strbuf_addf(&sql->text, " LIMIT %llu OFFSET %llu",
			(unsigned long long)(order->limit ? order->limit : INT64_MAX),
			(unsigned long long)order->offset);
}

int store_sql_run(struct store *store, const struct store_sql *sql, store_row_function *take,
	void *context, struct errmsg *err)
{
	if (strbuf_status(&sql->text) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while asking the database");
	return store->ops->run(store, strbuf_cstr(&sql->text), sql->parameters.items,
		sql->parameters.count, take, context, err);
}

/* ---- rows ---- */

struct reading {
	struct run_rows *rows;
	struct map_u64 places; /* of runs, by their numbers */
	struct errmsg *err;
};

static int keep_value(struct run_rows *rows, struct store_value *value)
{
	uint32_t id;
	int r;

	if (value->type != STORE_TEXT)
		return 0;
	r = intern_add(&rows->texts, value->text, strlen(value->text), &id);
	value->text = r < 0 ? NULL : intern_get(&rows->texts, id);
	return r < 0 ? r : 0;
}

static int take_run(void *context, const struct store_value *values, size_t count)
{
	struct reading *reading = context;
	struct run_row row = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < MIN(count, (size_t)STORE_RUN_COLUMN_MAX); i++) {
		row.values[i] = values[i];
		r = keep_value(reading->rows, &row.values[i]);
	}
	if (r == 0)
		r = map_u64_set(&reading->places, (uint64_t)values[STORE_RUN_NUMBER].integer,
			reading->rows->items.count);
	if (r == 0)
		r = array_append(&reading->rows->items, row);
	return r < 0 ? errmsg_set(reading->err, r, "memory ran out while reading runs") : 0;
}

/* They come by run. */
static int take_tag(void *context, const struct store_value *values, size_t count)
{
	struct reading *reading = context;
	struct store_value tag = values[1];
	struct run_row *row;
	uint64_t place;
	int r;

	if (!map_u64_get(&reading->places, (uint64_t)values[0].integer, &place))
		return 0;
	row = &reading->rows->items.items[place];
	r = keep_value(reading->rows, &tag);
	if (r == 0)
		r = array_append(&reading->rows->tags, tag.text);
	if (r < 0)
		return errmsg_set(reading->err, r, "memory ran out while reading runs");
	if (!row->tag_count++)
		row->first_tag = (uint32_t)reading->rows->tags.count - 1;
	return 0;
}

static void add_columns(struct store_sql *sql)
{
	const struct store_table *table = &store_tables[STORE_RUNS];

	strbuf_add(&sql->text, "SELECT ");
	for (size_t i = 0; i < table->count; i++)
		strbuf_addf(&sql->text, "%s%s", i ? ", " : "", table->columns[i].name);
	strbuf_add(&sql->text, " FROM runs");
}

/* Of a few runs by their numbers: the filter may have read every run to find them. */
#define FEW_RUNS 512

static int add_numbers(struct store_sql *sql, const struct run_rows *rows)
{
	int r = 0;

	strbuf_add(&sql->text, " WHERE run IN (");
	for (size_t i = 0; r == 0 && i < rows->items.count; i++) {
		strbuf_add(&sql->text, i ? ", " : "");
		r = add_parameter(sql, store_integer(run_key(&rows->items.items[i])));
	}
	strbuf_add_char(&sql->text, ')');
	return r;
}

/* Of many it is one pass over all tags. */
static int read_tags(struct store *store, struct reading *reading, struct errmsg *err)
{
	_cleanup_store_sql_ struct store_sql sql = {0};
	int r = 0;

	strbuf_add(&sql.text, "SELECT run, tag FROM tags");
	if (reading->rows->items.count <= FEW_RUNS)
		r = add_numbers(&sql, reading->rows);
	strbuf_add(&sql.text, " ORDER BY run, tag");
	return r < 0 ? errmsg_set(err, r, "memory ran out while reading runs")
		     : store_sql_run(store, &sql, take_tag, reading, err);
}

/* Which runs, by the columns that say that, before all columns of those are read: a database that
 * keeps columns apart reads as few as it can. */
static int add_numbers_of(
	struct store_sql *sql, const struct store_filter *filter, const struct store_order *order)
{
	int r;

	strbuf_add(&sql->text, " WHERE number IN (SELECT number FROM runs");
	r = store_sql_add_filter(sql, filter);
	store_sql_add_order(sql, order);
	strbuf_add_char(&sql->text, ')');
	return r;
}

int store_read_runs(struct store *store, const struct store_filter *filter,
	const struct store_order *order, struct run_rows *rows, struct errmsg *err)
{
	_cleanup_store_sql_ struct store_sql sql = {0};
	struct reading reading = {.rows = rows, .err = err};
	struct store_order all = order ? *order : (struct store_order){0};
	bool is_part = all.limit || all.offset;
	int r;

	add_columns(&sql);
	r = is_part ? add_numbers_of(&sql, filter, order) : store_sql_add_filter(&sql, filter);
	all.limit = all.offset = 0;
	store_sql_add_order(&sql, &all);
	r = r < 0 ? errmsg_set(err, r, "memory ran out while reading runs")
		  : store_sql_run(store, &sql, take_run, &reading, err);
	if (r == 0 && rows->items.count)
		r = read_tags(store, &reading, err);
	map_u64_done(&reading.places);
	return r;
}

static int take_count(void *context, const struct store_value *values, size_t count)
{
	*(int64_t *)context = values[0].integer;
	return 0;
}

int store_count_runs(struct store *store, const struct store_filter *filter, int64_t *ret_count,
	struct errmsg *err)
{
	_cleanup_store_sql_ struct store_sql sql = {0};
	int64_t found = 0;
	int r;

	strbuf_add(&sql.text, "SELECT count(*) FROM runs");
	r = store_sql_add_filter(&sql, filter);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while counting runs");
	r = store_sql_run(store, &sql, take_count, &found, err);
	*ret_count = found;
	return r;
}

/* ---- one run ---- */

static bool is_id(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)name[i]) && !(name[i] >= 'a' && name[i] <= 'f'))
			return false;
	}
	return length >= 4 && length <= STORE_ID_CHARACTERS;
}

static int find_by(struct store *store, struct store_sql *sql, struct reading *reading)
{
	int r;

	strbuf_add(&sql->text, " ORDER BY added_ns DESC LIMIT 2");
	r = store_sql_run(store, sql, take_run, reading, reading->err);
	for (size_t i = 0; r == 0 && i < reading->rows->items.count; i++) {
		const struct run_row *row = &reading->rows->items.items[i];

		if (!row->tag_count)
			r = store_run(store,
				"SELECT run, tag FROM tags WHERE run = ?1 ORDER BY tag", take_tag,
				reading, reading->err, store_integer(run_key(row)));
	}
	return r;
}

/* Ids that begin so lie between it and it with a character that is behind every digit. */
static int add_name(struct store_sql *sql, const char *name)
{
	int r;

	if (strcmp(name, "latest") == 0)
		return 0;
	if (!is_id(name)) {
		strbuf_add(&sql->text, " WHERE path = ");
		return add_parameter(sql, store_text(name));
	}
	strbuf_add(&sql->text, " WHERE id >= ");
	r = add_parameter(sql, store_text(name));
	strbuf_add(&sql->text, " AND id < ");
	if (r == 0)
		r = add_parameter(sql, store_text(name));
	strbuf_add(&sql->text, " || 'g'");
	return r;
}

int store_find_run(struct store *store, const char *name, struct run_rows *rows, struct errmsg *err)
{
	_cleanup_store_sql_ struct store_sql sql = {0};
	_cleanup_free_ char *path =
		strchr(name, '/') || strchr(name, '.') ? realpath(name, NULL) : NULL;
	struct reading reading = {.rows = rows, .err = err};
	size_t before = rows->items.count;
	int r;

	add_columns(&sql);
	r = add_name(&sql, path ? path : name);
	r = r < 0 ? errmsg_set(err, r, "memory ran out while looking for a run")
		  : find_by(store, &sql, &reading);
	map_u64_done(&reading.places);
	if (r < 0)
		return r;
	if (rows->items.count == before)
		return errmsg_set(err, -ENOENT,
			"there is no run '%.200s' in %s: give the beginning of its id (four "
			"characters or more), the path of its capture, or 'latest'; 'sonde runs' "
			"lists them",
			name, store->address);
	if (rows->items.count > before + 1 && is_id(name))
		return errmsg_set(
			err, -EEXIST, "several runs begin with '%.32s': give more of the id", name);
	rows->items.count = before + 1;
	return 0;
}
