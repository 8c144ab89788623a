/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cost/op_cost.h"

#include "model/cost/families.h"

#define TRITON  "triton_"
#define LARGEST 1.8e19 /* that 64 bits hold; no operator costs as much */

static const struct {
	const char *name;
	const struct op_formula *formulas;
} families[OP_FAMILY_MAX] = {
	[OP_FAMILY_OTHER] = {"other", NULL},
	[OP_FAMILY_GEMM] = {"GEMM", gemm_formulas},
	[OP_FAMILY_CONVOLUTION] = {"convolution", convolution_formulas},
	[OP_FAMILY_ATTENTION] = {"attention", attention_formulas},
	[OP_FAMILY_NORM] = {"norm", norm_formulas},
	[OP_FAMILY_ELEMENTWISE] = {"elementwise", elementwise_formulas},
	[OP_FAMILY_REDUCTION] = {"reduce", reduction_formulas},
	[OP_FAMILY_EMBEDDING] = {"embedding", embedding_formulas},
	[OP_FAMILY_COPY] = {"copy", copy_formulas},
	[OP_FAMILY_TRITON] = {"triton", NULL},
};

const char *op_family_name(enum op_family family)
{
	return families[family].name;
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
	for (int family = 0; family < OP_FAMILY_MAX; family++) {
		const struct op_formula *formula = families[family].formulas;

		for (; formula && formula->name; formula++) {
			if (!is_named(name, formula->name))
				continue;
			*ret_family = (enum op_family)family;
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
	if (argument->kind == OP_TENSORS)
		return argument->elements * op_dtype_bytes(argument->dtype);
	return 0;
}

double op_inputs_bytes(const struct op_inputs *inputs)
{
	double bytes = 0;

	for (unsigned i = 0; i < inputs->count; i++)
		bytes += op_argument_bytes(inputs, i);
	return bytes;
}
