/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of the runs database, as documents of the report's form (report/result.h): for a
 * terminal, as JSON with a schema, as CSV. docs/runs.md explains them.
 *
 * All fill in a zero-initialised result and return 0 or a negative errno with a sentence.
 */
#pragma once

#include "analyses/inference/cost.h"
#include "report/result.h"
#include "store/rows.h"

/* Runs, and how many there are: list.c. */
int store_list(struct store *store, const struct store_filter *filter,
	const struct store_order *order, struct result *result, struct errmsg *err);
int store_list_schema(struct strbuf *out);

/* One run: its row, what else is kept of it, and the values of a section (NULL: none): show.c. */
int store_show(struct store *store, const char *name, const char *section, struct result *result,
	struct errmsg *err);
int store_show_schema(struct strbuf *out);

/* 2 to 10 runs beside each other: compare.c. */
#define STORE_COMPARE_MOST 10
int store_compare(struct store *store, const char *const *names, size_t count,
	struct result *result, struct errmsg *err);
int store_compare_schema(struct strbuf *out);

/* What else is asked of analyses. */
struct store_question {
	struct energy_rates rates;
	const char *predict; /* "batch_size=16,context_length=2048"; NULL: nothing */
};

/* Batch sizes, contexts, precisions, mixtures, scaling and the front of throughput and energy of
 * the runs that the filter leaves: the document of `report --by run`, analyse.c. */
int store_analyse(struct store *store, const struct store_filter *filter,
	const struct store_question *question, struct result *result, struct errmsg *err);

/* What changed from commit to commit of an experiment: regressions.c. `ret_worse`: how many
 * figures got worse with the last commit. */
int store_regressions(struct store *store, const char *experiment, double threshold_percent,
	struct result *result, size_t *ret_worse, struct errmsg *err);
int store_regressions_schema(struct strbuf *out);

/* How many, since when, how large: stats.c. */
int store_stats(struct store *store, struct result *result, struct errmsg *err);
int store_stats_schema(struct strbuf *out);

/* ---- what they share: run_columns.c ---- */

/* A run's columns: those of its row by their names, and its tags. */
extern const struct report_shape store_run_shape;
void store_add_run(struct result *result, const struct run_rows *rows, const struct run_row *row);
/* "2026-11-23 21:05", local time; nothing where it is not known. */
void store_add_time(struct strbuf *out, const struct store_value *time_ns);
/* What a person calls it: the beginning of its id. */
#define STORE_SHORT_ID 8
