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
#include "model/cost/op_batch.h"
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

/* Of serving engines, and others that are no part of PyTorch. */
#define BF16 "\"c10::BFloat16\""
#define FP8  "\"c10::Float8_e4m3fn\""
#define INT  "\"int\""
#define LONG "\"long int\""

static const struct {
	struct example of;
	const char *annotation; /* around it */
	enum op_bound flop_is, bytes_is;
	unsigned list_bytes;
} bounded[] = {
	/* 2 * 2 * 4 * 3; 6 + 12 + 8 elements of 2 bytes; to FP32 (number 6) the 8 take 4. */
	{{"aiter::gemm_a16w16", "[[2, 3], [4, 3], [], [], []]",
		"[" BF16 ", " BF16 ", \"\", \"Scalar\", \"\"]", "",
		"[\"\", \"\", \"\", \"6\", \"\"]", OP_FAMILY_GEMM, 48, 68}},
	/* 6 + 12 of one byte, 2 + 4 scales of 4, 8 of BF16. */
	{{"aiter::gemm_a8w8_blockscale_ck", "[[2, 3], [4, 3], [2, 1], [4, 1], [2, 4]]",
		"[" FP8 ", " FP8 ", \"float\", \"float\", " BF16 "]", "", "", OP_FAMILY_GEMM, 48,
		18 + 24 + 16}},
	/* Two numbers in each element: 2 * 2 * 4 * 6, and 6 + 12 bytes, 8 of BF16. */
	{{"aiter::gemm_a4w4", "[[2, 3], [4, 3], [], [], [], []]",
		"[\"c10::Float4_e2m1fn_x2\", \"c10::Float4_e2m1fn_x2\", \"\", \"\", \"\", "
		"\"Scalar\"]",
		"", "", OP_FAMILY_GEMM, 96, 18 + 16}},
	/* The same with scales of 2 and 4 bytes, in between. */
	{{"primus_turbo_cpp_extension::hipblaslt_gemm_fp4",
		"[[2, 3], [2, 1], [4, 3], [4, 1], [], [], [], [], []]",
		"[\"c10::Float4_e2m1fn_x2\", \"c10::Float8_e8m0fnu\", \"c10::Float4_e2m1fn_x2\", "
		"\"c10::Float8_e8m0fnu\", \"Scalar\"]",
		"", "[\"\", \"\", \"\", \"\", \"15\"]", OP_FAMILY_GEMM, 96, 18 + 6 + 16}},
	/* (4, 3) transposed by (2, 3): 2 * 4 * 2 * 3; 12 + 6 of FP8 in bytes, 8 and a bias of 4. */
	{{"tex_ts::te_gemm_ts",
		"[[4, 3], [1], [], [], [], [2, 3], [1], [], [], [], [2, 4], [], [], [], [4]]",
		"[\"unsigned char\", \"float\", \"\", \"\", \"\", \"unsigned char\", \"float\", \"\", "
		"\"\", \"\", " BF16 ", \"\", \"\", \"\", " BF16 "]",
		"", "[\"\", \"\", \"\", \"6\", \"1\"]", OP_FAMILY_GEMM, 48, 18 + 16 + 8}},
	/* (3, 4), not transposed. */
	{{"tex_ts::te_gemm_ts", "[[3, 4], [], [], [], [], [2, 3], [], [], [], [], [2, 4]]",
		"[" BF16 ", \"\", \"\", \"\", \"\", " BF16 ", \"\", \"\", \"\", \"\", " BF16 "]",
		"", "[\"\", \"\", \"\", \"5\", \"0\"]", OP_FAMILY_GEMM, 48, (12 + 6 + 8) * 2}},
	/* Whether it is transposed is not said. */
	{{"tex_ts::te_gemm_ts", "[[3, 4], [], [], [], [], [2, 3], [], [], [], [], [2, 4]]",
		"[" BF16 ", \"\", \"\", \"\", \"\", " BF16 ", \"\", \"\", \"\", \"\", " BF16 "]",
		"", "", OP_FAMILY_GEMM, NAN, NAN}},
	/* 2 by 40 of 2 bytes, to 2 rows of 20 bytes and 2 scales. */
	{{"sglang_profiler::quant_dynamic_mxfp4_quant", "[[2, 40]]", "[" BF16 "]", "", "",
		OP_FAMILY_ELEMENTWISE, 160, 160 + 40 + 4}},
	/* 80 in a row: 3 scales. */
	{{"sglang_profiler::fused_mxfp4_quant_fused_flatten_mxfp4_quant", "[[2, 2, 40]]",
		"[" BF16 "]", "", "", OP_FAMILY_ELEMENTWISE, 320, 320 + 80 + 6}},
	/* And 40 columns of one scale. */
	{{"primus_turbo_cpp_extension::quantize_mxfp4_dual", "[[2, 40]]", "[" BF16 "]", "", "",
		OP_FAMILY_ELEMENTWISE, 320, 160 + 40 + 4 + 40 + 40}},
	{{"aiter::dynamic_per_group_scaled_quant_fp4", "[[2, 20], [2, 40], [2, 2]]",
		"[" FP8 ", " BF16 ", " FP8 "]", "", "", OP_FAMILY_ELEMENTWISE, 160, 40 + 160 + 4}},
	{{"aiter::fused_dynamic_mxfp4_quant_moe_sort_hip", "[[2, 20], [32, 2], [2, 40], [32], [2]]",
		 "[" FP8 ", " FP8 ", " BF16 ", " INT ", " INT "]", "", "", OP_FAMILY_ELEMENTWISE,
		 160, 40 + 64 + 160 + 136},
		.bytes_is = OP_AT_MOST},
	/* 4 heads of 6 + 2 and values of 6, or latents of 12 + 2. 10 queries of 30 keys, 100 pairs
	 * fewer by half, and 6 of 40: 290 pairs, 70 keys; 4 matrices of 12 by 6 + 6. */
	{{"vllm::unified_mla_attention_with_output",
		 "[[20, 4, 8], [20, 12], [20, 1, 2], [20, 24], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 "]", "", "", OP_FAMILY_ATTENTION,
		 2 * 290 * 4 * 26 + 2 * 70 * 576, 16 * 4 * 8 * 2 + 16 * 24 * 2 + 70 * 14 + 576 * 2},
		"execute_16_context_1(sq10sk30sqsq100sqsk300)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_MOST, OP_AT_MOST},
	{{"vllm::unified_mla_attention_with_output",
		 "[[20, 4, 8], [20, 12], [20, 1, 2], [20, 24], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 "]", "", "", OP_FAMILY_ATTENTION,
		 2 * 20 * 4 * 14, 20 * 4 * 8 * 2 + 20 * 24 * 2},
		NULL, OP_AT_LEAST, OP_AT_LEAST},
	/* 4 heads of 12 + 2, values of 12; 6 queries, 40 pairs and keys. */
	{{"aiter::mla_decode_stage1_asm_fwd",
		 "[[8, 4, 14], [100, 1, 1, 14], [9], [9], [40], [8], [], [], [8, 2, 4, 12]]",
		 "[" BF16 ", " FP8 ", " INT ", " INT ", " INT ", " INT ", \"\", \"\", \"float\"]",
		 "", "", OP_FAMILY_ATTENTION, 2 * 40 * 4 * 26, 6 * 4 * 26 * 2 + 40 * 14},
		"execute_6_context_0(sq0sk0sqsq0sqsk0)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_MOST, OP_AT_MOST},
	/* Prompts are computed elsewhere. */
	{{"aiter::mla_decode_stage1_asm_fwd",
		 "[[8, 4, 14], [100, 1, 1, 14], [9], [9], [40], [8], [], [], [8, 2, 4, 12]]",
		 "[" BF16 ", " FP8 ", " INT ", " INT ", " INT ", " INT ", \"\", \"\", \"float\"]",
		 "", "", OP_FAMILY_ATTENTION, 2 * 8 * 4 * 26, 8 * 4 * 26 * 2 + 8 * 14},
		"execute_16_context_1(sq10sk30sqsq100sqsk300)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_LEAST, OP_AT_LEAST},
	/* 30 + 20 slots. */
	{{"aiter::pa_sparse_prefill_opus_fwd",
		 "[[10, 4, 16], [100, 16], [30], [11], [10, 16], [20], [11]]",
		 "[" BF16 ", " BF16 ", " INT ", " INT ", " BF16 ", " INT ", " INT "]", "", "",
		 OP_FAMILY_ATTENTION, 4 * 50 * 4 * 16, 2 * 640 * 2 + 50 * 32 + 200},
		.flop_is = OP_AT_MOST, .bytes_is = OP_AT_MOST},
	/* Values of 4 heads of 8; 2 heads of 6 of queries and keys are 12 elements each. */
	{{"vllm::gdn_attention_core", "[[10, 56], [10, 4], [10, 4], [10, 4, 8], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 ", \"\"]", "", "", OP_FAMILY_SCAN,
		 7 * 10 * 8 * 12, (560 + 40 + 40 + 320) * 2},
		NULL, OP_AT_LEAST, OP_AT_LEAST},
	{{"vllm::gdn_attention_core", "[[10, 56], [10, 4], [10, 4], [10, 4, 8], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 ", \"\"]", "", "", OP_FAMILY_SCAN,
		 7 * 6 * 8 * 12, (560 + 40 + 40 + 320) * 2 * 6 / 10},
		"execute_6_context_0(sq0sk0sqsq0sqsk0)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_LEAST, OP_AT_LEAST},
	/* A gate of 32 behind the values. */
	{{"vllm::gdn_attention_core", "[[10, 88], [10, 8], [10, 4, 8], [10, 4, 8], [], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 ", \"Scalar\", \"\"]", "",
		 "[\"\", \"\", \"\", \"\", \"True\", \"\"]", OP_FAMILY_SCAN, 7 * 10 * 8 * 12,
		 (880 + 80 + 320 + 320) * 2},
		NULL, OP_AT_LEAST, OP_AT_LEAST},
	/* 2 by 3 tokens, 4 heads, states of 5 by 6. */
	{{"ChunkGatedDeltaRuleFunction",
		 "[[2, 3, 4, 5], [2, 3, 4, 5], [2, 3, 4, 6], [2, 3, 4], [2, 3, 4], [], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", \"float\", " BF16 ", \"\", \"\"]", "", "",
		 OP_FAMILY_SCAN, 7 * 24 * 5 * 6, 2 * 240 + 2 * 288 + 24 * 4 + 24 * 2},
		.flop_is = OP_AT_LEAST, .bytes_is = OP_AT_LEAST},
	/* The product is the first argument, of BF16. */
	{{"_C::cutlass_scaled_mm", "[[2, 4], [2, 3], [3, 4], [2, 1], [4], []]",
		"[" BF16 ", " FP8 ", " FP8 ", \"float\", \"float\", \"\"]", "", "", OP_FAMILY_GEMM,
		48, 16 + 18 + 24}},
	/* 6 rows of 3 by 2 matrices of (4, 3). */
	{{"primus_turbo::grouped_gemm", "[[6, 3], [2, 4, 3], [2]]",
		"[" BF16 ", " BF16 ", " LONG "]", "", "", OP_FAMILY_GEMM, 144, (18 + 24 + 24) * 2}},
	/* 5 tokens, 2 heads of queries and 1 of keys, of 8, of which 4 are turned: 5 * 3 * 4
	 * elements; read and written, positions of 8 bytes, and 5 rows of 4 cosines and sines. */
	{{"_C::rotary_embedding", "[[5], [5, 16], [5, 8], [], [100, 4], []]",
		"[" LONG ", " BF16 ", " BF16 ", \"Scalar\", " BF16 ", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"8\", \"\", \"True\"]", OP_FAMILY_ELEMENTWISE, 180,
		240 + 40 + 40}},
	/* All 2 * 3 * 8 + 2 * 1 * 8 elements; the rows of two positions, cosines and sines. */
	{{"aiter::rope_cached_positions_2c_fwd_impl",
		"[[1, 2, 3, 8], [1, 2, 1, 8], [1, 2, 3, 8], [1, 2, 1, 8], [100, 1, 1, 4], "
		"[100, 1, 1, 4], [1, 2]]",
		"[" BF16 ", " BF16 ", " BF16 ", " BF16 ", " BF16 ", " BF16 ", " LONG "]", "", "",
		OP_FAMILY_ELEMENTWISE, 3 * 64, 4 * 64 + 2 * (4 + 4) * 2 + 16}},
	/* 5 tokens of which 4 have slots: 8 keys and values each, of 2 bytes, become one byte. */
	{{"_C_cache_ops::reshape_and_cache_flash",
		 "[[5, 1, 8], [5, 1, 8], [100, 16, 1, 8], [100, 16, 1, 8], [4]]",
		 "[" BF16 ", " BF16 ", \"unsigned char\", \"unsigned char\", " LONG "]", "", "",
		 OP_FAMILY_COPY, 0, 4 * 2 * 8 * 3 + 32},
		.bytes_is = OP_AT_MOST},
	{{"sglang::store_cache", "[[4, 8], [4, 8], [100, 8], [100, 8], [4]]",
		"[" BF16 ", " BF16 ", " BF16 ", " BF16 ", " LONG "]", "", "", OP_FAMILY_COPY, 0,
		4 * 2 * 8 * 4 + 32}},
	{{"_C::static_scaled_fp8_quant", "[[5, 8], [5, 8], []]", "[" FP8 ", " BF16 ", \"float\"]",
		"", "", OP_FAMILY_ELEMENTWISE, 40, 40 + 80 + 4}},
	/* 3 tokens of 4 to 2 of 6 experts: 2 * 3 * 2 * 4 * (10 + 5), two experts' matrices. */
	{{"vllm::outplace_fused_experts", "[[3, 4], [6, 10, 4], [6, 4, 5], [3, 2], [3, 2]]",
		 "[" BF16 ", " BF16 ", " BF16 ", \"float\", " INT "]", "", "", OP_FAMILY_MOE, 720,
		 2 * 24 + 24 + 24 + 2 * (40 + 20) * 2},
		.bytes_is = OP_AT_LEAST},
	/* One token: it has two experts. */
	{{"vllm::outplace_fused_experts", "[[1, 4], [6, 10, 4], [6, 4, 5], [1, 2], [1, 2]]",
		"[" BF16 ", " BF16 ", " BF16 ", \"float\", " INT "]", "", "", OP_FAMILY_MOE, 240,
		2 * 8 + 8 + 8 + 2 * (40 + 20) * 2}},
	/* Experts are spread: some tokens are computed elsewhere. */
	{{"vllm::outplace_fused_experts", "[[3, 4], [6, 10, 4], [6, 4, 5], [3, 2], [3, 2], [12]]",
		 "[" BF16 ", " BF16 ", " BF16 ", \"float\", " INT ", " INT "]", "", "",
		 OP_FAMILY_MOE, 720, 2 * 24 + 24 + 24},
		.flop_is = OP_AT_MOST, .bytes_is = OP_AT_LEAST},
	{{"aiter::ck_moe_stage1", "[[3, 4], [6, 10, 4], [6, 4, 5], [], [], [], [3, 2, 5]]",
		 "[" BF16 ", " BF16 ", " BF16 ", \"\", \"\", \"\", " BF16 "]", "", "",
		 OP_FAMILY_MOE, 2 * 6 * 10 * 4, (12 + 30) * 2},
		.flop_is = OP_AT_MOST, .bytes_is = OP_AT_LEAST},
	{{"aiter::fmoe_g1u1", "[[3, 4], [3, 4], [6, 10, 4], [6, 4, 5], [], [], [], [], []]",
		 "[" BF16 ", " FP8 ", " FP8 ", " FP8 ", \"\", \"\", \"\", \"\", \"Scalar\"]", "",
		 "[\"\", \"\", \"\", \"\", \"\", \"\", \"\", \"\", \"2\"]", OP_FAMILY_MOE, 720,
		 24 + 12},
		.flop_is = OP_AT_MOST, .bytes_is = OP_AT_LEAST},
	/* The matrices are not in the trace. */
	{{"vllm::moe_forward", "[[3, 4], [3, 6], []]", "[" BF16 ", " BF16 ", \"\"]", "", "",
		 OP_FAMILY_MOE, NAN, (12 + 18 + 12) * 2},
		.bytes_is = OP_AT_LEAST},
	/* 18 scores, 5 operations each; 2 of 4 bytes for 3 tokens, three times. */
	{{"_moe_C::topk_softmax", "[[3, 2], [3, 2], [3, 2], [3, 6]]",
		"[\"float\", " INT ", " INT ", \"float\"]", "", "", OP_FAMILY_NORM, 90, 72 + 72}},
	/* 2 * 12 elements, 3 taps. */
	{{"DaoAILab::_causal_conv1d_fwd_cpp", "[[1, 4, 3], [4, 3], [4]]",
		"[" BF16 ", " BF16 ", " BF16 "]", "", "", OP_FAMILY_SCAN, 72,
		(12 + 12 + 4 + 12) * 2}},
	/* 12 elements, 2 states: 7 * 2 + 1, and 2 each for D and z. */
	{{"SelectiveScanFn",
		"[[1, 4, 3], [1, 4, 3], [4, 2], [1, 2, 3], [1, 2, 3], [4], [1, 4, 3], [4]]",
		"[" BF16 ", " BF16 ", \"float\", " BF16 ", " BF16 ", \"float\", " BF16
		", \"float\"]",
		"", "", OP_FAMILY_SCAN, 12 * 19,
		(12 + 12 + 6 + 6 + 12 + 12) * 2 + (8 + 4 + 4) * 4}},
	/* 6 tokens; 2 heads of 4, one group of 3 states: z and x 8 each, B and C 3 each, d 2: 24.
	 * Convolution 2 * 6 * 14 * 4; chunks of 2: 2 * 6 * 2 * (3 + 8), states 2 * 2 * 6 * 8 * 3.
	 */
	{{"MambaSplitConv1dScanCombinedFn",
		"[[1, 6, 24], [14, 4], [14], [2], [2], [2], [], [], [], [], [], [], [], [], [], "
		"[], []]",
		"[" BF16 ", " BF16 ", " BF16 ", \"float\", \"float\", \"float\", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"\", \"\", \"\", \"2\", \"\", \"\", \"\", \"\", \"\", "
		"\"\", \"\", \"\", \"4\", \"1\"]",
		OP_FAMILY_SCAN, 672 + 264 + 576, (144 + 56 + 14) * 2 + 24 + 48 * 2}},
	/* 3 rows of 8 of the first dimension, and 3 columns of 100. */
	{{"aten::index_select", "[[100, 8], [], [3]]", "[\"float\", \"Scalar\", " LONG "]", "",
		"[\"\", \"0\", \"\"]", OP_FAMILY_EMBEDDING, 0, 24 + 2 * 96}},
	{{"aten::index_select", "[[100, 8], [], [3]]", "[\"float\", \"Scalar\", " LONG "]", "",
		"[\"\", \"-1\", \"\"]", OP_FAMILY_EMBEDDING, 0, 24 + 2 * 1200}},
	{{"aten::index_add_", "[[100, 8], [], [3], [3, 8], []]",
		"[\"float\", \"Scalar\", " LONG ", \"float\", \"Scalar\"]", "", "",
		OP_FAMILY_EMBEDDING, 24, 24 + 3 * 96}},
	{{"aten::scatter_add_", "[[100, 8], [], [3, 8], [3, 8]]",
		"[\"float\", \"Scalar\", " LONG ", \"float\"]", "", "", OP_FAMILY_EMBEDDING, 24,
		192 + 3 * 96}},
	/* Execution traces have what is in lists; of numbers, one row each. */
	{{"aten::index", "[[100, 8], [[3]]]",
		"[\"Tensor(float)\", \"GenericList[Tensor(long int)]\"]", "", "",
		OP_FAMILY_EMBEDDING, 0, 24 + 2 * 96}},
	{{"aten::index", "[[100, 8], [[100]]]",
		"[\"Tensor(float)\", \"GenericList[Tensor(bool)]\"]", "", "", OP_FAMILY_EMBEDDING,
		NAN, NAN}},
	{{"aten::index", "[[100, 8], []]", "[\"float\", \"\"]", "", "", OP_FAMILY_EMBEDDING, NAN,
		NAN}},
	{{"aten::index_put_", "[[100, 8], [], [3, 8], []]",
		 "[\"float\", \"\", \"float\", \"Scalar\"]", "", "[\"\", \"\", \"\", \"False\"]",
		 OP_FAMILY_EMBEDDING, 0, 2 * 96},
		.bytes_is = OP_AT_LEAST},
	/* A kernel's name says how large an element is. */
	{{"aten::cat", "[[[2, 3], [4]], []]", "[\"TensorList\", \"Scalar\"]", "", "",
		 OP_FAMILY_COPY, 0, 2 * 10 * 2},
		.list_bytes = 2},
	/* The 2 largest of 6 in 3 rows, and where they were. */
	{{"aten::topk", "[[3, 6], [], [], [], []]",
		"[\"float\", \"Scalar\", \"Scalar\", \"Scalar\", \"Scalar\"]", "",
		"[\"\", \"2\", \"-1\", \"True\", \"True\"]", OP_FAMILY_REDUCTION, 18, 72 + 6 * 12}},
	/* 2 heads of queries, 1 of keys, of 8; 16 tokens of 2 sequences, the longest of 8 keys:
	 * both are. 2 * 64 pairs, halved. */
	{{"aiter::mha_batch_prefill",
		"[[16, 2, 8], [100, 1, 8], [100, 1, 8], [3], [3], [20], [], [], [], [], [], [], "
		"[], []]",
		"[" BF16 ", " BF16 ", " BF16 ", " INT ", " INT ", " INT "]", "",
		"[\"\", \"\", \"\", \"\", \"\", \"\", \"8\", \"8\", \"0.\", \"1.\", \"0.\", "
		"\"False\", \"True\", \"-1\"]",
		OP_FAMILY_ATTENTION, 2 * 64 * 2 * 16, 16 * 2 * 16 * 2 + 16 * 16 * 2}},
	/* One has 12: it is as much at least. */
	{{"aiter::mha_batch_prefill",
		 "[[16, 2, 8], [100, 1, 8], [100, 1, 8], [3], [3], [20], [], [], [], [], [], [], "
		 "[], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " INT ", " INT ", " INT "]", "",
		 "[\"\", \"\", \"\", \"\", \"\", \"\", \"12\", \"12\", \"0.\", \"1.\", \"0.\", "
		 "\"False\", \"True\", \"-1\"]",
		 OP_FAMILY_ATTENTION, 2 * 64 * 2 * 16, 16 * 2 * 16 * 2 + 16 * 16 * 2},
		.flop_is = OP_AT_LEAST, .bytes_is = OP_AT_LEAST},
	/* The engine says: one prompt of 10 after 20 that are cached, and 6 that have 40 together.
	 */
	{{"aiter::mha_batch_prefill",
		 "[[16, 2, 8], [100, 1, 8], [100, 1, 8], [8], [8], [99], [], [], [], [], [], [], "
		 "[], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " INT ", " INT ", " INT "]", "",
		 "[\"\", \"\", \"\", \"\", \"\", \"\", \"10\", \"30\", \"0.\", \"1.\", \"0.\", "
		 "\"False\", \"True\", \"-1\"]",
		 OP_FAMILY_ATTENTION, 2 * (300 - 50 + 40) * 2 * 16, 16 * 2 * 16 * 2 + 70 * 16 * 2},
		"execute_16_context_1(sq10sk30sqsq100sqsk300)_generation_6(sq6sk40sqsq6sqsk40)"},
	/* Where windows are not in the trace it is at most as much; 4 of 20 tokens are padding. The
	 * cache has one byte for each number. */
	{{"vllm::unified_attention_with_output", "[[20, 2, 8], [20, 1, 8], [20, 1, 8], [20, 2, 8]]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 "]", "", "", OP_FAMILY_ATTENTION,
		 2 * (300 - 50 + 40) * 2 * 16, 16 * 2 * 16 * 2 + 70 * 16},
		"execute_16_context_1(sq10sk30sqsq100sqsk300)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_MOST, OP_AT_MOST},
	/* Each query looks at itself. */
	{{"vllm::unified_attention_with_output", "[[20, 2, 8], [20, 1, 8], [20, 1, 8], [20, 2, 8]]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 "]", "", "", OP_FAMILY_ATTENTION,
		 2 * 20 * 2 * 16, 20 * 2 * 16 * 2},
		NULL, OP_AT_LEAST, OP_AT_LEAST},
	{{"_C::paged_attention_v1",
		 "[[6, 2, 8], [6, 2, 8], [100, 1, 1, 16, 8], [100, 1, 8, 16], []]",
		 "[" BF16 ", " BF16 ", " BF16 ", " BF16 ", \"Scalar\"]", "",
		 "[\"\", \"\", \"\", \"\", \"1\"]", OP_FAMILY_ATTENTION, 2 * 40 * 2 * 16,
		 6 * 2 * 16 * 2 + 40 * 16 * 2},
		"execute_6_context_0(sq0sk0sqsq0sqsk0)_generation_6(sq6sk40sqsq6sqsk40)",
		OP_AT_MOST, OP_AT_MOST},
	/* 64 tokens of 4 sequences, of which the longest is 16, and of which it is longer. */
	{{"aiter::mha_varlen_fwd", "[[64, 4, 8], [64, 4, 8], [64, 4, 8], [5], [5], [], []]",
		"[" HALF ", " HALF ", " HALF ", " INT ", " INT ", \"Scalar\", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"\", \"\", \"16\", \"16\"]", OP_FAMILY_ATTENTION, 131072,
		4 * 2048 * 2}},
	{{"aiter::mha_varlen_fwd", "[[64, 4, 8], [64, 4, 8], [64, 4, 8], [5], [5], [], []]",
		 "[" HALF ", " HALF ", " HALF ", " INT ", " INT ", \"Scalar\", \"Scalar\"]", "",
		 "[\"\", \"\", \"\", \"\", \"\", \"20\", \"20\"]", OP_FAMILY_ATTENTION, 131072,
		 4 * 2048 * 2},
		.flop_is = OP_AT_LEAST},
	{{"aiter::mha_varlen_fwd", "[[64, 4, 8], [99, 4, 8], [99, 4, 8], [5], [5], [], []]",
		"[" HALF ", " HALF ", " HALF ", " INT ", " INT ", \"Scalar\", \"Scalar\"]", "",
		"[\"\", \"\", \"\", \"\", \"\", \"20\", \"30\"]", OP_FAMILY_ATTENTION, NAN, NAN}},
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

static void bounds_are_marked(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++) {
		const struct example *example = &bounded[i].of;
		struct op_batch batch = {0};
		const struct op_texts texts = {
			.dims = text(example->dims),
			.types = text(example->types),
			.values = text(example->values),
			.batch = bounded[i].annotation ? &batch : NULL,
			.list_bytes = bounded[i].list_bytes,
		};
		enum op_family family;
		const struct op_formula *formula = op_formula_find(example->name, &family);
		struct op_cost cost;

		assert_non_null(formula);
		assert_int_equal(family, example->family);
		if (bounded[i].annotation)
			assert_true(op_batch_read(&batch, bounded[i].annotation));
		batch.cache_dtype = OP_INT8;
		cost = op_cost_of(formula, &texts);
		if (!is_same(cost.flop, example->flop) || !is_same(cost.bytes, example->bytes) ||
			cost.flop_is != bounded[i].flop_is || cost.bytes_is != bounded[i].bytes_is)
			fail_msg("%zu: %s %s: %g operations (%s), %g bytes (%s)", i, example->name,
				example->dims, cost.flop, op_bound_name(cost.flop_is), cost.bytes,
				op_bound_name(cost.bytes_is));
	}
}

static void annotations_say_what_a_batch_is(void **state)
{
	static const struct {
		const char *name;
		double queries, keys, pairs;
		bool is_least;
	} names[] = {
		{"execute_16_context_1(sq10sk30sqsq100sqsk300)_generation_6(sq6sk40sqsq6sqsk40)",
			16, 70, 290, false},
		{"step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 "
		 "g_sqsq=1 g_sqsk=12]",
			6, 20, 40 - 12.5 + 12, false},
		{"step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", 128, 131072,
			262144, false},
		/* Two prompts of 10 tokens: 5 and 5, or more. */
		{"execute_context_2(10)_generation_3(3)", 13, 13, 25 + 3, true},
		{"execute_context_1(10_100)_generation_0(0)", 10, 10, 50, true},
		{"step[EXTEND bs=2 toks=10]", 10, 10, 25, true},
		{"step[DECODE bs=64]", 64, 64, 64, true},
	};
	static const char *const none[] = {"", "execute_", "execute_context_1(", "step[MIXED bs=2]",
		"execute_context_0(0)_generation_0(0)", "ProfilerStep#5", "step[DECODE]",
		"execute_16_context_1(sq10sk3sqsq100sqsk300)_generation_0(sq0sk0sqsq0sqsk0)"};
	struct op_batch batch;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(op_batch_read(&batch, names[i].name));
		assert_true(is_same(batch.queries, names[i].queries));
		assert_true(is_same(batch.keys, names[i].keys));
		assert_true(is_same(batch.pairs, names[i].pairs));
		assert_int_equal(batch.is_least, names[i].is_least);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(op_batch_read(&batch, none[i]));
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
		cmocka_unit_test(bounds_are_marked),
		cmocka_unit_test(annotations_say_what_a_batch_is),
		cmocka_unit_test(other_operators_have_no_formula),
		cmocka_unit_test(inputs_are_described_by_their_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
