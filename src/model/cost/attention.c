/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention in one operator: Q by K and the scores by V, each 2 Sq Sk D operations for each head of
 * the queries; going backward five such products, as the scores are made again. So counts PyTorch's
 * torch/utils/flop_counter.py (sdpa_flop_count, sdpa_backward_flop_count). A causal mask over as
 * many queries as keys halves it, which PyTorch's counter leaves out and the benchmark of
 * flash-attention (benchmarks/benchmark_flash_attention.py) has. Softmax is not counted. Bytes: Q,
 * K, V and the mask are read, the output is written; going backward, the output and its gradient
 * are read, too, and three gradients written: the scores never reach memory.
 *
 * Where sequences of different lengths lie behind one another, their ends are not in the trace.
 * With as many queries as keys, each sequence's are its own: products of equally long ones are then
 * what it takes at least, and exactly where the longest one, which is an argument, fills them all.
 * Where queries and keys differ, only all queries or all keys being as long as the longest tells.
 */
#include "model/cost/families.h"

enum { AT_QUERY, AT_CAUSAL, AT_MASK, AT_LENGTHS, AT_LAYOUT, AT_LONGEST };

enum layout {
	HEADS_FIRST,    /* (batch, heads, sequence, size) */
	SEQUENCE_FIRST, /* (batch, sequence, heads, size), or (all sequences, heads, size) */
};

struct attention {
	double batch, heads, queries, keys, size, value_size;
	bool is_causal;
	enum op_bound is;
};

/* Of (batch, heads, sequence, size), whatever the layout. */
static bool read_tensor(
	const struct op_tensor *tensor, enum layout layout, double sequences, double sizes[4])
{
	bool has_batch = tensor && tensor->rank == 4;
	unsigned at = layout == SEQUENCE_FIRST ? 0 : 1;

	if (!tensor || (!has_batch && (tensor->rank != 3 || layout == HEADS_FIRST)))
		return false;
	sizes[0] = sequences * (has_batch ? (double)tensor->sizes[0] : 1);
	sizes[1] = (double)tensor->sizes[has_batch + !at];
	sizes[2] = (double)tensor->sizes[has_batch + at] / sequences;
	sizes[3] = (double)tensor->sizes[has_batch + 2];
	return true;
}

/* "True", or the number of a kind of mask: of the efficient kernels 1 and 2 are causal. */
static bool read_causal(const struct op_inputs *inputs, unsigned index)
{
	bool is_causal = false;
	int64_t kind = 0;

	if (op_flag_at(inputs, index, &is_causal))
		return is_causal;
	return op_number_at(inputs, index, &kind) && (kind == 1 || kind == 2);
}

/* Of sequences behind one another. False: not even a bound is known. */
static bool read_bound(const struct op_inputs *inputs, unsigned at, struct attention *attention)
{
	int64_t queries, keys;

	attention->is = OP_EXACT;
	if ((op_number_at(inputs, at, &queries) && (double)queries == attention->queries) ||
		(op_number_at(inputs, at + 1, &keys) && (double)keys == attention->keys))
		return true;
	attention->is = OP_AT_LEAST;
	return attention->queries == attention->keys;
}

static bool read_attention(const struct op_inputs *inputs, const struct op_formula *formula,
	struct attention *attention)
{
	unsigned at = formula->at[AT_QUERY];
	enum layout layout = (enum layout)formula->at[AT_LAYOUT];
	const struct op_tensor *lengths = op_tensor_at(inputs, formula->at[AT_LENGTHS]);
	double sequences = lengths ? op_tensor_elements(lengths) - 1 : 1;
	double query[4], key[4], value[4];

	if (sequences < 1 || !read_tensor(op_tensor_at(inputs, at), layout, sequences, query) ||
		!read_tensor(op_tensor_at(inputs, at + 1), layout, sequences, key) ||
		!read_tensor(op_tensor_at(inputs, at + 2), layout, sequences, value) ||
		query[3] != key[3] || key[2] != value[2])
		return false;
	*attention = (struct attention){query[0], query[1], query[2], key[2], query[3], value[3],
		read_causal(inputs, formula->at[AT_CAUSAL]), OP_EXACT};
	return sequences <= 1 || read_bound(inputs, formula->at[AT_LONGEST], attention);
}

/* Of `by_size` products along the queries' size, and `by_value` along that of the values. */
static double products(const struct attention *attention, double by_size, double by_value)
{
	double pairs = attention->batch * attention->heads * attention->queries * attention->keys;

	if (attention->is_causal && attention->queries == attention->keys)
		pairs /= 2;
	return 2 * pairs * (by_size * attention->size + by_value * attention->value_size);
}

static double output_bytes(const struct attention *attention, const struct op_tensor *query)
{
	return attention->batch * attention->heads * attention->queries * attention->value_size *
	       op_dtype_bytes(query->dtype);
}

static void forward_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	unsigned at = formula->at[AT_QUERY];
	struct attention attention;

	if (!read_attention(inputs, formula, &attention))
		return;
	cost->dtype = op_tensor_at(inputs, at)->dtype;
	cost->flop = products(&attention, 1, 1);
	cost->flop_is = attention.is;
	cost->bytes = op_argument_bytes(inputs, at) + op_argument_bytes(inputs, at + 1) +
		      op_argument_bytes(inputs, at + 2) +
		      op_argument_bytes(inputs, formula->at[AT_MASK]) +
		      output_bytes(&attention, op_tensor_at(inputs, at));
}

/* The gradient is in front of the query. */
static void backward_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	unsigned at = formula->at[AT_QUERY];
	struct attention attention;

	if (!read_attention(inputs, formula, &attention))
		return;
	cost->dtype = op_tensor_at(inputs, at)->dtype;
	cost->flop = products(&attention, 3, 2);
	cost->flop_is = attention.is;
	cost->bytes = 2 * (op_argument_bytes(inputs, at) + op_argument_bytes(inputs, at + 1) +
				  op_argument_bytes(inputs, at + 2)) +
		      op_argument_bytes(inputs, formula->at[AT_MASK]) +
		      2 * output_bytes(&attention, op_tensor_at(inputs, at));
}

#define ATTENTION(name_, reach_, cost_, ...)                                                       \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = (cost_)           \
	}
#define FORWARD(name_, ...)  ATTENTION(name_, OP_CLOSED, forward_cost, __VA_ARGS__)
#define BACKWARD(name_, ...) ATTENTION(name_, OP_CLOSED, backward_cost, __VA_ARGS__)
#define NOWHERE              OP_NOWHERE

const struct op_formula attention_formulas[] = {
	FORWARD("aten::_scaled_dot_product_flash_attention", 0, 4, NOWHERE, NOWHERE, HEADS_FIRST),
	FORWARD("aten::_scaled_dot_product_flash_attention_for_cpu", 0, 4, 5, NOWHERE, HEADS_FIRST),
	FORWARD("aten::_scaled_dot_product_efficient_attention", 0, 6, 3, NOWHERE, HEADS_FIRST),
	FORWARD("aten::_scaled_dot_product_cudnn_attention", 0, 6, 3, NOWHERE, HEADS_FIRST),
	FORWARD("aten::_scaled_dot_product_fused_attention_overrideable", 0, 5, 3, NOWHERE,
		HEADS_FIRST),
	BACKWARD("aten::_scaled_dot_product_flash_attention_backward", 1, 11, NOWHERE, NOWHERE,
		HEADS_FIRST),
	BACKWARD("aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1, 7, 8, NOWHERE,
		HEADS_FIRST),
	BACKWARD("aten::_scaled_dot_product_efficient_attention_backward", 1, 11, 4, NOWHERE,
		HEADS_FIRST),
	BACKWARD("aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, 8, NOWHERE,
		HEADS_FIRST),
	FORWARD("aten::_flash_attention_forward", 0, 8, NOWHERE, 3, SEQUENCE_FIRST, 5),
	BACKWARD("aten::_flash_attention_backward", 1, 11, NOWHERE, 6, SEQUENCE_FIRST, 8),
	FORWARD("aten::_efficient_attention_forward", 0, 9, 3, 4, SEQUENCE_FIRST, 6),
	BACKWARD("aten::_efficient_attention_backward", 1, 14, 4, 6, SEQUENCE_FIRST, 8),
	FORWARD("flash_attn::_flash_attn_forward", 0, 5, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	BACKWARD("flash_attn::_flash_attn_backward", 1, 11, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	FORWARD("flash_attn::_flash_attn_varlen_forward", 0, 9, NOWHERE, 3, SEQUENCE_FIRST, 5),
	BACKWARD("flash_attn::_flash_attn_varlen_backward", 1, 15, NOWHERE, 9, SEQUENCE_FIRST, 11),
	FORWARD("FlashAttnFunc", 0, 5, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	FORWARD("FlashAttnVarlenFunc", 0, 9, NOWHERE, 3, SEQUENCE_FIRST, 5),
	FORWARD("flash_attn_3::fwd", 0, 24, NOWHERE, 7, SEQUENCE_FIRST, 12),
	FORWARD("aiter::_flash_attn_forward", 0, 5, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	FORWARD("aiter::mha_fwd", 0, 5, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	FORWARD("aiter::fmha_v3_fwd", 0, 5, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	FORWARD("aiter::mha_varlen_fwd", 0, 12, NOWHERE, 3, SEQUENCE_FIRST, 5),
	FORWARD("aiter::fmha_v3_varlen_fwd", 0, 12, NOWHERE, 3, SEQUENCE_FIRST, 5),
	BACKWARD("aiter::mha_bwd", 1, 8, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	BACKWARD("aiter::fmha_v3_bwd", 1, 8, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	BACKWARD("aiter::_flash_attn_backward", 1, 12, NOWHERE, NOWHERE, SEQUENCE_FIRST),
	ATTENTION("aten::_scaled_dot_product_attention_math", OP_COMPOSITE, forward_cost, 0, 5, 3,
		NOWHERE, HEADS_FIRST),
	ATTENTION("aten::scaled_dot_product_attention", OP_COMPOSITE, forward_cost, 0, 5, 3,
		NOWHERE, HEADS_FIRST),
	{0},
};
