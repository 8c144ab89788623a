/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices: 2 M N K operations for each of the batch, as PyTorch's
 * torch/utils/flop_counter.py (mm_flop, bmm_flop) counts them: the bias is not counted. Bytes: both
 * matrices and the bias are read once, the product is written once.
 */
#include "model/cost/families.h"

enum { AT_A, AT_B, AT_BIAS, AT_OUT_DTYPE, AT_BETA };

#define AT_OFFSETS 2 /* of grouped products */

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

static void set_cost(const struct op_inputs *inputs, const struct op_formula *formula,
	const struct product *product, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	double outputs = product->batch * product->m * product->n;
	enum op_dtype out = a->dtype;
	int64_t number;

	if (op_number_at(inputs, formula->at[AT_OUT_DTYPE], &number))
		out = op_dtype_of_number(number);
	cost->dtype = a->dtype;
	cost->flop = 2 * product->k * outputs;
	cost->bytes = op_argument_bytes(inputs, formula->at[AT_A]) +
		      op_argument_bytes(inputs, formula->at[AT_B]) + outputs * op_dtype_bytes(out);
	if (reads_bias(inputs, formula->at[AT_BETA]))
		cost->bytes += op_argument_bytes(inputs, formula->at[AT_BIAS]);
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
 * PyTorch's grouped_mm of a mixture of experts: rows of (T, K) each by one of the (E, K, N); or
 * (M, T) by (T, N), cut along T, which makes one (M, N) for each of the E offsets.
 */
static void grouped_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *a = op_tensor_at(inputs, formula->at[AT_A]);
	const struct op_tensor *b = op_tensor_at(inputs, formula->at[AT_B]);
	const struct op_tensor *offsets = op_tensor_at(inputs, AT_OFFSETS);
	struct product product;

	if (!a || !b || a->rank < 2 || b->rank < 2 || size_of(a, 0) != size_of(b, 1))
		return;
	product = (struct product){
		a->rank == 3 ? size_of(a, 2) : 1, size_of(a, 1), size_of(b, 0), size_of(a, 0)};
	set_cost(inputs, formula, &product, cost);
	if (a->rank == 2 && b->rank == 2)
		cost->bytes += offsets ? (op_tensor_elements(offsets) - 1) * product.m * product.n *
						 op_dtype_bytes(a->dtype)
				       : (double)NAN;
}

#define GEMM(name_, reach_, ...)                                                                   \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = matmul_cost       \
	}

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
	{.name = "aten::_grouped_mm",
		.reach = OP_CLOSED,
		.at = {0, 1, 3, 4, OP_NOWHERE},
		.cost = grouped_cost},
	{0},
};
