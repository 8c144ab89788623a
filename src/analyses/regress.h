/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did a program get slower than it was in a baseline? Compared are the durations of its steps, of
 * its ranges and of its device work, each by name, and its CPU time as a whole.
 *
 * A row is slower when its median grew by more than the threshold, and each of the blocks that its
 * values are cut into, one after the other in time, has a larger median than each block of the
 * baseline. Of two runs of the same program that is chance: of B and B blocks it comes once in
 * (2B)! / (B!)² times, whatever the distribution of the values is, and however those that are close
 * in time depend on one another. There are as many blocks as make that rarer than
 * REGRESS_FALSE_ALARM for all rows of a comparison together. Rows of few values, and rows with
 * little of the time of their kind, are shown and not judged. CPU time is compared as
 * analyses/diff.h does it, to the same rate. What differs between two runs as a whole, such as the
 * clock of the processor, is in none of these: the threshold is there for that.
 */
#pragma once

#include "analyses/diff.h"

/* How often a comparison of two equal programs may say that something got slower. */
#define REGRESS_FALSE_ALARM 0.01
/* Rows with fewer values on a side are not judged. */
#define REGRESS_MIN_VALUES 20U
/* Nor are rows with less of the time of all rows of their kind, on both sides. */
#define REGRESS_MIN_PERCENT 1

enum regress_kind {
	REGRESS_CPU,
	REGRESS_STEP,
	REGRESS_RANGE,
	REGRESS_DEVICE,
	REGRESS_KIND_MAX,
};

enum regress_verdict {
	REGRESS_SLOWER,
	REGRESS_FASTER,
	REGRESS_NOISE,     /* changed by more than the threshold, not by more than its spread */
	REGRESS_UNCHANGED, /* by less than the threshold */
	REGRESS_TOO_FEW,   /* one side has too few values to tell */
	REGRESS_TOO_SMALL, /* less than REGRESS_MIN_PERCENT of the time of its kind */
	REGRESS_VERDICT_MAX,
};

const char *regress_kind_to_string(enum regress_kind kind);
const char *regress_verdict_to_string(enum regress_verdict verdict);

struct regress_side {
	uint64_t count;
	uint64_t median_ns, low_ns, high_ns; /* and the least and the greatest of its blocks */
};

struct regress_row {
	enum regress_kind kind;
	enum regress_verdict verdict;
	const char *name, *domain; /* of ranges; "" when there is none */
	struct regress_side before, after;
	double change_percent; /* of the median; of CPU time: of the sum */
};

struct regress {
	ARRAY_OF(struct regress_row) rows; /* slower ones first, by change falling */
	size_t slower, only_before, only_after;
	size_t judged;   /* rows with enough values and time */
	unsigned blocks; /* that the values of each side are cut into */
	struct intern names;
};

/*
 * `diff` is that of the same two models, or NULL to leave CPU time out. Returns 0 or -ENOMEM. The
 * models may be freed before.
 */
int regress_init(struct regress *regress, double threshold_percent, const struct model *before,
	const struct model *after, const struct diff *diff);
void regress_done(struct regress *regress);
#define _cleanup_regress_ _cleanup_(regress_done)

/*
 * The median of `count` > 0 values in order of time, which are sorted afterwards, and the medians
 * of their blocks; for tests. Fewer values than blocks are blocks of one.
 */
void regress_interval(
	uint64_t *values, size_t count, unsigned blocks, struct regress_side *ret_side);
