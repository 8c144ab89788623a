/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mixtures of experts: each token goes to `chosen` of the experts, whose products are 2 M N K each
 * (arxiv.org/abs/1701.06538; gated ones, arxiv.org/abs/2002.05202, have twice as many columns in
 * the first matrix). Bytes: tokens, the matrices of the experts that have tokens, the output. How
 * many those are is not in the trace: a token has `chosen` different ones, so that it is that many
 * at least, and exact for one token, or where each goes to all experts. Where experts are spread
 * over devices, tokens of experts elsewhere are left out: then operations are at most as many.
 */
#include "model/cost/families.h"

/* Sizes of first (experts, columns, hidden) and second matrices (experts, hidden, inner). */
struct experts {
	double count, columns, hidden, inner;
	double bytes; /* of both of one expert */
};

/* Packed ones (two FP4, or 4-bit integers, in an element) have fewer columns than `hidden`. */
static bool read_experts(const struct op_inputs *inputs, unsigned first_at, unsigned second_at,
	struct experts *experts)
{
	const struct op_tensor *first = op_tensor_at(inputs, first_at);
	const struct op_tensor *second = op_tensor_at(inputs, second_at);
	int64_t packed;

	if (!first || !second || first->rank != 3 || second->rank != 3 || !first->sizes[0] ||
		first->sizes[0] != second->sizes[0] || !first->sizes[2] ||
		second->sizes[1] % first->sizes[2])
		return false;
	packed = second->sizes[1] / first->sizes[2];
	if (packed != 1 && packed != 2)
		return false;
	*experts = (struct experts){
		.count = (double)first->sizes[0],
		.columns = (double)first->sizes[1],
		.hidden = (double)second->sizes[1],
		.inner = (double)second->sizes[2] * (double)packed,
		.bytes = (op_tensor_bytes(first) + op_tensor_bytes(second)) /
			 (double)first->sizes[0],
	};
	return experts->columns == experts->inner || experts->columns == 2 * experts->inner;
}

/* Of tokens that go to `chosen` experts each. */
static void add_matrices(
	struct op_cost *cost, const struct experts *experts, double tokens, double chosen)
{
	double used = fmin(chosen, experts->count);

	cost->bytes += used * experts->bytes;
	if (tokens > 1 && used < experts->count)
		cost->bytes_is = OP_AT_LEAST;
}

/* An expert's number on this device by its number among all: there is one where they are spread. */
static bool has_map(const struct op_inputs *inputs, unsigned from)
{
	for (unsigned i = from; i < inputs->count; i++) {
		const struct op_tensor *tensor = op_tensor_at(inputs, i);

		if (tensor && tensor->rank == 1 &&
			(tensor->dtype == OP_INT32 || tensor->dtype == OP_INT64))
			return true;
	}
	return false;
}

enum { AT_TOKENS, AT_FIRST, AT_SECOND, AT_CHOSEN, MAY_SKIP };

/* Both products: (tokens, first matrices, second matrices, weights, chosen experts, …). */
static void fused_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *tokens = op_tensor_at(inputs, formula->at[AT_TOKENS]);
	const struct op_tensor *chosen = op_tensor_at(inputs, formula->at[AT_CHOSEN]);
	struct experts experts;
	double routed;

	if (!tokens || tokens->rank != 2 || !chosen || chosen->rank != 2 ||
		chosen->sizes[0] != tokens->sizes[0] ||
		!read_experts(inputs, formula->at[AT_FIRST], formula->at[AT_SECOND], &experts) ||
		(double)tokens->sizes[1] != experts.hidden)
		return;
	routed = op_tensor_elements(chosen);
	cost->dtype = tokens->dtype;
	cost->flop = 2 * routed * experts.hidden * (experts.columns + experts.inner);
	if (formula->at[MAY_SKIP] || has_map(inputs, formula->at[AT_CHOSEN] + 1))
		cost->flop_is = OP_AT_MOST;
	cost->bytes = 2 * op_tensor_bytes(tokens) + op_tensor_bytes(chosen) +
		      op_argument_bytes(inputs, formula->at[AT_CHOSEN] - 1);
	if (cost->flop_is == OP_EXACT)
		add_matrices(cost, &experts, (double)tokens->sizes[0], (double)chosen->sizes[1]);
	else
		cost->bytes_is = OP_AT_LEAST;
}

enum { AT_OUTPUT, AT_INPUT, AT_GATE, AT_DOWN, AT_TOP };

/* aiter's fmoe_g1u1(out, tokens, first, second, …): how many each token chose is a number. */
static void fused_sorted_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *output = op_tensor_at(inputs, formula->at[AT_OUTPUT]);
	const struct op_tensor *tokens = op_tensor_at(inputs, formula->at[AT_INPUT]);
	struct experts experts;
	int64_t chosen;

	if (!output || output->rank != 2 || !tokens || tokens->rank != 2 ||
		!op_number_at(inputs, formula->at[AT_TOP], &chosen) || chosen <= 0 ||
		!read_experts(inputs, formula->at[AT_GATE], formula->at[AT_DOWN], &experts))
		return;
	cost->dtype = tokens->dtype;
	cost->flop = 2 * (double)output->sizes[0] * (double)chosen * experts.hidden *
		     (experts.columns + experts.inner);
	cost->flop_is = OP_AT_MOST; /* what is sorted are the tokens of this device's experts */
	cost->bytes = op_tensor_bytes(output) + op_tensor_bytes(tokens);
	cost->bytes_is = OP_AT_LEAST;
}

enum { AT_ROWS, AT_MATRICES, AT_RESULT, IS_SECOND };

/*
 * One of the two products of aiter's experts in two stages: from tokens to (tokens, chosen, inner),
 * or from there to tokens. Its matrices are (experts, outputs, inputs), packed or not.
 */
static void stage_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	bool is_second = formula->at[IS_SECOND];
	const struct op_tensor *rows = op_tensor_at(inputs, formula->at[AT_ROWS]);
	const struct op_tensor *matrices = op_tensor_at(inputs, formula->at[AT_MATRICES]);
	const struct op_tensor *result = op_tensor_at(inputs, formula->at[AT_RESULT]);
	const struct op_tensor *routed = is_second ? rows : result;
	double inner;

	if (!rows || !matrices || !result || matrices->rank != 3 || !matrices->sizes[2] ||
		rows->rank != (is_second ? 3 : 2) || result->rank != (is_second ? 2 : 3) ||
		rows->sizes[0] != result->sizes[0])
		return;
	inner = (double)rows->sizes[rows->rank - 1] * (rows->dtype == OP_FP4 ? 2 : 1);
	cost->dtype = rows->dtype;
	cost->flop = 2 * (double)routed->sizes[0] * (double)routed->sizes[1] *
		     (double)matrices->sizes[1] * inner;
	cost->flop_is = OP_AT_MOST;
	cost->bytes = op_tensor_bytes(rows) + op_tensor_bytes(result);
	cost->bytes_is = OP_AT_LEAST;
}

enum { READS, WRITES };

/* vLLM's moe_forward(tokens, scores of the router, layer): the matrices are the layer's, which only
 * its name is in the trace of. */
static void hidden_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *tokens = op_tensor_at(inputs, 0);

	if (!tokens)
		return;
	cost->dtype = tokens->dtype;
	cost->bytes = op_some_bytes(inputs, 0, formula->at[READS]) +
		      formula->at[WRITES] * op_tensor_bytes(tokens);
	cost->bytes_is = OP_AT_LEAST;
}

#define EXPERTS(name_, reach_, cost_, ...)                                                         \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = (cost_)           \
	}
#define FUSED(name_, may_skip_) EXPERTS(name_, OP_CLOSED, fused_cost, 0, 1, 2, 4, (may_skip_))

const struct op_formula expert_formulas[] = {
	FUSED("vllm::inplace_fused_experts", false),
	FUSED("vllm::outplace_fused_experts", false),
	FUSED("sglang::inplace_fused_experts", true),
	FUSED("sglang::outplace_fused_experts", true),
	EXPERTS("vllm::rocm_aiter_fused_moe", OP_COMPOSITE, fused_cost, 0, 1, 2, 4, false),
	EXPERTS("aiter::fused_moe", OP_COMPOSITE, fused_cost, 0, 1, 2, 4, false),
	EXPERTS("aiter::fmoe_g1u1", OP_CLOSED, fused_sorted_cost, 0, 1, 2, 3, 8),
	EXPERTS("aiter::fmoe_fp8_blockscale_g1u1", OP_CLOSED, fused_sorted_cost, 0, 1, 2, 3, 8),
	EXPERTS("aiter::ck_moe_stage1", OP_CLOSED, stage_cost, 0, 1, 6, false),
	EXPERTS("aiter::ck_moe_stage2", OP_CLOSED, stage_cost, 0, 2, 6, true),
	EXPERTS("aiter::moe_cktile2stages_gemm1_ck", OP_CLOSED, stage_cost, 0, 1, 2, false),
	EXPERTS("aiter::moe_cktile2stages_gemm2_ck", OP_CLOSED, stage_cost, 0, 1, 2, true),
	EXPERTS("vllm::moe_forward", OP_COMPOSITE, hidden_cost, 2, 1),
	EXPERTS("vllm::moe_forward_shared", OP_COMPOSITE, hidden_cost, 2, 2),
	{0},
};
