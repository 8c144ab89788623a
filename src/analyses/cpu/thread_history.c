/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/thread_history.h"

#include <errno.h>
#include <stdlib.h>

static int compare_intervals(const void *left, const void *right)
{
	const struct thread_interval *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int add_sample(struct thread_history *history, const struct model *model, uint32_t index)
{
	const struct model_sample *sample = &model->samples.items[index];
	bool waits = sample->wait != WIRE_WAIT_NONE;
	uint64_t length_ns = model_sample_time_ns(model, sample);
	uint64_t before_ns = MIN(waits ? length_ns : length_ns / 2, sample->time_ns);
	struct thread_interval interval = {
		.start_ns = sample->time_ns - before_ns,
		.end_ns = waits ? sample->time_ns : sample->time_ns - before_ns + length_ns,
		.thread = sample->thread,
		.sample = index,
	};

	if (sample->wait_count) /* a sum of many: when they were is not known */
		return 0;
	return array_append(
		&history->layers[waits ? THREAD_HISTORY_WAITING : THREAD_HISTORY_RUNNING],
		interval);
}

static void make_disjoint(struct thread_interval *intervals, size_t count)
{
	if (count)
		qsort(intervals, count, sizeof(*intervals), compare_intervals);
	for (size_t i = 1; i < count; i++) {
		if (intervals[i].thread != intervals[i - 1].thread)
			continue;
		intervals[i].start_ns = MAX(intervals[i].start_ns, intervals[i - 1].end_ns);
		intervals[i].end_ns = MAX(intervals[i].end_ns, intervals[i].start_ns);
	}
}

int thread_history_init(struct thread_history *history, const struct model *model)
{
	int r = 0;

	*history = (struct thread_history){0};
	for (uint32_t i = 0; r == 0 && i < model->samples.count; i++)
		r = add_sample(history, model, i);
	for (int i = 0; i < THREAD_HISTORY_LAYERS; i++)
		make_disjoint(history->layers[i].items, history->layers[i].count);
	if (r < 0)
		thread_history_done(history);
	return r;
}

void thread_history_done(struct thread_history *history)
{
	for (int i = 0; i < THREAD_HISTORY_LAYERS; i++)
		array_done(&history->layers[i]);
}

static uint32_t find_in(const struct thread_history *history, enum thread_history_layer layer,
	uint32_t thread, uint64_t at_ns, uint64_t *until_ns)
{
	const struct thread_interval *items = history->layers[layer].items;
	size_t first = 0, last = history->layers[layer].count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (items[middle].thread < thread ||
			(items[middle].thread == thread && items[middle].end_ns <= at_ns))
			first = middle + 1;
		else
			last = middle;
	}
	if (first == history->layers[layer].count || items[first].thread != thread)
		return MODEL_NONE;
	if (items[first].start_ns > at_ns) {
		*until_ns = MIN(*until_ns, items[first].start_ns);
		return MODEL_NONE;
	}
	*until_ns = MIN(*until_ns, items[first].end_ns);
	return items[first].sample;
}

uint32_t thread_history_find(
	const struct thread_history *history, uint32_t thread, uint64_t at_ns, uint64_t *until_ns)
{
	uint32_t found = find_in(history, THREAD_HISTORY_WAITING, thread, at_ns, until_ns);

	return found == MODEL_NONE
		       ? find_in(history, THREAD_HISTORY_RUNNING, thread, at_ns, until_ns)
		       : found;
}
