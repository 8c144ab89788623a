/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in two generations: what is used moves to the newer one, and the older one is forgotten
 * when the newer one is full. Ids are never given twice meanwhile.
 */
#include "capture/series/state.h"

/* Launches that others may refer to, in each generation. */
#define MOST_LAUNCHES ((size_t)1 << 16)

static void stacks_done(struct series_stacks *stacks)
{
	map_u64_done(&stacks->index);
	array_done(&stacks->stacks);
	array_done(&stacks->frames);
}

static void launches_done(struct series_launches *launches)
{
	map_u64_done(&launches->index);
	array_done(&launches->launches);
}

void series_stacks_done(struct capture_series *series)
{
	stacks_done(&series->stacks);
	stacks_done(&series->older_stacks);
	launches_done(&series->launches);
	launches_done(&series->older_launches);
}

int series_add_callstack(struct capture_series *series, capture_id id, const capture_id *frames,
	size_t count, enum wire_stop stop, enum wire_python python)
{
	struct series_stacks *stacks = &series->stacks;
	const struct split_callstack kept = {
		.first = (uint32_t)stacks->frames.count,
		.count = (uint32_t)count,
		.stop = stop,
		.python = python,
	};
	int r = array_reserve(&stacks->frames, count);

	for (size_t i = 0; r == 0 && i < count; i++)
		r = array_append(&stacks->frames, frames[i]);
	if (r == 0)
		r = map_u64_set(&stacks->index, id, stacks->stacks.count);
	return r < 0 ? r : array_append(&stacks->stacks, kept);
}

/* True when it is known; it is in the newer generation then. */
static int find_stack(
	struct capture_series *series, capture_id id, const struct split_callstack **ret_stack)
{
	const struct series_stacks *older = &series->older_stacks;
	uint64_t index;

	if (!map_u64_get(&series->stacks.index, id, &index)) {
		const struct split_callstack *stack;
		int r;

		if (!map_u64_get(&older->index, id, &index))
			return 0;
		stack = &older->stacks.items[index];
		r = series_add_callstack(series, id, older->frames.items + stack->first,
			stack->count, stack->stop, stack->python);
		if (r < 0)
			return r;
		index = series->stacks.stacks.count - 1;
	}
	*ret_stack = &series->stacks.stacks.items[index];
	return 1;
}

int series_callstack(struct capture_series *series, struct series_part *part, capture_id callstack,
	bool is_sampled, capture_id *ret_id)
{
	uint64_t key = (uint64_t)callstack << 1 | is_sampled, known;
	const struct split_callstack *stack;
	int r;

	*ret_id = 0;
	if (!callstack)
		return 0;
	r = find_stack(series, callstack, &stack);
	series->account.forgotten_stacks += r == 0;
	if (r <= 0)
		return r;
	if (map_u64_get(&part->ids.callstacks, key, &known)) {
		*ret_id = (capture_id)known;
		return 0;
	}
	r = split_frames(&series->tables, &part->ids, part->writer,
		series->stacks.frames.items + stack->first, stack, ret_id);
	return r < 0 ? r : map_u64_set(&part->ids.callstacks, key, *ret_id);
}

int capture_series_renew_callstacks(struct capture_series *series)
{
	const struct split_callstack *stack;
	int r = 0;

	/* What launches refer to is used. */
	array_foreach (&series->launches.launches, launch)
		if (r >= 0)
			r = find_stack(series, launch->callstack, &stack);
	array_foreach (&series->definitions, definition)
		if (r >= 0)
			r = find_stack(series, definition->stack.callstack, &stack);
	stacks_done(&series->older_stacks);
	series->older_stacks = series->stacks;
	series->stacks = (struct series_stacks){0};
	return r < 0 ? r : 0;
}

/* ---- launches ---- */

static int keep_launch(
	struct capture_series *series, uint64_t key, const struct series_launch *launch)
{
	struct series_launches *launches = &series->launches;
	uint64_t index;
	int r;

	if (map_u64_get(&launches->index, key, &index)) {
		launches->launches.items[index] = *launch;
		return 0;
	}
	if (launches->launches.count >= MOST_LAUNCHES) {
		launches_done(&series->older_launches);
		series->older_launches = *launches;
		*launches = (struct series_launches){0};
	}
	r = map_u64_set(&launches->index, key, launches->launches.count);
	return r < 0 ? r : array_append(&launches->launches, *launch);
}

int series_keep_launch(struct capture_series *series, const struct capture_launch_stack *stack)
{
	const struct series_launch launch = {
		.tid = stack->tid, .callstack = stack->callstack, .time_ns = stack->time_ns};

	return keep_launch(series, series_launch_key(stack->pid, stack->correlation), &launch);
}

const struct series_launch *series_find_launch(
	struct capture_series *series, uint32_t pid, uint64_t correlation)
{
	uint64_t key = series_launch_key(pid, correlation), index;
	struct series_launch found;

	if (map_u64_get(&series->launches.index, key, &index))
		return &series->launches.launches.items[index];
	if (!map_u64_get(&series->older_launches.index, key, &index))
		return NULL;
	found = series->older_launches.launches.items[index];
	if (keep_launch(series, key, &found) < 0 ||
		!map_u64_get(&series->launches.index, key, &index))
		return NULL;
	return &series->launches.launches.items[index];
}
