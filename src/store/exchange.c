/* SPDX-License-Identifier: Apache-2.0 */
#include "store/exchange.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "store/ingest/ingest.h"

/* ---- writing ---- */

struct writing {
	const struct store_table *table;
	struct output_file *file;
	size_t skip; /* columns that the reader knows: the run's number */
};

static void write_value(struct json_writer *json, const struct store_value *value)
{
	switch (value->type) {
	case STORE_INTEGER:
		json_i64(json, value->integer);
		return;
	case STORE_NUMBER:
		json_double(json, value->number, 17);
		return;
	case STORE_TEXT:
		json_string(json, value->text);
		return;
	default:
		json_null(json);
	}
}

/* What is not known is left out. */
static int take_row(void *context, const struct store_value *values, size_t count)
{
	const struct writing *writing = context;
	struct json_writer json = {.out = &writing->file->out};

	json_begin_object(&json);
	json_member_text(&json, "table", writing->table->name);
	for (size_t i = writing->skip; i < MIN(count, writing->table->count); i++) {
		if (values[i].type == STORE_NULL)
			continue;
		json_key(&json, writing->table->columns[i].name);
		write_value(&json, &values[i]);
	}
	json_end_object(&json);
	strbuf_add_char(&writing->file->out, '\n');
	output_file_keep_small(writing->file);
	return 0;
}

static int write_table(struct store *store, enum store_table_id table, int64_t number,
	struct output_file *file, struct errmsg *err)
{
	struct writing writing = {.table = &store_tables[table],
		.file = file,
		.skip = table == STORE_FIGURE_NAMES ? 0 : 1};
	_cleanup_strbuf_ struct strbuf sql = {0};

	strbuf_add(&sql, "SELECT ");
	for (size_t i = 0; i < writing.table->count; i++)
		strbuf_addf(&sql, "%s%s", i ? ", " : "", writing.table->columns[i].name);
	strbuf_addf(&sql, " FROM %s WHERE ", writing.table->name);
	if (table == STORE_FIGURE_NAMES)
		strbuf_add(&sql, "name IN (SELECT name FROM figures WHERE run = ?1)");
	else
		strbuf_addf(&sql, "%s = ?1", writing.table->columns[0].name);
	strbuf_addf(&sql, " ORDER BY %s", writing.table->columns[0].name);
	for (size_t i = 1; i < writing.table->key_count; i++)
		strbuf_addf(&sql, ", %s", writing.table->columns[i].name);
	if (strbuf_status(&sql) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while exporting runs");
	return store_run(store, sql.data, take_row, &writing, err, store_integer(number));
}

int store_export(struct store *store, const struct run_rows *rows, struct output_file *file,
	struct errmsg *err)
{
	struct json_writer json = {.out = &file->out};
	int r = 0;

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-runs");
	json_member_u64(&json, "version", STORE_EXCHANGE_VERSION);
	json_member_u64(&json, "tables", STORE_VERSION);
	json_end_object(&json);
	strbuf_add_char(&file->out, '\n');
	for (size_t i = 0; r == 0 && i < rows->items.count; i++) {
		for (int table = 0; r == 0 && table < STORE_TABLE_MAX; table++)
			r = write_table(store, (enum store_table_id)table,
				run_key(&rows->items.items[i]), file, err);
	}
	return r;
}

/* ---- reading ---- */

struct import {
	struct store *store;
	FILE *file;
	const char *name;
	uint64_t line; /* its number */
	int64_t run;   /* that is being read; 0: none */
	bool is_known; /* which is passed over */
	struct store_imported counts;
};

/* 1: a line, without its end; 0: there are no more. */
static int read_line(struct import *import, struct strbuf *line, struct errmsg *err)
{
	int byte = 0;

	strbuf_clear(line);
	import->line++;
	while ((byte = getc_unlocked(import->file)) != EOF && byte != '\n') {
		if (line->length == STORE_LINE_MAX)
			return errmsg_set(err, -EFBIG,
				"%s, line %llu: it is longer than any that 'sonde runs export' "
				"writes; nothing of this run was added",
				import->name, (unsigned long long)import->line);
		strbuf_add_char(line, (char)byte);
	}
	if (strbuf_status(line) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while reading %s", import->name);
	if (byte == EOF && ferror(import->file))
		return errmsg_set(err, -EIO, "cannot read %s: %s", import->name, strerror(errno));
	return byte != EOF || line->length ? 1 : 0;
}

static int refuse(const struct import *import, const char *reason, struct errmsg *err)
{
	return errmsg_set(err, -EINVAL,
		"%s, line %llu: %s; nothing of this run was added, export it again", import->name,
		(unsigned long long)import->line, reason);
}

static int check_head(struct import *import, const struct store_line *line, struct errmsg *err)
{
	if (import->line != 1)
		return refuse(import, "a second head", err);
	if (line->version > STORE_EXCHANGE_VERSION)
		return errmsg_set(err, -EPROTO,
			"%s was exported by a newer sonde (version %lld, this sonde knows %d)",
			import->name, (long long)line->version, STORE_EXCHANGE_VERSION);
	return 0;
}

static int end_run(struct import *import, struct errmsg *err)
{
	int r = 0;

	if (import->run && !import->is_known) {
		r = import->store->ops->commit(import->store, err);
		import->counts.runs += r == 0;
	} else if (import->run) {
		import->counts.known++;
	}
	import->run = 0;
	return r;
}

/* A row that the tables do not take is the file's fault. */
static int insert(struct import *import, const struct store_line *line, struct errmsg *err)
{
	int r = import->store->ops->insert(import->store, line->table, line->values, err);

	return r == -EEXIST ? refuse(import, "a row does not fit its table", err) : r;
}

static bool is_whole_id(const char *id)
{
	return strlen(id) == STORE_ID_CHARACTERS && strspn(id, "0123456789abcdef") == 32;
}

static int begin_run(struct import *import, struct store_line *line, struct errmsg *err)
{
	const char *id = store_as_text(&line->values[STORE_RUN_ID]);
	int64_t count = 0;
	int r = end_run(import, err);

	if (r < 0)
		return r;
	if (!is_whole_id(id) || line->values[STORE_RUN_PATH].type != STORE_TEXT ||
		line->values[STORE_RUN_ADDED].type != STORE_INTEGER)
		return refuse(import, "the run lacks its id, path or time", err);
	line->values[STORE_RUN_NUMBER] = store_integer(store_number_of(id));
	r = import->store->ops->begin(import->store, err);
	if (r == 0)
		r = store_count(import->store, "SELECT count(*) FROM runs WHERE id = ?1",
			STORE_PARAMETERS(line->values[STORE_RUN_ID]), 1, &count, err);
	if (r < 0)
		return r;
	import->run = store_number_of(id);
	import->is_known = count != 0;
	if (!import->is_known)
		return insert(import, line, err);
	import->store->ops->rollback(import->store);
	return 0;
}

/* Names of figures are the same in every database: a file cannot give one another meaning. */
static bool is_right_name(const struct store_line *line)
{
	return line->values[0].type == STORE_INTEGER &&
	       line->values[0].integer == store_figure_name_of(store_as_text(&line->values[1]),
						  store_as_text(&line->values[2]),
						  store_as_text(&line->values[3]));
}

static int take_line(struct import *import, struct store_line *line, struct errmsg *err)
{
	if (line->table == STORE_TABLE_MAX)
		return check_head(import, line, err);
	if (import->line == 1)
		return refuse(import, "its head is missing: it is no export of runs", err);
	if (line->table == STORE_RUNS)
		return begin_run(import, line, err);
	if (!import->run)
		return refuse(import, "a row comes before its run", err);
	if (import->is_known)
		return 0;
	if (line->table != STORE_FIGURE_NAMES)
		line->values[0] = store_integer(import->run);
	else if (!is_right_name(line))
		return refuse(import, "a figure's name does not fit its number", err);
	return insert(import, line, err);
}

static int import_all(struct import *import, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_store_line_ struct store_line line = {0};
	int r;

	while ((r = read_line(import, &text, err)) > 0) {
		struct errmsg reason = {{0}};

		if (store_line_parse(&line, strbuf_cstr(&text), text.length, &reason) < 0)
			return refuse(import, reason.text, err);
		r = take_line(import, &line, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : end_run(import, err);
}

int store_import(struct store *store, FILE *file, const char *name,
	struct store_imported *ret_imported, struct errmsg *err)
{
	struct import import = {.store = store, .file = file, .name = name};
	int r = import_all(&import, err);

	if (r < 0)
		store->ops->rollback(store);
	*ret_imported = import.counts;
	return r;
}
