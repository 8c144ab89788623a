/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and moments of one owner, a thread or a process, are walked together in the order of time.
 * Ranges of domains overlap as they like, so that all open ones are looked at, which are few.
 */
#include "analyses/program/range_finder.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/trace_order.h"

struct owned_range {
	uint64_t start_ns, end_ns;
	uint32_t owner, range;
};

struct walk {
	ARRAY_OF(struct owned_range) ranges;
	ARRAY_OF(struct owned_range) open;
	bool of_threads;
	range_found_function *found;
	void *context;
};

static int compare_owned(const void *left, const void *right)
{
	const struct owned_range *a = left, *b = right;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->range < b->range ? -1 : a->range > b->range;
}

static int64_t index_of(const void *moment)
{
	return ((const struct range_moment *)moment)->index;
}

static int64_t time_of(const void *moment)
{
	return (int64_t)((const struct range_moment *)moment)->time_ns;
}

static int64_t thread_of(const void *moment)
{
	return ((const struct range_moment *)moment)->thread;
}

static int64_t process_of(const void *moment)
{
	return ((const struct range_moment *)moment)->process;
}

/* By owner, then by time, then by index. */
static int sort_moments(struct range_moment *moments, size_t count, bool of_threads)
{
	int64_t (*const keys[])(const void *) = {
		index_of, time_of, of_threads ? thread_of : process_of};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
		r = trace_order_items(
			moments, count, sizeof(*moments), keys[i], trace_order_stable);
	return r;
}

static int64_t owner_of(const void *range)
{
	return ((const struct owned_range *)range)->owner;
}

static bool is_in_order(const struct owned_range *ranges, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct owned_range *before = &ranges[i - 1];

		if (before->start_ns > ranges[i].start_ns ||
			(before->start_ns == ranges[i].start_ns && before->range > ranges[i].range))
			return false;
	}
	return true;
}

/* By owner, then by start, then by index. A model's come by start and index. */
static int sort_ranges(struct owned_range *ranges, size_t count)
{
	if (is_in_order(ranges, count))
		return trace_order_items(
			ranges, count, sizeof(*ranges), owner_of, trace_order_stable);
	qsort(ranges, count, sizeof(*ranges), compare_owned);
	return 0;
}

/* Those of threads, or of processes. */
static int gather(struct walk *walk, const struct range_span *spans, size_t count)
{
	int r = 0;

	array_clear(&walk->ranges);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if ((spans[i].thread != MODEL_NONE) != walk->of_threads)
			continue;
		r = array_append(&walk->ranges,
			(struct owned_range){
				.start_ns = spans[i].start_ns,
				.end_ns = spans[i].end_ns,
				.owner = walk->of_threads ? spans[i].thread : spans[i].process,
				.range = spans[i].index,
			});
	}
	return r < 0 || !walk->ranges.count ? r
					    : sort_ranges(walk->ranges.items, walk->ranges.count);
}

static int tell_open(struct walk *walk, const struct range_moment *moment)
{
	size_t kept = 0;
	int r = 0;

	array_foreach (&walk->open, open) {
		if (open->end_ns <= moment->time_ns)
			continue;
		walk->open.items[kept++] = *open;
		r = r ?: walk->found(walk->context, moment, open->range);
	}
	walk->open.count = kept;
	return r;
}

static int walk_owners(struct walk *walk, const struct range_moment *moments, size_t count)
{
	uint32_t owner = MODEL_NONE;
	size_t next = 0;
	int r = 0;

	array_clear(&walk->open);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct range_moment *moment = &moments[i];
		uint32_t of = walk->of_threads ? moment->thread : moment->process;

		if (of != owner)
			array_clear(&walk->open);
		owner = of;
		while (next < walk->ranges.count && walk->ranges.items[next].owner < owner)
			next++;
		while (r == 0 && next < walk->ranges.count &&
			walk->ranges.items[next].owner == owner &&
			walk->ranges.items[next].start_ns <= moment->time_ns)
			r = array_append(&walk->open, walk->ranges.items[next++]);
		r = r ?: tell_open(walk, moment);
	}
	return r;
}

int range_find_spans(const struct range_span *spans, size_t span_count,
	struct range_moment *moments, size_t count, range_found_function *found, void *context)
{
	struct walk walk = {.found = found, .context = context};
	int r = 0;

	for (int of_threads = 0; r == 0 && of_threads < 2; of_threads++) {
		walk.of_threads = of_threads;
		r = gather(&walk, spans, span_count);
		if (r < 0 || !walk.ranges.count || !count)
			continue;
		r = sort_moments(moments, count, of_threads);
		r = r ?: walk_owners(&walk, moments, count);
	}
	array_done(&walk.ranges);
	array_done(&walk.open);
	return r;
}

/* Marks last no time. */
int range_find(const struct model *model, struct range_moment *moments, size_t count,
	range_found_function *found, void *context)
{
	ARRAY_OF(struct range_span) spans = {0};
	int r = array_reserve(&spans, model->ranges.count);

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];

		if (!range->is_mark)
			r = array_append(&spans, (struct range_span){
							 .start_ns = range->start_ns,
							 .end_ns = range->end_ns,
							 .process = range->process,
							 .thread = range->thread,
							 .index = (uint32_t)i,
						 });
	}
	r = r ?: range_find_spans(spans.items, spans.count, moments, count, found, context);
	array_done(&spans);
	return r;
}

int range_moments_add_samples(
	struct range_moments *moments, const struct model *model, const struct selected *selected)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		const struct model_sample *sample = &model->samples.items[i];
		struct range_moment moment = {
			.time_ns = sample->time_ns,
			.process = model->threads.items[sample->thread].process,
			.thread = sample->thread,
			.index = (uint32_t)i,
		};

		if (sample->wait == WIRE_WAIT_NONE && (!selected || selected->samples[i]))
			r = array_append(&moments->items, moment);
	}
	return r;
}

int range_moments_add_launches(struct range_moments *moments, const struct model *model)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < model_launched_count(model); i++) {
		const struct model_launched work = model_launched(model, i);
		struct range_moment moment = {
			.time_ns = work.launch_ns,
			.process = work.process,
			.thread = work.thread,
			.index = (uint32_t)i,
		};

		if (work.launch_ns)
			r = array_append(&moments->items, moment);
	}
	return r;
}

void range_moments_done(struct range_moments *moments)
{
	array_done(&moments->items);
}
