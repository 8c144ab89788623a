/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed from one run to another in what its threads and devices did: operators, calls,
 * annotations, kernels, copies. Rows of all ranks are joined by kind and name. Times are those of
 * rows with what lies in them; only device work can be added up, so only that has shares.
 *
 * The change of a row's time has two parts, which add up: other counts, at the mean duration
 * before, and other durations, at the count after. Work is counted, not sampled: the first part is
 * exact. The second is tested: did the mean duration change? (statistics_batch_means(), corrected
 * for the number of tested rows.) Like that of analyses/cpu/diff.h the test knows the noise within
 * these two runs alone, not what differs between runs of the same program.
 */
#pragma once

#include "analyses/trace_view.h"
#include "base/array.h"
#include "base/map.h"

#define ROW_DIFF_SIGNIFICANT 0.05 /* false discovery rate */
/* Durations of fewer rows on a side are not tested. */
#define ROW_DIFF_MIN_COUNT 20U

enum row_diff_kind {
	ROW_DIFF_OPERATOR,
	ROW_DIFF_CALL,       /* of a runtime or driver */
	ROW_DIFF_STEP,       /* of the profiler: all numbers are one row */
	ROW_DIFF_ANNOTATION, /* ranges, too */
	ROW_DIFF_PYTHON,
	ROW_DIFF_OTHER,
	ROW_DIFF_DEVICE_ANNOTATION,
	ROW_DIFF_KERNEL,
	ROW_DIFF_COPY,
	ROW_DIFF_FILL,
	ROW_DIFF_ANY, /* for tools that compare names alone */
	ROW_DIFF_KIND_MAX,
};

const char *row_diff_kind_name(enum row_diff_kind kind);

struct row_diff_figures {
	uint64_t count;
	int64_t total_ns;
	double mean_ns;    /* NaN: none */
	double share;      /* of the side's device time, 0 to 1; NaN: not of device work */
	double error2_ns2; /* the square of the mean's standard error; NaN: too few */
};

/* Sides: before, after. */
struct row_diff_row {
	const char *name;
	enum row_diff_kind kind;
	struct row_diff_figures sides[2];
	/* After - before; the sum of the two parts. In ns, or per second of recording. */
	double change_ns, by_count_ns, by_duration_ns;
	double duration_q; /* NaN: not tested, or only one side has it */
};

/* Why a row's time changed: of the two parts the one that is known, and larger. */
enum row_diff_change {
	ROW_DIFF_UNCHANGED,
	ROW_DIFF_NOISE,
	ROW_DIFF_TOO_FEW, /* to tell noise from change */
	ROW_DIFF_NEW,
	ROW_DIFF_GONE,
	ROW_DIFF_MORE, /* often */
	ROW_DIFF_FEWER,
	ROW_DIFF_LONGER, /* each */
	ROW_DIFF_SHORTER,
	ROW_DIFF_CHANGE_MAX,
};

enum row_diff_change row_diff_change_of(const struct row_diff_row *row);
const char *row_diff_change_name(enum row_diff_change change);

struct row_diff_side {
	uint64_t works; /* of devices */
	int64_t device_ns;
	uint64_t steps; /* of the profiler, of the first rank */
	double weight;  /* 1, or 1 / seconds of recording */
};

/* A row of a trace, while rows are added. */
struct row_diff_event {
	int64_t start_ns;
	double duration_ns;
	uint32_t row; /* of the diff */
};

struct row_diff {
	struct row_diff_side sides[2];
	ARRAY_OF(struct row_diff_row) rows; /* by |change_ns| falling, then by name */
	struct intern keys;                 /* kind and name of each row */
	ARRAY_OF(struct row_diff_event) events[2];
};

/* One of the two runs. */
struct row_diff_input {
	const struct trace_view *views; /* one of each rank */
	size_t count;
	uint64_t duration_ns; /* to compare what it took per second; 0: all of it */
};

/* Returns 0 or -ENOMEM. Names are copied: the traces may be freed before. */
int row_diff_init(struct row_diff *diff, const struct row_diff_input inputs[2]);
void row_diff_done(struct row_diff *diff);
#define _cleanup_row_diff_ _cleanup_(row_diff_done)

/*
 * For tools that count other rows: a diff that is zero-initialised, begun for each view of each
 * side, with rows of its trace added, ended, and finished when all are there. Return 0 or -ENOMEM.
 */
struct row_diff_adding {
	struct row_diff *diff;
	int side;
	const struct trace_view *view;
	uint32_t *known; /* by name and kind: the row, + 1; 0: not asked for yet */
};

int row_diff_begin(struct row_diff_adding *adding, struct row_diff *diff, int side,
	const struct trace_view *view);
int row_diff_add(
	struct row_diff_adding *adding, const struct trace_event *event, enum row_diff_kind kind);
void row_diff_end(struct row_diff_adding *adding);
int row_diff_finish(struct row_diff *diff);

/*
 * The gate of --fail-above: what device work got slower by more than `percent` of all device time
 * of "before", of which there must be some.
 */
struct row_diff_regression {
	bool total;
	const struct row_diff_row *row; /* the row that got slower most; NULL: none */
	double total_percent, row_percent;
};

void row_diff_find_regression(
	const struct row_diff *diff, double percent, struct row_diff_regression *ret_regression);
