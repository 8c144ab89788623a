/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed in device work from one recording to another. Rows are matched by name and kind, of
 * all devices together.
 *
 * The change of a row's time has two parts, which add up: other counts, at the duration before, and
 * other durations, at the count after. Work is counted, not sampled: the first part is exact. The
 * second is tested: did the mean duration change? (statistics_batch_means(), corrected for the
 * number of tested rows.) Like that of analyses/cpu/diff.h the test knows the noise within these
 * two recordings alone, not what differs between runs of the same program.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "model/model.h"

#define DEVICE_DIFF_SIGNIFICANT 0.05 /* false discovery rate */
/* Durations of fewer pieces of work on a side are not tested. */
#define DEVICE_DIFF_MIN_COUNT 20U

struct device_diff_figures {
	uint64_t count, total_ns;
	double mean_ns;    /* NaN: none */
	double share;      /* of the side's device time, 0 to 1 */
	double error2_ns2; /* the square of the mean's standard error; NaN: too few */
};

struct device_diff_row {
	const char *name;
	enum wire_device_kind kind;
	struct device_diff_figures before, after;
	/* After - before; the sum of the two parts. In ns, or per second of recording. */
	double change_ns, by_count_ns, by_duration_ns;
	double duration_q; /* NaN: not tested, or only one side has it */
};

struct device_diff_side {
	uint64_t count, total_ns;
	double weight; /* 1, or 1 / seconds of recording */
};

struct device_diff {
	bool per_second;
	struct device_diff_side before, after;
	ARRAY_OF(struct device_diff_row) rows; /* by |change_ns| falling */
	struct intern names;
};

/* Returns 0 or -ENOMEM. Names are copied: the models may be freed before. */
int device_diff_init(struct device_diff *diff, const struct model *before,
	const struct model *after, bool per_second);
void device_diff_done(struct device_diff *diff);
#define _cleanup_device_diff_ _cleanup_(device_diff_done)

/* Of the change, what is known to be more than noise: the count's part, and that of the durations
 * where they differ significantly. */
double device_diff_known_change_ns(const struct device_diff_row *row);

/*
 * The gate of --fail-above: what got slower by more than `percent` of all device time of "before",
 * of which there must be some.
 */
struct device_diff_regression {
	bool total;
	const struct device_diff_row *row; /* the row that got slower most; NULL: none */
	double total_percent, row_percent;
};

void device_diff_find_regression(const struct device_diff *diff, double percent,
	struct device_diff_regression *ret_regression);
