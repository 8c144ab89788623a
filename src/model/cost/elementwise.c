/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators whose outputs are each of one element of every input, broadcast: one operation for each
 * output, whatever it is (exp() counts as one, as in TraceLens' model). Bytes: all inputs are read,
 * the output is written. The output is as wide as the widest input that is no single element, which
 * is PyTorch's promotion of types in most cases; comparisons make one byte each.
 */
#include "model/cost/families.h"

enum { INPUTS, MAKES_FLAGS };

/* Sizes from the last on, broadcast over the first `count` arguments. */
static double output_elements(const struct op_inputs *inputs, unsigned count)
{
	double sizes[OP_DIMENSIONS], elements = 1;

	for (unsigned i = 0; i < OP_DIMENSIONS; i++)
		sizes[i] = 1;
	for (unsigned index = 0; index < count; index++) {
		const struct op_tensor *tensor = op_tensor_at(inputs, index);

		for (unsigned i = 0; tensor && i < tensor->rank; i++) {
			double size = (double)tensor->sizes[tensor->rank - 1 - i];

			sizes[i] = size == 1 ? sizes[i] : size;
		}
	}
	for (unsigned i = 0; i < OP_DIMENSIONS; i++)
		elements *= sizes[i];
	return elements;
}

/* Floating point before integers, wide before narrow; single elements give way. */
static double weight_of(const struct op_tensor *tensor)
{
	return op_dtype_bytes(tensor->dtype) + (op_dtype_is_float(tensor->dtype) ? 100 : 0) +
	       (tensor->rank ? 1000 : 0);
}

static enum op_dtype output_dtype(const struct op_inputs *inputs, unsigned count)
{
	const struct op_tensor *best = NULL;

	for (unsigned index = 0; index < count; index++) {
		const struct op_tensor *tensor = op_tensor_at(inputs, index);

		if (tensor && tensor->dtype == OP_DTYPE_UNKNOWN)
			return OP_DTYPE_UNKNOWN;
		if (tensor && (!best || weight_of(tensor) > weight_of(best)))
			best = tensor;
	}
	return best ? best->dtype : OP_DTYPE_UNKNOWN;
}

/* A tensor behind the inputs is where the output goes. */
static void elementwise_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	unsigned count = formula->at[INPUTS];
	enum op_dtype dtype = output_dtype(inputs, count);
	double outputs = output_elements(inputs, count);

	if (dtype == OP_DTYPE_UNKNOWN)
		return;
	cost->dtype = dtype;
	cost->flop = outputs;
	cost->bytes = outputs * op_dtype_bytes(formula->at[MAKES_FLAGS] ? OP_BOOL : dtype);
	for (unsigned i = 0; i < count; i++)
		cost->bytes += op_argument_bytes(inputs, i);
}

/* aten::_foreach_add_([…], […]) and their like: the tensors of the first list are written. */
static void foreach_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	(void)formula;
	if (!inputs->count || inputs->arguments[0].kind != OP_TENSORS)
		return;
	cost->dtype = inputs->arguments[0].dtype;
	cost->flop = inputs->arguments[0].elements;
	cost->bytes = op_inputs_bytes(inputs) + op_argument_bytes(inputs, 0);
}

/* The output is the first argument: silu(x) * y or gelu(x) * y, of halves of the second. */
static void gated_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *output = op_tensor_at(inputs, 0);

	(void)formula;
	if (!output)
		return;
	cost->dtype = output->dtype;
	cost->flop = 2 * op_tensor_elements(output);
	cost->bytes = op_inputs_bytes(inputs);
}

#define ELEMENTWISE(name_, inputs_, makes_flags_)                                                  \
	{                                                                                          \
		.name = "aten::" name_, .at = {(inputs_), (makes_flags_)},                         \
		.cost = elementwise_cost                                                           \
	}
#define VALUES(name_, inputs_) ELEMENTWISE(name_, inputs_, false)
#define FLAGS(name_, inputs_)  ELEMENTWISE(name_, inputs_, true)
#define GATED(name_)                                                                               \
	{                                                                                          \
		.name = (name_), .reach = OP_CLOSED, .cost = gated_cost                            \
	}
#define FOREACH(name_)                                                                             \
	{                                                                                          \
		.name = "aten::_foreach_" name_, .reach = OP_CLOSED, .cost = foreach_cost          \
	}

const struct op_formula elementwise_formulas[] = {
	VALUES("abs", 1),
	VALUES("acos", 1),
	VALUES("acosh", 1),
	VALUES("angle", 1),
	VALUES("asin", 1),
	VALUES("atan", 1),
	VALUES("bernoulli", 1),
	VALUES("bitwise_not", 1),
	VALUES("ceil", 1),
	VALUES("cos", 1),
	VALUES("cosh", 1),
	VALUES("elu", 1),
	VALUES("erf", 1),
	VALUES("erfc", 1),
	VALUES("erfinv", 1),
	VALUES("exp", 1),
	VALUES("exp2", 1),
	VALUES("expm1", 1),
	VALUES("floor", 1),
	VALUES("frac", 1),
	VALUES("gelu", 1),
	VALUES("glu", 1),
	VALUES("hardsigmoid", 1),
	VALUES("hardswish", 1),
	VALUES("hardtanh", 1),
	VALUES("leaky_relu", 1),
	VALUES("log", 1),
	VALUES("log10", 1),
	VALUES("log1p", 1),
	VALUES("log2", 1),
	VALUES("log_sigmoid_forward", 1),
	VALUES("mish", 1),
	VALUES("nan_to_num", 1),
	VALUES("native_dropout", 1),
	VALUES("neg", 1),
	VALUES("reciprocal", 1),
	VALUES("relu", 1),
	VALUES("round", 1),
	VALUES("rsqrt", 1),
	VALUES("sgn", 1),
	VALUES("sigmoid", 1),
	VALUES("sign", 1),
	VALUES("silu", 1),
	VALUES("sin", 1),
	VALUES("sinh", 1),
	VALUES("softplus", 1),
	VALUES("sqrt", 1),
	VALUES("square", 1),
	VALUES("tan", 1),
	VALUES("tanh", 1),
	VALUES("threshold", 1),
	VALUES("tril", 1),
	VALUES("triu", 1),
	VALUES("trunc", 1),
	VALUES("add", 2),
	VALUES("atan2", 2),
	VALUES("bitwise_and", 2),
	VALUES("bitwise_left_shift", 2),
	VALUES("bitwise_or", 2),
	VALUES("bitwise_right_shift", 2),
	VALUES("bitwise_xor", 2),
	VALUES("clamp_max", 2),
	VALUES("clamp_min", 2),
	VALUES("div", 2),
	VALUES("elu_backward", 2),
	VALUES("floor_divide", 2),
	VALUES("fmod", 2),
	VALUES("gelu_backward", 2),
	VALUES("hardsigmoid_backward", 2),
	VALUES("hardswish_backward", 2),
	VALUES("hardtanh_backward", 2),
	VALUES("leaky_relu_backward", 2),
	VALUES("maximum", 2),
	VALUES("minimum", 2),
	VALUES("mish_backward", 2),
	VALUES("mse_loss", 2),
	VALUES("mul", 2),
	VALUES("native_dropout_backward", 2),
	VALUES("pow", 2),
	VALUES("remainder", 2),
	VALUES("rsub", 2),
	VALUES("sigmoid_backward", 2),
	VALUES("silu_backward", 2),
	VALUES("smooth_l1_loss", 2),
	VALUES("softplus_backward", 2),
	VALUES("sub", 2),
	VALUES("tanh_backward", 2),
	VALUES("threshold_backward", 2),
	VALUES("xlogy", 2),
	VALUES("_prelu_kernel", 2),
	VALUES("addcdiv", 3),
	VALUES("addcmul", 3),
	VALUES("clamp", 3),
	VALUES("lerp", 3),
	VALUES("log_sigmoid_backward", 3),
	VALUES("masked_fill", 3),
	VALUES("where", 3),
	FLAGS("isfinite", 1),
	FLAGS("isinf", 1),
	FLAGS("isnan", 1),
	FLAGS("logical_not", 1),
	FLAGS("signbit", 1),
	FLAGS("eq", 2),
	FLAGS("ge", 2),
	FLAGS("gt", 2),
	FLAGS("le", 2),
	FLAGS("logical_and", 2),
	FLAGS("logical_or", 2),
	FLAGS("logical_xor", 2),
	FLAGS("lt", 2),
	FLAGS("ne", 2),
	FOREACH("abs"),
	FOREACH("add"),
	FOREACH("addcdiv"),
	FOREACH("addcmul"),
	FOREACH("clamp_max"),
	FOREACH("clamp_min"),
	FOREACH("div"),
	FOREACH("exp"),
	FOREACH("lerp"),
	FOREACH("maximum"),
	FOREACH("minimum"),
	FOREACH("mul"),
	FOREACH("neg"),
	FOREACH("pow"),
	FOREACH("reciprocal"),
	FOREACH("sqrt"),
	FOREACH("sub"),
	GATED("_C::silu_and_mul"),
	GATED("_C::gelu_and_mul"),
	GATED("_C::gelu_tanh_and_mul"),
	GATED("sgl_kernel::silu_and_mul"),
	GATED("sgl_kernel::gelu_and_mul"),
	GATED("sgl_kernel::gelu_tanh_and_mul"),
	GATED("aiter::silu_and_mul"),
	GATED("aiter::gelu_and_mul"),
	GATED("aiter::gelu_tanh_and_mul"),
	{0},
};
