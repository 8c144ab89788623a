/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over keys and values in the pages of a cache, of sequences of different lengths: for
 * each pair of a query and a key 2 D operations for the score and 2 Dv for the values, in each head
 * of the queries, as in attention.c. Bytes: queries and output of the tokens that are computed,
 * keys and values of all tokens that are looked at, in the type of the cache.
 *
 * How long sequences are is in the cache's tables, not in a trace. Known are
 *   the sums that an engine's annotation has (op_batch.h): then it is exact, but where layers with
 * a sliding window, which look at less, have the same operator: there it is at most as much; that
 * the sequences' lengths are all the longest one, where these fill the queries: exact, too; else
 * that a query looks at itself, and with a causal mask, that squares of different lengths add up to
 * no less than those of equal ones: at least as much.
 *
 * Latent attention (MLA, arxiv.org/abs/2405.04434, section 2.1): the cache has for each token one
 * latent of R elements and a turned part of P that all heads share. Either keys and values of each
 * head are made of them, which is D and Dv elements for a pair; or the queries are taken to the
 * latents, which is R + P and R.
 */
#include "model/cost/families.h"

/* ---- keys and values in the cache ---- */

enum { AT_QUERY, AT_ENDS, AT_LONGEST, AT_CAUSAL, AT_WINDOW, AT_CACHE, AT_KEY_HEADS };

/* Of `tokens` queries; keys and pairs are NaN where only bounds are known. */
struct paged {
	double tokens, heads, size, key_heads, value_size;
	enum op_dtype dtype, cache_dtype;
	double keys, pairs;
	enum op_bound is;
};

/* (tokens, heads, size), or with a batch in front of the tokens. */
static bool read_query(const struct op_tensor *query, struct paged *paged)
{
	if (!query || query->rank < 3 || query->rank > 4)
		return false;
	paged->dtype = query->dtype;
	paged->size = (double)query->sizes[query->rank - 1];
	paged->heads = (double)query->sizes[query->rank - 2];
	paged->tokens = (double)query->sizes[0] * (query->rank == 4 ? (double)query->sizes[1] : 1);
	return paged->tokens > 0 && paged->heads > 0;
}

/* Of the caches (…, heads, size), or of vLLM's first kernels, which split sizes: as a number. */
static bool read_heads(
	const struct op_inputs *inputs, const struct op_formula *formula, struct paged *paged)
{
	unsigned at = formula->at[AT_CACHE];
	const struct op_tensor *keys = op_tensor_at(inputs, at);
	const struct op_tensor *values = op_tensor_at(inputs, at + 1);
	int64_t heads;

	if (!keys || !values || keys->rank < 3 || values->rank < 3)
		return false;
	paged->cache_dtype = keys->dtype;
	if (formula->at[AT_KEY_HEADS] != OP_NOWHERE) {
		if (!op_number_at(inputs, formula->at[AT_KEY_HEADS], &heads) || heads <= 0)
			return false;
		paged->key_heads = (double)heads;
		paged->value_size = paged->size;
		return true;
	}
	paged->key_heads = (double)keys->sizes[keys->rank - 2];
	paged->value_size = (double)values->sizes[values->rank - 1];
	return (double)keys->sizes[keys->rank - 1] == paged->size;
}

/* -1 on the left is none. */
static bool has_no_window(const struct op_inputs *inputs, unsigned index)
{
	int64_t left;

	return op_number_at(inputs, index, &left) && left < 0;
}

/* Of sequences whose ends are a tensor, the lengths of the longest queries and keys two numbers. */
static void set_lengths(
	const struct op_inputs *inputs, const struct op_formula *formula, struct paged *paged)
{
	const struct op_tensor *ends = op_tensor_at(inputs, formula->at[AT_ENDS]);
	double sequences = ends ? op_tensor_elements(ends) - 1 : paged->tokens;
	bool is_causal = false, has_window = !has_no_window(inputs, formula->at[AT_WINDOW]);
	int64_t longest;

	paged->keys = paged->pairs = paged->tokens;
	paged->is = OP_AT_LEAST;
	if (!op_flag_at(inputs, formula->at[AT_CAUSAL], &is_causal) || !is_causal || has_window ||
		sequences < 1)
		return;
	paged->pairs = fmax(paged->tokens, paged->tokens * paged->tokens / sequences / 2);
	if (op_number_at(inputs, formula->at[AT_LONGEST] + 1U, &longest) &&
		(double)longest * sequences == paged->tokens) {
		paged->pairs = paged->tokens * paged->tokens / sequences / 2;
		paged->is = OP_EXACT;
	}
}

/* Graphs are run with more tokens than there are: those of the batch count. */
static void set_batch(
	const struct op_inputs *inputs, const struct op_formula *formula, struct paged *paged)
{
	const struct op_batch *batch = inputs->batch;
	bool has_window = !has_no_window(inputs, formula->at[AT_WINDOW]);

	set_lengths(inputs, formula, paged);
	if (!batch || batch->queries > paged->tokens || paged->is == OP_EXACT)
		return;
	paged->tokens = batch->queries;
	paged->keys = has_window && batch->is_least ? batch->queries : batch->keys;
	paged->pairs = has_window && batch->is_least ? batch->queries : batch->pairs;
	paged->is = batch->is_least ? OP_AT_LEAST : has_window ? OP_AT_MOST : OP_EXACT;
}

static void paged_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	struct paged paged = {.is = OP_EXACT};
	double sizes, cached;

	if (!read_query(op_tensor_at(inputs, formula->at[AT_QUERY]), &paged) ||
		!read_heads(inputs, formula, &paged))
		return;
	set_batch(inputs, formula, &paged);
	sizes = paged.size + paged.value_size;
	cached = op_dtype_bytes(paged.cache_dtype);
	cost->dtype = paged.dtype;
	cost->flop = 2 * paged.pairs * paged.heads * sizes;
	cost->bytes = paged.tokens * paged.heads * sizes * op_dtype_bytes(paged.dtype) +
		      paged.keys * paged.key_heads * sizes * cached;
	cost->flop_is = cost->bytes_is = paged.is;
}

/*
 * vLLM's unified_attention_with_output(query, key, value, output, layer, …): the cache is the
 * layer's. Its type is that of the trace's writes into a cache; without any, the part that is read
 * from it is not counted.
 */
static void unified_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *output = op_tensor_at(inputs, 3);
	struct paged paged = {.is = OP_EXACT};
	enum op_dtype cache = inputs->batch ? inputs->batch->cache_dtype : OP_DTYPE_UNKNOWN;
	double cached, read;

	if (!read_query(op_tensor_at(inputs, formula->at[AT_QUERY]), &paged) ||
		!read_heads(inputs, formula, &paged) || !output)
		return;
	set_batch(inputs, formula, &paged);
	cost->dtype = paged.dtype;
	cost->flop = 2 * paged.pairs * paged.heads * (paged.size + paged.value_size);
	cost->flop_is = cost->bytes_is = paged.is;
	read = paged.key_heads * (paged.size + paged.value_size);
	cost->bytes = paged.tokens * paged.heads *
		      (paged.size * op_dtype_bytes(paged.dtype) +
			      paged.value_size * op_dtype_bytes(output->dtype));
	cached = op_dtype_bytes(cache);
	if (isnan(cached))
		cost->bytes_is = OP_AT_LEAST;
	else
		cost->bytes += paged.keys * read * cached;
}

/* ---- latent attention ---- */

/*
 * Sparse layers look at a part of their keys by the same operators, so that the sums of a batch are
 * at most what is computed. Without them, each query looks at itself.
 */
static void set_latent_batch(const struct op_inputs *inputs, struct paged *paged)
{
	const struct op_batch *batch = inputs->batch;

	paged->keys = paged->pairs = paged->tokens;
	paged->is = OP_AT_LEAST;
	if (!batch || batch->is_least || batch->queries > paged->tokens)
		return;
	paged->tokens = batch->queries;
	paged->keys = batch->keys;
	paged->pairs = batch->pairs;
	paged->is = OP_AT_MOST;
}

/*
 * vLLM's unified_mla_attention_with_output(query (tokens, heads, D), latents (tokens, R), turned
 * parts (tokens, …, P), output (tokens, heads Dv), layer, …). Which of the two ways it goes is not
 * in the trace: at least the cheaper one's products; at most the dearer one's, and those by the
 * matrices that make keys and values of latents, (R, heads (D - P + Dv)), for each key.
 */
static void unified_latent_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *latent = op_tensor_at(inputs, 1), *turned = op_tensor_at(inputs, 2);
	const struct op_tensor *output = op_tensor_at(inputs, 3);
	struct paged paged = {0};
	double width, row, value_size, matrices, one_way, other_way;

	if (!read_query(op_tensor_at(inputs, formula->at[AT_QUERY]), &paged) || !latent ||
		!turned || !output || latent->rank != 2 || !turned->rank)
		return;
	width = (double)latent->sizes[1];
	row = width + (double)turned->sizes[turned->rank - 1]; /* of the cache */
	value_size = op_tensor_elements(output) / paged.tokens / paged.heads;
	matrices = paged.heads * width * (paged.size - (row - width) + value_size);
	one_way = paged.size + value_size;
	other_way = row + width;
	set_latent_batch(inputs, &paged);
	cost->dtype = paged.dtype;
	cost->flop_is = cost->bytes_is = paged.is;
	cost->flop = 2 * paged.pairs * paged.heads * fmin(one_way, other_way);
	cost->bytes = paged.tokens * paged.heads *
		      (paged.size * op_dtype_bytes(paged.dtype) +
			      value_size * op_dtype_bytes(output->dtype));
	if (paged.is == OP_AT_LEAST)
		return;
	cost->flop = 2 * paged.pairs * paged.heads * fmax(one_way, other_way) +
		     2 * paged.keys * matrices;
	cost->bytes += paged.keys * row * op_dtype_bytes(inputs->batch->cache_dtype) +
		       matrices * op_dtype_bytes(paged.dtype);
}

/* R: of an argument behind those of the pages, (…, heads, R), which is the result or a part of it.
 */
static double latent_size(const struct op_inputs *inputs, const struct paged *paged)
{
	for (unsigned i = 5; i < inputs->count; i++) {
		const struct op_tensor *tensor = op_tensor_at(inputs, i);

		if (tensor && tensor->rank >= 3 &&
			(double)tensor->sizes[tensor->rank - 2] == paged->heads &&
			(double)tensor->sizes[tensor->rank - 1] < paged->size)
			return (double)tensor->sizes[tensor->rank - 1];
	}
	return NAN;
}

/* aiter's mla_decode_stage1_asm_fwd(query (tokens, heads, R + P), latents (…, 1, R + P), …): the
 * queries are those that were taken to the latents. */
static void latent_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *cache = op_tensor_at(inputs, 1);
	struct paged paged = {0};

	if (!read_query(op_tensor_at(inputs, formula->at[AT_QUERY]), &paged) || !cache ||
		!cache->rank || (double)cache->sizes[cache->rank - 1] != paged.size)
		return;
	paged.value_size = latent_size(inputs, &paged);
	set_latent_batch(inputs, &paged);
	cost->dtype = paged.dtype;
	cost->flop = 2 * paged.pairs * paged.heads * (paged.size + paged.value_size);
	cost->bytes = paged.tokens * paged.heads * (paged.size + paged.value_size) *
			      op_dtype_bytes(paged.dtype) +
		      paged.keys * paged.size * op_dtype_bytes(cache->dtype);
	cost->flop_is = cost->bytes_is = paged.is;
}

/*
 * DeepSeek-V4's prefill, aiter's pa_sparse_prefill_opus_fwd(query (tokens, heads, D), cache, slots
 * of the history (pairs), …, …, slots of the chunk (pairs), …): a pair for each slot that a query
 * looks at. Lists may be longer than what is used of them, and have slots more than once.
 */
static void sparse_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *cache = op_tensor_at(inputs, 1);
	const struct op_tensor *past = op_tensor_at(inputs, 2), *chunk = op_tensor_at(inputs, 5);
	struct paged paged = {0};

	if (!read_query(op_tensor_at(inputs, formula->at[AT_QUERY]), &paged) || !cache || !past ||
		!chunk)
		return;
	paged.pairs = op_tensor_elements(past) + op_tensor_elements(chunk);
	cost->dtype = paged.dtype;
	cost->flop = 4 * paged.pairs * paged.heads * paged.size;
	cost->bytes = 2 * paged.tokens * paged.heads * paged.size * op_dtype_bytes(paged.dtype) +
		      paged.pairs * paged.size * op_dtype_bytes(cache->dtype) +
		      op_tensor_bytes(past) + op_tensor_bytes(chunk);
	cost->flop_is = cost->bytes_is = OP_AT_MOST;
}

#define PAGED(name_, reach_, cost_, ...)                                                           \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = (cost_),          \
		.needs_batch = true                                                                \
	}
#define NOWHERE OP_NOWHERE

const struct op_formula paged_formulas[] = {
	PAGED("vllm::unified_attention_with_output", OP_OPEN, unified_cost, 0, NOWHERE, NOWHERE,
		NOWHERE, NOWHERE, 1, NOWHERE),
	/* (query, caches, ends of queries, ends of pages, pages, longest two, …, causal, window) */
	PAGED("aiter::mha_batch_prefill", OP_CLOSED, paged_cost, 0, 3, 6, 12, 13, 1, NOWHERE),
	/* (query, caches, output, ends of queries, ends of keys, …, longest two, …, causal, window)
	 */
	PAGED("_vllm_fa2_C::varlen_fwd", OP_CLOSED, paged_cost, 0, 4, 10, 15, 16, 1, NOWHERE),
	PAGED("_vllm_fa3_C::fwd", OP_CLOSED, paged_cost, 0, 7, 12, 24, 25, 1, NOWHERE),
	PAGED("sgl_kernel::fwd", OP_CLOSED, paged_cost, 0, 7, 12, 24, 25, 1, NOWHERE),
	/* (output, memory, query, caches, …) */
	PAGED("aiter::paged_attention_ragged", OP_CLOSED, paged_cost, 2, NOWHERE, NOWHERE, NOWHERE,
		NOWHERE, 3, NOWHERE),
	/* Decoding: one query of each sequence. (output, …, query, caches, heads of keys, …) */
	PAGED("_C::paged_attention_v1", OP_CLOSED, paged_cost, 1, NOWHERE, NOWHERE, NOWHERE,
		NOWHERE, 2, 4),
	PAGED("_C::paged_attention_v2", OP_CLOSED, paged_cost, 4, NOWHERE, NOWHERE, NOWHERE,
		NOWHERE, 5, 7),
	PAGED("_rocm_C::paged_attention", OP_CLOSED, paged_cost, 4, NOWHERE, NOWHERE, NOWHERE,
		NOWHERE, 5, 7),
	PAGED("vllm::unified_mla_attention_with_output", OP_OPEN, unified_latent_cost, 0),
	PAGED("aiter::mla_decode_stage1_asm_fwd", OP_CLOSED, latent_cost, 0),
	PAGED("aiter::pa_sparse_prefill_opus_fwd", OP_CLOSED, sparse_cost, 0),
	{0},
};
