/* SPDX-License-Identifier: Apache-2.0 */
/* sonde runs add */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/warn.h"
#include "cli/runs/runs.h"
#include "store/ingest/ingest.h"

static struct {
	const char *store, *price, *co2;
	struct option_strings tags;
	struct store_labels labels;
	uint64_t rows;
} arguments = {.labels.rates = ENERGY_RATES_NONE, .rows = 1000};

static int check(struct errmsg *err)
{
	struct store_labels *labels = &arguments.labels;
	int r = 0;

	labels->tags = arguments.tags.values;
	labels->tag_count = arguments.tags.count;
	labels->rows = arguments.rows;
	for (size_t i = 0; r == 0 && i < labels->tag_count; i++) {
		if (!*labels->tags[i])
			r = errmsg_set(err, -EINVAL, "--tag '' is no tag: give a word");
	}
	if (r == 0 && arguments.price)
		r = energy_rates_parse_price(&labels->rates, arguments.price, err);
	if (r == 0 && arguments.co2)
		r = energy_rates_parse_co2(&labels->rates, arguments.co2, err);
	return r;
}

/* One that cannot be added does not keep the others out. */
static int add(struct store *store, const char *path)
{
	struct store_added added;
	struct errmsg err;
	int r = store_add(store, path, &arguments.labels, &added, &err);

	if (r < 0) {
		fail(&err);
		return r;
	}
	if (added.was_there)
		warn("%s is run %.*s already", path, STORE_SHORT_ID, added.id);
	printf("%s\n", added.id);
	return 0;
}

static int run_add(int count, char **positional)
{
	_cleanup_store_ struct store *store = NULL;
	int status = EXIT_OK;
	struct errmsg err;

	if (check(&err) < 0)
		return fail_usage(&err);
	if (store_open(&store, arguments.store, STORE_WRITE, &err) < 0)
		return fail(&err);
	for (int i = 0; i < count; i++) {
		if (add(store, positional[i]) < 0)
			status = EXIT_ERROR;
	}
	return status;
}

static const struct option options[] = {
	STORE_OPTION(arguments.store),
	{.long_name = "tag",
		.type = OPTION_STRINGS,
		.argument = "TAG",
		.help = "Give the runs this tag. May be given several times.",
		.value = &arguments.tags},
	{.long_name = "experiment",
		.type = OPTION_STRING,
		.argument = "NAME",
		.help = "What the runs are compared for: see 'sonde runs regressions'.",
		.value = (void *)&arguments.labels.experiment},
	{.long_name = "commit",
		.type = OPTION_STRING,
		.argument = "ID",
		.help = "The commit of the code that ran.",
		.value = (void *)&arguments.labels.commit},
	{.long_name = "note",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "A note on the runs.",
		.value = (void *)&arguments.labels.notes},
	{.long_name = "price",
		.type = OPTION_STRING,
		.argument = "PRICE",
		.help = "What energy cost: 0.25/kWh.",
		.value = (void *)&arguments.price},
	{.long_name = "co2",
		.type = OPTION_STRING,
		.argument = "RATE",
		.help = "What energy stands for in carbon dioxide: 400g/kWh.",
		.value = (void *)&arguments.co2},
	{.long_name = "rows",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Keep so many rows of each table of the report at most.",
		.value = &arguments.rows,
		.minimum = 1,
		.maximum = 1e9},
	{0},
};

const struct command runs_add_command = {
	.name = "runs add",
	.summary = "add captures to the database",
	.usage = "[options] CAPTURE…",
	.description =
		"Adds recordings, or traces of other tools, and prints the id of each. The id is "
		"made of the file's content, so that a file that is added again is the same run "
		"and only gets the labels. The database keeps figures; the file stays where it "
		"is. An ingest that is ended leaves nothing of its run.",
	.examples = "sonde runs add run.pftrace --experiment batch --tag a100 --commit 3f2a91c\n"
		    "    Adds a recording with what it was for.",
	.options = options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = run_add,
};
