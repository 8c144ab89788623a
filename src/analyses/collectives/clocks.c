/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of each rank's clock, from the ends of collectives: first of ranks that have one in
 * common with a rank whose error is known, then, a few times, the medians of all.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyses/collectives/match.h"

#define ROUNDS 3

/* Ends lie apart that do so by more than this, and by more than so many times the median. */
#define APART_NS    100000
#define APART_TIMES 10

/* What a part says about the clock of its rank. */
struct reading {
	uint32_t rank;
	struct collective_point point;
};

struct estimating {
	struct collective_matches *matches;
	uint32_t *origins; /* by rank: the one whose clock its error is against; MODEL_NONE: none */
	ARRAY_OF(struct reading) readings;
	ARRAY_OF(struct collective_point) points;
	int64_t *values; /* of the parts of one match */
};

static const struct collective_part *parts_of(
	const struct collective_matches *matches, const struct collective_match *match)
{
	return &matches->parts.items[match->first];
}

/* The end of a part without the error of its clock. */
static int64_t corrected_ns(
	const struct collective_matches *matches, const struct collective_part *part)
{
	const struct collective_clock *clock = &matches->clocks[part->rank];
	int64_t end_ns = trace_difference_ns(part->end_ns, clock->error_ns);
	double since_ns = (double)end_ns - (double)matches->middle_ns;

	return collective_shift_ns(end_ns, -clock->drift * since_ns);
}

static int compare_readings(const void *left, const void *right)
{
	const struct reading *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->point.time_ns != b->point.time_ns)
		return a->point.time_ns < b->point.time_ns ? -1 : 1;
	return 0;
}

/* Has `take` called for the readings of each rank, by time. */
static int each_rank(
	struct estimating *estimating, void (*take)(struct estimating *estimating, uint32_t rank,
					       const struct collective_line *line))
{
	const struct reading *items = estimating->readings.items;
	size_t count = estimating->readings.count;
	int r = array_reserve(&estimating->points, count);

	if (r < 0)
		return r;
	if (count)
		qsort(estimating->readings.items, count, sizeof(*items), compare_readings);
	for (size_t i = 0, next; i < count; i = next) {
		struct collective_line line;

		array_clear(&estimating->points);
		for (next = i; next < count && items[next].rank == items[i].rank; next++)
			estimating->points.items[estimating->points.count++] = items[next].point;
		line = collective_line_of(estimating->points.items, estimating->points.count);
		take(estimating, items[i].rank, &line);
	}
	return 0;
}

/* ---- the first errors ---- */

static void take_first(
	struct estimating *estimating, uint32_t rank, const struct collective_line *line)
{
	estimating->matches->clocks[rank].error_ns = line->value_ns;
}

/* What ranks without a clock have in common with those that have one. */
static int read_first(struct estimating *estimating)
{
	const struct collective_matches *matches = estimating->matches;
	int r = 0;

	array_clear(&estimating->readings);
	array_foreach (&matches->items, match) {
		const struct collective_part *parts = parts_of(matches, match), *known = NULL;

		for (uint32_t i = 0; i < match->count && !known; i++)
			known = estimating->origins[parts[i].rank] == MODEL_NONE ? NULL : &parts[i];
		for (uint32_t i = 0; r == 0 && known && i < match->count; i++) {
			int64_t end_ns = corrected_ns(matches, known);

			if (estimating->origins[parts[i].rank] == MODEL_NONE)
				r = array_append(&estimating->readings,
					(struct reading){parts[i].rank,
						{end_ns, trace_difference_ns(
								 parts[i].end_ns, end_ns)}});
		}
	}
	return r;
}

/* One origin after another: the first rank, and of ranks without a way to it another. */
static int find_first(struct estimating *estimating)
{
	size_t count = estimating->matches->ranks.entries.count;
	int r = 0;

	for (uint32_t origin = 0; r == 0 && origin < count; origin++) {
		if (estimating->origins[origin] != MODEL_NONE)
			continue;
		estimating->origins[origin] = origin;
		do {
			r = read_first(estimating);
			if (r == 0)
				r = each_rank(estimating, take_first);
			array_foreach (&estimating->readings, reading)
				estimating->origins[reading->rank] = origin;
		} while (r == 0 && estimating->readings.count);
	}
	return r;
}

/* ---- better ones ---- */

static void take_line(
	struct estimating *estimating, uint32_t rank, const struct collective_line *line)
{
	struct collective_clock *clock = &estimating->matches->clocks[rank];
	double from_middle_ns = (double)estimating->matches->middle_ns - (double)line->middle_ns;

	clock->drift += line->slope;
	clock->error_ns = collective_shift_ns(
		clock->error_ns, (double)line->value_ns + line->slope * from_middle_ns);
}

/* When it ended: the median of its parts. */
static int64_t end_of(struct estimating *estimating, const struct collective_match *match)
{
	const struct collective_part *parts = parts_of(estimating->matches, match);

	for (uint32_t i = 0; i < match->count; i++)
		estimating->values[i] = corrected_ns(estimating->matches, &parts[i]);
	return collective_median_ns(estimating->values, match->count);
}

/* Errors against the origin's clock, which is right by definition. */
static void relate_to_origins(struct estimating *estimating)
{
	struct collective_clock *clocks = estimating->matches->clocks;

	for (uint32_t i = (uint32_t)estimating->matches->ranks.entries.count; i-- > 0;) {
		const struct collective_clock *origin = &clocks[estimating->origins[i]];

		if (origin == &clocks[i])
			continue;
		clocks[i].error_ns = trace_difference_ns(clocks[i].error_ns, origin->error_ns);
		clocks[i].drift -= origin->drift;
	}
	for (uint32_t i = 0; i < estimating->matches->ranks.entries.count; i++) {
		if (estimating->origins[i] == i)
			clocks[i] = (struct collective_clock){0};
	}
}

static int refine(struct estimating *estimating)
{
	const struct collective_matches *matches = estimating->matches;
	int r = 0;

	array_clear(&estimating->readings);
	array_foreach (&matches->items, match) {
		const struct collective_part *parts = parts_of(matches, match);
		int64_t end_ns = end_of(estimating, match);

		for (uint32_t i = 0; r == 0 && i < match->count; i++)
			r = array_append(&estimating->readings,
				(struct reading){parts[i].rank,
					{end_ns, trace_difference_ns(
							 corrected_ns(matches, &parts[i]),
							 end_ns)}});
	}
	if (r == 0)
		r = each_rank(estimating, take_line);
	relate_to_origins(estimating);
	return r;
}

/* ---- what lies apart ---- */

/* Between the first and the last end of a match. */
static int64_t spread_of(struct estimating *estimating, const struct collective_match *match)
{
	end_of(estimating, match); /* sorts them */
	return MAX(trace_difference_ns(estimating->values[match->count - 1], estimating->values[0]),
		(int64_t)0);
}

static int find_apart(struct estimating *estimating)
{
	struct collective_matches *matches = estimating->matches;
	_cleanup_free_ int64_t *spreads = calloc(matches->items.count + 1, sizeof(*spreads));
	_cleanup_free_ int64_t *sorted = calloc(matches->items.count + 1, sizeof(*sorted));
	size_t count = 0;
	int64_t limit_ns;

	if (!spreads || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < matches->items.count; i++)
		sorted[i] = spreads[i] = spread_of(estimating, &matches->items.items[i]);
	limit_ns = collective_median_ns(sorted, matches->items.count);
	limit_ns = MAX((int64_t)APART_NS, MIN(limit_ns, INT64_MAX / APART_TIMES) * APART_TIMES);
	for (size_t i = 0; i < matches->items.count; i++) {
		matches->items.items[i].apart = spreads[i] > limit_ns;
		matches->apart += spreads[i] > limit_ns;
		if (spreads[i] <= limit_ns)
			sorted[count++] = spreads[i];
	}
	matches->end_error_ns = (uint64_t)collective_median_ns(sorted, count);
	return 0;
}

static int estimate(struct estimating *estimating)
{
	struct collective_matches *matches = estimating->matches;
	size_t ranks = matches->ranks.entries.count;
	int r;

	for (uint32_t i = 0; i < ranks; i++)
		estimating->origins[i] = MODEL_NONE;
	r = find_first(estimating);
	if (r < 0)
		return r;
	if (matches->items.count)
		matches->middle_ns =
			end_of(estimating, &matches->items.items[matches->items.count / 2]);
	for (int i = 0; r == 0 && i < ROUNDS; i++)
		r = refine(estimating);
	for (uint32_t i = 0; i < ranks; i++)
		matches->clocks[i].is_known = estimating->origins[i] == 0;
	return r < 0 ? r : find_apart(estimating);
}

int collective_clocks_find(struct collective_matches *matches)
{
	size_t ranks = matches->ranks.entries.count;
	struct estimating estimating = {
		.matches = matches,
		.origins = calloc(ranks + 1, sizeof(*estimating.origins)),
		.values = calloc(ranks + 1, sizeof(*estimating.values)),
	};
	int r;

	matches->clocks = calloc(ranks + 1, sizeof(*matches->clocks));
	r = estimating.origins && estimating.values && matches->clocks ? estimate(&estimating)
								       : -ENOMEM;
	free(estimating.origins);
	array_done(&estimating.readings);
	array_done(&estimating.points);
	free(estimating.values);
	return r;
}
