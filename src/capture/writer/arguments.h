/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What else is known of a trace's row, in words: for viewers such as Perfetto's, which show it as
 * the arguments of a slice or stage. sonde itself reads TraceRow, and passes over these.
 */
#pragma once

#include "capture/trace_rows.h"

/* "Input Dims" of ROW_INPUT_DIMS: what PyTorch calls it; NULL: no viewer needs it. */
const char *row_argument_name(unsigned field);
/* ROW_BIT()s of the row's fields that have a name. */
uint64_t row_arguments(const struct capture_trace_row *row);
