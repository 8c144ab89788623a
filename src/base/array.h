/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one growable array. `ARRAY_OF(struct frame) frames = {0};` then array_append(&frames, item).
 * Items are moved by realloc: keep indices, not pointers, across appends.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/huge_pages.h"
#include "base/macros.h"

#define ARRAY_OF(type)                                                                             \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}

/* Makes room for `extra` more items; returns 0 or -ENOMEM. */
#define array_reserve(array, extra)                                                                \
	array_grow_((void **)&(array)->items, &(array)->capacity, (array)->count, (extra),         \
		sizeof(*(array)->items))

/* Appends a copy of `item`; returns 0 or -ENOMEM. */
#define array_append(array, ...)                                                                   \
	({                                                                                         \
		int _append_result = array_reserve(array, 1);                                      \
		if (_append_result == 0)                                                           \
			(array)->items[(array)->count++] = (__VA_ARGS__);                          \
		_append_result;                                                                    \
	})

#define array_clear(array) ((void)((array)->count = 0))

/* Takes the first `dropped` items out: at most as many as there are. */
#define array_drop_first(array, dropped)                                                           \
	({                                                                                         \
		size_t _dropped = (dropped);                                                       \
		(array)->count -= _dropped;                                                        \
		if (_dropped && (array)->count)                                                    \
			memmove((array)->items, (array)->items + _dropped,                         \
				(array)->count * sizeof(*(array)->items));                         \
	})

#define array_done(array)                                                                          \
	({                                                                                         \
		free((array)->items);                                                              \
		(array)->items = NULL;                                                             \
		(array)->count = (array)->capacity = 0;                                            \
	})

#define array_foreach(array, item)                                                                 \
	for (__typeof__(*(array)->items) *item = (array)->items;                                   \
		item && item < (array)->items + (array)->count; item++)

static inline int array_grow_(
	void **items, size_t *capacity, size_t count, size_t extra, size_t item_size)
{
	size_t wanted, bytes, grown = *capacity ? *capacity : 8;
	void *moved;

	if (extra <= *capacity - count)
		return 0;
	if (__builtin_add_overflow(count, extra, &wanted))
		return -ENOMEM;
	while (grown < wanted) {
		if (__builtin_mul_overflow(grown, (size_t)2, &grown))
			return -ENOMEM;
	}
	if (__builtin_mul_overflow(grown, item_size, &bytes))
		return -ENOMEM;
	moved = realloc(*items, bytes);
	if (!moved)
		return -ENOMEM;
	want_huge_pages(moved, bytes);
	*items = moved;
	*capacity = grown;
	return 0;
}
