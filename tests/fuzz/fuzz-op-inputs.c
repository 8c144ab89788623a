/* SPDX-License-Identifier: Apache-2.0 */
/* Four lines: sizes, types, strides and values of any operator's inputs; then an annotation. */
#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "model/cost/op_batch.h"
#include "model/cost/op_cost.h"
#include "target.h"

static struct json_text next_line(const char **at, const char *end)
{
	const char *begin = *at, *line_end = memchr(begin, '\n', (size_t)(end - begin));

	line_end = line_end ? line_end : end;
	*at = line_end < end ? line_end + 1 : end;
	return (struct json_text){.bytes = begin, .length = (size_t)(line_end - begin)};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {"aten::mm", "aten::linear", "aten::_grouped_mm",
		"aten::convolution", "aten::convolution_backward",
		"aten::_scaled_dot_product_flash_attention", "aten::_flash_attention_backward",
		"aten::native_layer_norm", "aten::add_", "aten::_foreach_add_", "aten::sum",
		"aten::embedding", "aten::embedding_dense_backward", "aten::copy_", "triton_poi",
		"aten::index", "aten::index_put_", "aten::index_select", "aten::topk", "aten::cat",
		"aiter::gemm_a8w8_ck", "aiter::mha_batch_prefill", "_C::paged_attention_v1",
		"vllm::unified_attention_with_output", "aiter::mha_varlen_fwd",
		"vllm::outplace_fused_experts", "aiter::fmoe_g1u1", "aiter::ck_moe_stage1",
		"_C::rotary_embedding", "aiter::rope_cached_positions_2c_fwd_impl",
		"_C_cache_ops::reshape_and_cache_flash", "SelectiveScanFn",
		"MambaSplitConv1dScanCombinedFn"};
	const char *at = (const char *)bytes, *end = at + length;
	_cleanup_strbuf_ struct strbuf text = {0};
	char annotation[256] = "";
	struct op_batch batch = {0};
	struct op_inputs inputs;
	struct op_texts texts = {0};

	if (!length)
		return 0;
	texts.dims = next_line(&at, end);
	texts.types = next_line(&at, end);
	texts.strides = next_line(&at, end);
	texts.values = next_line(&at, end);
	memcpy(annotation, at, MIN((size_t)(end - at), sizeof(annotation) - 1));
	if (op_batch_read(&batch, annotation)) {
		batch.cache_dtype = OP_INT8;
		texts.batch = &batch;
	}
	if (op_inputs_read(&inputs, &texts))
		op_inputs_describe(&text, &inputs);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		enum op_family family;
		const struct op_formula *formula = op_formula_find(names[i], &family);
		struct op_cost cost = op_cost_of(formula, &texts);

		if (cost.flop < 0 || cost.bytes < 0)
			abort();
	}
	return 0;
}
