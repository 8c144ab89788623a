/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did a program get slower than it was in a baseline? Compared are the durations of its steps, of
 * its ranges and of its device work, each by name, and its CPU time as a whole.
 *
 * Durations have a spread. From one capture's values comes an interval that holds the median with
 * 95 % of certainty whatever their distribution is (between two of the sorted values; with fewer
 * than six values from the smallest to the largest). A row is slower when its median grew by more
 * than the threshold and the two intervals do not meet. CPU time is compared as analyses/diff.h
 * does it. As there, what differs between two runs of the same program is in none of these.
 */
#pragma once

#include "analyses/diff.h"

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
	REGRESS_VERDICT_MAX,
};

const char *regress_kind_to_string(enum regress_kind kind);
const char *regress_verdict_to_string(enum regress_verdict verdict);

struct regress_side {
	uint64_t count;
	uint64_t median_ns, low_ns, high_ns; /* and its interval */
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

/* The interval of `count` > 0 sorted values; for tests. */
void regress_interval(const uint64_t *values, size_t count, struct regress_side *ret_side);
