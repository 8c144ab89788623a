/* SPDX-License-Identifier: Apache-2.0 */
/* The order of many times, by index. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Puts 0 … count - 1 into `order`, smallest key first. Returns 0 or -ENOMEM. */
typedef int trace_order(const int64_t *keys, uint32_t *order, size_t count);

/* Equal keys keep their order. Linear in `count`. */
trace_order trace_order_stable;

/* Sorts items of `size` bytes by a key. Returns 0 or -ENOMEM. */
int trace_order_items(void *items, size_t count, size_t size, int64_t (*key)(const void *item),
	trace_order *sort);
