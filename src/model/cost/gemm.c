/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices: 2 M N K operations for each of the batch, as PyTorch's
 * torch/utils/flop_counter.py (mm_flop, bmm_flop) counts them: the bias is not counted. Bytes: both
 * matrices and the bias are read once, the product is written once. Of the products of quantised
 * matrices the scales are read, too. Of aiter, vLLM, SGLang and Primus-Turbo the arguments are
 * those of their operators' schemas (aiter/ops/gemm_op_*.py, csrc/torch_bindings.cpp of vLLM,
 * sgl-kernel/csrc/common_extension.cc, primus_turbo/pytorch/kernels/grouped_gemm).
 */
#include "model/cost/families.h"

enum { AT_A, AT_B, AT_BIAS, AT_OUT, AT_BETA, AT_SCALES, AT_GROUPS };

struct product {
	double batch, m, n, k;
};

static double size_of(const struct op_tensor *tensor, unsigned from_last)
{
	return from_last < tensor->rank ? (double)tensor->sizes[tensor->rank - 1 - from_last] : 1;
}

/* Sizes in front of the last two, broadcast: numpy's rule. */
static double batch_of(const struct op_tensor *a, const struct op_tensor *b)
{
	double batch = 1;

	for (unsigned i = 2; i < MAX(a->rank, b->rank); i++)
		batch *= fmax(size_of(a, i), size_of(b, i));
	return batch;
}

/* With a beta of 0 the bias is there for its place alone. */
static bool reads_bias(const struct op_inputs *inputs, unsigned at_beta)
{
	int64_t beta;

	return at_beta == OP_NOWHERE || at_beta >= inputs->count ||
	       json_text_fixed(&inputs->arguments[at_beta].value, 9, &beta) < 0 || beta != 0;
}

/* Where it is said: as the tensor that the product goes to, or as a number. What is quantised makes
 * BF16 where nothing is said, which is the default of all of them. */
static enum op_dtype output_dtype(
	const struct op_inputs *inputs, const struct op_formula *formula, const struct op_tensor *a)
{
	const struct op_tensor *out = op_tensor_at(inputs, formula->at[AT_OUT]);
	int64_t number;

	if (out)
		return out->dtype;
	if (op_number_at(inputs, formula->at[AT_OUT], &number))
		return op_dtype_of_number(number);
	return formula->at[AT_SCALES] && op_dtype_bytes(a->dtype) == 1 ? OP_BF16 : a->dtype;
}

static void set_cost(const struct op_inputs *inputs, const struct op_formula *formula,
	const struct product *product, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	unsigned scales = formula->at[AT_SCALES];
	double outputs = product->batch * product->m * product->n;
	enum op_dtype out = output_dtype(inputs, formula, a);

	cost->dtype = a->dtype;
	cost->flop = 2 * product->k * outputs * (a->dtype == OP_FP4 ? 2 : 1);
	cost->bytes = op_argument_bytes(inputs, formula->at[AT_A]) +
		      op_argument_bytes(inputs, formula->at[AT_B]) + outputs * op_dtype_bytes(out);
	if (reads_bias(inputs, formula->at[AT_BETA]))
		cost->bytes += op_argument_bytes(inputs, formula->at[AT_BIAS]);
	if (scales)
		cost->bytes += op_some_bytes(inputs, scales, scales + 2);
}

/* (…, M, K) by (…, K, N); a vector is a matrix with one row on the left, one column on the right.
 */
static void matmul_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	const struct op_tensor *b = op_tensor_at(inputs, formula->at[AT_B]);
	bool is_vector = b && b->rank == 1;
	struct product product;

	if (!a || !b || !a->rank || !b->rank || size_of(a, 0) != size_of(b, is_vector ? 0 : 1))
		return;
	product = (struct product){
		.batch = batch_of(a, b),
		.m = size_of(a, 1),
		.n = is_vector ? 1 : size_of(b, 0),
		.k = size_of(a, 0),
	};
	set_cost(inputs, formula, &product, cost);
}

/* (…, K) by (N, K) transposed. */
static void linear_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	const struct op_tensor *b = op_tensor_at(inputs, formula->at[AT_B]);
	struct product product;

	if (!a || !b || !a->rank || !b->rank || b->rank > 2 || size_of(a, 0) != size_of(b, 0))
		return;
	product = (struct product){.batch = 1, .n = size_of(b, 1), .k = size_of(a, 0)};
	product.m = product.k > 0 ? op_tensor_elements(a) / product.k : 0;
	set_cost(inputs, formula, &product, cost);
}

/*
 * Grouped products of a mixture of experts: rows of (T, K) each by one of the (E, K, N), or of the
 * (E, N, K) where only that fits; or (M, T) by (T, N), cut along T, which makes one (M, N) for each
 * of the E groups, whose ends or sizes are the tensor behind both. All E matrices count as read.
 */
static void grouped_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	const struct op_tensor *b = op_tensor_at(inputs, formula->at[AT_B]);
	const struct op_tensor *groups = op_tensor_at(inputs, formula->at[AT_GROUPS]);
	bool is_transposed;
	struct product product;

	if (!a || !b || a->rank < 2 || b->rank < 2)
		return;
	is_transposed = b->rank == 3 && size_of(a, 0) != size_of(b, 1);
	if (size_of(a, 0) != size_of(b, is_transposed ? 0 : 1))
		return;
	product = (struct product){a->rank == 3 ? size_of(a, 2) : 1, size_of(a, 1),
		size_of(b, is_transposed ? 1 : 0), size_of(a, 0)};
	set_cost(inputs, formula, &product, cost);
	if (a->rank == 2 && b->rank == 2)
		cost->bytes += groups ? (op_tensor_elements(groups) - 1) * product.m * product.n *
						op_dtype_bytes(output_dtype(inputs, formula, a))
				      : (double)NAN;
}

/*
 * Transformer Engine's te_gemm_ts(A, …, whether A is transposed, B, …, whether B is, the product,
 * …): A is (K, M), or (M, K) if transposed. Bytes of eight bits without a type are FP8 there.
 */
static void te_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	enum { AT_IS_TRANSPOSED = 4, AT_TE_BIAS = 14 };
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	const struct op_tensor *b = op_tensor_at(inputs, formula->at[AT_B]);
	const struct op_tensor *out = op_tensor_at(inputs, formula->at[AT_OUT]);
	int64_t is_transposed;

	if (!a || !b || !out || a->rank != 2 ||
		!op_number_at(inputs, AT_IS_TRANSPOSED, &is_transposed))
		return;
	cost->dtype = op_dtype_is_float(a->dtype) ? a->dtype : OP_FP8;
	cost->flop = 2 * op_tensor_elements(out) * size_of(a, is_transposed ? 0 : 1);
	cost->bytes = op_tensor_bytes(a) + op_tensor_bytes(b) + op_tensor_bytes(out) +
		      op_argument_bytes(inputs, AT_TE_BIAS);
}

#define GEMM(name_, reach_, ...)                                                                   \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = matmul_cost       \
	}

#define PRODUCT(name_, cost_, ...)                                                                 \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__}, .cost = (cost_)          \
	}
#define GROUPED(name_, ...) PRODUCT(name_, grouped_cost, __VA_ARGS__)
#define LINEAR(name_, bias_, out_, scales_)                                                        \
	PRODUCT(name_, linear_cost, 0, 1, bias_, out_, OP_NOWHERE, scales_)
#define SCALED(name_, a_, b_, bias_, out_, scales_)                                                \
	PRODUCT(name_, matmul_cost, a_, b_, bias_, out_, OP_NOWHERE, scales_)

const struct op_formula gemm_formulas[] = {
	GEMM("aten::mm", OP_CLOSED, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	GEMM("aten::addmm", OP_CLOSED, 1, 2, 0, OP_NOWHERE, 3),
	GEMM("aten::_addmm_activation", OP_CLOSED, 1, 2, 0, OP_NOWHERE, 3),
	GEMM("aten::bmm", OP_CLOSED, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	GEMM("aten::baddbmm", OP_CLOSED, 1, 2, 0, OP_NOWHERE, 3),
	GEMM("aten::_scaled_mm", OP_CLOSED, 0, 1, 4, 6, OP_NOWHERE),
	GEMM("aten::_int_mm", OP_CLOSED, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	GEMM("aten::mv", OP_CLOSED, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	GEMM("aten::addmv", OP_CLOSED, 1, 2, 0, OP_NOWHERE, 3),
	GEMM("aten::dot", OP_CLOSED, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	GEMM("aten::matmul", OP_COMPOSITE, 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE),
	{.name = "aten::linear",
		.reach = OP_COMPOSITE,
		.at = {0, 1, 2, OP_NOWHERE, OP_NOWHERE},
		.cost = linear_cost},
	{.name = "aten::mkldnn_linear",
		.reach = OP_CLOSED,
		.at = {0, 1, 2, OP_NOWHERE, OP_NOWHERE},
		.cost = linear_cost},
	{.name = "mkldnn::_linear_pointwise",
		.reach = OP_CLOSED,
		.at = {0, 1, 2, OP_NOWHERE, OP_NOWHERE},
		.cost = linear_cost},
	GROUPED("aten::_grouped_mm", 0, 1, 3, 4, OP_NOWHERE, 0, 2),
	GROUPED("aten::_scaled_grouped_mm", 0, 1, 5, 7, OP_NOWHERE, 2, 4),
	GROUPED("_C::cutlass_moe_mm", 1, 2, OP_NOWHERE, 0, OP_NOWHERE, 3, 5),
	GROUPED("primus_turbo::grouped_gemm", 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE, 0, 2),
	GROUPED("primus_turbo::grouped_gemm_impl", 0, 1, OP_NOWHERE, OP_NOWHERE, OP_NOWHERE, 0, 2),
	GROUPED("primus_turbo_cpp_extension::grouped_gemm", 0, 1, OP_NOWHERE, OP_NOWHERE,
		OP_NOWHERE, 0, 2),
	GROUPED("primus_turbo_cpp_extension::ck_grouped_gemm", 0, 1, OP_NOWHERE, OP_NOWHERE,
		OP_NOWHERE, 0, 2),
	/* (M, K) by the (N, K) of a weight. */
	LINEAR("vllm::rocm_unquantized_gemm", 2, OP_NOWHERE, 0),
	LINEAR("vllm::rocm_unquantized_gemm_impl", 2, OP_NOWHERE, 0),
	LINEAR("aiter::gemm_a16w16", 2, 3, 0),
	LINEAR("aiter::gemm_a16w16_atomic", OP_NOWHERE, 3, 0),
	LINEAR("aiter::_gemm_a16w16_asm", OP_NOWHERE, 2, 0),
	LINEAR("aiter::gemm_a8w8_ck", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_bpreshuffle", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_bpreshuffle_ck", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_blockscale_ck", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_blockscale_cktile", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_blockscale_bpreshuffle_ck", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a8w8_blockscale_bpreshuffle_cktile", OP_NOWHERE, 4, 2),
	LINEAR("aiter::gemm_a4w4", OP_NOWHERE, 4, 2),
	LINEAR("aiter::_gemm_a4w4_asm", OP_NOWHERE, 4, 2),
	/* (A, its scales, B, its scales, …): scales are where others have the bias, and behind B.
	 */
	PRODUCT("primus_turbo_cpp_extension::hipblaslt_gemm_fp4", linear_cost, 0, 2, 1, 4,
		OP_NOWHERE, 3),
	PRODUCT("tex_ts::te_gemm_ts", te_cost, 0, 5, OP_NOWHERE, 10),
	LINEAR("vllm::rocm_aiter_triton_gemm_a8w8_blockscale", OP_NOWHERE, OP_NOWHERE, 2),
	/* (M, K) by (K, N), both with scales. */
	SCALED("_C::cutlass_scaled_mm", 1, 2, 5, 0, 3),
	SCALED("sgl_kernel::fp8_scaled_mm", 0, 1, 5, 4, 2),
	SCALED("sgl_kernel::int8_scaled_mm", 0, 1, 5, 4, 2),
	SCALED("sgl_kernel::fp8_blockwise_scaled_mm", 0, 1, OP_NOWHERE, 4, 2),
	SCALED("trtllm::cublas_scaled_mm", 0, 1, 4, 5, 2),
	{0},
};
