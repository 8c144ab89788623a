/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs show, stats and check */
#include "base/warn.h"
#include "cli/output.h"
#include "cli/runs/runs.h"

static struct {
	const char *store, *section;
	struct runs_form form;
} arguments;

static int run_show(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_show_schema);
	r = runs_check_form(&arguments.form, &err);
	if (r == 0 && !count)
		r = errmsg_set(&err, -1, "sonde runs show needs a run: 'sonde runs' lists them");
	if (r < 0)
		return fail_usage(&err);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_show(store, positional[0], arguments.section, &result, &err);
	return r < 0 ? fail(&err) : runs_print(&result, &arguments.form);
}

static int run_stats(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_stats_schema);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_stats(store, &result, &err);
	return r < 0 ? fail(&err) : runs_print(&result, &arguments.form);
}

static void say_fault(void *context, const char *sentence)
{
	(*(size_t *)context)++;
	warn("%s", sentence);
}

static int run_check(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	struct errmsg err;
	size_t faults = 0;
	int r = store_open(&store, arguments.store, STORE_READ, &err);

	if (r == 0)
		r = store->ops->check(store, say_fault, &faults, &err);
	if (r < 0)
		return fail(&err);
	if (!faults) {
		warn("%s is sound", store->address);
		return EXIT_OK;
	}
	errmsg_set(&err, r,
		"%s is damaged: export what can be read ('sonde runs export'), and import it into "
		"a new file",
		store->address);
	return fail(&err);
}

static int run_compact(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	struct errmsg err;
	int r = store_open(&store, arguments.store, STORE_WRITE, &err);

	if (r == 0)
		r = store->ops->compact(store, &err);
	return r < 0 ? fail(&err) : EXIT_OK;
}

static const struct option show_options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "section",
		.type = OPTION_STRING,
		.argument = "NAME",
		.help = "Print the values of this section of the run's report.",
		.value = (void *)&arguments.section},
	FORM_OPTIONS(arguments.form),
	{0},
};

const struct command runs_show_command = {
	.name = "runs show",
	.summary = "show what is kept of a run",
	.usage = "[options] RUN",
	.description = "RUN is the beginning of an id (four characters or more), the path of a "
		       "capture, or 'latest'.",
	.examples = "sonde runs show latest --section energy\n"
		    "    The energy section of the newest run's report.",
	.options = show_options,
	.maximum_arguments = 1,
	.run = run_show,
};

static const struct option stats_options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead.",
		.value = &arguments.form.json},
	{.long_name = "schema",
		.type = OPTION_FLAG,
		.help = "Print the JSON Schema of what --json prints.",
		.value = &arguments.form.schema},
	{0},
};

const struct command runs_stats_command = {
	.name = "runs stats",
	.summary = "say how many runs there are, since when, and how large the database is",
	.usage = "[options]",
	.options = stats_options,
	.maximum_arguments = 0,
	.run = run_stats,
};

static const struct option check_options[] = {
	STORE_OPTION(arguments.store),
	{0},
};

const struct command runs_check_command = {
	.name = "runs check",
	.summary = "look for damage in the database",
	.usage = "[options]",
	.description = "Reads all of it. Exit status 1: it is damaged.",
	.options = check_options,
	.maximum_arguments = 0,
	.run = run_check,
};

const struct command runs_compact_command = {
	.name = "runs compact",
	.summary = "give back the space of runs that were deleted",
	.usage = "[options]",
	.description =
		"A file is written anew, which needs its size again while it lasts. A ClickHouse server "
		"removes rows of deleted runs, and of ingests that did not end, in the background.",
	.options = check_options,
	.maximum_arguments = 0,
	.run = run_compact,
};
