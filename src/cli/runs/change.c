/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs tag, note, delete and retention */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/warn.h"
#include "cli/output.h"
#include "cli/runs/runs.h"
#include "store/change.h"

static struct {
	const char *store;
	struct option_strings remove;
	bool files, yes;
	uint64_t keep, max_age_days;
	struct runs_form form;
} arguments;

static int find_runs(struct store *store, char *const *names, int count, struct run_rows *rows,
	struct errmsg *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < count; i++)
		r = store_find_run(store, names[i], rows, err);
	return r;
}

/* ---- labels ---- */

static int run_tag(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct errmsg err;
	int r = store_open(&store, arguments.store, STORE_WRITE, &err);

	if (r == 0)
		r = find_runs(store, positional, 1, &rows, &err);
	if (r == 0)
		r = store_tag(store, &rows.items.items[0], (const char *const *)positional + 1,
			(size_t)count - 1, arguments.remove.values, arguments.remove.count, &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}

static int run_note(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct errmsg err;
	int r = store_open(&store, arguments.store, STORE_WRITE, &err);

	if (r == 0)
		r = find_runs(store, positional, 1, &rows, &err);
	if (r == 0)
		r = store_note(store, &rows.items.items[0], positional[1], &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}

/* ---- deleting ---- */

static void print_run(const struct run_row *row)
{
	_cleanup_strbuf_ struct strbuf line = {0}, when = {0};

	store_add_time(&when, &row->values[STORE_RUN_TIME]);
	escape_plain(&line, run_text(row, STORE_RUN_PATH));
	printf("%.*s  %-16s  %s\n", STORE_SHORT_ID, run_text(row, STORE_RUN_ID), strbuf_cstr(&when),
		strbuf_cstr(&line));
}

/* A capture that is gone already is what was wanted. */
static int remove_captures(const struct run_rows *rows)
{
	int status = EXIT_OK;

	array_foreach (&rows->items, row) {
		struct errmsg err;
		int r = store_remove_capture(row, &err);

		if (r < 0 && r != -ENOENT)
			status = fail(&err);
	}
	return status;
}

static int print_document(struct store *store, const struct run_rows *rows, bool is_done)
{
	_cleanup_result_ struct result result = {0};
	struct errmsg err;

	if (store_removed(store, rows, is_done, &result, &err) < 0)
		return fail(&err);
	return runs_print(&result, &arguments.form);
}

static int delete_them(struct store *store, const struct run_rows *rows)
{
	struct errmsg err;
	int status = EXIT_OK;

	if (store_delete(store, rows, &err) < 0)
		return fail(&err);
	if (arguments.form.json)
		status = print_document(store, rows, true);
	if (status != EXIT_OK)
		return status;
	warn("%zu %s deleted%s", rows->items.count, rows->items.count == 1 ? "run" : "runs",
		arguments.files ? "" : "; captures stay");
	return arguments.files ? remove_captures(rows) : EXIT_OK;
}

static int run_delete(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_run_rows_ struct run_rows rows = {0};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_removed_schema);
	if (!count) {
		errmsg_set(&err, -EINVAL, "sonde runs delete needs a run: 'sonde runs' lists them");
		return fail_usage(&err);
	}
	r = store_open(&store, arguments.store, STORE_WRITE, &err);
	if (r == 0)
		r = find_runs(store, positional, count, &rows, &err);
	return r < 0 ? fail(&err) : delete_them(store, &rows);
}

static int run_retention(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_run_rows_ struct run_rows rows = {0};
	const struct store_retention retention = {.keep = arguments.keep,
		.max_age_ns = (int64_t)arguments.max_age_days * 24 * 3600 * (int64_t)NS_PER_S};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_removed_schema);
	if (!retention.keep && !retention.max_age_ns) {
		errmsg_set(&err, -EINVAL,
			"sonde runs retention needs --keep RUNS or --max-age DAYS, or both");
		return fail_usage(&err);
	}
	r = store_open(&store, arguments.store, arguments.yes ? STORE_WRITE : STORE_READ, &err);
	if (r == 0)
		r = store_find_expired(store, &retention, &rows, &err);
	if (r < 0)
		return fail(&err);
	if (!arguments.form.json) {
		array_foreach (&rows.items, row)
			print_run(row);
	}
	if (arguments.yes)
		return delete_them(store, &rows);
	if (arguments.form.json)
		return print_document(store, &rows, false);
	warn("%zu %s would be deleted; --yes deletes them", rows.items.count,
		rows.items.count == 1 ? "run" : "runs");
	return EXIT_OK;
}

static const struct option tag_options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "remove",
		.type = OPTION_STRINGS,
		.argument = "TAG",
		.help = "Take this tag from the run. May be given several times.",
		.value = &arguments.remove},
	{0},
};

const struct command runs_tag_command = {
	.name = "runs tag",
	.summary = "give a run tags, or take them",
	.usage = "[options] RUN [TAG…]",
	.examples = "sonde runs tag latest baseline\n    The newest run becomes the baseline.",
	.options = tag_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_tag,
};

static const struct option note_options[] = {
	STORE_OPTION(arguments.store),
	{0},
};

const struct command runs_note_command = {
	.name = "runs note",
	.summary = "write a note on a run",
	.usage = "[options] RUN TEXT",
	.description = "The note takes the place of the one before. '' removes it.",
	.options = note_options,
	.minimum_arguments = 2,
	.maximum_arguments = 2,
	.run = run_note,
};

#define FILES_OPTION                                                                               \
	{                                                                                          \
		.long_name = "files", .type = OPTION_FLAG,                                         \
		.help = "Remove their captures, too, where the file is still the one that was "    \
			"added.",                                                                  \
		.value = &arguments.files                                                          \
	}

#define DOCUMENT_OPTIONS                                                                           \
	{.long_name = "json",                                                                      \
		.type = OPTION_FLAG,                                                               \
		.help = "Print one JSON document of these runs instead.",                          \
		.value = &arguments.form.json},                                                    \
	{                                                                                          \
		.long_name = "schema", .type = OPTION_FLAG,                                        \
		.help = "Print the JSON Schema of what --json prints.",                            \
		.value = &arguments.form.schema                                                    \
	}

static const struct option delete_options[] = {
	STORE_OPTION(arguments.store),
	FILES_OPTION,
	DOCUMENT_OPTIONS,
	{0},
};

const struct command runs_delete_command = {
	.name = "runs delete",
	.summary = "delete runs with all that belongs to them",
	.usage = "[options] RUN…",
	.description = "Captures stay where they are, unless --files is given.",
	.options = delete_options,
	.maximum_arguments = -1,
	.run = run_delete,
};

static const struct option retention_options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "keep",
		.type = OPTION_U64,
		.argument = "RUNS",
		.help = "Keep the newest of them.",
		.value = &arguments.keep,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "max-age",
		.type = OPTION_U64,
		.argument = "DAYS",
		.help = "Keep those that are not older.",
		.value = &arguments.max_age_days,
		.minimum = 1,
		.maximum = 100000},
	{.long_name = "yes",
		.type = OPTION_FLAG,
		.help = "Delete the others, with all that belongs to them.",
		.value = &arguments.yes},
	FILES_OPTION,
	DOCUMENT_OPTIONS,
	{0},
};

const struct command runs_retention_command = {
	.name = "runs retention",
	.summary = "delete runs that are too old or too many",
	.usage = "[options]",
	.description =
		"Lists the runs that would go; deletes them with --yes. A run is as old as its "
		"recording, or as its entry in the database where that is older.",
	.examples = "sonde runs retention --keep 1000 --max-age 90 --yes\n"
		    "    For a timer: keeps the thousand newest runs of a quarter.",
	.options = retention_options,
	.maximum_arguments = 0,
	.run = run_retention,
};
