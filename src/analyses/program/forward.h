/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operator of the forward pass a row of the backward pass belongs to: by the arrows between
 * them, or else by the number that autograd gives both ("Sequence number"). Of several operators
 * with one number it is the last that began: it made the gradient's node.
 */
#pragma once

#include "model/trace.h"

/*
 * For each row the row of the forward pass, or MODEL_NONE. malloc'ed by the caller's free(); NULL
 * when memory ran out.
 */
uint32_t *trace_forward_rows(const struct trace *trace);
