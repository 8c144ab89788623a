/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that repeat one another, as groups, and whether two groups differ. */
#pragma once

#include "store/rows.h"

/* What runs are compared by. */
struct store_figure {
	enum store_run_column column;
	bool is_rate; /* more is better */
};

#define STORE_FIGURE_COUNT 9
extern const struct store_figure store_figures[STORE_FIGURE_COUNT];
/* "tokens_per_s" */
const char *store_figure_name(const struct store_figure *figure);

struct run_group {
	ARRAY_OF(const struct run_row *) rows;
};

struct run_groups {
	ARRAY_OF(struct run_group) items;
};

typedef bool run_equal_function(const struct run_row *a, const struct run_row *b);

/* In the order of their first rows. Zero-initialise. Returns 0 or -ENOMEM. */
int run_groups_init(
	struct run_groups *groups, const struct run_rows *rows, run_equal_function *is_equal);
void run_groups_done(struct run_groups *groups);
#define _cleanup_run_groups_ _cleanup_(run_groups_done)

/* Same experiment (of none: same command), commit, model, precision, engine, batch and context. */
bool run_repeats(const struct run_row *a, const struct run_row *b);
bool run_has_same_commit(const struct run_row *a, const struct run_row *b);

struct run_change {
	double before, after; /* means; NaN: not known */
	double share;         /* after / before - 1 */
	double p_value;       /* by Welch's test; NaN: one of them has fewer than two runs */
	size_t before_count, after_count;
};

struct run_change run_group_change(const struct run_group *before, const struct run_group *after,
	const struct store_figure *figure);
