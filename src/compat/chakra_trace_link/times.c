/* SPDX-License-Identifier: Apache-2.0 */
/* Exclusive durations and dependencies between threads, as Chakra's linker finds them. */
#include <math.h>

#include "compat/chakra_trace_link/internal.h"

/* A pause of so long ends a group of a thread. */
#define GAP_NS ((int64_t)1000000)

/* An operator's place among those of its thread. */
struct place {
	int64_t start_ns, end_ns;
	uint32_t thread, index;
};

/*
 * The same as Python has it: microseconds as doubles. Absolute times are then multiples of 0.25 µs,
 * so that what is left of a duration, and even what encloses what, is not as the file has it.
 */
struct float_place {
	double start_us, duration_us, end_us;
	uint32_t thread, index;
};

static double python_us(int64_t ns)
{
	return (double)((long double)ns / NS_PER_US);
}

/* By start, shorter ones first. */
static int compare_places(const void *a, const void *b)
{
	const struct float_place *left = a, *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	if (left->start_us != right->start_us)
		return left->start_us < right->start_us ? -1 : 1;
	if (left->duration_us != right->duration_us)
		return left->duration_us < right->duration_us ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

/*
 * For each place where to go on when it lies in another one: behind all that lie in it. That is the
 * next place where something begins in it and ends after it.
 */
static void find_skips(
	const struct float_place *places, uint32_t count, uint32_t *skips, uint32_t *open)
{
	uint32_t depth = 0;

	/* Those that are open end in the order in which they are left. */
	for (uint32_t i = 0; i < count; i++) {
		while (depth && places[open[depth - 1]].end_us <= places[i].start_us)
			skips[open[--depth]] = i;
		while (depth && places[open[depth - 1]].end_us < places[i].end_us) {
			depth--;
			skips[open[depth]] = open[depth] + 1;
		}
		open[depth++] = i;
	}
	while (depth)
		skips[open[--depth]] = count;
}

/* Its time without that of the operators after it, in that order, which lie in it: each piece of
 * them that is connected is subtracted at once. */
static double exclusive_us(
	const struct float_place *places, uint32_t count, const uint32_t *skips, uint32_t index)
{
	const struct float_place *outer = &places[index];
	double left_us = outer->duration_us, first_us = outer->start_us, reach_us = first_us;

	for (uint32_t i = index + 1; i < count && places[i].start_us <= outer->end_us;) {
		const struct float_place *inner = &places[i];

		if (inner->end_us > outer->end_us) {
			i++;
			continue;
		}
		if (inner->start_us > reach_us) {
			left_us -= reach_us - first_us;
			first_us = inner->start_us;
			reach_us = inner->end_us;
		}
		reach_us = MAX(reach_us, inner->end_us);
		i = skips[i];
	}
	return left_us - (reach_us - first_us);
}

/* To the nearest nanosecond of the microsecond that Python cuts it to. */
static int64_t ns_of(double us)
{
	double whole_us = floor(us);
	int64_t rest_ns = llround((us - whole_us) * NS_PER_US);

	return (int64_t)whole_us * (int64_t)NS_PER_US + MIN(rest_ns, (int64_t)NS_PER_US - 1);
}

int compat_exclusive_times(struct compat *compat)
{
	uint32_t count = (uint32_t)compat->operators.count;
	_cleanup_free_ struct float_place *places = calloc((size_t)count + 1, sizeof(*places));
	_cleanup_free_ uint32_t *skips = malloc(((size_t)count + 1) * sizeof(*skips));
	_cleanup_free_ uint32_t *open = malloc(((size_t)count + 1) * sizeof(*open));

	if (!places || !skips || !open)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct compat_operator *op = &compat->operators.items[i];
		double start_us = python_us(op->start_ns);
		double duration_us = python_us(op->end_ns - op->start_ns);

		places[i] = (struct float_place){
			start_us, duration_us, start_us + duration_us, op->thread, i};
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && places[end].thread == places[first].thread;)
			end++;
		find_skips(places + first, end - first, skips, open);
		for (uint32_t i = 0; i < end - first; i++)
			compat->operators.items[places[first + i].index].exclusive_ns =
				ns_of(exclusive_us(places + first, end - first, skips, i));
	}
	return 0;
}

/* By start; of one start the first of the first thread comes last. */
static int compare_starts(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->thread != right->thread)
		return left->thread > right->thread ? -1 : 1;
	return left->index > right->index ? -1 : 1;
}

/* The operators by start, and for each the last one before it that is of another thread. */
struct starts {
	struct place *places;
	uint32_t *other;
	uint32_t count;
};

/* The operator of another thread that began last before this time, or MODEL_NONE. */
static uint32_t last_of_others(const struct starts *starts, uint32_t thread, int64_t time_ns)
{
	uint32_t low = 0, high = starts->count, last;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (starts->places[middle].start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return MODEL_NONE;
	last = low - 1;
	if (starts->places[last].thread == thread)
		last = starts->other[last];
	return last == MODEL_NONE ? last : starts->places[last].index;
}

/* What a thread's group waits for: found for its first operator, given to all. */
struct group {
	int64_t end_ns; /* of the operator before */
	uint32_t dep;
	bool has_begun;
};

static void set_deps(struct compat *compat, const struct starts *starts, struct group *groups)
{
	array_foreach (&compat->operators, op) {
		struct group *group = &groups[op->thread];

		if (!group->has_begun || op->start_ns - group->end_ns > GAP_NS)
			group->dep = last_of_others(starts, op->thread, op->start_ns);
		group->has_begun = true;
		group->end_ns = op->end_ns;
		op->dep = group->dep;
	}
}

int compat_thread_deps(struct compat *compat)
{
	uint32_t count = (uint32_t)compat->operators.count;
	_cleanup_free_ struct place *places = malloc(((size_t)count + 1) * sizeof(*places));
	_cleanup_free_ uint32_t *other = malloc(((size_t)count + 1) * sizeof(*other));
	_cleanup_free_ struct group *groups =
		calloc((size_t)compat->thread_count + 1, sizeof(*groups));
	struct starts starts = {places, other, count};

	if (!places || !other || !groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct compat_operator *op = &compat->operators.items[i];

		places[i] = (struct place){op->start_ns, op->end_ns, op->thread, i};
	}
	qsort(places, count, sizeof(*places), compare_starts);
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0)
			other[i] = MODEL_NONE;
		else if (places[i - 1].thread != places[i].thread)
			other[i] = i - 1;
		else
			other[i] = other[i - 1];
	}
	set_deps(compat, &starts, groups);
	return 0;
}
