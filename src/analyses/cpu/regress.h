/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did a program get slower than it was in a baseline? Compared are the durations of its steps, of
 * its ranges and of its device work, each by name, and its CPU time. Each side is one recording, or
 * several of the same program.
 *
 * The values of a side are cut into blocks, each of one recording, in order of time. A row is
 * slower when its median grew by more than the threshold, and each of its blocks has a larger
 * median than each block of the baseline. There are two ways in which equal programs come to that:
 *
 *   Noise within recordings. Of B and B blocks it comes once in (2B)! / (B!)² times, whatever the
 *   distribution of the values is, and however those that are close in time depend on one another.
 *   There are as many blocks as make that rarer than REGRESS_FALSE_ALARM for all rows of a
 *   comparison together.
 *
 *   A difference between whole runs, such as the clock of the processor. Of n and m recordings all
 *   are slower than all of the baseline once in (n + m)! / (n! m!) times: `run_chance`. Of one and
 *   one that is every second time; only more recordings make it rarer.
 *
 * Of recordings with `energy` all values are joules: of device work what it is charged with, of
 * steps and ranges that are long enough for the sensors what ran and was launched in them, in place
 * of CPU time all that programs are charged with. Fields in _ns are nanojoules then.
 *
 * Rows of few values, and rows with little of the time of their kind, are shown and not judged. CPU
 * time, the mean of a side's recordings, is tested as a count of samples (analyses/statistics.h).
 */
#pragma once

#include <stdint.h>

#include "analyses/energy/span_energy.h"
#include "base/array.h"
#include "base/map.h"
#include "model/model.h"

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
struct regress;
/* "more" and "less" in place of "slower" and "faster", where energy is compared. */
const char *regress_verdict_name(const struct regress *regress, enum regress_verdict verdict);

struct regress_side {
	uint64_t count;
	uint64_t median_ns, low_ns, high_ns; /* and the least and the greatest of its blocks */
	unsigned blocks;                     /* it has so many; of CPU time 0 */
};

struct regress_row {
	enum regress_kind kind;
	enum regress_verdict verdict;
	const char *name, *domain; /* of ranges; "" when there is none */
	struct regress_side before, after;
	double change_percent; /* of the median; of CPU time: of the mean */
};

struct regress {
	ARRAY_OF(struct regress_row) rows; /* slower ones first, by change falling */
	size_t slower, only_before, only_after;
	bool is_energy;
	size_t too_short; /* steps and ranges without a figure of energy */
	size_t judged;    /* rows with enough values and time */
	unsigned blocks;  /* that a side has at least, to be judged */
	/* How often equal programs fail whose whole runs differ by more than the threshold. */
	double run_chance;
	struct intern names;
};

struct regress_recording {
	const struct model *model;
	uint64_t samples; /* that pass the filters */
	double period_s;  /* what each stands for; 0: unknown, CPU time is left out; or joules */
	const struct span_energy *energy; /* NULL: time is compared; of all recordings or none */
};

/* Of the same program. At least one. */
struct regress_recordings {
	ARRAY_OF(struct regress_recording) items;
};

/* Returns 0 or -ENOMEM. Names are copied: the models may be freed before. */
int regress_init(struct regress *regress, double threshold_percent,
	const struct regress_recordings *before, const struct regress_recordings *after);
void regress_done(struct regress *regress);
#define _cleanup_regress_ _cleanup_(regress_done)
