/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What serving engines do around their attention, all of it moving of bytes: rotary embeddings,
 * writes of keys and values into a cache.
 *
 * Rotary embeddings (arxiv.org/abs/2104.09864, equation 34): a pair of elements is turned by four
 * products and two sums, 3 operations for each element. What is turned is read and written; for
 * each token its position and a row of the cosines and sines are read.
 */
#include "model/cost/families.h"

/* ---- rotary embeddings ---- */

enum { AT_POSITIONS, AT_QUERY, AT_KEY, AT_HEAD_SIZE, AT_COSINES };

/*
 * vLLM's and SGLang's rotary_embedding(positions, query, key or None, head_size, cosines and sines
 * (positions, turned), is_neox), in its place: of each head the first `turned` elements.
 */
static void rotary_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *positions = op_tensor_at(inputs, formula->at[AT_POSITIONS]);
	const struct op_tensor *query = op_tensor_at(inputs, formula->at[AT_QUERY]);
	const struct op_tensor *key = op_tensor_at(inputs, formula->at[AT_KEY]);
	const struct op_tensor *cosines = op_tensor_at(inputs, formula->at[AT_COSINES]);
	double elements, turned;
	int64_t head_size;

	if (!positions || !query || !cosines || cosines->rank != 2 ||
		!op_number_at(inputs, formula->at[AT_HEAD_SIZE], &head_size) || head_size <= 0)
		return;
	turned = (double)cosines->sizes[1];
	elements = op_tensor_elements(query) + (key ? op_tensor_elements(key) : 0);
	elements *= turned / (double)head_size;
	cost->dtype = query->dtype;
	cost->flop = 3 * elements;
	cost->bytes = 2 * elements * op_dtype_bytes(query->dtype) + op_tensor_bytes(positions) +
		      op_tensor_elements(positions) * turned * op_dtype_bytes(cosines->dtype);
}

enum { AT_FIRST, TENSORS, AT_TABLES, TABLES, AT_PLACES };

/* The bytes of the tables: the rows of the positions, or all where there are none. */
static double table_bytes(const struct op_inputs *inputs, const struct op_formula *formula)
{
	unsigned at = formula->at[AT_TABLES], end = at + formula->at[TABLES];
	const struct op_tensor *places = op_tensor_at(inputs, formula->at[AT_PLACES]);
	const struct op_tensor *table = op_tensor_at(inputs, at);
	double bytes = op_some_bytes(inputs, at, end);

	if (!table || !table->rank || !table->sizes[0])
		return NAN;
	if (places)
		bytes = bytes / (double)table->sizes[0] * op_tensor_elements(places) +
			op_tensor_bytes(places);
	return bytes;
}

/*
 * Out of tensors into others of their sizes: aiter's rope_cached_positions_2c_fwd_impl(out, out,
 * in, in, cosines, sines, positions, …), Transformer Engine's FusedRoPEFunc(in, angles). Elements
 * that are not turned are copied. How many are turned is the last size of a table, or twice that,
 * which a flag that is not in all traces says: all are where either of them is a head.
 */
static void rotary_copy_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	unsigned end = formula->at[AT_FIRST] + formula->at[TENSORS];
	const struct op_tensor *first = op_tensor_at(inputs, formula->at[AT_FIRST]);
	const struct op_tensor *table = op_tensor_at(inputs, formula->at[AT_TABLES]);
	int64_t head, turned;

	if (!first || !table || !first->rank || !table->rank)
		return;
	head = first->sizes[first->rank - 1];
	turned = table->sizes[table->rank - 1];
	cost->dtype = first->dtype;
	cost->flop = 0;
	for (unsigned i = formula->at[AT_FIRST]; i < end; i++) {
		const struct op_tensor *tensor = op_tensor_at(inputs, i);

		cost->flop += tensor ? 3 * op_tensor_elements(tensor) : 0;
	}
	if (turned != head && turned * 2 != head)
		cost->flop_is = OP_AT_MOST;
	cost->bytes = 2 * op_some_bytes(inputs, formula->at[AT_FIRST], end) +
		      table_bytes(inputs, formula);
}

#define ROTARY(name_)                                                                              \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {0, 1, 2, 3, 4}, .cost = rotary_cost    \
	}
#define ROTARY_COPY(name_, ...)                                                                    \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__}, .cost = rotary_copy_cost \
	}

const struct op_formula rotary_formulas[] = {
	ROTARY("_C::rotary_embedding"),
	ROTARY("sgl_kernel::rotary_embedding"),
	ROTARY_COPY("aiter::rope_cached_positions_2c_fwd_impl", 2, 2, 4, 2, 6),
	ROTARY_COPY("aiter::rope_cached_positions_fwd_impl", 1, 1, 2, 2, 4),
	ROTARY_COPY("aiter::rope_cached_fwd_impl", 1, 1, 2, 2, OP_NOWHERE),
	ROTARY_COPY("aiter::rope_fwd_impl", 1, 1, 2, 1, OP_NOWHERE),
	ROTARY_COPY("FusedRoPEFunc", 0, 1, 1, 1, OP_NOWHERE),
	{0},
};

/* ---- keys and values into a cache ---- */

enum { AT_SLOTS, AT_CACHE, AT_OTHER_CACHE, HAS_PADDING };

/* A tensor of one token each: that of the tokens with slots, read, and written in the cache's type.
 */
static double stored_bytes(
	const struct op_inputs *inputs, unsigned at, unsigned at_cache, double slots)
{
	const struct op_tensor *tensor = op_tensor_at(inputs, at);
	const struct op_tensor *cache = op_tensor_at(inputs, at_cache);

	if (!tensor || !cache || !tensor->rank || !tensor->sizes[0])
		return NAN;
	return op_tensor_elements(tensor) / (double)tensor->sizes[0] * slots *
	       (op_dtype_bytes(tensor->dtype) + op_dtype_bytes(cache->dtype));
}

/*
 * (keys, values, a cache of each, or one, slots): the cache is as large as all of the memory, and
 * only the slots of the new tokens are written. vLLM gives padding a slot of -1, which is not
 * written: how many there are is not in the trace.
 */
static void cache_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *keys = op_tensor_at(inputs, 0);
	const struct op_tensor *slots = op_tensor_at(inputs, formula->at[AT_SLOTS]);
	double count = slots ? op_tensor_elements(slots) : (double)NAN;

	if (!keys || !slots)
		return;
	cost->dtype = keys->dtype;
	cost->flop = 0;
	cost->bytes = op_tensor_bytes(slots) +
		      stored_bytes(inputs, 0, formula->at[AT_CACHE], count) +
		      stored_bytes(inputs, 1, formula->at[AT_OTHER_CACHE], count);
	if (formula->at[HAS_PADDING])
		cost->bytes_is = OP_AT_MOST;
}

#define CACHE(name_, ...)                                                                          \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .at = {__VA_ARGS__}, .cost = cache_cost       \
	}

const struct op_formula cache_formulas[] = {
	CACHE("_C_cache_ops::reshape_and_cache_flash", 4, 2, 3, true),
	CACHE("_C_cache_ops::reshape_and_cache", 4, 2, 3, true),
	/* Latent attention: what keys and values are made of, and the turned part of the keys. */
	CACHE("_C_cache_ops::concat_and_cache_mla", 3, 2, 2, true),
	CACHE("sglang::store_cache", 4, 2, 3, false),
	{0},
};
