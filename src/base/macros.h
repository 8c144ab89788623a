/* SPDX-License-Identifier: Apache-2.0 */
/* Small language helpers that every layer uses: cleanup attributes, ownership hand-over, sizes. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _printf_(format_index, first_argument)                                                     \
	__attribute__((format(printf, format_index, first_argument)))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _min_a = (a);                                                        \
		__typeof__(b) _min_b = (b);                                                        \
		_min_a < _min_b ? _min_a : _min_b;                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _max_a = (a);                                                        \
		__typeof__(b) _max_b = (b);                                                        \
		_max_a > _max_b ? _max_a : _max_b;                                                 \
	})

/* Hand the pointer over: yields its value and leaves NULL behind, so a cleanup does nothing. */
#define TAKE_PTR(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) _taken = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		_taken;                                                                            \
	})

#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int _taken = (fd);                                                                 \
		(fd) = -1;                                                                         \
		_taken;                                                                            \
	})

static inline void freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

/* A local of this kind is freed when it goes out of scope. */
#define _cleanup_free_ _cleanup_(freep)

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL
