/* SPDX-License-Identifier: Apache-2.0 */
/* Robust figures over times of collectives, and ranks that have collectives of their own. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyses/collectives/match.h"

/* Two groups of ranks that work independently drift apart by more, between one and the next. */
#define TOGETHER_NS 100000
/* With fewer in common, one cannot tell. */
#define LEAST_IN_COMMON 4
/* With fewer, a line is level. */
#define LEAST_FOR_SLOPE 16
/* No clock of a computer is so wrong. */
#define LARGEST_SLOPE 0.001

/* ---- medians and lines ---- */

static int compare_times(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

int64_t collective_median_ns(int64_t *values, size_t count)
{
	int64_t low, high;

	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_times);
	low = values[(count - 1) / 2];
	high = values[count / 2];
	return (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2);
}

static int compare_values(const void *left, const void *right)
{
	const struct collective_point *a = left, *b = right;

	return a->value_ns < b->value_ns ? -1 : a->value_ns > b->value_ns;
}

static int64_t median_value(struct collective_point *points, size_t count)
{
	qsort(points, count, sizeof(*points), compare_values);
	return points[(count - 1) / 2].value_ns;
}

/* Differences of what a file says may be anything. */
static double difference(int64_t a, int64_t b)
{
	return (double)a - (double)b;
}

/* Between the medians of the first and of the last half. */
static double slope_of(struct collective_point *points, size_t count)
{
	size_t half = count / 2;
	int64_t first_ns = points[half / 2].time_ns, last_ns = points[count - 1 - half / 2].time_ns;
	double first, last, slope;

	if (count < LEAST_FOR_SLOPE || last_ns <= first_ns)
		return 0;
	first = (double)median_value(points, half);
	last = (double)median_value(points + count - half, half);
	slope = (last - first) / difference(last_ns, first_ns);
	return fabs(slope) <= LARGEST_SLOPE ? slope : 0;
}

struct collective_line collective_line_of(struct collective_point *points, size_t count)
{
	struct collective_line line = {0};

	if (!count)
		return line;
	line.middle_ns = points[(count - 1) / 2].time_ns;
	line.slope = slope_of(points, count);
	for (size_t i = 0; i < count; i++)
		points[i].value_ns = collective_shift_ns(points[i].value_ns,
			-line.slope * difference(points[i].time_ns, line.middle_ns));
	line.value_ns = median_value(points, count);
	for (size_t i = 0; i < count; i++)
		points[i].value_ns =
			collective_ns_of(fabs(difference(points[i].value_ns, line.value_ns)));
	line.error_ns = median_value(points, count);
	return line;
}

/* ---- ranks that work independently ---- */

/* Parts of one kind and rank. */
struct run {
	size_t first, end;
	uint32_t kind; /* that it gets */
};

struct splitting {
	struct collective_matches *matches;
	ARRAY_OF(struct run) runs; /* of one kind, the first of each cluster */
	ARRAY_OF(struct collective_point) points;
};

/* Do their collectives end at the same time, however wrong the clocks are? */
static int are_together(
	struct splitting *splitting, const struct run *a, const struct run *b, bool *ret_together)
{
	const struct collective_part *parts = splitting->matches->parts.items;
	size_t i = a->first, j = b->first;
	int r = array_reserve(&splitting->points, a->end - a->first);

	if (r < 0)
		return r;
	array_clear(&splitting->points);
	while (i < a->end && j < b->end) {
		int order = collective_parts_compare(&parts[i], &parts[j]);

		if (order == 0)
			splitting->points.items[splitting->points.count++] =
				(struct collective_point){
					parts[i].end_ns, (int64_t)((uint64_t)parts[j].end_ns -
								   (uint64_t)parts[i].end_ns)};
		i += order <= 0;
		j += order >= 0;
	}
	*ret_together =
		splitting->points.count < LEAST_IN_COMMON ||
		collective_line_of(splitting->points.items, splitting->points.count).error_ns <=
			TOGETHER_NS;
	return 0;
}

/* A cluster of earlier ranks, or its own, which gets a kind. */
static int place(struct splitting *splitting, struct run *run)
{
	struct collective_matches *matches = splitting->matches;
	const struct collective_match_kind kind = matches->kinds.items[run->kind];
	bool together = false;
	int r = 0;

	array_foreach (&splitting->runs, other) {
		r = are_together(splitting, other, run, &together);
		if (r < 0)
			return r;
		if (!together)
			continue;
		run->kind = other->kind;
		return 0;
	}
	if (splitting->runs.count) {
		run->kind = (uint32_t)matches->kinds.count;
		r = array_append(&matches->kinds, kind);
	}
	return r < 0 ? r : array_append(&splitting->runs, *run);
}

/* Kinds of parts are changed in the end, since they are sorted by them. */
int collective_clusters_split(struct collective_matches *matches)
{
	struct splitting splitting = {.matches = matches};
	struct collective_part *parts = matches->parts.items;
	uint32_t kind = MODEL_NONE;
	int r = 0;

	for (size_t i = 0, next; r == 0 && i < matches->parts.count; i = next) {
		struct run run = {.first = i, .kind = parts[i].kind};

		for (next = i; next < matches->parts.count && parts[next].kind == run.kind &&
			       parts[next].rank == parts[i].rank;)
			next++;
		run.end = next;
		if (matches->kinds.items[run.kind].group)
			continue;
		if (run.kind != kind)
			array_clear(&splitting.runs);
		kind = run.kind;
		r = place(&splitting, &run);
		for (size_t j = i; r == 0 && run.kind != kind && j < next; j++)
			parts[j].kind = run.kind;
	}
	array_done(&splitting.runs);
	array_done(&splitting.points);
	return r;
}
