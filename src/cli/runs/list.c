/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs list */
#include "cli/output.h"
#include "cli/runs/runs.h"
#include "store/choice.h"

static struct {
	const char *store, *sort;
	struct runs_choice choice;
	struct runs_form form;
	uint64_t limit, offset;
	bool reverse;
} arguments = {.limit = UINT64_MAX};

static struct store_order make_order(void)
{
	bool is_short = !arguments.form.json && !arguments.form.csv;
	struct store_order order = {
		.limit = arguments.limit == UINT64_MAX ? (is_short ? 20 : 0) : arguments.limit,
		.offset = arguments.offset};

	store_order_choose(&order, arguments.sort, arguments.reverse);
	return order;
}

static int run_list(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	struct store_order order = make_order();
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_list_schema);
	r = runs_check_form(&arguments.form, &err);
	if (r == 0)
		r = runs_choose(&arguments.choice, &err);
	if (r < 0)
		return fail_usage(&err);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_list(store, &arguments.choice.filter, &order, &result, &err);
	return r < 0 ? fail(&err) : runs_print(&result, &arguments.form);
}

static const struct option options[] = {
	STORE_OPTION(arguments.store),
	CHOICE_OPTIONS(arguments.choice),
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "The best, least or newest first. Runs without it come last. Default: time.",
		.value = (void *)&arguments.sort,
		.choices = store_order_names},
	{.long_name = "reverse",
		.type = OPTION_FLAG,
		.help = "The other way round.",
		.value = &arguments.reverse},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "RUNS",
		.help = "At most so many. Default: 20; with --json and --csv all.",
		.value = &arguments.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "offset",
		.type = OPTION_U64,
		.argument = "RUNS",
		.help = "Pass over so many first.",
		.value = &arguments.offset,
		.maximum = 1e9},
	FORM_OPTIONS(arguments.form),
	{0},
};

const struct command runs_list_command = {
	.name = "runs list",
	.summary = "list the runs of the database",
	.usage = "[options]",
	.description = "Lists runs, the newest first. JSON and CSV have every column.",
	.examples = "sonde runs list --model 'llama*' --since 7d --sort joules-per-token\n"
		    "    The runs of a week, those that took least energy for a token first.",
	.options = options,
	.maximum_arguments = 0,
	.run = run_list,
};
