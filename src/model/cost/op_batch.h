/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a serving engine computed at once, out of the name of the annotation that it puts around a
 * pass of the model. Keys that lie in a paged cache are in no argument of an operator: this is
 * where a trace says how many there are. Read are
 *
 *   execute_context_2(14721)_generation_3(3)      vLLM: requests, and their tokens
 *   execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)
 *                                                 sums over requests of queries, keys, their
 *                                                 squares, and their products
 *   step[EXTEND bs=2 toks=14721]                  SGLang, with c_sq=, c_sk=, c_sqsq=, c_sqsk= and
 *   step[DECODE bs=64]                            g_… where those sums are written, too
 */
#pragma once

#include "model/cost/op_inputs.h"

/* False: it is no such name. `cache_dtype` is not set. */
bool op_batch_read(struct op_batch *batch, const char *name);
