/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/category.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

const char *op_category_name(enum op_category category)
{
	static const char *const names[OP_CATEGORY_MAX] = {
		[OP_GEMM] = "GEMM",
		[OP_CONVOLUTION] = "convolution",
		[OP_ATTENTION] = "attention",
		[OP_NORM] = "norm",
		[OP_MOE] = "MoE",
		[OP_ELEMENTWISE] = "elementwise",
		[OP_REDUCE] = "reduce",
		[OP_COPY] = "copy",
		[OP_COMMUNICATION] = "communication",
		[OP_OTHER] = "other",
	};

	return names[category];
}

/* ---- names ---- */

/* A part of a name, in any case. The first that fits says what it is. */
struct word {
	const char *part;
	enum op_category category;
};

static enum op_category look_up(const char *name, const struct word *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcasestr(name, words[i].part))
			return words[i].category;
	}
	return OP_OTHER;
}

/* Names of libraries stand before the functions of theirs that are common words. */
static const struct word kernel_words[] = {
	{"moe", OP_MOE},
	{"expert", OP_MOE},
	{"topk_gating", OP_MOE},
	{"topkgating", OP_MOE},
	{"grouped_topk", OP_MOE},
	{"m_grouped", OP_MOE},
	{"rmsnorm", OP_NORM},
	{"rms_norm", OP_NORM},
	{"layernorm", OP_NORM},
	{"layer_norm", OP_NORM},
	{"batchnorm", OP_NORM},
	{"batch_norm", OP_NORM},
	{"groupnorm", OP_NORM},
	{"group_norm", OP_NORM},
	{"rowwisemoments", OP_NORM},
	{"bn_fw_", OP_NORM},
	{"bn_bw_", OP_NORM},
	{"GammaBetaBackward", OP_NORM},
	{"fmha", OP_ATTENTION},
	{"flash_", OP_ATTENTION},
	{"flash::", OP_ATTENTION},
	{"flashattn", OP_ATTENTION},
	{"attention", OP_ATTENTION},
	{"attn", OP_ATTENTION},
	{"sdpa", OP_ATTENTION},
	{"mha_", OP_ATTENTION},
	{"mla_", OP_ATTENTION},
	{"BatchPrefill", OP_ATTENTION},
	{"BatchDecode", OP_ATTENTION},
	{"SinglePrefill", OP_ATTENTION},
	{"SingleDecode", OP_ATTENTION},
	{"convolution", OP_CONVOLUTION},
	{"convolve", OP_CONVOLUTION},
	{"conv1d", OP_CONVOLUTION},
	{"conv2d", OP_CONVOLUTION},
	{"conv3d", OP_CONVOLUTION},
	{"conv_depthwise", OP_CONVOLUTION},
	{"causal_conv", OP_CONVOLUTION},
	{"_fprop", OP_CONVOLUTION},
	{"dgrad", OP_CONVOLUTION},
	{"wgrad", OP_CONVOLUTION},
	{"winograd", OP_CONVOLUTION},
	{"im2col", OP_CONVOLUTION},
	{"col2im", OP_CONVOLUTION},
	{"nchwToNhwc", OP_CONVOLUTION},
	{"nhwcToNchw", OP_CONVOLUTION},
	{"miopen", OP_CONVOLUTION},
	{"igemm_", OP_CONVOLUTION},
	{"naive_conv", OP_CONVOLUTION},
	{"gemm", OP_GEMM},
	{"gemv", OP_GEMM},
	{"nvjet", OP_GEMM},
	{"xmma", OP_GEMM},
	{"wgmma", OP_GEMM},
	{"splitKreduce", OP_GEMM},
	{"cutlass", OP_GEMM},
	{"cublas", OP_GEMM},
	{"Cijk_", OP_GEMM}, /* of Tensile, for ROCm */
	{"matmul", OP_GEMM},
	{"dot_kernel", OP_GEMM},
	{"topk", OP_REDUCE},
	{"CatArray", OP_COPY},
	{"direct_copy", OP_COPY},
	{"copy_device_to_device", OP_COPY},
	{"bfloat16_copy", OP_COPY},
	{"float16_copy", OP_COPY},
	{"float8_copy", OP_COPY},
	{"embedding", OP_COPY},
	{"gather", OP_COPY},
	{"scatter", OP_COPY},
	{"index_elementwise", OP_COPY},
	{"indexSelect", OP_COPY},
	{"indexing_backward", OP_COPY},
	{"index_kernel", OP_COPY},
	{"index_put", OP_COPY},
	{"transpose", OP_COPY},
	{"permute", OP_COPY},
	{"reshape_and_cache", OP_COPY},
	{"FillFunctor", OP_COPY},
	{"softmax", OP_REDUCE},
	{"lpnorm", OP_REDUCE},
	{"L2Norm", OP_REDUCE},
	{"nll_loss", OP_REDUCE},
	{"cross_entropy", OP_REDUCE},
	{"reduce", OP_REDUCE},
	{"reduction", OP_REDUCE},
	{"argmax", OP_REDUCE},
	{"cumsum", OP_REDUCE},
	{"scan", OP_REDUCE},
	{"sort", OP_REDUCE},
	{"sampling", OP_REDUCE},
	{"pool", OP_REDUCE},
	{"elementwise", OP_ELEMENTWISE},
	{"multi_tensor_apply", OP_ELEMENTWISE},
	{"fused_adam", OP_ELEMENTWISE},
	{"fusedadam", OP_ELEMENTWISE},
	{"dropout", OP_ELEMENTWISE},
	{"act_and_mul", OP_ELEMENTWISE},
	{"activation", OP_ELEMENTWISE},
	{"gelu", OP_ELEMENTWISE},
	{"silu", OP_ELEMENTWISE},
	{"relu", OP_ELEMENTWISE},
	{"rotary", OP_ELEMENTWISE},
	{"rope", OP_ELEMENTWISE},
	{"quant", OP_ELEMENTWISE},
	{"scaled_masked", OP_ELEMENTWISE},
	{"pointwise", OP_ELEMENTWISE},
};

/* Inductor names kernels after all that was fused, of which a loop does the smallest part. */
static enum op_category of_inductor(const char *name)
{
	static const struct {
		const char *beginning;
		enum op_category category;
	} loops[] = {
		{"triton_tem_", OP_GEMM},
		{"triton_per_", OP_REDUCE},
		{"triton_red_", OP_REDUCE},
		{"triton_poi_", OP_ELEMENTWISE},
		{"triton_for_", OP_ELEMENTWISE},
	};
	static const struct word fused[] = {
		{"attention", OP_ATTENTION},
		{"layer_norm", OP_NORM},
		{"rms_norm", OP_NORM},
		{"batch_norm", OP_NORM},
		{"group_norm", OP_NORM},
	};
	enum op_category named = look_up(name, fused, ARRAY_SIZE(fused));

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		if (strncmp(name, loops[i].beginning, strlen(loops[i].beginning)) != 0)
			continue;
		if (loops[i].category == OP_ELEMENTWISE || named == OP_OTHER)
			return loops[i].category;
		/* A product's template, or a reduction: what it was fused for. */
		return loops[i].category == OP_REDUCE || named == OP_ATTENTION ? named : OP_GEMM;
	}
	return OP_OTHER;
}

enum op_category op_category_of_kernel(const char *name)
{
	enum op_category category = of_inductor(name);

	if (category != OP_OTHER)
		return category;
	return look_up(name, kernel_words, ARRAY_SIZE(kernel_words));
}

static const struct word operator_words[] = {
	{"vector_norm", OP_REDUCE},
	{"clip_grad", OP_REDUCE},
	{"foreach_norm", OP_REDUCE},
	{"matrix_norm", OP_REDUCE},
	{"moe", OP_MOE},
	{"expert", OP_MOE},
	{"scaled_dot_product", OP_ATTENTION},
	{"ScaledDotProduct", OP_ATTENTION},
	{"attention", OP_ATTENTION},
	{"flash_attn", OP_ATTENTION},
	{"FlashAttn", OP_ATTENTION},
	{"fmha", OP_ATTENTION},
	{"convolution", OP_CONVOLUTION},
	{"conv1d", OP_CONVOLUTION},
	{"conv2d", OP_CONVOLUTION},
	{"conv3d", OP_CONVOLUTION},
	{"norm", OP_NORM},
	{"matmul", OP_GEMM},
	{"gemm", OP_GEMM},
	{"addmm", OP_GEMM},
	{"addmv", OP_GEMM},
	{"bmm", OP_GEMM},
	{"scaled_mm", OP_GEMM},
	{"grouped_mm", OP_GEMM},
	{"linear", OP_GEMM},
	{"einsum", OP_GEMM},
	{"copy", OP_COPY},
	{"contiguous", OP_COPY},
	{"clone", OP_COPY},
	{"fill_", OP_COPY},
	{"zero_", OP_COPY},
	{"embedding", OP_COPY},
	{"gather", OP_COPY},
	{"scatter", OP_COPY},
	{"index", OP_COPY},
	{"slice", OP_COPY},
	{"softmax", OP_REDUCE},
	{"nll_loss", OP_REDUCE},
	{"cross_entropy", OP_REDUCE},
	{"cumsum", OP_REDUCE},
	{"argmax", OP_REDUCE},
	{"topk", OP_REDUCE},
	{"sort", OP_REDUCE},
	{"pool", OP_REDUCE},
	{"logsumexp", OP_REDUCE},
	{"adam", OP_ELEMENTWISE},
	{"foreach", OP_ELEMENTWISE},
	{"lerp", OP_ELEMENTWISE},
	{"dropout", OP_ELEMENTWISE},
	{"elu", OP_ELEMENTWISE},
	{"silu", OP_ELEMENTWISE},
	{"where", OP_ELEMENTWISE},
	{"masked_fill", OP_ELEMENTWISE},
	{"sigmoid", OP_ELEMENTWISE},
};

/* Names too short to be looked for in others; "_" at their end is an operation in place. */
static const struct word short_operators[] = {
	{"mm", OP_GEMM},
	{"mv", OP_GEMM},
	{"dot", OP_GEMM},
	{"cat", OP_COPY},
	{"to", OP_COPY},
	{"sum", OP_REDUCE},
	{"mean", OP_REDUCE},
	{"max", OP_REDUCE},
	{"min", OP_REDUCE},
	{"amax", OP_REDUCE},
	{"amin", OP_REDUCE},
	{"any", OP_REDUCE},
	{"all", OP_REDUCE},
	{"var", OP_REDUCE},
	{"std", OP_REDUCE},
	{"add", OP_ELEMENTWISE},
	{"sub", OP_ELEMENTWISE},
	{"rsub", OP_ELEMENTWISE},
	{"mul", OP_ELEMENTWISE},
	{"div", OP_ELEMENTWISE},
	{"neg", OP_ELEMENTWISE},
	{"pow", OP_ELEMENTWISE},
	{"exp", OP_ELEMENTWISE},
	{"log", OP_ELEMENTWISE},
	{"sqrt", OP_ELEMENTWISE},
	{"rsqrt", OP_ELEMENTWISE},
	{"abs", OP_ELEMENTWISE},
	{"sin", OP_ELEMENTWISE},
	{"cos", OP_ELEMENTWISE},
	{"tanh", OP_ELEMENTWISE},
	{"clamp", OP_ELEMENTWISE},
	{"addcmul", OP_ELEMENTWISE},
	{"addcdiv", OP_ELEMENTWISE},
	{"sign", OP_ELEMENTWISE},
};

static enum op_category look_up_short(const char *name)
{
	static const char aten[] = "aten::";
	size_t length;

	if (strncmp(name, aten, strlen(aten)) != 0)
		return OP_OTHER;
	name += strlen(aten);
	name += *name == '_';
	length = strlen(name);
	while (length && name[length - 1] == '_')
		length--;
	for (size_t i = 0; i < ARRAY_SIZE(short_operators); i++) {
		if (strlen(short_operators[i].part) == length &&
			strncmp(short_operators[i].part, name, length) == 0)
			return short_operators[i].category;
	}
	return OP_OTHER;
}

enum op_category op_category_of_operator(const char *name)
{
	enum op_category category = look_up_short(name);

	if (category != OP_OTHER)
		return category;
	return look_up(name, operator_words, ARRAY_SIZE(operator_words));
}

/* ---- works ---- */

struct finding {
	const struct trace_view *view;
	const uint32_t *parents;
	uint8_t *kernels, *operators; /* by name: the category + 1; 0: not asked */
	uint8_t *stacks; /* of a recording, by its stacks, likewise; NULL: it is none */
};

static bool is_compound(enum op_category category)
{
	return category == OP_ATTENTION || category == OP_MOE;
}

static enum op_category of_operator(struct finding *finding, const struct trace_event *event)
{
	uint8_t *known = &finding->operators[event->name];

	if (event->category != TRACE_CPU_OP)
		return OP_OTHER;
	if (!*known)
		*known = (uint8_t)(1 + op_category_of_operator(
					       trace_text(finding->view->trace, event->name)));
	return (enum op_category)(*known - 1);
}

/* What the operators around a row are, where the inner ones are of `category`. */
static enum op_category of_operators_around(
	struct finding *finding, uint32_t row, enum op_category category)
{
	while (row != MODEL_NONE && !is_compound(category)) {
		enum op_category outer =
			of_operator(finding, &finding->view->trace->events.items[row]);

		if (is_compound(outer) || category == OP_OTHER)
			category = outer;
		row = finding->parents[row];
	}
	return category;
}

/* "at::_ops::mm::call" is the operator aten::mm in a native stack. */
static enum op_category of_function(const char *name)
{
	static const char ops[] = "at::_ops::";
	char op[96];

	if (strncmp(name, ops, strlen(ops)) != 0)
		return OP_OTHER;
	name += strlen(ops);
	snprintf(op, sizeof(op), "aten::%.*s", (int)MIN(strcspn(name, ":"), sizeof(op)), name);
	return op_category_of_operator(op);
}

static enum op_category of_frames(const struct model *model, const struct model_stack *stack)
{
	enum op_category category = OP_OTHER;

	for (uint32_t i = stack->count; i-- > 0 && !is_compound(category);) {
		uint32_t frame = model->stack_frames.items[stack->first + i];
		enum op_category outer = of_function(
			model_function_name(model, model->frames.items[frame].function));

		if (is_compound(outer) || category == OP_OTHER)
			category = outer;
	}
	return category;
}

/* What operators launched the recorded work. */
static enum op_category of_stack(struct finding *finding, const struct trace_event *event)
{
	const struct trace_work *work = trace_work(finding->view->trace, event);
	const struct model *model = finding->view->trace->recorded;
	uint32_t stack;

	if (!finding->stacks || !work || !work->recorded)
		return OP_OTHER;
	stack = model->device_works.items[work->recorded - 1].stack;
	if (stack == MODEL_NONE)
		return OP_OTHER;
	if (!finding->stacks[stack])
		finding->stacks[stack] =
			(uint8_t)(1 + of_frames(model, &model->stacks.items[stack]));
	return (enum op_category)(finding->stacks[stack] - 1);
}

static enum op_category of_kernel(struct finding *finding, const struct trace_view_work *work)
{
	const struct trace_event *event = &finding->view->trace->events.items[work->row];
	enum op_category around = of_stack(finding, event), named;
	uint8_t *known = &finding->kernels[event->name];

	around = of_operators_around(finding, work->origin, around);
	if (is_compound(around))
		return around;
	if (!*known)
		*known = (uint8_t)(1 + op_category_of_kernel(
					       trace_text(finding->view->trace, event->name)));
	named = (enum op_category)(*known - 1);
	return named == OP_OTHER ? around : named;
}

static int finding_init(struct finding *finding)
{
	const struct trace *trace = finding->view->trace;
	size_t names = trace->strings.entries.count + 1;

	finding->kernels = calloc(names, sizeof(*finding->kernels));
	finding->operators = calloc(names, sizeof(*finding->operators));
	if (trace->recorded)
		finding->stacks =
			calloc(trace->recorded->stacks.count + 1, sizeof(*finding->stacks));
	return finding->kernels && finding->operators && (finding->stacks || !trace->recorded)
		       ? 0
		       : -ENOMEM;
}

static void finding_done(struct finding *finding)
{
	free(finding->kernels);
	free(finding->operators);
	free(finding->stacks);
}

int op_categories_of_works(
	const struct trace_view *view, const uint32_t *parents, uint8_t **ret_categories)
{
	_cleanup_(finding_done) struct finding finding = {.view = view, .parents = parents};
	uint8_t *categories = calloc(view->works.count + 1, sizeof(*categories));

	if (!categories || finding_init(&finding) < 0) {
		free(categories);
		return -ENOMEM;
	}
	for (size_t i = 0; i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		enum op_category category = OP_OTHER;

		if (work->kind == TRACE_COMMUNICATION)
			category = OP_COMMUNICATION;
		else if (work->kind == TRACE_MEMORY)
			category = OP_COPY;
		else if (!work->is_wait)
			category = of_kernel(&finding, work);
		categories[i] = (uint8_t)category;
	}
	*ret_categories = categories;
	return 0;
}
