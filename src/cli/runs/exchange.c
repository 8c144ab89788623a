/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs export and import */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/warn.h"
#include "cli/output.h"
#include "cli/runs/runs.h"
#include "store/exchange.h"

static struct {
	const char *store, *output;
	struct runs_choice choice;
} arguments = {.output = "-"};

static int choose(struct store *store, char *const *names, int count, struct run_rows *rows,
	struct errmsg *err)
{
	const struct store_order oldest = {.rising = true};
	int r = 0;

	if (!count)
		return store_read_runs(store, &arguments.choice.filter, &oldest, rows, err);
	for (int i = 0; r == 0 && i < count; i++)
		r = store_find_run(store, names[i], rows, err);
	return r;
}

static int run_export(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_run_rows_ struct run_rows rows = {0};
	_cleanup_output_file_ struct output_file file = {.place = OUTPUT_PLACE_NONE};
	struct errmsg err;
	int r = runs_choose(&arguments.choice, &err);

	if (r < 0)
		return fail_usage(&err);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = choose(store, positional, count, &rows, &err);
	if (r == 0)
		r = output_file_open(&file, arguments.output, &err);
	if (r == 0)
		r = store_export(store, &rows, &file, &err);
	if (r == 0)
		r = output_file_close(&file, &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}

static int import_file(struct store *store, const char *path)
{
	bool is_standard = output_is_standard(path);
	_cleanup_fclose_ FILE *opened = is_standard ? NULL : fopen(path, "re");
	struct store_imported imported = {0};
	struct errmsg err;
	int r;

	if (!is_standard && !opened) {
		errmsg_set(&err, -errno, "cannot read %s: %s", path, strerror(errno));
		return fail(&err);
	}
	r = store_import(store, is_standard ? stdin : opened, is_standard ? "standard input" : path,
		&imported, &err);
	warn("%llu runs added, %llu were there", (unsigned long long)imported.runs,
		(unsigned long long)imported.known);
	return r < 0 ? fail(&err) : EXIT_OK;
}

static int run_import(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	int status = EXIT_OK;
	struct errmsg err;

	if (store_open(&store, arguments.store, STORE_WRITE, &err) < 0)
		return fail(&err);
	for (int i = 0; i < count && status == EXIT_OK; i++)
		status = import_file(store, positional[i]);
	return status;
}

static const struct option export_options[] = {
	STORE_OPTION(arguments.store),
	{.short_name = 'o',
		.long_name = "output",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write there; - is standard output.",
		.value = (void *)&arguments.output},
	CHOICE_OPTIONS(arguments.choice),
	{0},
};

const struct command runs_export_command = {
	.name = "runs export",
	.summary = "write runs as JSON lines",
	.usage = "[options] [RUN…]",
	.description = "All runs that the options leave, or those that are named. What is written "
		       "can be imported into another database and is then the same.",
	.examples = "sonde runs export --since 7d -o week.jsonl\n    The runs of a week.",
	.options = export_options,
	.maximum_arguments = -1,
	.run = run_export,
};

static const struct option import_options[] = {
	STORE_OPTION(arguments.store),
	{0},
};

const struct command runs_import_command = {
	.name = "runs import",
	.summary = "add runs that 'sonde runs export' wrote",
	.usage = "[options] FILE…",
	.description = "Runs that are there already are passed over. A run is added as a whole or "
		       "not at all; - is standard input.",
	.options = import_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_import,
};
