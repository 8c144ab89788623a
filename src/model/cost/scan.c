/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State-space models.
 *
 * Mamba's selective scan (arxiv.org/abs/2312.00752, equations 2a, 2b and 4), for each element of
 * the input and each of its N states: dA, exp(dA), (d x) B, exp(dA) h, their sum, and a product and
 * a sum for C h: 7 operations; and for each element the product d x, 2 for D x, 2 for silu(z) y.
 *
 * Mamba-2's chunks (arxiv.org/abs/2405.21060, section 6 and listing 1), of C tokens each, heads of
 * P, G groups of N states: C B' within a chunk is 2 T C G N, that by the input 2 T C H P, states of
 * chunks 2 T H P N, and outputs of states as many. The masked half of a chunk is computed, so it is
 * counted; decays, and passing states from chunk to chunk, are not.
 *
 * The gated delta rule (arxiv.org/abs/2412.06464, equation 10), for each token, and each element of
 * a head's state of K by V: a product with the gate, 2 for what the key finds, 2 for the update, 2
 * for what the query finds: 7 operations. In chunks it is more, so this is the least.
 *
 * The convolution before them goes by channels: 2 operations for each output and tap.
 */
#include "model/cost/families.h"

/* ---- convolutions ---- */

enum { AT_INPUT, AT_WEIGHT, AT_BIAS, HAS_STATES };

/* (batch, channels, tokens), or without a batch, by (channels, taps). */
static void convolution_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, formula->at[AT_INPUT]);
	const struct op_tensor *weight = op_tensor_at(inputs, formula->at[AT_WEIGHT]);

	if (!input || !weight || weight->rank != 2)
		return;
	cost->dtype = input->dtype;
	cost->flop = 2 * op_tensor_elements(input) * (double)weight->sizes[1];
	cost->bytes = 2 * op_tensor_bytes(input) + op_tensor_bytes(weight) +
		      op_argument_bytes(inputs, formula->at[AT_BIAS]);
	/* Of a cache of states: which ones is not in the trace. */
	if (formula->at[HAS_STATES])
		cost->bytes_is = OP_AT_LEAST;
}

/* ---- the selective scan ---- */

/* (x, d, A (channels, states), B, C, D or None, z or None, bias of d or None, …) */
static void selective_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0), *a = op_tensor_at(inputs, 2);
	double each;

	if (!input || !a || a->rank != 2)
		return;
	each = 7 * (double)a->sizes[1] + 1;
	each += op_tensor_at(inputs, 5) ? 2 : 0;
	each += op_tensor_at(inputs, 6) ? 2 : 0;
	cost->dtype = input->dtype;
	cost->flop = each * op_tensor_elements(input);
	cost->bytes = op_some_bytes(inputs, 0, 8) + op_tensor_bytes(input);
	if (formula->at[HAS_STATES])
		cost->bytes_is = OP_AT_LEAST;
}

/* ---- Mamba-2 ---- */

enum { AT_PROJECTION, AT_TAPS, AT_HEADS, AT_CHUNK, AT_GROUPS };

/*
 * MambaSplitConv1dScanCombinedFn(projection (batch, tokens, z | x | B | C | d), weight of the
 * convolution (channels, taps), its bias, bias of d (heads), A, D, chunk, …): the channels of the
 * convolution are x, B and C, so that what is left beside them and the heads is z, as wide as x.
 */
static void chunked_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *projection = op_tensor_at(inputs, formula->at[AT_PROJECTION]);
	const struct op_tensor *weight = op_tensor_at(inputs, formula->at[AT_TAPS]);
	const struct op_tensor *heads = op_tensor_at(inputs, formula->at[AT_HEADS]);
	double tokens, channels, width, all_states;
	int64_t chunk, groups;

	if (!projection || projection->rank != 3 || !weight || weight->rank != 2 || !heads)
		return;
	tokens = (double)projection->sizes[0] * (double)projection->sizes[1];
	channels = (double)weight->sizes[0];
	width = (double)projection->sizes[2] - channels - op_tensor_elements(heads);
	all_states = (channels - width) / 2;
	if (width <= 0 || all_states <= 0)
		return;
	cost->dtype = projection->dtype;
	cost->bytes = op_some_bytes(inputs, 0, formula->at[AT_CHUNK]) +
		      tokens * width * op_dtype_bytes(projection->dtype);
	if (!op_number_at(inputs, formula->at[AT_CHUNK], &chunk) || chunk <= 0 ||
		!op_number_at(inputs, formula->at[AT_GROUPS], &groups) || groups <= 0)
		return;
	cost->flop = 2 * tokens *
		     (channels * (double)weight->sizes[1] + (double)chunk * (all_states + width) +
			     2 * width * all_states / (double)groups);
}

/* ---- the gated delta rule ---- */

/*
 * vLLM's gdn_attention_core(queries | keys | values (tokens, …), two gates, output (tokens, heads,
 * V), …), in which a flag behind the output says that another gate, as wide as the values, is
 * behind them. Queries and keys have as many heads at most, so that theirs have K elements at
 * least. Graphs are run with more tokens than there are.
 */
static void delta_core_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0), *out = op_tensor_at(inputs, 3);
	const struct op_batch *batch = inputs->batch;
	bool has_gate = false;
	double tokens, values, keys;

	if (!input || !out || input->rank != 2 || out->rank != 3 || input->sizes[0] <= 0)
		return;
	op_flag_at(inputs, 4, &has_gate);
	values = (double)out->sizes[1] * (double)out->sizes[2];
	keys = ((double)input->sizes[1] - (has_gate ? 2 : 1) * values) / 2; /* of all heads */
	if (keys <= 0)
		return;
	tokens = (double)input->sizes[0];
	cost->dtype = input->dtype;
	cost->bytes = op_some_bytes(inputs, 0, 4);
	if (batch && batch->queries < tokens) {
		cost->bytes *= batch->queries / tokens;
		tokens = batch->queries;
	}
	cost->flop = 7 * tokens * (double)out->sizes[2] * keys;
	cost->flop_is = cost->bytes_is = OP_AT_LEAST;
}

/* ChunkGatedDeltaRuleFunction(queries, keys (batch, tokens, heads, K), values (…, V), two gates,
 * scale, states or None, …) of flash-linear-attention. */
static void delta_chunk_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *query = op_tensor_at(inputs, 0), *value = op_tensor_at(inputs, 2);

	if (!query || !value || query->rank != 4 || value->rank != 4)
		return;
	cost->dtype = query->dtype;
	cost->flop = 7 * op_tensor_elements(value) * (double)query->sizes[3];
	cost->bytes = op_some_bytes(inputs, 0, 7) + op_tensor_bytes(value);
	cost->flop_is = cost->bytes_is = OP_AT_LEAST;
}

#define SCAN(name_, cost_, ...)                                                                    \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__}, .cost = (cost_)          \
	}
#define DELTA(name_)                                                                               \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .cost = delta_core_cost, .needs_batch = true  \
	}

const struct op_formula scan_formulas[] = {
	SCAN("DaoAILab::_causal_conv1d_fwd_cpp", convolution_cost, 0, 1, 2, false),
	SCAN("_C::causal_conv1d_fwd", convolution_cost, 0, 1, 2, true),
	SCAN("sgl_kernel::causal_conv1d_fwd", convolution_cost, 0, 1, 2, true),
	SCAN("SelectiveScanFn", selective_cost, 0, 0, 0, false),
	SCAN("_C::selective_scan_fwd", selective_cost, 0, 0, 0, true),
	SCAN("MambaSplitConv1dScanCombinedFn", chunked_cost, 0, 1, 3, 6, 16),
	DELTA("vllm::gdn_attention_core"),
	DELTA("vllm::qwen_gdn_attention_core"),
	SCAN("ChunkGatedDeltaRuleFunction", delta_chunk_cost, 0),
	{0},
};
