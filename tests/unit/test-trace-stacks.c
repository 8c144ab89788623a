/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of another tool's trace, and the time of its threads and devices by them. */
#include "trace-example.h"

#include <stdio.h>

#include "analyses/cpu/call_tree.h"
#include "analyses/program/trace_programs.h"
#include "analyses/program/trace_stacks.h"
#include "base/strbuf.h"
#include "model/weigh.h"

#define TID EXAMPLE_PID

static struct model *model_of(struct trace *trace, bool wants_thread_time)
{
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	struct model *model = model_new();

	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_non_null(model);
	assert_int_equal(
		trace_programs_fill_stacks(model, &view, 1,
			&(struct trace_programs_options){.wants_thread_time = wants_thread_time}),
		0);
	return model;
}

/* "outer;inner", of a stack of the model. */
static void describe_stack(const struct model *model, uint32_t stack, struct strbuf *out)
{
	const struct model_stack *found;

	strbuf_clear(out);
	if (stack == MODEL_NONE)
		return;
	found = &model->stacks.items[stack];
	for (uint32_t i = 0; i < found->count; i++) {
		uint32_t frame = model->stack_frames.items[found->first + i];

		strbuf_addf(out, "%s%s", i ? ";" : "",
			model_function_name(model, model->frames.items[frame].function));
	}
}

static void expect_stack(const struct model *model, uint32_t stack, const char *expected)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	describe_stack(model, stack, &text);
	assert_string_equal(strbuf_cstr(&text), expected);
}

/* The count of all samples of this stack. */
static uint64_t time_in(const struct model *model, const char *stack)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t sum = 0;

	array_foreach (&model->samples, sample) {
		describe_stack(model, sample->stack, &text);
		if (strcmp(strbuf_cstr(&text), stack) == 0)
			sum += sample->count;
	}
	return sum;
}

static uint64_t all_time(const struct model *model)
{
	uint64_t sum = 0;

	array_foreach (&model->samples, sample)
		sum += sample->count;
	return sum;
}

static const struct model_function *function_named(const struct model *model, const char *name)
{
	array_foreach (&model->functions, function) {
		if (strcmp(function->name, name) == 0)
			return function;
	}
	fail_msg("no function %s", name);
	return NULL;
}

static void work_has_what_encloses_its_launch(void **state)
{
	struct trace *trace = example_trace_new();
	struct model *model;

	(void)state;
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#7", TID, 0, 1000, 0);
	example_host(trace, TRACE_PYTHON_FUNCTION, "train.py(12): main", TID, 10, 900, 0);
	example_host(trace, TRACE_CPU_OP, "aten::mm", TID, 20, 100, 0);
	example_launch(trace, "gemm", 7, 30, 5, 500, 123, 1);
	example_host(
		trace, TRACE_DRIVER, "cuLaunchKernel", TID, 31, 2, 1); /* the one that counts */
	example_host(trace, TRACE_CPU_OP, "aten::relu", TID, 130, 50, 0);
	example_launch(trace, "relu", 7, 140, 5, 700, 40, 2);
	example_device(trace, TRACE_MEMCPY, "Memcpy HtoD", 0, 8, 800, 9, 99);
	model = model_of(trace, false);
	assert_int_equal(model->device_works.count, 3);
	expect_stack(model, model->device_works.items[0].stack,
		"ProfilerStep;main;aten::mm;cudaLaunchKernel;cuLaunchKernel");
	expect_stack(model, model->device_works.items[1].stack,
		"ProfilerStep;main;aten::relu;cudaLaunchKernel");
	assert_int_equal(model->device_works.items[2].stack, MODEL_NONE);
	assert_int_equal(model->device_works.items[2].unattributed, MODEL_NO_STACK);
	assert_int_equal(model->samples.count, 0);

	assert_int_equal(model_weigh(model, MODEL_WEIGHT_GPU), 0);
	assert_int_equal(all_time(model), 123 + 40 + 9);
	assert_true(model_has_time(model));
	assert_int_equal(
		time_in(model,
			"ProfilerStep;main;aten::mm;cudaLaunchKernel;cuLaunchKernel;[gpu] gemm"),
		123);
	assert_int_equal(time_in(model, "[unattributed: no launch stack];[gpu] Memcpy HtoD"), 9);
	/* On the thread of its stream. */
	assert_int_equal(model->threads.items[model->samples.items[2].thread].tid, 8);
	model_free(model);
	trace_free(trace);
}

static void own_time_is_the_innermost_rows(void **state)
{
	struct trace *trace = example_trace_new();
	struct model *model;

	(void)state;
	example_host(trace, TRACE_PYTHON_FUNCTION, "a.py(1): f", TID, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "op", TID, 10, 30, 0);
	example_host(trace, TRACE_RUNTIME, "call", TID, 15, 5, 0);
	/* Ends after the function: by rounding, most of it lies in it. */
	example_host(trace, TRACE_CPU_OP, "late", TID, 90, 12, 0);
	/* Begins before the one ends that came before it, and lies in nothing. */
	example_host(trace, TRACE_CPU_OP, "next", TID, 101, 20, 0);
	example_host(trace, TRACE_CPU_OP, "other thread", 7, 0, 50, 0);
	model = model_of(trace, true);
	assert_int_equal(time_in(model, "f"), 10 + 50);
	assert_int_equal(time_in(model, "f;op"), 25);
	assert_int_equal(time_in(model, "f;op;call"), 5);
	assert_int_equal(time_in(model, "f;late"), 11);
	assert_int_equal(time_in(model, "next"), 20);
	assert_int_equal(time_in(model, "other thread"), 50);
	assert_int_equal(all_time(model), 121 + 50);
	for (size_t i = 1; i < model->samples.count; i++)
		assert_true(model->samples.items[i - 1].time_ns <= model->samples.items[i].time_ns);

	assert_int_equal(model_weigh(model, MODEL_WEIGHT_WALL), 0);
	assert_int_equal(all_time(model), 121 + 50);
	model_free(model);
	trace_free(trace);
}

/* Files in whole microseconds have rows that last none. */
static void rows_without_length_lie_in_one_another(void **state)
{
	struct trace *trace = example_trace_new();
	struct model *model;

	(void)state;
	example_host(trace, TRACE_CPU_OP, "outer", TID, 0, 5000, 0);
	example_host(trace, TRACE_CPU_OP, "op", TID, 5000, 0, 0);
	example_launch(trace, "kernel", 7, 5000, 0, 6000, 1000, 1);
	example_host(trace, TRACE_USER_ANNOTATION, "a mark", TID, 5000, TRACE_NO_DURATION, 0);
	model = model_of(trace, true);
	expect_stack(model, model->device_works.items[0].stack, "op;cudaLaunchKernel");
	assert_int_equal(all_time(model), 5000);
	model_free(model);
	trace_free(trace);
}

static void names_become_functions(void **state)
{
	static const struct {
		const char *text, *name, *file;
		uint32_t line;
		enum model_class class;
	} names[] = {
		{"train.py(12): main", "main", "train.py", 12, MODEL_CLASS_USER},
		{"torch/nn/modules/module.py(1501): _call_impl", "_call_impl",
			"torch/nn/modules/module.py", 1501, MODEL_CLASS_FRAMEWORK},
		{"threading.py(975): _bootstrap", "_bootstrap", "threading.py", 975,
			MODEL_CLASS_LIBRARY},
		{"/opt/conda/lib/python3.10/site-packages/yaml/x.py(3): load", "load",
			"/opt/conda/lib/python3.10/site-packages/yaml/x.py", 3,
			MODEL_CLASS_LIBRARY},
		{"<frozen importlib._bootstrap>(241): _call", "_call",
			"<frozen importlib._bootstrap>", 241, MODEL_CLASS_INTERPRETER},
		{"a (copy).py(7): <lambda>", "<lambda>", "a (copy).py", 7, MODEL_CLASS_USER},
		{"nn.Module: Linear_0", "nn.Module: Linear_0", "", 0, MODEL_CLASS_FRAMEWORK},
		{"<built-in function len>", "<built-in function len>", "", 0, MODEL_CLASS_LIBRARY},
		{"<built-in method f of torch._C object at 0x7f00aB>",
			"<built-in method f of torch._C object>", "", 0, MODEL_CLASS_FRAMEWORK},
		{"(12): no file", "(12): no file", "", 0, MODEL_CLASS_LIBRARY},
		{"x.py(): no line", "x.py(): no line", "", 0, MODEL_CLASS_LIBRARY},
		{"", "[unnamed]", "", 0, MODEL_CLASS_LIBRARY},
	};
	struct trace *trace = example_trace_new();
	struct model *model;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		example_host(
			trace, TRACE_PYTHON_FUNCTION, names[i].text, TID, (int64_t)i * 10, 5, 0);
	model = model_of(trace, true);
	assert_int_equal(model->functions.count, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct model_function *function = &model->functions.items[i];

		print_message("%s\n", names[i].text);
		assert_string_equal(function->name, names[i].name);
		assert_string_equal(function->source_file, names[i].file);
		assert_int_equal(model->frames.items[i].line, names[i].line);
		assert_int_equal(function->class, names[i].class);
		assert_int_equal(function->kind, CAPTURE_FRAME_INTERPRETED);
	}
	assert_string_equal(model_function_module(model, 1), "module.py");
	model_free(model);
	trace_free(trace);
}

static void kinds_of_rows_have_classes(void **state)
{
	struct trace *trace = example_trace_new();
	struct model *model;

	(void)state;
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", TID, 0, 100, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", TID, 100, 100, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "forward", TID, 110, 10, 0);
	example_host(trace, TRACE_CPU_OP, "forward", TID, 120, 10, 0);
	example_host(trace, TRACE_RUNTIME, "cudaMalloc", TID, 130, 10, 0);
	model = model_of(trace, true);
	assert_int_equal(model->functions.count, 4); /* steps are one, and forward is two */
	assert_int_equal(time_in(model, "ProfilerStep"), 200 - 30);
	assert_int_equal(function_named(model, "ProfilerStep")->class, MODEL_CLASS_FRAMEWORK);
	assert_int_equal(model->functions.items[1].class, MODEL_CLASS_USER);
	assert_string_equal(model_function_module(model, 1), TRACE_FRAME_ANNOTATION);
	assert_int_equal(model->functions.items[2].class, MODEL_CLASS_FRAMEWORK);
	assert_string_equal(model_function_module(model, 2), TRACE_FRAME_OPERATOR);
	assert_int_equal(function_named(model, "cudaMalloc")->class, MODEL_CLASS_RUNTIME);
	model_free(model);
	trace_free(trace);
}

static void graphs_are_replayed(void **state)
{
	struct trace *trace = example_trace_new();
	struct model *model;
	uint32_t row;

	(void)state;
	row = example_launch(trace, "node", 7, 0, 5, 10, 30, 1);
	trace->works.items[trace->events.items[row].detail].graph = 3;
	model = model_of(trace, false);
	assert_int_equal(model_weigh(model, MODEL_WEIGHT_GPU), 0);
	assert_int_equal(time_in(model, "cudaLaunchKernel;[graph replay];[gpu] node"), 30);
	model_free(model);
	trace_free(trace);
}

static void ranks_have_one_tree(void **state)
{
	const struct trace_view_options options = {0};
	struct trace_view views[2];
	struct trace *traces[2];
	struct model *model = model_new();

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		traces[i] = example_trace_new();
		traces[i]->rank = i;
		example_text(traces[i], i ? "other ids" : "");
		example_host(traces[i], TRACE_CPU_OP, "aten::mm", TID, 0, 10, 0);
		example_launch(traces[i], "gemm", 7, 1, 5, 20, 30 + i, 1);
		example_trace_finish(traces[i]);
		assert_int_equal(trace_view_init(&views[i], traces[i], i, &options), 0);
	}
	assert_non_null(model);
	assert_int_equal(trace_programs_fill_stacks(model, views, 2,
				 &(struct trace_programs_options){.wants_thread_time = true}),
		0);
	assert_int_equal(model->functions.count, 2);
	assert_int_equal(model->stacks.count, 2);
	assert_int_equal(time_in(model, "aten::mm"), 2 * 5);
	assert_int_equal(model_weigh(model, MODEL_WEIGHT_CPU_GPU), 0);
	assert_int_equal(time_in(model, "aten::mm;cudaLaunchKernel;[gpu] gemm"), 30 + 31);
	assert_int_equal(all_time(model), 20 + 61);
	model_free(model);
	for (uint32_t i = 0; i < 2; i++) {
		trace_view_done(&views[i]);
		trace_free(traces[i]);
	}
}

/* A stack has so many frames at most: a row further in counts as the row there. */
static void deep_rows_are_bounded(void **state)
{
	const int64_t deep = 5000;
	struct trace *trace = example_trace_new();
	struct model *model;
	uint32_t deepest = 0;

	(void)state;
	for (int64_t i = 0; i < deep; i++)
		example_host(trace, TRACE_CPU_OP, "recursive", TID, i, 3 * deep - 2 * i, 0);
	model = model_of(trace, true);
	array_foreach (&model->stacks, stack)
		deepest = MAX(deepest, stack->count);
	assert_int_equal(deepest, 512);
	assert_int_equal(all_time(model), 3 * deep);
	model_free(model);
	trace_free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_has_what_encloses_its_launch),
		cmocka_unit_test(own_time_is_the_innermost_rows),
		cmocka_unit_test(rows_without_length_lie_in_one_another),
		cmocka_unit_test(names_become_functions),
		cmocka_unit_test(kinds_of_rows_have_classes),
		cmocka_unit_test(graphs_are_replayed),
		cmocka_unit_test(ranks_have_one_tree),
		cmocka_unit_test(deep_rows_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
