/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_pages.h"
#include "base/macros.h"
#include "base/sort_runs.h"

#define DIGIT_BITS 11
#define DIGITS     (1U << DIGIT_BITS)

/* Of more runs than that, sorting by digits is quicker than merging them. */
#define RUNS_MAX 32

struct keys {
	size_t runs; /* sorted ones */
	int64_t least;
	uint64_t span;
};

static struct keys look_at(const int64_t *keys, size_t count)
{
	int64_t least = keys[0], most = keys[0];
	size_t runs = 1;

	for (size_t i = 1; i < count; i++) {
		runs += keys[i - 1] > keys[i];
		least = MIN(least, keys[i]);
		most = MAX(most, keys[i]);
	}
	return (struct keys){runs, least, (uint64_t)most - (uint64_t)least};
}

/* ---- by merging ---- */

static bool key_is_before(const void *context, uint32_t a, uint32_t b)
{
	const int64_t *keys = context;

	return keys[a] < keys[b];
}

static int merge(const int64_t *keys, uint32_t *order, size_t count)
{
	_cleanup_free_ uint32_t *room = malloc(count * sizeof(*room));

	if (!room)
		return -ENOMEM;
	sort_runs(order, count, room, key_is_before, keys);
	return 0;
}

/* ---- by digits, the lowest first ---- */

struct digit_key {
	uint64_t key;
	uint32_t index;
};

/* One digit's pass; `to` gets the keys in its order. */
static void deal(const struct digit_key *from, struct digit_key *to, size_t count, unsigned shift)
{
	uint32_t firsts[DIGITS] = {0}, first = 0;

	for (size_t i = 0; i < count; i++)
		firsts[from[i].key >> shift & (DIGITS - 1)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		uint32_t here = firsts[digit];

		firsts[digit] = first;
		first += here;
	}
	for (size_t i = 0; i < count; i++)
		to[firsts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

static int sort_digits(const int64_t *keys, uint32_t *order, size_t count, const struct keys *found)
{
	size_t bytes = 2 * count * sizeof(struct digit_key);
	_cleanup_free_ struct digit_key *buffer = calloc(2 * count, sizeof(*buffer));
	struct digit_key *from = buffer, *to = buffer + count;

	if (!buffer)
		return -ENOMEM;
	want_huge_pages(buffer, bytes);
	for (size_t i = 0; i < count; i++)
		from[i] =
			(struct digit_key){(uint64_t)keys[i] - (uint64_t)found->least, (uint32_t)i};
	for (unsigned shift = 0; shift < 64 && found->span >> shift; shift += DIGIT_BITS) {
		struct digit_key *dealt = to;

		deal(from, to, count, shift);
		to = from;
		from = dealt;
	}
	for (size_t i = 0; i < count; i++)
		order[i] = from[i].index;
	return 0;
}

/* ---- */

int trace_order_stable(const int64_t *keys, uint32_t *order, size_t count)
{
	struct keys found;

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	if (!count)
		return 0;
	found = look_at(keys, count);
	if (found.runs == 1)
		return 0;
	return found.runs <= RUNS_MAX ? merge(keys, order, count)
				      : sort_digits(keys, order, count, &found);
}

static bool is_in_order(const uint32_t *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (order[i] != i)
			return false;
	}
	return true;
}

/* Out of a copy: what is read one after the other stays near, where cycles of places would not. */
static int apply(void *items, size_t count, size_t size, const uint32_t *order)
{
	_cleanup_free_ char *copy = NULL;

	if (is_in_order(order, count))
		return 0;
	copy = malloc(count * size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, items, count * size);
	for (size_t i = 0; i < count; i++)
		memcpy((char *)items + i * size, copy + order[i] * size, size);
	return 0;
}

int trace_order_items(
	void *items, size_t count, size_t size, int64_t (*key)(const void *item), trace_order *sort)
{
	_cleanup_free_ int64_t *keys = calloc(count + 1, sizeof(*keys));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r;

	if (!keys || !order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		keys[i] = key((const char *)items + i * size);
	r = sort(keys, order, count);
	return r < 0 ? r : apply(items, count, size, order);
}
