/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linked execution trace of a device trace alone, where no observer recorded the operators: their
 * order, times and device work are there, their tensors only as far as the trace has them.
 */
#pragma once

#include "chakra/link/link.h"

/*
 * Nodes are the operators and annotations of `trace`, and calls that launched work outside of any.
 * `trace` outlives the result. Returns 0; -ENODATA when there is neither an operator nor device
 * work that was launched; -ENOMEM, with a sentence.
 */
int chakra_from_trace(struct execution_trace **ret_linked, const struct trace *trace,
	struct chakra_link_result *ret_result, struct errmsg *err);
