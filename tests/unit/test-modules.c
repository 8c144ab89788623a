/* SPDX-License-Identifier: Apache-2.0 */
/* Device work by module of the model and by what operators do, on small traces. */
#include <stdio.h>

#include "trace-example.h"

#include "analyses/device/category_use.h"
#include "analyses/program/modules.h"

#define TID      EXAMPLE_PID
#define AUTOGRAD (EXAMPLE_PID + 1)

static void python(struct trace *trace, const char *name, int64_t start_ns, int64_t duration_ns)
{
	example_host(trace, TRACE_PYTHON_FUNCTION, name, TID, start_ns, duration_ns, 0);
}

/* `forward_thread` 0: of the forward pass. */
static uint32_t op_row(struct trace *trace, const char *name, int64_t tid, int64_t start_ns,
	int64_t duration_ns, int64_t sequence, int64_t forward_thread)
{
	struct trace_op op = {
		.rf_id = TRACE_NO_ID,
		.sequence = sequence,
		.forward_thread = forward_thread,
		.ev_idx = TRACE_NO_NUMBER,
		.python_id = TRACE_NO_NUMBER,
		.python_parent_id = TRACE_NO_NUMBER,
		.python_module_id = TRACE_NO_NUMBER,
		.collective = MODEL_NONE,
	};
	uint32_t row = example_host(trace, TRACE_CPU_OP, name, tid, start_ns, duration_ns, 0);

	trace->events.items[row].detail = (uint32_t)trace->ops.count;
	assert_int_equal(array_append(&trace->ops, op), 0);
	return row;
}

static void launch(struct trace *trace, const char *kernel, int64_t tid, int64_t call_ns,
	int64_t duration_ns, uint64_t correlation)
{
	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", tid, call_ns, 1, correlation);
	example_device(trace, TRACE_KERNEL, kernel, 0, 7, 10000 + (int64_t)correlation * 1000,
		duration_ns, correlation);
}

static void arrow(struct trace *trace, uint64_t id, int64_t from_tid, int64_t from_ns,
	int64_t to_tid, int64_t to_ns)
{
	struct trace_flow flow = {
		.time_ns = from_ns,
		.id = id,
		.track = example_track(trace, EXAMPLE_PID, from_tid, false),
		.category_name = example_text(trace, TRACE_FLOW_TO_BACKWARD),
	};

	assert_int_equal(array_append(&trace->flows, flow), 0);
	flow.time_ns = to_ns;
	flow.track = example_track(trace, EXAMPLE_PID, to_tid, false);
	flow.is_end = true;
	assert_int_equal(array_append(&trace->flows, flow), 0);
}

/*
 * Net has two Blocks with a Linear each, and a loss outside. The gradient of the second Linear is
 * known by an arrow, that of the first by its number, on a thread of its own whose rows come first
 * in the file. Then the optimizer.
 */
static struct trace *training_step(void)
{
	struct trace *trace = example_trace_new();

	op_row(trace, "AddmmBackward0", AUTOGRAD, 500, 50, 40, 1);
	op_row(trace, "aten::mm", AUTOGRAD, 505, 20, TRACE_NO_NUMBER, TRACE_NO_NUMBER);
	launch(trace, "ampere_sgemm_32", AUTOGRAD, 510, 70, 3);
	op_row(trace, "MmBackward0", AUTOGRAD, 600, 50, TRACE_NO_NUMBER, TRACE_NO_NUMBER);
	launch(trace, "ampere_sgemm_64", AUTOGRAD, 610, 80, 4);

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#3", TID, 0, 2000, 0);
	python(trace, "train.py(3): step", 1, 1990);
	python(trace, "nn.Module: Net_0", 10, 200);
	python(trace, "nn.Module: Block_0", 20, 80);
	python(trace, "nn.Module: Linear_0", 30, 40);
	op_row(trace, "aten::linear", TID, 31, 30, 40, 0);
	op_row(trace, "aten::addmm", TID, 32, 20, 40, 0);
	launch(trace, "ampere_sgemm_32", TID, 35, 30, 1);
	python(trace, "nn.Module: Block_1", 110, 80);
	python(trace, "nn.Module: Linear_1", 120, 40);
	op_row(trace, "aten::mm", TID, 122, 20, TRACE_NO_NUMBER, TRACE_NO_NUMBER);
	launch(trace, "ampere_sgemm_64", TID, 125, 40, 2);
	example_host(trace, TRACE_USER_ANNOTATION, "Optimizer.step#SGD.step", TID, 700, 100, 0);
	launch(trace, "multi_tensor_apply_kernel<Sgd>", TID, 710, 9, 5);
	launch(trace, "[unknown]", TID, 900, 1, 6);
	arrow(trace, 1, TID, 122, AUTOGRAD, 600);
	return trace;
}

static void find(struct modules *modules, struct trace *trace)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};

	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(modules_init(modules, &view, 1), 0);
	trace_free(trace); /* names are copies */
}

static void expect_row(const struct modules *modules, size_t index, const char *name,
	uint32_t depth, int64_t forward_ns, int64_t backward_ns, int64_t self_ns)
{
	const struct module_row *row = &modules->rows.items[index];

	assert_string_equal(row->name, name);
	assert_int_equal(row->depth, depth);
	assert_int_equal(row->total.device_ns[MODULE_FORWARD], forward_ns);
	assert_int_equal(row->total.device_ns[MODULE_BACKWARD], backward_ns);
	assert_int_equal(module_device_ns(&row->self), self_ns);
}

static void work_belongs_to_modules_with_its_gradients(void **state)
{
	_cleanup_modules_ struct modules modules = {0};

	(void)state;
	find(&modules, training_step());
	assert_true(modules.has_modules && modules.has_device_work);
	assert_int_equal(modules.rows.count, 5);
	expect_row(&modules, 0, "Net", 0, 70, 150, 0);
	expect_row(&modules, 1, "Block", 1, 70, 150, 0);
	expect_row(&modules, 2, "Linear", 2, 70, 150, 220);
	expect_row(&modules, 3, "Optimizer.step#SGD.step", 0, 9, 0, 9);
	expect_row(&modules, 4, MODULES_NONE, 0, 1, 0, 1);
	assert_int_equal(modules.rows.items[0].instances, 1);
	assert_int_equal(modules.rows.items[1].instances, 2);
	assert_int_equal(modules.rows.items[2].instances, 2);
	assert_true(modules.rows.items[2].is_module && !modules.rows.items[3].is_module);
	assert_int_equal(modules.rows.items[2].by_category_ns[OP_GEMM], 220);
	assert_int_equal(module_device_ns(&modules.all), 230);
}

static void instances_and_operators_have_times_of_their_own(void **state)
{
	_cleanup_modules_ struct modules modules = {0};
	const struct module_operator *op;

	(void)state;
	find(&modules, training_step());
	array_foreach (&modules.instances, instance) {
		if (strcmp(instance->name, "Linear_0") == 0)
			assert_int_equal(module_device_ns(&instance->total), 30 + 70);
		if (strcmp(instance->name, "Block_1") == 0)
			assert_int_equal(module_device_ns(&instance->total), 40 + 80);
	}
	op = &modules.operators.items[0];
	assert_string_equal(op->name, "MmBackward0");
	assert_int_equal(op->pass, MODULE_BACKWARD);
	assert_int_equal(op->device_ns, 80);
	assert_int_equal(op->category, OP_GEMM);
	assert_string_equal(modules.rows.items[op->row].name, "Linear");
}

static void threads_are_in_modules(void **state)
{
	_cleanup_modules_ struct modules modules = {0};

	(void)state;
	find(&modules, training_step());
	assert_int_equal(modules.rows.items[0].total.host_ns[MODULE_FORWARD], 200);
	assert_int_equal(modules.rows.items[0].self.host_ns[MODULE_FORWARD], 200 - 2 * 80);
	assert_int_equal(modules.rows.items[2].total.host_ns[MODULE_FORWARD], 2 * 40);
	assert_int_equal(modules.rows.items[2].total.host_ns[MODULE_BACKWARD], 2 * 50);
}

/* Activations that were not kept: the module runs again below its own gradient. */
static void a_module_that_runs_again_is_itself(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_modules_ struct modules modules = {0};

	(void)state;
	python(trace, "nn.Module: Net_0", 0, 100);
	python(trace, "nn.Module: Block_0", 10, 50);
	op_row(trace, "CheckpointFunction", TID, 12, 20, 7, 0);
	op_row(trace, "CheckpointFunctionBackward", TID, 200, 90, 7, 1);
	python(trace, "nn.Module: Block_0", 210, 30);
	launch(trace, "relu_kernel", TID, 215, 5, 1);
	find(&modules, trace);
	assert_int_equal(modules.rows.count, 2);
	expect_row(&modules, 1, "Block", 1, 0, 5, 5);
	assert_int_equal(modules.rows.items[1].instances, 1);
	assert_int_equal(modules.rows.items[1].total.host_ns[MODULE_BACKWARD], 90);
}

static void a_trace_without_modules_has_none(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_modules_ struct modules modules = {0};

	(void)state;
	python(trace, "train.py(1): main", 0, 100);
	launch(trace, "relu_kernel", TID, 15, 5, 1);
	find(&modules, trace);
	assert_false(modules.has_modules);
	assert_int_equal(modules.rows.count, 0);
}

/* Rows of hostile files may lie in one another without end. */
static void deep_modules_are_rows(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_modules_ struct modules modules = {0};
	char name[32];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "nn.Module: M_%d", i);
		python(trace, name, i, 10000 - 2 * (int64_t)i);
	}
	find(&modules, trace);
	assert_int_equal(modules.rows.count, 3000);
	assert_int_equal(modules.rows.items[2999].depth, 2999);
	assert_int_equal(module_host_ns(&modules.rows.items[0].total), 10000);
}

static void names_have_classes(void **state)
{
	(void)state;
	assert_int_equal(module_class_length("Linear_12"), strlen("Linear"));
	assert_int_equal(module_class_length("Conv2d_3"), strlen("Conv2d"));
	assert_int_equal(module_class_length("Conv2d"), strlen("Conv2d"));
	assert_int_equal(module_class_length("_7"), 2);
	assert_int_equal(module_class_length("my_"), 3);
	assert_null(module_of_python("nn.Module: "));
	assert_null(module_of_python("torch/nn/modules/linear.py(114): forward"));
	assert_string_equal(module_of_python("nn.Module: Net_0"), "Net_0");
}

/* ---- categories ---- */

static const struct {
	const char *kernel;
	enum op_category category;
} kernels[] = {
	{"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", OP_GEMM},
	{"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128>(P)", OP_GEMM},
	{"nvjet_tst_128x256_64x4_1x2_h_bz_TNT", OP_GEMM},
	{"Cijk_Ailk_Bljk_HHS_BH_Bias_MT128x128x32", OP_GEMM},
	{"void gemv2T_kernel_val<int, int, float>(P)", OP_GEMM},
	{"_ZN7cutlass6KernelI4GemmEE", OP_GEMM},
	{"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>(Flash_fwd_params)", OP_ATTENTION},
	{"fmha_cutlassF_f16_aligned_64x64_rf_sm80(P)", OP_ATTENTION},
	{"void vllm::paged_attention_v1_kernel<__half, 128>(float*)", OP_ATTENTION},
	{"sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32", OP_CONVOLUTION},
	{"void cudnn::ops::nchwToNhwcKernel<float, float, float>(P)", OP_CONVOLUTION},
	{"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
		OP_NORM},
	{"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true>(P)", OP_NORM},
	{"void flashinfer::norm::FusedAddRMSNormKernel<8u, __half>(__half*)", OP_NORM},
	{"fused_moe_kernel", OP_MOE},
	{"void vllm::moe::topkGatingSoftmax<4, 8>(float const*)", OP_MOE},
	{"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
		OP_ELEMENTWISE},
	{"void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>(int)",
		OP_COPY},
	{"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(P)",
		OP_COPY},
	{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps>>(P)",
		OP_REDUCE},
	{"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>(float*)",
		OP_REDUCE},
	{"void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(P)", OP_REDUCE},
	{"triton_poi_fused_convolution_relu_3", OP_ELEMENTWISE},
	{"triton_per_fused_native_layer_norm_2", OP_NORM},
	{"triton_red_fused_sum_0", OP_REDUCE},
	{"triton_tem_fused_addmm_1", OP_GEMM},
	{"triton_tem_fused_flex_attention_0", OP_ATTENTION},
	{"my_kernel", OP_OTHER},
};

static void kernels_are_known_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		enum op_category category = op_category_of_kernel(kernels[i].kernel);

		if (category != kernels[i].category)
			fail_msg("%s is %s, not %s", kernels[i].kernel, op_category_name(category),
				op_category_name(kernels[i].category));
	}
}

static void operators_are_known_by_name(void **state)
{
	(void)state;
	assert_int_equal(op_category_of_operator("aten::mm"), OP_GEMM);
	assert_int_equal(op_category_of_operator("aten::add_"), OP_ELEMENTWISE);
	assert_int_equal(op_category_of_operator("aten::_softmax"), OP_REDUCE);
	assert_int_equal(op_category_of_operator("aten::native_layer_norm_backward"), OP_NORM);
	assert_int_equal(op_category_of_operator("aten::linalg_vector_norm"), OP_REDUCE);
	assert_int_equal(op_category_of_operator("vllm::unified_attention"), OP_ATTENTION);
	assert_int_equal(
		op_category_of_operator("ScaledDotProductFlashAttentionBackward0"), OP_ATTENTION);
	assert_int_equal(op_category_of_operator("aten::mm_without_a_name"), OP_OTHER);
	assert_int_equal(op_category_of_operator(""), OP_OTHER);
}

/* Attention is made of products, norms and copies; a kernel without a known name is its operator's.
 */
static void operators_around_a_launch_say_what_it_is_for(void **state)
{
	const struct trace_view_options options = {0};
	struct trace *trace = example_trace_new();
	_cleanup_trace_view_ struct trace_view view = {0};
	struct category_use use;

	(void)state;
	op_row(trace, "aten::scaled_dot_product_attention", TID, 0, 100, TRACE_NO_NUMBER, 0);
	op_row(trace, "aten::bmm", TID, 10, 20, TRACE_NO_NUMBER, 0);
	launch(trace, "ampere_sgemm_32", TID, 15, 50, 1);
	op_row(trace, "aten::addmm", TID, 200, 20, TRACE_NO_NUMBER, 0);
	launch(trace, "my_kernel", TID, 205, 20, 2);
	op_row(trace, "vllm::all_reduce", TID, 300, 20, TRACE_NO_NUMBER, 0);
	launch(trace, "my_kernel", TID, 305, 7, 3);
	example_device(trace, TRACE_MEMCPY, "Memcpy HtoD", 0, 7, 99000, 3, 0);
	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(category_use_init(&use, &view, 1), 0);
	assert_int_equal(use.count, 4);
	assert_int_equal(use.rows[0].category, OP_ATTENTION);
	assert_int_equal(use.rows[0].total_ns, 50);
	assert_int_equal(use.rows[1].category, OP_GEMM);
	assert_string_equal(use.rows[1].name, "my_kernel");
	assert_int_equal(use.rows[2].category, OP_COMMUNICATION);
	assert_int_equal(use.rows[3].category, OP_COPY);
	assert_int_equal(use.total_ns, 80);
	trace_free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_belongs_to_modules_with_its_gradients),
		cmocka_unit_test(instances_and_operators_have_times_of_their_own),
		cmocka_unit_test(threads_are_in_modules),
		cmocka_unit_test(a_module_that_runs_again_is_itself),
		cmocka_unit_test(a_trace_without_modules_has_none),
		cmocka_unit_test(deep_modules_are_rows),
		cmocka_unit_test(names_have_classes),
		cmocka_unit_test(kernels_are_known_by_name),
		cmocka_unit_test(operators_are_known_by_name),
		cmocka_unit_test(operators_around_a_launch_say_what_it_is_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
