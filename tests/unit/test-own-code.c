/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a whole recording are the user's own, and which one a cost is charged to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyses/cpu/breakdown.h"
#include "analyses/cpu/charge.h"
#include "analyses/cpu/own_code.h"
#include "analyses/cpu/waiting.h"
#include "model-example.h"
#include "model/shown.h"

#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"

static void process(struct example *example, uint32_t pid, uint32_t parent, const char *name)
{
	const struct capture_process out = {.pid = pid, .parent_pid = parent, .name = name};

	assert_int_equal(model_builder_visitor.process(example->builder, &out), 0);
}

static void command(struct example *example, uint32_t pid, const char *const *words, uint32_t count)
{
	const struct capture_process out = {
		.pid = pid, .name = "python3", .cmdline = words, .cmdline_count = count};

	assert_int_equal(model_builder_visitor.process(example->builder, &out), 0);
}

static capture_id frame(struct example *example, enum capture_frame_kind kind, const char *name,
	capture_id mapping, const char *source_file)
{
	const struct capture_frame out = {
		.function = name,
		.mapping = mapping,
		.rel_pc = example->frames,
		.kind = kind,
		.source_file = source_file,
		.line = source_file ? 7 : 0,
	};

	assert_int_equal(model_builder_visitor.frame(example->builder, ++example->frames, &out), 0);
	return example->frames;
}

static capture_id native(struct example *example, const char *name, const char *path)
{
	return frame(example, CAPTURE_FRAME_NATIVE, name, example_mapping(example, path), NULL);
}

static capture_id python(struct example *example, const char *name, const char *path)
{
	return frame(
		example, CAPTURE_FRAME_INTERPRETED, name, example_mapping(example, path), path);
}

static enum model_class class_of(const struct model *model, const char *name)
{
	uint32_t function = example_function(model, name);

	assert_int_not_equal(function, MODEL_NONE);
	return model->functions.items[function].class;
}

/* What the only stack of the model is charged to. */
static const char *charged(const struct model *model)
{
	uint32_t index = charge_frame(model, 0);

	return index == MODEL_NONE
		       ? "nothing"
		       : model_function_name(model, model->frames.items[index].function);
}

static void test_launches_of_an_installed_program(void **state)
{
	static const struct {
		const char *parent;
		enum model_class class;
	} cases[] = {
		{"bash", MODEL_CLASS_USER}, {"mpirun", MODEL_CLASS_USER},
		{"python3", MODEL_CLASS_NATIVE}, /* a compiler that it calls, say */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct example example;
		struct model *model;
		capture_id stack;

		example_begin(&example, EXAMPLE_PERIOD_NS);
		process(&example, 1, 0, cases[i].parent);
		process(&example, 2, 1, "clpeak");
		stack = example_frames(&example, WIRE_STOP_COMPLETE,
			native(&example, "__libc_start_main", LIBRARIES "libc.so.6"),
			native(&example, "launch", "/usr/bin/clpeak"),
			native(&example, "xgemm", LIBRARIES "libclblast.so.1"),
			native(&example, "enqueue", LIBRARIES "libOpenCL.so.1.0.0"),
			native(&example, "layer", "/home/u/build/libsonde-inject.so"));
		example_samples(&example, 2, 2, stack, 2000, 1);
		model = example_end(&example);
		assert_int_equal(class_of(model, "launch"), cases[i].class);
		assert_int_equal(class_of(model, "layer"), MODEL_CLASS_SONDE);
		/* Also where the program is nobody's: not the loader, and not sonde. */
		assert_string_equal(charged(model), "launch");
		model_free(model);
	}
}

static void test_of_the_whole_machine_no_program_is_the_users(void **state)
{
	const struct capture_session session = {.sonde_version = "1", .whole_machine = true};
	struct example example;
	struct model *model;

	example = (struct example){0};
	assert_int_equal(model_builder_new(&example.builder), 0);
	assert_int_equal(model_builder_visitor.session(example.builder, &session), 0);
	process(&example, 2, 1, "redis-server");
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			native(&example, "serve", "/usr/bin/redis-server"),
			native(&example, "collect", "/home/u/build/sonde")),
		2000, 1);
	model = example_end(&example);
	assert_int_equal(class_of(model, "serve"), MODEL_CLASS_NATIVE);
	assert_int_equal(class_of(model, "collect"), MODEL_CLASS_SONDE);
	model_free(model);
}

static void test_headers_count_by_their_source(void **state)
{
	struct example example;
	struct model *model;
	capture_id mapping;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "solver");
	mapping = example_mapping(&example, "/home/me/solver");
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			frame(&example, CAPTURE_FRAME_NATIVE, "step", mapping, "/home/me/s.cpp"),
			frame(&example, CAPTURE_FRAME_NATIVE, "cl::Queue::enqueue", mapping,
				"/usr/include/CL/opencl.hpp"),
			frame(&example, CAPTURE_FRAME_NATIVE, "core::iter", mapping,
				"/rustc/9fc6b/library/core/src/iter.rs")),
		2000, 1);
	model = example_end(&example);
	assert_int_equal(class_of(model, "step"), MODEL_CLASS_USER);
	assert_int_equal(class_of(model, "cl::Queue::enqueue"), MODEL_CLASS_LIBRARY);
	assert_int_equal(class_of(model, "core::iter"), MODEL_CLASS_LIBRARY);
	assert_string_equal(charged(model), "step");
	model_free(model);
}

static void test_generated_python_is_charged_to_its_caller(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			python(&example, "train", "/home/me/train.py"),
			python(&example, "Point.__init__", "<string>"),
			python(&example, "forward", "<eval_with_key>.3")),
		2000, 1);
	model = example_end(&example);
	assert_int_equal(class_of(model, "Point.__init__"), MODEL_CLASS_LIBRARY);
	assert_string_equal(charged(model), "train");
	model_free(model);
}

/* Two texts that a program compiled are called "<string>" both: line 7 of one is not that of the
 * other. */
static void test_lines_of_generated_code_are_told_apart(void **state)
{
	_cleanup_breakdown_ struct breakdown lines = {0};
	_cleanup_(selected_done) struct selected selected = {0};
	static const struct selection everything = {0};
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			python(&example, "train", "/home/me/train.py"),
			python(&example, "first", "<string>")),
		2000, 3);
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			python(&example, "test", "/home/me/train.py"),
			python(&example, "second", "<string>")),
		3000, 2);
	model = example_end(&example);
	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(
		breakdown_init(&lines, model, &selected, BREAKDOWN_LINE, BREAKDOWN_SORT_SELF), 0);
	assert_int_equal(lines.rows.count, 3);
	assert_int_equal(lines.rows.items[0].self_samples, 3);
	assert_int_equal(lines.rows.items[1].self_samples, 2);
	assert_int_equal(lines.rows.items[2].total_samples, 5); /* one line of a file */
	model_free(model);
}

static void test_the_text_of_a_command_is_the_users(void **state)
{
	static const struct {
		const char *words[4];
		bool own;
	} cases[] = {
		{{"/usr/bin/python3", "-uc", "import me; me.run()"}, true},
		{{"python3.11", "-X", "importtime", "-cpass"}, false}, /* who writes so? */
		{{"python3", "-c", "from multiprocessing.spawn import spawn_main; …"}, false},
		{{"python3", "train.py", "-c", "4"}, false},
		{{"bash", "-c", "true"}, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct example example;
		struct model *model;

		example_begin(&example, EXAMPLE_PERIOD_NS);
		command(&example, 2, cases[i].words, cases[i].words[3] ? 4 : 3);
		example_samples(&example, 2, 2,
			example_frames(&example, WIRE_STOP_COMPLETE,
				python(&example, "<module>", "<string>"),
				python(&example, "__create_fn__.<locals>.__init__", "<string>")),
			2000, 1);
		model = example_end(&example);
		assert_int_equal(class_of(model, "<module>") == MODEL_CLASS_USER, cases[i].own);
		assert_int_equal(
			class_of(model, "__create_fn__.<locals>.__init__"), MODEL_CLASS_LIBRARY);
		model_free(model);
	}
}

static void test_scripts_beside_their_packages_are_installed(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	example_samples(&example, 2, 2,
		example_frames(&example, WIRE_STOP_COMPLETE,
			python(&example, "installed", "/venv/bin/torchrun"),
			python(&example, "mine", "/home/me/bin/train"),
			python(&example, "run", "/venv/lib/python3.11/site-packages/torch/run.py")),
		2000, 1);
	model = example_end(&example);
	assert_int_equal(class_of(model, "installed"), MODEL_CLASS_LIBRARY);
	assert_int_equal(class_of(model, "mine"), MODEL_CLASS_USER);
	model_free(model);
}

/* A worker of a DataLoader is forked in the middle of the line that iterates over it. */
static void test_a_forked_worker_is_not_its_parents_line(void **state)
{
	static const char packages[] = "/usr/lib/python3/dist-packages/torch/utils/data/worker.py";
	static const char process_file[] = "/usr/lib/python3.11/multiprocessing/process.py";

	for (int loads = 0; loads < 2; loads++) {
		struct example example;
		struct model *model;

		example_begin(&example, EXAMPLE_PERIOD_NS);
		process(&example, 2, 0, "python3");
		example_samples(&example, 2, 2,
			example_frames(&example, WIRE_STOP_COMPLETE,
				python(&example, "train", "/home/me/train.py"),
				python(&example, "BaseProcess._bootstrap", process_file),
				python(&example, "_worker_loop", packages),
				loads ? python(&example, "load", "/home/me/data.py")
				      : native(&example, "poll", LIBRARIES "libc.so.6")),
			2000, 1);
		model = example_end(&example);
		assert_int_equal(class_of(model, "train"), MODEL_CLASS_USER);
		assert_string_equal(charged(model), loads ? "load" : "_worker_loop");
		model_fold_libraries(model, true);
		assert_int_equal(model->stacks.items[0].count, 4);
		model_free(model);
	}
}

static void add_wait(
	struct example *example, uint32_t tid, capture_id stack, enum wire_wait wait, uint64_t ns)
{
	const struct capture_sample sample = {
		.time_ns = 2000 + ns,
		.pid = 2,
		.tid = tid,
		.callstack = stack,
		.wait = wait,
		.duration_ns = ns,
	};

	assert_int_equal(model_builder_visitor.sample(example->builder, &sample), 0);
}

/* Threads of libraries wait ten times as long as the line that sleeps. */
static void test_library_threads_wait_in_the_background(void **state)
{
	_cleanup_waiting_ struct waiting waiting = {0};
	const struct selection everything = {0};
	struct example example;
	struct model *model;
	struct errmsg err;
	capture_id own, pool;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	pool = example_frames(&example, WIRE_STOP_COMPLETE,
		native(&example, "start_thread", LIBRARIES "libc.so.6"),
		native(&example, "gomp_thread_start", LIBRARIES "libgomp.so.1"),
		native(&example, "futex_wait", LIBRARIES "libc.so.6"));
	for (uint32_t tid = 10; tid < 20; tid++)
		add_wait(&example, tid, pool, WIRE_WAIT_LOCK, 100);
	model = example_end(&example);
	assert_int_equal(waiting_init(&waiting, model, &everything, &err), 0);
	assert_int_equal(waiting.rows.count, 1);
	assert_true(waiting.rows.items[0].is_background); /* a pool's, whatever else there is */
	assert_int_equal(waiting.background_threads, 10);
	waiting_done(&waiting);
	model_free(model);

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	own = example_frames(&example, WIRE_STOP_COMPLETE,
		python(&example, "straggle", "/home/me/train.py"),
		native(&example, "clock_nanosleep", LIBRARIES "libc.so.6"));
	pool = example_frames(&example, WIRE_STOP_COMPLETE,
		python(&example, "_worker", "/usr/lib/python3.11/concurrent/futures/thread.py"),
		native(&example, "futex_wait", LIBRARIES "libc.so.6"));
	for (uint32_t tid = 10; tid < 20; tid++)
		add_wait(&example, tid, pool, WIRE_WAIT_LOCK, 100);
	add_wait(&example, 2, own, WIRE_WAIT_SLEEP, 100);
	add_wait(&example, 19, own, WIRE_WAIT_SLEEP, 10);
	model = example_end(&example);
	assert_int_equal(waiting_init(&waiting, model, &everything, &err), 0);
	assert_int_equal(waiting.rows.count, 2);
	assert_true(waiting.rows.items[0].is_background);
	assert_false(waiting.rows.items[1].is_background);
	assert_int_equal(waiting.time_ns, 1110);
	assert_int_equal(waiting.background_ns, 1000);
	assert_int_equal(waiting.background_threads, 9);
	model_free(model);
}

static void test_costs_by_line_and_by_function(void **state)
{
	_cleanup_own_code_ struct own_code own = {0};
	_cleanup_(selected_done) struct selected selected = {0};
	const struct selection everything = {0};
	struct example example;
	struct model *model;
	struct errmsg err;
	capture_id mapping, outer, inner, library;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	process(&example, 2, 0, "python3");
	mapping = example_mapping(&example, "/home/me/train.py");
	outer = frame(&example, CAPTURE_FRAME_INTERPRETED, "main", mapping, "/home/me/train.py");
	library = native(&example, "sgemm_", LIBRARIES "libblas.so.3");
	for (uint32_t line = 10; line < 14; line++) {
		const struct capture_frame out = {
			.function = "hot",
			.mapping = mapping,
			.rel_pc = 1000 + line,
			.kind = CAPTURE_FRAME_INTERPRETED,
			.source_file = "/home/me/train.py",
			.line = line,
		};

		inner = ++example.frames;
		assert_int_equal(model_builder_visitor.frame(example.builder, inner, &out), 0);
		/* Recursion counts once. */
		example_samples(&example, 2, 2,
			example_frames(&example, WIRE_STOP_COMPLETE, outer, inner, inner, library),
			2000 + line, line);
	}
	example_samples(
		&example, 2, 3, example_frames(&example, WIRE_STOP_COMPLETE, library), 2000, 5);
	model = example_end(&example);
	assert_int_equal(selection_apply(&everything, model, &selected, &err), 0);
	assert_int_equal(own_code_init(&own, model, &selected), 0);
	assert_int_equal(own.samples, 10 + 11 + 12 + 13 + 5);
	assert_int_equal(own.others, 5);
	assert_int_equal(own.rows[OWN_CODE_LINE].count, 5);
	assert_int_equal(own.rows[OWN_CODE_LINE].items[0].self_samples, 13);
	assert_int_equal(own.rows[OWN_CODE_LINE].items[0].total_samples, 13);
	assert_int_equal(own.rows[OWN_CODE_FUNCTION].count, 2);
	assert_int_equal(own.rows[OWN_CODE_FUNCTION].items[0].self_samples, 46);
	assert_int_equal(own.rows[OWN_CODE_FUNCTION].items[0].total_samples, 46);
	assert_int_equal(own.rows[OWN_CODE_FUNCTION].items[1].self_samples, 0);
	assert_int_equal(own.rows[OWN_CODE_FUNCTION].items[1].total_samples, 46);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launches_of_an_installed_program),
		cmocka_unit_test(test_of_the_whole_machine_no_program_is_the_users),
		cmocka_unit_test(test_headers_count_by_their_source),
		cmocka_unit_test(test_generated_python_is_charged_to_its_caller),
		cmocka_unit_test(test_lines_of_generated_code_are_told_apart),
		cmocka_unit_test(test_the_text_of_a_command_is_the_users),
		cmocka_unit_test(test_scripts_beside_their_packages_are_installed),
		cmocka_unit_test(test_a_forked_worker_is_not_its_parents_line),
		cmocka_unit_test(test_library_threads_wait_in_the_background),
		cmocka_unit_test(test_costs_by_line_and_by_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
