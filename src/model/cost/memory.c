/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are all moving of bytes: reductions, gathers, copies and Triton's kernels. A
 * reduction takes one operation for each input element; the others take none. Bytes: what is read
 * once, and what is written once.
 */
#include "model/cost/families.h"

/* ---- reductions ---- */

enum { AT_DIMENSIONS, OUT_DTYPE };

/* Of the input's elements those that are left: all dimensions go where none is named. NaN where the
 * names are not in the trace. */
static double left_elements(
	const struct op_inputs *inputs, const struct op_tensor *input, unsigned index)
{
	int64_t named[OP_DIMENSIONS];
	unsigned count = op_list_at(inputs, index, named, OP_DIMENSIONS);
	double left = op_tensor_elements(input);

	if (!count && op_number_at(inputs, index, &named[0]))
		count = 1;
	for (unsigned i = 0; i < count; i++) {
		int64_t dimension = named[i] < 0 ? named[i] + input->rank : named[i];

		if (dimension < 0 || dimension >= input->rank || !input->sizes[dimension])
			return NAN;
		left /= (double)input->sizes[dimension];
	}
	return count ? left : 1;
}

static void reduction_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0);
	enum op_dtype out = (enum op_dtype)formula->at[OUT_DTYPE];

	if (!input)
		return;
	cost->dtype = input->dtype;
	cost->flop = op_tensor_elements(input);
	cost->bytes = op_tensor_bytes(input) +
		      left_elements(inputs, input, formula->at[AT_DIMENSIONS]) *
			      op_dtype_bytes(out == OP_DTYPE_UNKNOWN ? input->dtype : out);
}

/* As large as the input: cumsum, and sort, which has indices, too. */
static void scan_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0);
	enum op_dtype out = (enum op_dtype)formula->at[OUT_DTYPE];

	if (!input)
		return;
	cost->dtype = input->dtype;
	cost->flop = op_tensor_elements(input);
	cost->bytes = 2 * op_tensor_bytes(input);
	if (out != OP_DTYPE_UNKNOWN)
		cost->bytes += cost->flop * op_dtype_bytes(out);
}

/* topk(input, k, dimension): k of each row, and their indices. */
static void largest_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0);
	int64_t count, dimension = -1;

	(void)formula;
	if (!input || !op_number_at(inputs, 1, &count) || count < 0)
		return;
	(void)op_number_at(inputs, 2, &dimension);
	cost->dtype = input->dtype;
	cost->flop = op_tensor_elements(input);
	cost->bytes = op_tensor_bytes(input) +
		      (double)count * op_slice_elements(input, dimension) *
			      (op_dtype_bytes(input->dtype) + op_dtype_bytes(OP_INT64));
}

static void sum_into_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, 0);

	(void)formula;
	if (!input || !op_tensor_at(inputs, 1))
		return;
	cost->dtype = input->dtype;
	cost->flop = op_tensor_elements(input);
	cost->bytes = op_inputs_bytes(inputs);
}

#define REDUCTION(name_, index_, out_)                                                             \
	{                                                                                          \
		.name = "aten::" name_, .at = {(index_), (out_)}, .cost = reduction_cost           \
	}

const struct op_formula reduction_formulas[] = {
	REDUCTION("sum", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("mean", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("amax", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("amin", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("max", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("min", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("prod", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("var", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("std", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("logsumexp", 1, OP_DTYPE_UNKNOWN),
	REDUCTION("norm", 2, OP_DTYPE_UNKNOWN),
	REDUCTION("linalg_vector_norm", 2, OP_DTYPE_UNKNOWN),
	REDUCTION("argmax", 1, OP_INT64),
	REDUCTION("argmin", 1, OP_INT64),
	REDUCTION("any", 1, OP_BOOL),
	REDUCTION("all", 1, OP_BOOL),
	{.name = "aten::cumsum", .cost = scan_cost},
	{.name = "aten::cumprod", .cost = scan_cost},
	{.name = "aten::sort", .at = {0, OP_INT64}, .cost = scan_cost},
	{.name = "aten::topk", .cost = largest_cost},
	/* Of experts: (tokens, chosen, hidden) to (tokens, hidden), which is there. */
	{.name = "_moe_C::moe_sum", .reach = OP_CLOSED, .cost = sum_into_cost},
	{.name = "sgl_kernel::moe_sum", .reach = OP_CLOSED, .cost = sum_into_cost},
	{.name = "aiter::moe_sum", .reach = OP_CLOSED, .cost = sum_into_cost},
	{0},
};

/* ---- gathers ---- */

enum { AT_TABLE, AT_INDICES, ADDS };

static void set_moved(struct op_cost *cost, const struct op_tensor *tensor, double bytes)
{
	cost->dtype = tensor->dtype;
	cost->flop = 0;
	cost->bytes = bytes;
}

/* Rows of a table: each index is read, and its row read and written. */
static void rows_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, formula->at[AT_TABLE]);
	const struct op_tensor *indices = op_tensor_at(inputs, formula->at[AT_INDICES]);
	double row;

	if (!table || !indices || !table->rank || !table->sizes[0])
		return;
	row = op_tensor_bytes(table) / (double)table->sizes[0];
	set_moved(cost, table, op_tensor_bytes(indices) + 2 * op_tensor_elements(indices) * row);
}

/* The gradient of the rows, added up in a table that is written in full. */
static void rows_backward_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *gradient = op_tensor_at(inputs, 0);
	int64_t rows;

	(void)formula;
	if (!gradient || !gradient->rank || !op_number_at(inputs, 2, &rows) || rows < 0)
		return;
	cost->dtype = gradient->dtype;
	cost->flop = op_tensor_elements(gradient);
	cost->bytes = op_inputs_bytes(inputs) +
		      (double)rows * (double)gradient->sizes[gradient->rank - 1] *
			      op_dtype_bytes(gradient->dtype);
}

/* One element for each index: read and written; what is added to is read, too. */
static void elements_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, formula->at[AT_TABLE]);
	const struct op_tensor *indices = op_tensor_at(inputs, formula->at[AT_INDICES]);

	if (!table || !indices)
		return;
	set_moved(cost, table,
		op_tensor_bytes(indices) + (formula->at[ADDS] ? 3 : 2) *
						   op_tensor_elements(indices) *
						   op_dtype_bytes(table->dtype));
	cost->flop = formula->at[ADDS] ? op_tensor_elements(indices) : 0;
}

/* index_select(table, dimension, indices): a slice for each. */
static void slices_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, 0);
	const struct op_tensor *indices = op_tensor_at(inputs, 2);
	int64_t dimension;

	(void)formula;
	if (!table || !indices || !op_number_at(inputs, 1, &dimension))
		return;
	set_moved(cost, table,
		op_tensor_bytes(indices) + 2 * op_tensor_elements(indices) *
						   op_slice_elements(table, dimension) *
						   op_dtype_bytes(table->dtype));
}

/* index_copy(table, dimension, indices, source), index_add: the source's slices. */
static void into_slices_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *indices = op_tensor_at(inputs, 2);
	const struct op_tensor *source = op_tensor_at(inputs, 3);

	if (!indices || !source)
		return;
	set_moved(cost, source,
		op_tensor_bytes(indices) + (formula->at[ADDS] ? 3 : 2) * op_tensor_bytes(source));
	cost->flop = formula->at[ADDS] ? op_tensor_elements(source) : 0;
}

/* Of one tensor of numbers, whose type is known: flags choose as many as are set. Kineto does not
 * write what is in a list of tensors that may be None. */
static const struct op_argument *only_indices(const struct op_inputs *inputs)
{
	const struct op_argument *list = &inputs->arguments[1];

	return list->kind == OP_TENSORS && list->tensors == 1 &&
			       (list->dtype == OP_INT64 || list->dtype == OP_INT32)
		       ? list
		       : NULL;
}

/* table[indices]: by the first dimension. */
static void index_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, 0);
	const struct op_argument *indices = only_indices(inputs);

	(void)formula;
	if (table && indices)
		set_moved(cost, table,
			op_argument_bytes(inputs, 1) + 2 * indices->elements *
							       op_slice_elements(table, 0) *
							       op_dtype_bytes(table->dtype));
}

/* table[indices] = values, or += values: those that are repeated are written more than once. */
static void put_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, 0);
	const struct op_tensor *values = op_tensor_at(inputs, 2);
	const struct op_argument *indices = only_indices(inputs);
	bool adds = false;

	(void)formula;
	if (!table || !values)
		return;
	adds = op_flag_at(inputs, 3, &adds) && adds;
	set_moved(cost, table,
		(indices ? op_argument_bytes(inputs, 1) : 0) +
			(adds ? 3 : 2) * op_tensor_bytes(values));
	cost->flop = adds ? op_tensor_elements(values) : 0;
	cost->bytes_is = OP_AT_LEAST;
	cost->flop_is = adds ? OP_AT_LEAST : OP_EXACT;
}

/* What is chosen by flags is as much as they choose: all of them are read. */
static void chosen_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *first = op_tensor_at(inputs, 0);

	(void)formula;
	if (!first)
		return;
	set_moved(cost, first, op_tensor_bytes(first));
	cost->bytes_is = OP_AT_LEAST;
}

const struct op_formula embedding_formulas[] = {
	{.name = "aten::embedding", .reach = OP_CLOSED, .at = {0, 1}, .cost = rows_cost},
	{.name = "aten::embedding_dense_backward", .reach = OP_CLOSED, .cost = rows_backward_cost},
	{.name = "aten::gather", .at = {0, 2}, .cost = elements_cost},
	{.name = "aten::scatter_add", .at = {0, 2, true}, .cost = elements_cost},
	{.name = "aten::scatter", .at = {0, 2}, .cost = elements_cost},
	{.name = "aten::index_select", .cost = slices_cost},
	{.name = "aten::index_copy", .cost = into_slices_cost},
	{.name = "aten::index_add", .at = {0, 0, true}, .cost = into_slices_cost},
	{.name = "aten::index", .cost = index_cost},
	{.name = "aten::index_put", .reach = OP_CLOSED, .cost = put_cost},
	{.name = "aten::_index_put_impl", .cost = put_cost},
	{.name = "aten::masked_select", .reach = OP_CLOSED, .cost = chosen_cost},
	{.name = "aten::nonzero", .cost = chosen_cost},
	{0},
};

/* ---- copies ---- */

/* Into the first tensor from the second. */
static void copy_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *to = op_tensor_at(inputs, 0);

	(void)formula;
	if (to && op_tensor_at(inputs, 1))
		set_moved(cost, to,
			op_argument_bytes(inputs, 1) +
				op_tensor_elements(to) * op_dtype_bytes(to->dtype));
}

/* As much is written as is in all inputs: clone, cat. */
static void duplicate_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	(void)formula;
	if (!inputs->count || inputs->arguments[0].kind != OP_TENSORS)
		return;
	cost->flop = 0;
	cost->bytes = 2 * op_argument_bytes(inputs, 0);
}

/* Only written. */
static void fill_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *to = op_tensor_at(inputs, 0);

	(void)formula;
	if (to)
		set_moved(cost, to, op_tensor_bytes(to));
}

/* All tensors once, whichever are read and which written. */
static void once_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *first = op_tensor_at(inputs, 0);

	(void)formula;
	if (first)
		set_moved(cost, first, op_inputs_bytes(inputs));
}

const struct op_formula copy_formulas[] = {
	{.name = "aten::copy", .reach = OP_CLOSED, .cost = copy_cost},
	{.name = "aten::cat", .reach = OP_CLOSED, .cost = duplicate_cost},
	{.name = "aten::fill", .reach = OP_CLOSED, .cost = fill_cost},
	{.name = "aten::zero", .cost = fill_cost},
	{.name = "aten::normal", .cost = fill_cost},
	{.name = "aten::uniform", .cost = fill_cost},
	{.name = "aten::random", .cost = fill_cost},
	/* Tokens in the order of their experts: numbers of tokens, and how many each has. */
	{.name = "_moe_C::moe_align_block_size", .reach = OP_CLOSED, .cost = once_cost},
	{.name = "sgl_kernel::moe_align_block_size", .reach = OP_CLOSED, .cost = once_cost},
	{.name = "aiter::moe_sorting_fwd", .reach = OP_CLOSED, .cost = once_cost},
	{0},
};

/* ---- Triton ---- */

/* Its tensors are what it reads and what it writes, in no order; what a kernel computes the trace
 * does not say. One that is read and written in its place counts once. */
static void triton_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	(void)formula;
	cost->bytes = op_inputs_bytes(inputs);
}

const struct op_formula triton_formula = {
	.name = "triton_", .reach = OP_CLOSED, .cost = triton_cost};
