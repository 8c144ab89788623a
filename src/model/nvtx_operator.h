/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of NVTX that are operators: torch.autograd.profiler.emit_nvtx() opens one for each,
 * "aten::mm, seq = 5, op_id = 7, sizes = [[64, 32], [32, 16]]", where all but the name may be
 * missing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/trace.h"

struct nvtx_operator {
	size_t name_bytes;
	const char *sizes; /* of the inputs, as JSON: in the name; NULL: it does not say */
	size_t sizes_bytes;
};

/* Is a range of this name an operator? */
bool nvtx_operator_read(const char *name, struct nvtx_operator *ret_operator);

/* Makes a row of it, whose name is that of the range: its category is set, but not the category's
 * name; the operator has what `event` had as arguments, and the sizes. Returns 0 or -ENOMEM. */
int nvtx_operator_set(struct trace *trace, const char *range, const struct nvtx_operator *marked,
	struct trace_event *event);
