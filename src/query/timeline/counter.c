/* SPDX-License-Identifier: Apache-2.0 */
#include "query/timeline/counter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- extents ---- */

static void add_extent(struct counter_extent *sum, const struct counter_extent *more)
{
	sum->minimum = fmin(sum->minimum, more->minimum);
	sum->maximum = fmax(sum->maximum, more->maximum);
}

/* The n-th of what lies below a level. */
static struct counter_extent extent_below(const struct counter *counter, unsigned level, size_t n)
{
	if (level)
		return counter->levels[level - 1][n];
	return (struct counter_extent){
		counter->points.items[n].value, counter->points.items[n].value};
}

static size_t count_below(const struct counter *counter, unsigned level)
{
	size_t count = counter->points.count;

	while (level--)
		count = (count + COUNTER_FANOUT - 1) / COUNTER_FANOUT;
	return count;
}

static int add_level(struct counter *counter)
{
	unsigned level = counter->level_count;
	size_t below = count_below(counter, level);
	struct counter_extent *extents = malloc(count_below(counter, level + 1) * sizeof(*extents));

	if (!extents)
		return -ENOMEM;
	for (size_t i = 0; i < below; i++) {
		struct counter_extent extent = extent_below(counter, level, i);

		if (i % COUNTER_FANOUT == 0)
			extents[i / COUNTER_FANOUT] = extent;
		else
			add_extent(&extents[i / COUNTER_FANOUT], &extent);
	}
	counter->levels[level] = extents;
	counter->level_count++;
	return 0;
}

/* Of points from `first` to before `end`; there is one. Whole stretches are asked of the levels. */
static struct counter_extent extent_of(const struct counter *counter, size_t first, size_t end)
{
	struct counter_extent sum = {INFINITY, -INFINITY}, extent;
	size_t at = first;

	while (at < end) {
		unsigned level = 0;
		size_t width = 1;

		while (level < counter->level_count && at % (width * COUNTER_FANOUT) == 0 &&
			at + width * COUNTER_FANOUT <= end) {
			width *= COUNTER_FANOUT;
			level++;
		}
		extent = extent_below(counter, level, at / width);
		add_extent(&sum, &extent);
		at += width;
	}
	return sum;
}

int counter_finish(struct counter *counter)
{
	int r = 0;

	while (r == 0 && count_below(counter, counter->level_count) > COUNTER_FANOUT &&
		counter->level_count < COUNTER_LEVELS)
		r = add_level(counter);
	if (r == 0 && counter->points.count)
		counter->all = extent_of(counter, 0, counter->points.count);
	return r;
}

void counter_done(struct counter *counter)
{
	for (unsigned level = 0; level < counter->level_count; level++)
		free(counter->levels[level]);
	array_done(&counter->points);
	*counter = (struct counter){0};
}

/* ---- a picture ---- */

/* The first point that is not before the time. */
static size_t first_from(const struct counter *counter, size_t first, int64_t time_ns)
{
	size_t low = first, high = counter->points.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (counter->points.items[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_column(struct counter_columns *columns, const struct counter *counter,
	int64_t start_ns, size_t first, size_t end)
{
	const struct counter_extent extent = extent_of(counter, first, end);

	return array_append(&columns->items, (struct counter_column){
						     .start_ns = start_ns,
						     .first = counter->points.items[first].value,
						     .minimum = extent.minimum,
						     .maximum = extent.maximum,
						     .last = counter->points.items[end - 1].value,
					     });
}

int counter_draw(const struct counter *counter, int64_t from_ns, int64_t to_ns, int64_t column_ns,
	struct counter_columns *columns)
{
	size_t at = first_from(counter, 0, from_ns), end = first_from(counter, at, to_ns);
	int r = at ? add_column(columns, counter, from_ns, at - 1, at) : 0;

	while (r == 0 && at < end) {
		int64_t time_ns = counter->points.items[at].time_ns;
		int64_t column = (time_ns - from_ns) / column_ns;
		size_t next = first_from(counter, at, from_ns + (column + 1) * column_ns);

		next = MIN(next, end);
		r = add_column(columns, counter, time_ns, at, next);
		at = next;
	}
	return r;
}
