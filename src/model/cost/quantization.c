/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantisation. By a scale that is given it is a product for each element; making one, of the
 * largest magnitude, takes another operation.
 *
 * Microscaling's FP4 (OCP Microscaling Formats 1.0, section 5.2) has two numbers in a byte, and a
 * scale of one byte for each 32 numbers of a row.
 */
#include "model/cost/families.h"

#define BLOCK 32

enum { OPERATIONS, AT_FULL, ARGUMENTS, IS_PADDED };

/* What is quantised, the result and the scales are among the first arguments, in any order. Padding
 * of the result, for experts, is no more than written. */
static void quantization_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *full = op_tensor_at(inputs, formula->at[AT_FULL]);

	if (!full)
		return;
	cost->dtype = full->dtype;
	cost->flop = formula->at[OPERATIONS] * op_tensor_elements(full);
	cost->bytes = op_some_bytes(inputs, 0, formula->at[ARGUMENTS]);
	if (formula->at[IS_PADDED])
		cost->bytes_is = OP_AT_MOST;
}

/* ---- FP4 that is made: the input is all that the trace has ---- */

enum layout {
	BY_ROWS, /* of the last size */
	FLAT,    /* all sizes behind the first one are a row */
	BOTH,    /* by rows, and once more by columns */
};

static double fp4_bytes(double rows, double columns)
{
	return ceil(rows * columns / 2) + rows * ceil(columns / BLOCK);
}

static void fp4_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *full = op_tensor_at(inputs, 0);
	enum layout layout = (enum layout)formula->at[0];
	double elements, rows, columns;

	if (!full || full->rank < 2 || (layout == BOTH && full->rank != 2))
		return;
	elements = op_tensor_elements(full);
	rows = (double)full->sizes[0];
	if (layout != FLAT)
		rows = full->sizes[full->rank - 1] ? elements / (double)full->sizes[full->rank - 1]
						   : 0;
	columns = rows > 0 ? elements / rows : 0;
	cost->dtype = full->dtype;
	cost->flop = (layout == BOTH ? 4 : 2) * elements;
	cost->bytes = op_tensor_bytes(full) + fp4_bytes(rows, columns) +
		      (layout == BOTH ? fp4_bytes(columns, rows) : 0);
}

#define QUANTIZATION(name_, ...)                                                                   \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__},                          \
		.cost = quantization_cost                                                          \
	}
#define TO_FP4(name_, layout_)                                                                     \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {(layout_)}, .cost = fp4_cost           \
	}

const struct op_formula quantization_formulas[] = {
	QUANTIZATION("_C::static_scaled_fp8_quant", 1, 1, 3),
	QUANTIZATION("_C::dynamic_scaled_fp8_quant", 2, 1, 3),
	QUANTIZATION("_C::dynamic_per_token_scaled_fp8_quant", 2, 1, 3),
	QUANTIZATION("sgl_kernel::sgl_per_token_quant_fp8", 2, 0, 3),
	QUANTIZATION("sgl_kernel::sgl_per_token_group_quant_fp8", 2, 0, 3),
	QUANTIZATION("aiter::static_per_tensor_quant", 1, 1, 3),
	QUANTIZATION("aiter::dynamic_per_tensor_quant", 2, 1, 3),
	QUANTIZATION("aiter::dynamic_per_token_scaled_quant", 2, 1, 3),
	QUANTIZATION("aiter::dynamic_per_group_scaled_quant_fp4", 2, 1, 3),
	/* (result, scales, what is quantised, the order of tokens, how many there are, …) */
	QUANTIZATION("aiter::fused_dynamic_mxfp4_quant_moe_sort_hip", 2, 2, 5, true),
	QUANTIZATION("aiter::fused_dynamic_mx_quant_moe_sort_hip", 2, 2, 5, true),
	TO_FP4("sglang_profiler::quant_dynamic_mxfp4_quant", BY_ROWS),
	TO_FP4("sglang_profiler::fused_mxfp4_quant_fused_flatten_mxfp4_quant", FLAT),
	TO_FP4("primus_turbo_cpp_extension::quantize_mxfp4_dual", BOTH),
	{0},
};
