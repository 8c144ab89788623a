/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs compare, analyse and regressions */
#include <errno.h>

#include "cli/output.h"
#include "cli/runs/runs.h"
#include "report/runs/runs.h"
#include "store/choice.h"

static struct {
	const char *store, *price, *co2, *predict;
	struct runs_choice choice;
	struct runs_form form;
	double threshold;
} arguments = {.threshold = 5};

static int run_compare(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(store_compare_schema);
	if (runs_check_form(&arguments.form, &err) < 0)
		return fail_usage(&err);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_compare(
			store, (const char *const *)positional, (size_t)count, &result, &err);
	if (r == -EINVAL)
		return fail_usage(&err);
	return r < 0 ? fail(&err) : runs_print(&result, &arguments.form);
}

static int run_analyse(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	struct store_question question = {0};
	struct errmsg err;
	int r;

	if (arguments.form.schema)
		return output_schema(runs_report_schema);
	r = runs_check_form(&arguments.form, &err);
	if (r == 0)
		r = runs_choose(&arguments.choice, &err);
	if (r == 0)
		r = store_rates_parse(arguments.price, arguments.co2, &question.rates, &err);
	if (r < 0)
		return fail_usage(&err);
	question.predict = arguments.predict;
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_analyse(store, &arguments.choice.filter, &question, &result, &err);
	return r < 0 ? fail(&err) : runs_print(&result, &arguments.form);
}

static int run_regressions(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	_cleanup_result_ struct result result = {0};
	size_t worse = 0;
	struct errmsg err;
	int r, status;

	if (arguments.form.schema)
		return output_schema(store_regressions_schema);
	r = runs_check_form(&arguments.form, &err);
	if (r == 0 && !count)
		r = errmsg_set(&err, -EINVAL,
			"sonde runs regressions needs an experiment: --experiment of 'sonde runs "
			"add' names it");
	if (r < 0)
		return fail_usage(&err);
	r = store_open(&store, arguments.store, STORE_READ, &err);
	if (r == 0)
		r = store_regressions(
			store, positional[0], arguments.threshold, &result, &worse, &err);
	if (r < 0)
		return fail(&err);
	status = runs_print(&result, &arguments.form);
	if (status != EXIT_OK || !worse)
		return status;
	errmsg_set(&err, 0, "%zu %s got worse with the last commit", worse,
		worse == 1 ? "figure" : "figures");
	return fail(&err);
}

static const struct option compare_options[] = {
	STORE_OPTION(arguments.store),
	FORM_OPTIONS(arguments.form),
	{0},
};

const struct command runs_compare_command = {
	.name = "runs compare",
	.summary = "compare 2 to 10 runs",
	.usage = "[options] RUN RUN…",
	.description =
		"Says which is fastest, which takes least energy for a token and which in all, and "
		"how far each figure is spread. Where there are two runs or more of the same "
		"experiment (without one: of the same command), commit, model, precision, engine, "
		"batch and context, they repeat one another: groups of them are compared by "
		"Welch's test.",
	.examples = "sonde runs compare 3f2a 91c0\n    Two runs by the beginnings of their ids.",
	.options = compare_options,
	.maximum_arguments = -1,
	.run = run_compare,
};

static const struct option analyse_options[] = {
	STORE_OPTION(arguments.store),
	CHOICE_OPTIONS(arguments.choice),
	{.long_name = "price",
		.type = OPTION_STRING,
		.argument = "PRICE",
		.help = "What energy costs: 0.25/kWh.",
		.value = (void *)&arguments.price},
	{.long_name = "co2",
		.type = OPTION_STRING,
		.argument = "RATE",
		.help = "What energy stands for in carbon dioxide: 400g/kWh.",
		.value = (void *)&arguments.co2},
	{.long_name = "predict",
		.type = OPTION_STRING,
		.argument = "LABELS",
		.help = "Predict a run with these labels, from at least five runs: "
			"batch_size=16,context_length=2048.",
		.value = (void *)&arguments.predict},
	FORM_OPTIONS(arguments.form),
	{0},
};

const struct command runs_analyse_command = {
	.name = "runs analyse",
	.summary = "batch sizes, contexts, precisions, mixtures, scaling, throughput and energy",
	.usage = "[options]",
	.description = "The analyses of 'sonde report --by run', of runs in the database.",
	.examples = "sonde runs analyse --experiment batch-size\n"
		    "    What a larger batch changes, and which runs no other beats.",
	.options = analyse_options,
	.maximum_arguments = 0,
	.run = run_analyse,
};

static const struct option regressions_options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "threshold",
		.type = OPTION_DOUBLE,
		.argument = "PERCENT",
		.help = "Smaller changes are none.",
		.value = &arguments.threshold,
		.minimum = 0,
		.maximum = 1e6},
	FORM_OPTIONS(arguments.form),
	{0},
};

const struct command runs_regressions_command = {
	.name = "runs regressions",
	.summary = "what got worse from commit to commit of an experiment",
	.usage = "[options] EXPERIMENT",
	.description =
		"Compares each commit with the one before it, in the order of their first runs. A "
		"figure got worse, or better, when it changed by the threshold or more and the "
		"false discovery rate is at most 0.05; that needs two runs or more of each. Exit "
		"status 1: the last commit made a figure worse.",
	.examples = "sonde runs regressions nightly --threshold 3\n    For CI.",
	.options = regressions_options,
	.maximum_arguments = 1,
	.run = run_regressions,
};
