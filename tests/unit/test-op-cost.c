/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and bytes of operators, by inputs as PyTorch's profiler writes them, on cases computed
 * by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "model/cost/op_cost.h"

static struct json_text text(const char *bytes)
{
	return (struct json_text){.bytes = bytes, .length = strlen(bytes)};
}

struct example {
	const char *name, *dims, *types, *strides, *values;
	enum op_family family;
	double flop, bytes; /* NAN: not known */
};

#define FLOAT2 "[\"float\", \"float\"]"
#define HALF   "\"c10::Half\""

static const struct example examples[] = {
	/* 2 * 2 * 3 * 4; 6 + 12 + 8 elements of 4 bytes */
	{"aten::mm", "[[2, 3], [3, 4]]", FLOAT2, "", "", OP_FAMILY_GEMM, 48, 104},
	/* The second one is 12 elements, of which a stride of 0 leaves 3. */
	{"aten::mm", "[[2, 3], [3, 4]]", FLOAT2, "[[3, 1], [1, 0]]", "", OP_FAMILY_GEMM, 48, 68},
	{"aten::mm", "[[2, 3], [5, 4]]", FLOAT2, "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "[[2, 3]]", FLOAT2, "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "", "", "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::addmm", "[[4], [2, 3], [3, 4], [], []]",
		"[" HALF ", " HALF ", " HALF ", \"Scalar\", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"1\", \"1\"]", OP_FAMILY_GEMM, 48, 60},
	/* The same in an execution trace. */
	{"aten::addmm", "[[4], [2, 3], [3, 4], [], []]",
		"[\"Tensor(c10::Half)\", \"Tensor(c10::Half)\", \"Tensor(c10::Half)\", \"Int\", "
		"\"Int\"]",
		"", "[[1, 2, 0, 4, 2, \"cuda:0\"], [], [], 1, 1]", OP_FAMILY_GEMM, 48, 60},
	{"aten::bmm", "[[5, 2, 3], [5, 3, 4]]", FLOAT2, "", "", OP_FAMILY_GEMM, 240, 520},
	/* beta is 0: the first input is not read. */
	{"aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4], [], []]",
		"[\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"0.\", \"0.125\"]", OP_FAMILY_GEMM, 240, 520},
	/* FP8 in, BF16 (number 15) out: 6 + 12 + 2 * 8, and two scales of 4 bytes are left out. */
	{"aten::_scaled_mm", "[[2, 3], [3, 4], [], [], [], [], [], []]",
		"[\"c10::Float8_e4m3fn\", \"c10::Float8_e4m3fn\", \"float\", \"float\", \"\", \"\", "
		"\"Scalar\", \"Scalar\"]",
		"", "[\"\", \"\", \"\", \"\", \"\", \"\", \"15\", \"True\"]", OP_FAMILY_GEMM, 48,
		34},
	{"aten::linear", "[[7, 2, 3], [4, 3], [4]]", "[\"float\", \"float\", \"float\"]", "", "",
		OP_FAMILY_GEMM, 336, (42 + 12 + 4 + 56) * 4},
	{"aten::matmul", "[[2, 3], [3]]", FLOAT2, "", "", OP_FAMILY_GEMM, 12, 44},
	/* 8 by 8, stride 2, padding 1: 4 by 4 come out. 2 * (2*4*4*4) * 27 */
	{"aten::convolution", "[[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], [], [], []]",
		"[\"float\", \"float\", \"float\", \"ScalarList\", \"ScalarList\", "
		"\"ScalarList\", \"Scalar\", \"ScalarList\", \"Scalar\"]",
		"",
		"[\"\", \"\", \"\", \"[2, 2]\", \"[1, 1]\", \"[1, 1]\", \"False\", \"[0, 0]\", "
		"\"1\"]",
		OP_FAMILY_CONVOLUTION, 6912, (384 + 108 + 4 + 128) * 4},
	/* Transposed: 8 by 8 become 15 by 15; 2 * (2*3*8*8) * (5*3*3) */
	{"aten::convolution", "[[2, 3, 8, 8], [3, 5, 3, 3], [], [], [], [], [], [], []]",
		"[\"float\", \"float\", \"\", \"ScalarList\", \"ScalarList\", \"ScalarList\", "
		"\"Scalar\", \"ScalarList\", \"Scalar\"]",
		"",
		"[\"\", \"\", \"\", \"[2, 2]\", \"[1, 1]\", \"[1, 1]\", \"True\", \"[0, 0]\", "
		"\"1\"]",
		OP_FAMILY_CONVOLUTION, 34560, (384 + 135 + 2250) * 4},
	/* Both gradients, each as many operations as going forward. */
	{"aten::convolution_backward",
		"[[2, 4, 4, 4], [2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], [], []]",
		"[\"float\", \"float\", \"float\", \"ScalarList\", \"ScalarList\", "
		"\"ScalarList\", \"ScalarList\", \"Scalar\", \"ScalarList\", \"Scalar\", "
		"\"ScalarList\"]",
		"",
		"[\"\", \"\", \"\", \"[4]\", \"[2, 2]\", \"[1, 1]\", \"[1, 1]\", \"False\", "
		"\"[0, 0]\", \"1\", \"[True, True, False]\"]",
		OP_FAMILY_CONVOLUTION, 13824, 2 * (128 + 384 + 108) * 4},
	/* Two groups: each of the 4 outputs has weights of 2 inputs. */
	{"aten::convolution_backward",
		"[[2, 4, 8, 8], [2, 4, 8, 8], [4, 2, 1, 1], [], [], [], [], [], [], [], []]",
		"[\"float\", \"float\", \"float\", \"ScalarList\", \"ScalarList\", "
		"\"ScalarList\", \"ScalarList\", \"Scalar\", \"ScalarList\", \"Scalar\", "
		"\"ScalarList\"]",
		"",
		"[\"\", \"\", \"\", \"[0]\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"False\", "
		"\"[0, 0]\", \"2\", \"[False, True, False]\"]",
		OP_FAMILY_CONVOLUTION, 2048, (512 + 512 + 8) * 4},
	/* 6 rows of 3, each by one of 2 matrices; and going backward, one (3, 4) for each of them.
	 */
	{"aten::_grouped_mm", "[[6, 3], [2, 3, 4], [2], [], []]",
		"[\"float\", \"float\", \"int\", \"\", \"\"]", "", "", OP_FAMILY_GEMM, 144,
		(18 + 24 + 24) * 4},
	{"aten::_grouped_mm", "[[3, 6], [6, 4], [2], [], []]",
		"[\"float\", \"float\", \"int\", \"\", \"\"]", "", "", OP_FAMILY_GEMM, 144,
		(18 + 24 + 24) * 4},
	/* 2 sequences, 4 heads of 8, 2 heads of keys: 2 * (2*4*16*16) * (8 + 8), halved. */
	{"aten::_scaled_dot_product_flash_attention",
		"[[2, 4, 16, 8], [2, 2, 16, 8], [2, 2, 16, 8], [], [], [], []]",
		"[" HALF ", " HALF ", " HALF ", \"Scalar\", \"Scalar\", \"Scalar\", \"\"]", "",
		"[\"\", \"\", \"\", \"0.\", \"True\", \"False\", \"\"]", OP_FAMILY_ATTENTION, 32768,
		(1024 + 512 + 512 + 1024) * 2},
	/* One query for many keys is never halved. */
	{"aten::_scaled_dot_product_flash_attention",
		"[[2, 4, 1, 8], [2, 4, 16, 8], [2, 4, 16, 8], [], [], [], []]",
		"[" HALF ", " HALF ", " HALF ", \"Scalar\", \"Scalar\", \"Scalar\", \"\"]", "",
		"[\"\", \"\", \"\", \"0.\", \"True\", \"False\", \"\"]", OP_FAMILY_ATTENTION, 4096,
		(64 + 1024 + 1024 + 64) * 2},
	/* Five products: three along the queries' size, two along the values'. */
	{"flash_attn::_flash_attn_backward",
		"[[2, 16, 4, 8], [2, 16, 4, 8], [2, 16, 4, 8], [2, 16, 4, 8]]",
		"[" HALF ", " HALF ", " HALF ", " HALF "]", "", "", OP_FAMILY_ATTENTION, 163840,
		8 * 1024 * 2},
	/* 64 tokens of 4 sequences, taken as 16 each. */
	{"flash_attn::_flash_attn_varlen_forward", "[[64, 4, 8], [64, 4, 8], [64, 4, 8], [5], [5]]",
		"[" HALF ", " HALF ", " HALF ", \"int\", \"int\"]", "", "", OP_FAMILY_ATTENTION,
		131072, 4 * 2048 * 2},
	{"aten::native_layer_norm", "[[2, 6], [], [6], [6], []]",
		"[\"float\", \"ScalarList\", \"float\", \"float\", \"Scalar\"]", "", "",
		OP_FAMILY_NORM, 60, (12 + 6 + 6 + 12) * 4},
	/* In inference only scaling is left. */
	{"aten::native_batch_norm", "[[2, 6], [6], [6], [6], [6], [], [], []]",
		"[\"float\", \"float\", \"float\", \"float\", \"float\", \"Scalar\", \"Scalar\", "
		"\"Scalar\"]",
		"", "[\"\", \"\", \"\", \"\", \"\", \"False\", \"0.1\", \"1e-05\"]", OP_FAMILY_NORM,
		24, (12 + 24 + 12) * 4},
	/* Broadcast, and the wider type. */
	{"aten::add", "[[2, 3], [3], []]", "[\"c10::BFloat16\", \"float\", \"Scalar\"]", "", "",
		OP_FAMILY_ELEMENTWISE, 6, 12 + 12 + 24},
	/* In its place; and where a tensor of one element gives way. */
	{"aten::mul_", "[[2, 3], []]", "[\"c10::BFloat16\", \"double\"]", "", "",
		OP_FAMILY_ELEMENTWISE, 6, 12 + 8 + 12},
	/* The second tensor is where it goes. */
	{"aten::exp", "[[2, 3], [2, 3]]", FLOAT2, "", "", OP_FAMILY_ELEMENTWISE, 6, 48},
	{"aten::lt", "[[2, 3], [2, 3]]", FLOAT2, "", "", OP_FAMILY_ELEMENTWISE, 6, 54},
	{"aten::_foreach_add_", "[[[2, 3], [4]], [[2, 3], [4]]]",
		"[\"GenericList[Tensor(float),Tensor(float)]\", "
		"\"GenericList[Tensor(float),Tensor(float)]\"]",
		"", "", OP_FAMILY_ELEMENTWISE, 10, 120},
	/* Kineto does not say what a list's tensors are of. */
	{"aten::_foreach_add_", "[[[2, 3], [4]], [[2, 3], [4]]]",
		"[\"TensorList\", \"TensorList\"]", "", "", OP_FAMILY_ELEMENTWISE, 10, NAN},
	{"aten::sum", "[[2, 3, 4], [], [], []]", "[\"float\", \"ScalarList\", \"Scalar\", \"\"]",
		"", "[\"\", \"[-1]\", \"False\", \"\"]", OP_FAMILY_REDUCTION, 24, (24 + 6) * 4},
	{"aten::max", "[[2, 3, 4]]", "[\"float\"]", "", "[\"\"]", OP_FAMILY_REDUCTION, 24, 25 * 4},
	/* Rows of 8 for 3 indices. */
	{"aten::embedding", "[[100, 8], [3], [], [], []]",
		"[\"float\", \"long int\", \"Scalar\", \"Scalar\", \"Scalar\"]", "", "",
		OP_FAMILY_EMBEDDING, 0, 24 + 2 * 96},
	{"aten::copy_", "[[2, 3], [2, 3], []]", "[\"float\", \"c10::Half\", \"Scalar\"]", "", "",
		OP_FAMILY_COPY, 0, 36},
	/* Kineto may not say what is in a list. */
	{"aten::cat", "[[], []]", "[\"TensorList\", \"Scalar\"]", "", "", OP_FAMILY_COPY, NAN, NAN},
	{"aten::fill_", "[[2, 3], []]", "[\"float\", \"Scalar\"]", "", "", OP_FAMILY_COPY, 0, 24},
	{"triton_poi_fused_add_0", "[[2, 3], [2, 3], []]", "[\"float\", \"float\", \"Scalar\"]", "",
		"", OP_FAMILY_TRITON, NAN, 48},
	/* Nonsense. */
	{"aten::mm", "[[-2, 3], [3, 4]]", FLOAT2, "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "[[2147483647, 2147483647], [2147483647, 9223372036854775807]]", FLOAT2, "",
		"", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "[[2, 3], [3, 4]", FLOAT2, "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "[2, 3]", FLOAT2, "", "", OP_FAMILY_GEMM, NAN, NAN},
	{"aten::mm", "[[2, 3], [3, 4]]", "[\"float\", \"quantum\"]", "", "", OP_FAMILY_GEMM, 48,
		NAN},
};

static bool is_same(double a, double b)
{
	return isnan(a) ? isnan(b) : !isnan(b) && fabs(a - b) < 0.5;
}

static void operators_cost_what_their_inputs_say(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const struct example *example = &examples[i];
		const struct op_texts texts = {
			.dims = text(example->dims),
			.types = text(example->types),
			.strides = text(example->strides),
			.values = text(example->values),
		};
		enum op_family family;
		const struct op_formula *formula = op_formula_find(example->name, &family);
		struct op_cost cost;

		assert_non_null(formula);
		assert_int_equal(family, example->family);
		cost = op_cost_of(formula, &texts);
		if (!is_same(cost.flop, example->flop) || !is_same(cost.bytes, example->bytes))
			fail_msg("%zu: %s %s: %g operations, %g bytes", i, example->name,
				example->dims, cost.flop, cost.bytes);
	}
}

static void other_operators_have_no_formula(void **state)
{
	enum op_family family;

	assert_null(op_formula_find("aten::mmm", &family));
	assert_int_equal(family, OP_FAMILY_OTHER);
	assert_null(op_formula_find("aten::add__", &family));
	assert_null(op_formula_find("", &family));
}

static void inputs_are_described_by_their_sizes(void **state)
{
	const struct op_texts texts = {
		.dims = text("[[2, 3], [3, 4], [], [], [[2], [3]]]"),
		.types = text("[\"float\", \"float\", \"c10::Half\", \"Scalar\", \"TensorList\"]"),
	};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct op_inputs inputs;

	assert_true(op_inputs_read(&inputs, &texts));
	op_inputs_describe(&out, &inputs);
	assert_string_equal(strbuf_cstr(&out), "2\xc3\x97"
					       "3 fp32, 3\xc3\x97"
					       "4, 1 fp16, list of 5");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_cost_what_their_inputs_say),
		cmocka_unit_test(other_operators_have_no_formula),
		cmocka_unit_test(inputs_are_described_by_their_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
