/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store-rows STORE runs COUNT       so many made-up runs, with a tag each
 * store-rows STORE figures COUNT    one run with so many rows, as the report's sections, tokens and
 *                                   readings of power are written
 *
 * Prints the rows and the seconds that writing them took, with the commit, as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "store/store.h"

#define FIRST_TIME 1700000000

static struct errmsg err;

static int add_run(struct store *store, int64_t number)
{
	struct store_value values[STORE_RUN_COLUMN_MAX] = {0};
	char id[33], path[64], model[32], experiment[32], tag[16];
	uint64_t chance = (uint64_t)number * 0x9e3779b97f4a7c15ULL;
	int r;

	snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)chance,
		(unsigned long long)number);
	snprintf(path, sizeof(path), "/captures/run-%lld.pftrace", (long long)number);
	snprintf(model, sizeof(model), "model-%d", (int)(chance >> 60));
	snprintf(experiment, sizeof(experiment), "experiment-%d", (int)(chance >> 40 & 0xff));
	snprintf(tag, sizeof(tag), "tag-%d", (int)(chance >> 30 & 0x1f));
	values[STORE_RUN_NUMBER] = store_integer(number);
	values[STORE_RUN_ID] = store_text(id);
	values[STORE_RUN_PATH] = store_text(path);
	values[STORE_RUN_ADDED] = store_integer(number);
	values[STORE_RUN_TIME] = store_integer((FIRST_TIME + number * 60) * (int64_t)NS_PER_S);
	values[STORE_RUN_MODEL] = store_text(model);
	values[STORE_RUN_EXPERIMENT] = store_text(experiment);
	values[STORE_RUN_COMMAND] = store_text("python3 -m vllm serve --model something");
	values[STORE_RUN_HOST] = store_text("node-0001");
	values[STORE_RUN_DURATION] = store_integer((int64_t)(chance >> 20 & 0xffffffffff));
	values[STORE_RUN_ENERGY_J] = store_number((double)(chance >> 12 & 0xfffff) / 7);
	values[STORE_RUN_JOULES_PER_TOKEN] = store_number((double)(chance & 0xfffff) / 1e5);
	values[STORE_RUN_TOKENS_PER_S] = store_number((double)(chance >> 8 & 0xffff) / 3);
	r = store->ops->insert(store, STORE_RUNS, values, &err);
	return r < 0 ? r
		     : store->ops->insert(store, STORE_TAGS,
			       STORE_PARAMETERS(store_integer(number), store_text(tag)), &err);
}

static int add_figure(struct store *store, int64_t i)
{
	switch (i % 3) {
	case 0:
		return store->ops->insert(store, STORE_TOKENS,
			STORE_PARAMETERS(store_integer(1), store_integer(i / 300),
				store_integer(i % 300), store_integer(i * 1000),
				store_integer(1000)),
			&err);
	case 1:
		return store->ops->insert(store, STORE_POWER,
			STORE_PARAMETERS(store_integer(1), store_integer(0),
				store_integer(i * 1000), store_integer(i * 1000 + 999),
				store_number(0.5), store_null()),
			&err);
	default:
		return store->ops->insert(store, STORE_FIGURES,
			STORE_PARAMETERS(store_integer(1), store_integer(i % 50),
				store_integer(i / 50), store_null(),
				i % 2 ? store_number(1.5) : store_null(),
				i % 2 ? store_null() : store_text("a_function_of_some_length")),
			&err);
	}
}

static int add_names(struct store *store)
{
	int r = add_run(store, 1);

	for (int i = 0; r == 0 && i < 50; i++) {
		char name[16];

		snprintf(name, sizeof(name), "column-%d", i);
		r = store->ops->insert(store, STORE_FIGURE_NAMES,
			STORE_PARAMETERS(store_integer(i), store_text("section"),
				store_text("table"), store_text(name), store_text("number")),
			&err);
	}
	return r;
}

static int add_all(struct store *store, bool is_runs, int64_t count)
{
	int r = store->ops->begin(store, &err);

	if (r == 0 && !is_runs)
		r = add_names(store);
	for (int64_t i = 1; r == 0 && i <= count; i++)
		r = is_runs ? add_run(store, i) : add_figure(store, i);
	return r < 0 ? r : store->ops->commit(store, &err);
}

int main(int argc, char **argv)
{
	struct store *store = NULL;
	bool is_runs = argc == 4 && strcmp(argv[2], "runs") == 0;
	int64_t count = argc == 4 ? strtoll(argv[3], NULL, 10) : 0;
	uint64_t begin;
	int r = count > 0 ? store_open(&store, argv[1], STORE_WRITE, &err) : -1;

	begin = monotonic_now_ns();
	if (r == 0)
		r = add_all(store, is_runs, count);
	if (r < 0) {
		fprintf(stderr, "store-rows: %s\n", err.text);
		return 1;
	}
	printf("{\"rows\": %lld, \"seconds\": %.6f}\n", (long long)(is_runs ? 2 * count : count),
		(double)(monotonic_now_ns() - begin) / 1e9);
	store_close(store);
	return 0;
}
