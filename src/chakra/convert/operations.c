/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/operations.h"

#include <string.h>

#include "chakra/convert/tensors.h"
#include "chakra/json_piece.h"

typedef const struct execution_values *values;

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

/* Of all sizes from `begin` on, before `end`. */
static uint64_t sizes(const struct tensor_shape *shape, unsigned begin, unsigned end)
{
	uint64_t result = 1;

	for (unsigned i = begin; i < end; i++)
		result = product(result, shape->sizes[i]);
	return result;
}

/* [… M K] × [… K N] at these two places: one multiplication and one addition for each of M K N. */
static uint64_t matrices(values inputs, unsigned first)
{
	struct tensor_shape a = tensor_shape(inputs, first), b = tensor_shape(inputs, first + 1);
	uint64_t rows, inner, columns, batch;

	if (a.dimensions == 0 || b.dimensions == 0)
		return 0;
	inner = a.sizes[a.dimensions - 1];
	rows = a.dimensions > 1 ? a.sizes[a.dimensions - 2] : 1;
	columns = b.dimensions > 1 ? b.sizes[b.dimensions - 1] : 1;
	batch = MAX(a.dimensions > 2 ? sizes(&a, 0, a.dimensions - 2) : 1,
		b.dimensions > 2 ? sizes(&b, 0, b.dimensions - 2) : 1);
	return product(product(2, batch), product(product(rows, inner), columns));
}

static uint64_t first_two(values inputs, values outputs _unused_)
{
	return matrices(inputs, 0);
}

/* What is added comes first. */
static uint64_t second_two(values inputs, values outputs _unused_)
{
	return matrices(inputs, 1);
}

/* [… K] × the transposed [N K] */
static uint64_t linear(values inputs, values outputs _unused_)
{
	struct tensor_shape a = tensor_shape(inputs, 0), weight = tensor_shape(inputs, 1);

	return product(product(2, tensor_shape_elements(&a)),
		weight.dimensions == 2 ? weight.sizes[0] : 0);
}

/* For each element of `moved`, the output or its gradient, the whole of a filter. */
static uint64_t filters(const struct tensor_shape *moved, const struct tensor_shape *weight)
{
	if (weight->dimensions < 3)
		return 0;
	return product(
		product(2, tensor_shape_elements(moved)), sizes(weight, 1, weight->dimensions));
}

static uint64_t convolution(values inputs, values outputs)
{
	struct tensor_shape weight = tensor_shape(inputs, 1), output = tensor_shape(outputs, 0);

	return filters(&output, &weight);
}

/* (input, weight, bias, stride, padding, dilation, transposed …) */
static uint64_t convolution_either_way(values inputs, values outputs)
{
	struct tensor_shape input = tensor_shape(inputs, 0), weight = tensor_shape(inputs, 1);

	if (!execution_text_equals(tensor_value(inputs, 6), "true"))
		return convolution(inputs, outputs);
	return filters(&input, &weight);
}

/* The gradients of input and weight, each as much as the way forward, where they are wanted. */
static uint64_t convolution_backward(values inputs, values outputs _unused_)
{
	struct tensor_shape gradient = tensor_shape(inputs, 0), weight = tensor_shape(inputs, 2);
	struct json_piece mask = json_piece_list(tensor_value(inputs, 10));
	struct execution_text wanted;
	uint64_t gradients = 0;

	for (int i = 0; i < 2 && json_piece_next(&mask, &wanted); i++)
		gradients += execution_text_equals(wanted, "true");
	return product(gradients, filters(&gradient, &weight));
}

/* Query × key and their product × value; `place` is where the sequence is in the key's shape. */
static uint64_t attention(values inputs, unsigned query, unsigned place)
{
	struct tensor_shape q = tensor_shape(inputs, query), k = tensor_shape(inputs, query + 1);

	if (q.dimensions != 4 || k.dimensions != 4)
		return 0;
	return product(4, product(tensor_shape_elements(&q), k.sizes[place]));
}

/* [batch, heads, sequence, head size] */
static uint64_t attention_heads_first(values inputs, values outputs _unused_)
{
	return attention(inputs, 0, 2);
}

/* [batch, sequence, heads, head size] */
static uint64_t attention_sequence_first(values inputs, values outputs _unused_)
{
	return attention(inputs, 0, 1);
}

/* Five products of matrices where forward has two; the gradient comes first. */
static uint64_t attention_backward_heads_first(values inputs, values outputs _unused_)
{
	return product(attention(inputs, 1, 2), 5) / 2;
}

static uint64_t attention_backward_sequence_first(values inputs, values outputs _unused_)
{
	return product(attention(inputs, 1, 1), 5) / 2;
}

static const struct {
	const char *name; /* behind "aten::" */
	uint64_t (*count)(values inputs, values outputs);
} kinds[] = {
	{"mm", first_two},
	{"bmm", first_two},
	{"mv", first_two},
	{"dot", first_two},
	{"matmul", first_two},
	{"_int_mm", first_two},
	{"_scaled_mm", first_two},
	{"addmm", second_two},
	{"addmm_", second_two},
	{"addmv", second_two},
	{"baddbmm", second_two},
	{"baddbmm_", second_two},
	{"_addmm_activation", second_two},
	{"linear", linear},
	{"convolution", convolution_either_way},
	{"_convolution", convolution_either_way},
	{"convolution_overrideable", convolution_either_way},
	{"cudnn_convolution", convolution},
	{"cudnn_convolution_relu", convolution},
	{"cudnn_convolution_add_relu", convolution},
	{"miopen_convolution", convolution},
	{"mkldnn_convolution", convolution},
	{"conv1d", convolution},
	{"conv2d", convolution},
	{"conv3d", convolution},
	{"_conv_depthwise2d", convolution},
	{"_slow_conv2d_forward", convolution},
	{"thnn_conv2d", convolution},
	{"convolution_backward", convolution_backward},
	{"scaled_dot_product_attention", attention_heads_first},
	{"_scaled_dot_product_attention_math", attention_heads_first},
	{"_scaled_dot_product_flash_attention", attention_heads_first},
	{"_scaled_dot_product_flash_attention_for_cpu", attention_heads_first},
	{"_scaled_dot_product_efficient_attention", attention_heads_first},
	{"_scaled_dot_product_cudnn_attention", attention_heads_first},
	{"_flash_attention_forward", attention_sequence_first},
	{"_efficient_attention_forward", attention_sequence_first},
	{"_scaled_dot_product_flash_attention_backward", attention_backward_heads_first},
	{"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward_heads_first},
	{"_scaled_dot_product_efficient_attention_backward", attention_backward_heads_first},
	{"_scaled_dot_product_cudnn_attention_backward", attention_backward_heads_first},
	{"_flash_attention_backward", attention_backward_sequence_first},
	{"_efficient_attention_backward", attention_backward_sequence_first},
};

uint64_t operations_of(struct execution_text name, const struct execution_values *inputs,
	const struct execution_values *outputs)
{
	static const char prefix[] = "aten::";
	const size_t length = sizeof(prefix) - 1;

	if (name.length <= length || memcmp(name.bytes, prefix, length) != 0)
		return 0;
	name.bytes += length;
	name.length -= (uint32_t)length;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (execution_text_equals(name, kinds[i].name))
			return kinds[i].count(inputs, outputs);
	}
	return 0;
}
