/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/internal.h"

#include <stdbool.h>

#define SMALL_PIECE 15
#define MAX_PIECES  128

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t kept = *a;

	*a = *b;
	*b = kept;
}

/* Up to SMALL_PIECE + 1 of them. */
static void sort_by_insertion(const int64_t *keys, uint32_t *first, uint32_t *last)
{
	for (uint32_t *next = first + 1; next <= last; next++) {
		uint32_t index = *next, *place = next;

		for (; place > first && keys[index] < keys[place[-1]]; place--)
			*place = place[-1];
		*place = index;
	}
}

static void sink(const int64_t *keys, uint32_t *heap, size_t top, size_t count)
{
	uint32_t index = heap[top - 1];

	for (size_t child = 2 * top; child <= count; child = 2 * top) {
		if (child < count && keys[heap[child - 1]] < keys[heap[child]])
			child++;
		if (keys[index] >= keys[heap[child - 1]])
			break;
		heap[top - 1] = heap[child - 1];
		top = child;
	}
	heap[top - 1] = index;
}

/* Where quicksort went too deep. */
static void sort_by_heap(const int64_t *keys, uint32_t *heap, size_t count)
{
	for (size_t top = count / 2; top > 0; top--)
		sink(keys, heap, top, count);
	while (count > 1) {
		swap(&heap[0], &heap[count - 1]);
		sink(keys, heap, 1, --count);
	}
}

/* Parts the piece by the median of three of its keys. Returns the median's place. */
static uint32_t *part(const int64_t *keys, uint32_t *first, uint32_t *last)
{
	uint32_t *middle = first + (last - first) / 2, *left = first, *right = last - 1;
	int64_t pivot;

	if (keys[*middle] < keys[*first])
		swap(middle, first);
	if (keys[*last] < keys[*middle])
		swap(last, middle);
	if (keys[*middle] < keys[*first])
		swap(middle, first);
	pivot = keys[*middle];
	swap(middle, right);
	for (;;) {
		do
			left++;
		while (keys[*left] < pivot);
		do
			right--;
		while (pivot < keys[*right]);
		if (left >= right)
			break;
		swap(left, right);
	}
	swap(left, last - 1);
	return left;
}

/* What is still to be sorted, and how much deeper it may be parted. */
struct piece {
	uint32_t *first, *last;
	int depth;
};

static int depth_limit(size_t count)
{
	int depth = 0;

	while (count >>= 1)
		depth += 2;
	return depth;
}

int hta_order(const int64_t *keys, uint32_t *order, size_t count)
{
	struct piece pieces[MAX_PIECES];
	size_t waiting = 0;

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	if (count)
		pieces[waiting++] = (struct piece){order, order + count - 1, depth_limit(count)};
	while (waiting) {
		struct piece piece = pieces[--waiting];

		if (piece.depth < 0) {
			sort_by_heap(keys, piece.first, (size_t)(piece.last - piece.first) + 1);
			continue;
		}
		/* The larger part waits, so that few do. */
		while (piece.last - piece.first > SMALL_PIECE) {
			uint32_t *middle = part(keys, piece.first, piece.last);
			struct piece left = {piece.first, middle - 1, --piece.depth};
			struct piece right = {middle + 1, piece.last, piece.depth};
			bool left_is_smaller = middle - piece.first < piece.last - middle;

			pieces[waiting++] = left_is_smaller ? right : left;
			piece = left_is_smaller ? left : right;
		}
		sort_by_insertion(keys, piece.first, piece.last);
	}
	return 0;
}
