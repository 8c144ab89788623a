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
	{0},
};

/* ---- gathers ---- */

enum { AT_TABLE, AT_INDICES };

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

/* One element for each index: read and written. */
static void elements_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *table = op_tensor_at(inputs, formula->at[AT_TABLE]);
	const struct op_tensor *indices = op_tensor_at(inputs, formula->at[AT_INDICES]);

	if (!table || !indices)
		return;
	set_moved(cost, table,
		op_tensor_bytes(indices) +
			2 * op_tensor_elements(indices) * op_dtype_bytes(table->dtype));
}

const struct op_formula embedding_formulas[] = {
	{.name = "aten::embedding", .reach = OP_CLOSED, .at = {0, 1}, .cost = rows_cost},
	{.name = "aten::embedding_dense_backward", .reach = OP_CLOSED, .cost = rows_backward_cost},
	{.name = "aten::gather", .at = {0, 2}, .cost = elements_cost},
	{.name = "aten::scatter_add", .at = {0, 2}, .cost = elements_cost},
	{.name = "aten::scatter", .at = {0, 2}, .cost = elements_cost},
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

const struct op_formula copy_formulas[] = {
	{.name = "aten::copy", .reach = OP_CLOSED, .cost = copy_cost},
	{.name = "aten::cat", .reach = OP_CLOSED, .cost = duplicate_cost},
	{.name = "aten::fill", .reach = OP_CLOSED, .cost = fill_cost},
	{.name = "aten::zero", .cost = fill_cost},
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
