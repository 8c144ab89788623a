/* SPDX-License-Identifier: Apache-2.0 */
/* How many arithmetic operations an operator takes: by the formulas of model/cost/. */
#pragma once

#include <stdint.h>

#include "model/execution_trace.h"

/* Products of matrices, convolutions, attention. 0: it is none of these, or shapes are missing. */
uint64_t operations_of(struct execution_text name, const struct execution_values *inputs);
