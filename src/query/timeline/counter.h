/* SPDX-License-Identifier: Apache-2.0 */
/* A counter's values over time, with the smallest and largest of stretches of them. */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "base/macros.h"

#define COUNTER_FANOUT 16
#define COUNTER_LEVELS 8

struct counter_point {
	int64_t time_ns;
	double value; /* finite: it holds until the next one */
};

struct counter_extent {
	double minimum, maximum;
};

/* Zero-initialise, fill `points` by time, then counter_finish(). */
struct counter {
	ARRAY_OF(struct counter_point) points;
	struct counter_extent *levels[COUNTER_LEVELS]; /* 0: of 16 points each */
	unsigned level_count;
	struct counter_extent all;
};

/* Returns 0 or -ENOMEM. */
int counter_finish(struct counter *counter);
void counter_done(struct counter *counter);

struct counter_column {
	int64_t start_ns;
	double first, minimum, maximum, last;
};

struct counter_columns {
	ARRAY_OF(struct counter_column) items;
};

/* Appends the columns of [from_ns, to_ns): see timeline_tile(). Returns 0 or -ENOMEM. */
int counter_draw(const struct counter *counter, int64_t from_ns, int64_t to_ns, int64_t column_ns,
	struct counter_columns *columns);
