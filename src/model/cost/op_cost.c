/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cost/op_cost.h"

#include "model/cost/families.h"

#define TRITON  "triton_"
#define LARGEST 1.8e19 /* that 64 bits hold; no operator costs as much */

static const char *const families[OP_FAMILY_MAX] = {
	[OP_FAMILY_OTHER] = "other",
	[OP_FAMILY_GEMM] = "GEMM",
	[OP_FAMILY_CONVOLUTION] = "convolution",
	[OP_FAMILY_ATTENTION] = "attention",
	[OP_FAMILY_NORM] = "norm",
	[OP_FAMILY_ELEMENTWISE] = "elementwise",
	[OP_FAMILY_REDUCTION] = "reduce",
	[OP_FAMILY_EMBEDDING] = "embedding",
	[OP_FAMILY_COPY] = "copy",
	[OP_FAMILY_TRITON] = "triton",
	[OP_FAMILY_MOE] = "MoE",
	[OP_FAMILY_SCAN] = "scan",
};

static const struct {
	enum op_family family;
	const struct op_formula *formulas;
} tables[] = {
	{OP_FAMILY_GEMM, gemm_formulas},
	{OP_FAMILY_CONVOLUTION, convolution_formulas},
	{OP_FAMILY_ATTENTION, attention_formulas},
	{OP_FAMILY_ATTENTION, paged_formulas},
	{OP_FAMILY_NORM, norm_formulas},
	{OP_FAMILY_ELEMENTWISE, elementwise_formulas},
	{OP_FAMILY_ELEMENTWISE, rotary_formulas},
	{OP_FAMILY_ELEMENTWISE, quantization_formulas},
	{OP_FAMILY_REDUCTION, reduction_formulas},
	{OP_FAMILY_EMBEDDING, embedding_formulas},
	{OP_FAMILY_COPY, copy_formulas},
	{OP_FAMILY_COPY, cache_formulas},
	{OP_FAMILY_MOE, expert_formulas},
	{OP_FAMILY_SCAN, scan_formulas},
};

const char *op_family_name(enum op_family family)
{
	return families[family];
}

bool op_family_is_of_matrices(enum op_family family)
{
	return family == OP_FAMILY_GEMM || family == OP_FAMILY_CONVOLUTION ||
	       family == OP_FAMILY_ATTENTION || family == OP_FAMILY_MOE;
}

const char *op_bound_name(enum op_bound bound)
{
	static const char *const names[OP_BOUND_MAX] = {
		[OP_EXACT] = "exact", [OP_AT_LEAST] = "at_least", [OP_AT_MOST] = "at_most"};

	return names[bound];
}

/* "aten::add_" is "aten::add": in place, or not. */
static bool is_named(const char *name, const char *formula)
{
	size_t length = strlen(formula);

	if (strncmp(name, formula, length) != 0)
		return false;
	return !name[length] || (name[length] == '_' && !name[length + 1]);
}

const struct op_formula *op_formula_find(const char *name, enum op_family *ret_family)
{
	*ret_family = OP_FAMILY_OTHER;
	if (strncmp(name, TRITON, strlen(TRITON)) == 0) {
		*ret_family = OP_FAMILY_TRITON;
		return &triton_formula;
	}
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct op_formula *formula = tables[i].formulas; formula->name;
			formula++) {
			if (!is_named(name, formula->name))
				continue;
			*ret_family = tables[i].family;
			return formula;
		}
	}
	return NULL;
}

struct op_cost op_cost_of(const struct op_formula *formula, const struct op_texts *texts)
{
	struct op_cost cost = {.flop = NAN, .bytes = NAN};
	struct op_inputs inputs;

	if (op_inputs_read(&inputs, texts))
		formula->cost(&inputs, formula, &cost);
	if (!(cost.flop < LARGEST))
		cost.flop = NAN;
	if (!(cost.bytes < LARGEST))
		cost.bytes = NAN;
	return cost;
}

double op_argument_bytes(const struct op_inputs *inputs, unsigned index)
{
	const struct op_argument *argument = inputs->arguments + index;

	if (index >= inputs->count)
		return 0;
	if (argument->kind == OP_TENSOR)
		return op_tensor_bytes(&argument->tensor);
	if (argument->kind == OP_TENSORS && argument->dtype == OP_DTYPE_UNKNOWN &&
		inputs->list_bytes)
		return argument->elements * inputs->list_bytes;
	if (argument->kind == OP_TENSORS)
		return argument->elements * op_dtype_bytes(argument->dtype);
	return 0;
}

double op_some_bytes(const struct op_inputs *inputs, unsigned first, unsigned end)
{
	double bytes = 0;

	for (unsigned i = first; i < MIN(end, inputs->count); i++)
		bytes += op_argument_bytes(inputs, i);
	return bytes;
}

double op_inputs_bytes(const struct op_inputs *inputs)
{
	return op_some_bytes(inputs, 0, inputs->count);
}

double op_slice_elements(const struct op_tensor *tensor, int64_t dimension)
{
	dimension += dimension < 0 ? tensor->rank : 0;
	if (dimension < 0 || dimension >= tensor->rank || !tensor->sizes[dimension])
		return NAN;
	return op_tensor_elements(tensor) / (double)tensor->sizes[dimension];
}
