/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_order.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_pages.h"
#include "base/macros.h"

#define DIGIT_BITS 11
#define DIGITS     (1U << DIGIT_BITS)

/* By digits, the lowest first. */

static bool is_sorted(const int64_t *keys, size_t count, uint64_t *ret_span, int64_t *ret_least)
{
	int64_t least = keys[0], most = keys[0];
	bool sorted = true;

	for (size_t i = 1; i < count; i++) {
		sorted &= keys[i - 1] <= keys[i];
		least = MIN(least, keys[i]);
		most = MAX(most, keys[i]);
	}
	*ret_span = (uint64_t)most - (uint64_t)least;
	*ret_least = least;
	return sorted;
}

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

int trace_order_stable(const int64_t *keys, uint32_t *order, size_t count)
{
	_cleanup_free_ struct digit_key *buffer = NULL;
	struct digit_key *from, *to;
	uint64_t span;
	int64_t least;

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	if (!count || is_sorted(keys, count, &span, &least))
		return 0;
	buffer = calloc(2 * count, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	want_huge_pages(buffer, 2 * count * sizeof(*buffer));
	from = buffer;
	to = buffer + count;
	for (size_t i = 0; i < count; i++)
		from[i] = (struct digit_key){(uint64_t)keys[i] - (uint64_t)least, (uint32_t)i};
	for (unsigned shift = 0; shift < 64 && span >> shift; shift += DIGIT_BITS) {
		struct digit_key *dealt = to;

		deal(from, to, count, shift);
		to = from;
		from = dealt;
	}
	for (size_t i = 0; i < count; i++)
		order[i] = from[i].index;
	return 0;
}

/* Each cycle of places moves up by one, around its first item. */
void trace_order_apply(void *items, size_t count, size_t size, uint32_t *order)
{
	char *bytes = items, first[TRACE_ORDER_SIZE_MAX];

	assert(size <= sizeof(first));
	for (size_t i = 0; i < count; i++) {
		size_t to = i;

		if (order[i] == i)
			continue;
		memcpy(first, bytes + i * size, size);
		while (order[to] != i) {
			size_t from = order[to];

			memcpy(bytes + to * size, bytes + from * size, size);
			order[to] = (uint32_t)to;
			to = from;
		}
		memcpy(bytes + to * size, first, size);
		order[to] = (uint32_t)to;
	}
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
	if (r == 0)
		trace_order_apply(items, count, size, order);
	return r;
}
