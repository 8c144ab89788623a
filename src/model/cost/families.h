/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of operators, ended by one without a name, for op_cost.c; and what families share. */
#pragma once

#include <math.h>

#include "base/macros.h"
#include "model/cost/op_cost.h"

extern const struct op_formula gemm_formulas[];
extern const struct op_formula convolution_formulas[];
extern const struct op_formula attention_formulas[];
extern const struct op_formula paged_formulas[];
extern const struct op_formula norm_formulas[];
extern const struct op_formula elementwise_formulas[];
extern const struct op_formula rotary_formulas[];
extern const struct op_formula quantization_formulas[];
extern const struct op_formula reduction_formulas[];
extern const struct op_formula embedding_formulas[];
extern const struct op_formula copy_formulas[];
extern const struct op_formula cache_formulas[];
extern const struct op_formula expert_formulas[];
extern const struct op_formula scan_formulas[];
/* triton_poi_fused_add_0 …: by the beginning of the name. */
extern const struct op_formula triton_formula;

/* The bytes of the tensors of an argument, which may be a list; 0 where there is none, NaN where
 * they are not known. */
double op_argument_bytes(const struct op_inputs *inputs, unsigned index);
/* Of all arguments together. */
double op_inputs_bytes(const struct op_inputs *inputs);
/* Of the tensors from the argument `first` up to `end`, which is not counted. */
double op_some_bytes(const struct op_inputs *inputs, unsigned first, unsigned end);
/* Elements of one slice of a tensor, along a dimension that may be counted from the end. NaN: there
 * is none. */
double op_slice_elements(const struct op_tensor *tensor, int64_t dimension);
