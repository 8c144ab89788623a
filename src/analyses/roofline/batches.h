/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of the batches of a serving engine, where operators do not. For roofline.c. */
#pragma once

#include "analyses/trace_view.h"
#include "model/cost/op_batch.h"

/* The name of the innermost annotation around a row that says what the batch is (op_batch.h), those
 * before the others that say all of it, in trace->strings; 0: there is none. `parents` is
 * trace_parents() of the trace. */
uint32_t roofline_batch_around(const struct trace *trace, const uint32_t *parents, uint32_t row);

/* The type of elements of the cache of keys and values, by the operators that write into it;
 * unknown where there is none, or they differ. */
enum op_dtype roofline_cache_dtype(const struct trace *trace);
