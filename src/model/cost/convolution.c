/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions: each output element takes 2 operations for each weight of its channel; of a
 * transposed one, each input element. So counts PyTorch's torch/utils/flop_counter.py
 * (conv_flop_count, conv_backward_flop), without the bias. A gradient that is wanted, of the input
 * or of the weights, takes as many as going forward. In groups, PyTorch's formula for the gradient
 * of the weights is too large by the number of groups; here it is not.
 */
#include "model/cost/families.h"

enum { AT_INPUT, AT_WEIGHT, AT_BIAS, AT_STRIDE, AT_PADDING, AT_DILATION, AT_TRANSPOSED };
/* Of gradients, in place of the bias: which are wanted. */
#define AT_WANTED AT_BIAS

#define SPATIAL (OP_DIMENSIONS - 2)

/* Of the arguments that say how. */
struct settings {
	int64_t stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL], output_padding[SPATIAL];
	bool is_transposed;
};

/* One number is that of all dimensions; none is the default. False: too few. */
static bool read_setting(const struct op_inputs *inputs, unsigned index, int64_t otherwise,
	unsigned dimensions, int64_t values[SPATIAL])
{
	unsigned count = op_list_at(inputs, index, values, SPATIAL);

	if (!count)
		values[0] = otherwise;
	for (unsigned i = 1; count <= 1 && i < dimensions; i++)
		values[i] = values[0];
	return count <= 1 || count >= dimensions;
}

static bool read_settings(const struct op_inputs *inputs, const struct op_formula *formula,
	unsigned dimensions, struct settings *settings)
{
	unsigned transposed = formula->at[AT_TRANSPOSED];

	settings->is_transposed = false;
	op_flag_at(inputs, transposed, &settings->is_transposed);
	return read_setting(inputs, formula->at[AT_STRIDE], 1, dimensions, settings->stride) &&
	       read_setting(inputs, formula->at[AT_PADDING], 0, dimensions, settings->padding) &&
	       read_setting(inputs, formula->at[AT_DILATION], 1, dimensions, settings->dilation) &&
	       read_setting(inputs, transposed == OP_NOWHERE ? OP_NOWHERE : transposed + 1, 0,
		       dimensions, settings->output_padding);
}

/* Along one dimension: PyTorch's documentation of Conv2d and ConvTranspose2d. */
static double output_size(double input, double kernel, const struct settings *settings, unsigned i)
{
	double stride = (double)settings->stride[i], padding = (double)settings->padding[i];
	double reach = (double)settings->dilation[i] * (kernel - 1);

	if (stride < 1)
		return NAN;
	if (settings->is_transposed)
		return (input - 1) * stride - 2 * padding + reach +
		       (double)settings->output_padding[i] + 1;
	return floor((input + 2 * padding - reach - 1) / stride) + 1;
}

/* Elements of the output, NaN where they are not known. */
static double output_elements(const struct op_inputs *inputs, const struct op_formula *formula,
	const struct op_tensor *input, const struct op_tensor *weight, struct settings *settings)
{
	double elements;

	if (!read_settings(inputs, formula, input->rank - 2, settings))
		return NAN;
	/* Transposed, the second size is that of one group, of which the input's channels tell. */
	elements = (double)input->sizes[0] * (double)weight->sizes[settings->is_transposed];
	for (unsigned i = 0; i + 2 < input->rank; i++) {
		double size = output_size(
			(double)input->sizes[i + 2], (double)weight->sizes[i + 2], settings, i);

		elements *= size > 0 ? size : NAN;
	}
	return elements;
}

static bool is_convolution(const struct op_tensor *input, const struct op_tensor *weight)
{
	return input && weight && input->rank > 2 && input->rank == weight->rank;
}

static double flop_of(const struct op_tensor *input, const struct op_tensor *weight, double outputs,
	bool is_transposed)
{
	double pairs = is_transposed ? op_tensor_elements(input) : outputs;

	return 2 * pairs * op_tensor_elements(weight) / (double)weight->sizes[0];
}

static void forward_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *input = op_tensor_at(inputs, formula->at[AT_INPUT]);
	const struct op_tensor *weight = op_tensor_at(inputs, formula->at[AT_WEIGHT]);
	struct settings settings;
	double outputs;

	if (!is_convolution(input, weight))
		return;
	outputs = output_elements(inputs, formula, input, weight, &settings);
	cost->dtype = input->dtype;
	cost->flop = flop_of(input, weight, outputs, settings.is_transposed);
	cost->bytes = op_tensor_bytes(input) + op_tensor_bytes(weight) +
		      op_argument_bytes(inputs, formula->at[AT_BIAS]) +
		      outputs * op_dtype_bytes(input->dtype);
}

/* aten::convolution_backward(grad, input, weight, …, output_mask): which gradients are wanted. */
static void backward_cost(
	const struct op_inputs *inputs, const struct op_formula *formula, struct op_cost *cost)
{
	const struct op_tensor *gradient = op_tensor_at(inputs, 0);
	const struct op_tensor *input = op_tensor_at(inputs, formula->at[AT_INPUT]);
	const struct op_tensor *weight = op_tensor_at(inputs, formula->at[AT_WEIGHT]);
	int64_t wanted[3] = {1, 1, 1};
	bool is_transposed = false;
	double gradients, all;

	if (!gradient || !is_convolution(input, weight))
		return;
	op_list_at(inputs, formula->at[AT_WANTED], wanted, ARRAY_SIZE(wanted));
	op_flag_at(inputs, formula->at[AT_TRANSPOSED], &is_transposed);
	gradients = (double)(!!wanted[0] + !!wanted[1]);
	all = op_tensor_bytes(gradient) + op_tensor_bytes(input) + op_tensor_bytes(weight);
	cost->dtype = gradient->dtype;
	cost->flop =
		gradients * flop_of(input, weight, op_tensor_elements(gradient), is_transposed);
	/* Of two the third tensor is made, once for each gradient; of the bias the sum. */
	cost->bytes = gradients * all;
	if (wanted[2])
		cost->bytes += op_tensor_bytes(gradient);
}

#define CONVOLUTION(name_, reach_, cost_, ...)                                                     \
	{                                                                                          \
		.name = (name_), .reach = (reach_), .at = {__VA_ARGS__}, .cost = (cost_)           \
	}
#define FORWARD(name_, ...) CONVOLUTION("aten::" name_, OP_CLOSED, forward_cost, 0, 1, __VA_ARGS__)
#define COMPOSITE(name_, ...)                                                                      \
	CONVOLUTION("aten::" name_, OP_COMPOSITE, forward_cost, 0, 1, __VA_ARGS__)
#define BACKWARD(name_, ...)                                                                       \
	CONVOLUTION("aten::" name_, OP_CLOSED, backward_cost, 1, 2, __VA_ARGS__)
#define NOWHERE OP_NOWHERE

const struct op_formula convolution_formulas[] = {
	FORWARD("convolution", 2, 3, 4, 5, 6),
	FORWARD("_convolution", 2, 3, 4, 5, 6),
	FORWARD("convolution_overrideable", 2, 3, 4, 5, 6),
	BACKWARD("convolution_backward", 10, 4, 5, 6, 7),
	BACKWARD("convolution_backward_overrideable", 9, 3, 4, 5, 6),
	COMPOSITE("conv1d", 2, 3, 4, 5, NOWHERE),
	COMPOSITE("conv2d", 2, 3, 4, 5, NOWHERE),
	COMPOSITE("conv3d", 2, 3, 4, 5, NOWHERE),
	/* Those below are called by the ones above. */
	FORWARD("cudnn_convolution", NOWHERE, 3, 2, 4, NOWHERE),
	FORWARD("cudnn_convolution_relu", 2, 3, 4, 5, NOWHERE),
	FORWARD("cudnn_convolution_add_relu", 4, 5, 6, 7, NOWHERE),
	FORWARD("miopen_convolution", 2, 4, 3, 5, NOWHERE),
	FORWARD("mkldnn_convolution", 2, 4, 3, 5, NOWHERE),
	FORWARD("_slow_conv2d_forward", 3, 4, 5, NOWHERE, NOWHERE),
	FORWARD("thnn_conv2d", 3, 4, 5, NOWHERE, NOWHERE),
	FORWARD("_conv_depthwise2d", 3, 4, 5, 6, NOWHERE),
	{0},
};
