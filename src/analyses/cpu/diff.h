/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed between two captures, "before" and "after". Rows are matched by function name and
 * module file name, so that addresses, directories and build ids may differ; functions without a
 * name are matched as one per module. Lines are matched by their function, file name and number:
 * what an edit has moved is one row of "before" and another of "after".
 *
 * Two questions, two tests (analyses/statistics.h), each corrected for the number of rows:
 *   share: did the row's part of the samples change? Two proportions.
 *   time:  did its CPU time change? Two counts, each sample standing for its capture's period.
 * By another weight "time" is that of waits or of devices, or energy: samples count nanoseconds or
 * microjoules, and the tests take as many events as there were samples.
 *
 * Both take sampling noise alone into account. They say that these two recordings differ, not that
 * the program does: what differs between runs of the same program is not in them. Timer samples
 * vary less than Poisson counts do, so that the p-values are on the careful side.
 */
#pragma once

#include <stdbool.h>

#include "analyses/cpu/breakdown.h"
#include "analyses/energy/uncertainty.h"
#include "analyses/selection.h"
#include "model/model.h"

#define DIFF_SIGNIFICANT 0.05 /* false discovery rate, and level of the total's test */

struct diff_options {
	enum breakdown_by by;     /* BREAKDOWN_FUNCTION, _MODULE or _LINE */
	enum breakdown_sort sort; /* which of self and total is tested and sorted by */
	enum model_weight weight; /* what the models are weighed by */
	/* Compare time per second of recording instead of the whole: for recordings of
	 * different lengths. */
	bool per_second;
};

/* One side of the comparison. Times are 0 when unknown (has_time false). */
struct diff_side {
	uint64_t samples; /* what they count: by another weight than CPU time ns, or microjoules */
	uint64_t duration_ns;
	bool has_duration;    /* see model_has_duration() */
	uint64_t time_ns;     /* of the weight */
	uint64_t unit_ns;     /* what a count of 1 is of it */
	double energy_j;      /* of models that count it */
	double per_event;     /* how much of `samples` was seen at once; 1 but of energy */
	double sample_weight; /* what one sample stands for: seconds, or joules, or with per_second
				 as much per second */
	double lost_share;    /* of the recording's samples; NaN: unknown */
	struct energy_uncertainty uncertainty; /* of energy_j */
};

struct diff_row {
	const char *name; /* of the function; the module's for BREAKDOWN_MODULE */
	const char *module;
	const char *place; /* for BREAKDOWN_LINE "train.py:12"; "": the line is not known */
	uint64_t self_before, self_after, total_before, total_after; /* samples */
	/* Of self or total, as options.sort says: */
	double share_change;    /* after − before, −1 … 1 */
	double time_change;     /* after − before in units of sample_weight; NaN: unknown */
	double share_q, time_q; /* Benjamini–Hochberg adjusted p-values; time_q NaN: unknown */
	struct energy_uncertainty before_uncertainty, after_uncertainty; /* of energy, joules */
};

struct diff {
	struct diff_options options;
	struct diff_side before, after;
	bool has_time;
	bool is_energy;           /* of both: in place of time */
	double total_time_change; /* after − before in units of sample_weight; NaN: unknown */
	double total_time_p;      /* NaN: unknown */
	ARRAY_OF(struct diff_row)
	rows; /* by |time_change| falling, by |share_change| without time */
	struct intern names;
};

/* Returns 0 or -ENOMEM. The models may be freed before the diff. */
int diff_init(struct diff *diff, const struct diff_options *options, const struct model *before,
	const struct selected *before_selected, const struct model *after,
	const struct selected *after_selected);
void diff_done(struct diff *diff);
#define _cleanup_diff_ _cleanup_(diff_done)

/* Samples of the tested kind. */
uint64_t diff_row_before(const struct diff *diff, const struct diff_row *row);
uint64_t diff_row_after(const struct diff *diff, const struct diff_row *row);
/*
 * Of a change of energy, in units of sample_weight. The two recordings are taken as independent, so
 * that the errors of one sensor that read both are in it twice: the change is at least so sure.
 */
struct energy_uncertainty diff_change_uncertainty(const struct diff *diff,
	const struct energy_uncertainty *before, const struct energy_uncertainty *after);
/* By time where it is known, else by share. */
bool diff_row_is_significant(const struct diff *diff, const struct diff_row *row);

/*
 * The gate of --fail-above: what got slower by more than `percent` of all the time of "before",
 * significantly (time_q, or total_time_p for the total, at most DIFF_SIGNIFICANT). Needs has_time.
 */
struct diff_regression {
	bool total;                        /* the whole got slower */
	const struct diff_row *row;        /* the row that got slower most; NULL: none */
	double total_percent, row_percent; /* of the time of "before" */
};

void diff_find_regression(
	const struct diff *diff, double percent, struct diff_regression *ret_regression);
