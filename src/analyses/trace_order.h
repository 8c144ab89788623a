/* SPDX-License-Identifier: Apache-2.0 */
/* The order of many times, by index. Both put 0 … count - 1 into `order`, smallest key first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Equal keys keep their order. Linear in `count`. Returns 0 or -ENOMEM. */
int trace_order_stable(const int64_t *keys, uint32_t *order, size_t count);

/*
 * Equal keys come as from numpy.argsort() of int64 up to 1.24, which pandas sorts by: a quicksort
 * that is not stable. The results of programs made with them depend on it.
 */
void trace_order_numpy(const int64_t *keys, uint32_t *order, size_t count);
