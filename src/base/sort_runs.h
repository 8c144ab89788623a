/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable merge sort of indices, for what comes in few sorted runs, as rows of a trace do: each kind
 * of activity has its own. A sorted list is only looked at once. The comparison is inlined.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Must the item of index `a` come before that of `b`? False where they are equal. */
typedef bool sort_is_before(const void *context, uint32_t a, uint32_t b);

/*
 * Merges order[0 … middle) and order[middle … count), both sorted. What is in its place already, at
 * both ends, stays: runs of a trace hardly overlap.
 */
static inline void sort_merge_runs_(uint32_t *order, size_t middle, size_t count, uint32_t *room,
	sort_is_before *is_before, const void *context)
{
	size_t left = 0, right = middle, out = 0;

	while (out < middle && !is_before(context, order[middle], order[out]))
		out++;
	while (count > middle && !is_before(context, order[count - 1], order[middle - 1]))
		count--;
	middle -= out;
	memcpy(room, order + out, middle * sizeof(*room));
	while (left < middle && right < count)
		order[out++] = is_before(context, order[right], room[left]) ? order[right++]
									    : room[left++];
	memcpy(order + out, room + left, (middle - left) * sizeof(*room));
}

/* The end of the sorted run that begins at `first`. */
static inline size_t sort_run_end_(const uint32_t *order, size_t first, size_t count,
	sort_is_before *is_before, const void *context)
{
	size_t end = first + 1;

	while (end < count && !is_before(context, order[end], order[end - 1]))
		end++;
	return end;
}

/*
 * `room` holds as many as there are. Runs wait on a stack on which each is more than twice as long
 * as the next one, which bounds it to a run for each bit of their count.
 */
static inline void sort_runs(uint32_t *order, size_t count, uint32_t *room,
	sort_is_before *is_before, const void *context)
{
	size_t starts[64], depth = 0, at = 0;

	while (at < count) {
		size_t end = sort_run_end_(order, at, count, is_before, context);

		starts[depth++] = at;
		while (depth > 1 && (end == count || starts[depth - 1] - starts[depth - 2] <=
							     2 * (end - starts[depth - 1]))) {
			size_t first = starts[depth - 2];

			sort_merge_runs_(order + first, starts[depth - 1] - first, end - first,
				room, is_before, context);
			depth--;
		}
		at = end;
	}
}

#define SORT_ITEM_MAX 128

/* Puts the item order[i] at i, without a second copy of all; `order` becomes that of sorted ones.
 */
static inline void sort_move_items(void *items, size_t size, uint32_t *order, size_t count)
{
	char *bytes = items, first[SORT_ITEM_MAX];

	assert(size <= sizeof(first));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		if (order[i] == i)
			continue;
		memcpy(first, bytes + i * size, size);
		while (order[at] != i) {
			uint32_t from = order[at];

			memcpy(bytes + at * size, bytes + from * size, size);
			order[at] = at;
			at = from;
		}
		memcpy(bytes + at * size, first, size);
		order[at] = at;
	}
}
