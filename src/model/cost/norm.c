/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Norms, and softmax: a few operations for each element, all of whose bytes are read once and
 * written once. Operations of an element, counted from the definitions:
 *   layer, batch, group norm (arxiv.org/abs/1607.06450): 1 for the mean, 2 for the variance, 2 to
 *     normalise and scale; in inference batch norm has only the last 2;
 *   RMS norm (arxiv.org/abs/1910.07467): 2 for the mean square, 2 to normalise and scale;
 *   softmax: 1 each for the maximum, its difference, the exponential, the sum, the quotient;
 *   going backward (PyTorch's aten/src/ATen/native/cpu/batch_norm_kernel.cpp): 4 for the two sums,
 *     5 for the gradient of the input; RMS norm one sum less, 7; softmax (dy - sum(dy y)) y: 4.
 */
#include "model/cost/families.h"

enum { AT_INPUT, AT_TRAINING, OPERATIONS, IN_INFERENCE, WRITES };

static void norm_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, formula->at[AT_INPUT]);
	unsigned operations = formula->at[OPERATIONS];
	bool is_training = true;

	if (!input)
		return;
	if (op_flag_at(inputs, formula->at[AT_TRAINING], &is_training) && !is_training)
		operations = formula->at[IN_INFERENCE];
	cost->dtype = input->dtype;
	cost->flop = operations * op_tensor_elements(input);
	/* Weights, means and their like are inputs, too. */
	cost->bytes = op_inputs_bytes(inputs) + formula->at[WRITES] * op_tensor_elements(input) *
							op_dtype_bytes(input->dtype);
}

#define NORM(name_, ...)                                                                           \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__}, .cost = norm_cost        \
	}

const struct op_formula norm_formulas[] = {
	NORM("aten::native_layer_norm", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::native_layer_norm_backward", 1, OP_NOWHERE, 9, 9, 1),
	NORM("aten::native_group_norm", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::native_group_norm_backward", 1, OP_NOWHERE, 9, 9, 1),
	NORM("aten::native_batch_norm", 0, 5, 5, 2, 1),
	NORM("aten::_native_batch_norm_legit", 0, 5, 5, 2, 1),
	NORM("aten::_batch_norm_with_update", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::cudnn_batch_norm", 0, 5, 5, 2, 1),
	NORM("aten::miopen_batch_norm", 0, 5, 5, 2, 1),
	NORM("aten::native_batch_norm_backward", 1, OP_NOWHERE, 9, 9, 1),
	NORM("aten::batch_norm_backward", 1, OP_NOWHERE, 9, 9, 1),
	NORM("aten::cudnn_batch_norm_backward", 0, OP_NOWHERE, 9, 9, 1),
	NORM("aten::miopen_batch_norm_backward", 0, OP_NOWHERE, 9, 9, 1),
	NORM("aten::_fused_rms_norm", 0, OP_NOWHERE, 4, 4, 1),
	NORM("aten::_fused_rms_norm_backward", 1, OP_NOWHERE, 7, 7, 1),
	NORM("aten::_softmax", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::_log_softmax", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::_safe_softmax", 0, OP_NOWHERE, 5, 5, 1),
	NORM("aten::_softmax_backward_data", 0, OP_NOWHERE, 4, 4, 1),
	NORM("aten::_log_softmax_backward_data", 0, OP_NOWHERE, 4, 4, 1),
	/* Of apex and Megatron. */
	NORM("FusedLayerNormAffineFunction", 0, OP_NOWHERE, 5, 5, 1),
	NORM("FusedRMSNormAffineFunction", 0, OP_NOWHERE, 4, 4, 1),
	NORM("ScaledUpperTriangMaskedSoftmax", 0, OP_NOWHERE, 5, 5, 1),
	NORM("ScaledMaskedSoftmax", 0, OP_NOWHERE, 5, 5, 1),
	NORM("ScaledSoftmax", 0, OP_NOWHERE, 5, 5, 1),
	/* The output is the first input, or the input is changed in its place. */
	NORM("_C::rms_norm", 1, OP_NOWHERE, 4, 4, 0),
	NORM("_C::fused_add_rms_norm", 0, OP_NOWHERE, 5, 5, 2),
	NORM("aiter::rmsnorm", 1, OP_NOWHERE, 4, 4, 0),
	NORM("aiter::add_rmsnorm", 1, OP_NOWHERE, 5, 5, 0),
	NORM("sgl_kernel::rmsnorm", 1, OP_NOWHERE, 4, 4, 0),
	NORM("sgl_kernel::fused_add_rmsnorm", 0, OP_NOWHERE, 5, 5, 2),
	NORM("sgl_kernel::gemma_rmsnorm", 1, OP_NOWHERE, 4, 4, 0),
	NORM("sgl_kernel::gemma_fused_add_rmsnorm", 0, OP_NOWHERE, 5, 5, 2),
	NORM("aiter::rms_norm", 0, OP_NOWHERE, 4, 4, 1),
	NORM("aiter::rmsnorm2d_fwd_ck", 0, OP_NOWHERE, 4, 4, 1),
	NORM("aiter::rmsnorm2d_fwd_with_add_ck", 1, OP_NOWHERE, 5, 5, 0),
	NORM("aiter::_groupnorm_run", 0, OP_NOWHERE, 5, 5, 1),
	NORM("vllm::rocm_aiter_rms_norm", 0, OP_NOWHERE, 4, 4, 1),
	NORM("vllm::rocm_aiter_rmsnorm2d_fwd_with_add", 0, OP_NOWHERE, 5, 5, 2),
	/* And a product by the scale of the type that they make; one adds to the residual. */
	NORM("_C::rms_norm_static_fp8_quant", 1, OP_NOWHERE, 5, 5, 0),
	NORM("_C::fused_add_rms_norm_static_fp8_quant", 1, OP_NOWHERE, 6, 6, 1),
	/* Which experts tokens go to: the softmax of the router's scores, or their sigmoid and a
	 * bias, of which comparisons, no operations, choose. All outputs are inputs. */
	NORM("_moe_C::topk_softmax", 3, OP_NOWHERE, 5, 5, 0),
	NORM("sgl_kernel::topk_softmax", 2, OP_NOWHERE, 5, 5, 0),
	NORM("aiter::topk_softmax", 3, OP_NOWHERE, 5, 5, 0),
	NORM("aiter::biased_grouped_topk_hip", 0, OP_NOWHERE, 2, 2, 0),
	{0},
};
