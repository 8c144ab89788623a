/* SPDX-License-Identifier: Apache-2.0 */
/* Building a model: names and inlined functions, deduplication, pids used again, what nobody
 * described. */
#include "model-example.h"
#include "model/weigh.h"

static const char *name_at(const struct model *model, uint32_t stack, uint32_t position)
{
	uint32_t frame = model->stack_frames.items[model->stacks.items[stack].first + position];

	return model->functions.items[model->frames.items[frame].function].name;
}

static const struct model_frame *frame_at(
	const struct model *model, uint32_t stack, uint32_t position)
{
	return &model->frames.items[model->stack_frames
					    .items[model->stacks.items[stack].first + position]];
}

static void test_symbols_expand_to_inlined_frames(void **state)
{
	static const struct capture_symbol_line lines[] = {
		{"innermost", "in.h", 7},
		{"middle", NULL, 0},
		{"outer", "out.c", 42},
	};
	struct example example;
	struct model *model;
	capture_id mapping, frame;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	mapping = example_mapping(&example, "/lib/libwork.so");
	frame = example_frame(&example, "outer_as_said_first", mapping, 0x10);
	example_frames(&example, WIRE_STOP_COMPLETE, frame);
	example_samples(&example, 1, 1, 1, 2000, 1);
	/* Names come last, as a recorder writes them. */
	assert_int_equal(
		model_builder_visitor.symbols(example.builder, mapping, 0x10, lines, 3), 0);
	model = example_end(&example);

	assert_int_equal(model->stacks.items[0].count, 3);
	assert_string_equal(name_at(model, 0, 0), "outer");
	assert_string_equal(name_at(model, 0, 1), "middle");
	assert_string_equal(name_at(model, 0, 2), "innermost");
	assert_false(frame_at(model, 0, 0)->inlined);
	assert_true(frame_at(model, 0, 1)->inlined);
	assert_int_equal(frame_at(model, 0, 0)->line, 42);
	assert_string_equal(frame_at(model, 0, 2)->source_file, "in.h");
	assert_string_equal(frame_at(model, 0, 1)->source_file, "");
	assert_int_equal(frame_at(model, 0, 2)->rel_pc, 0x10);
	model_free(model);
}

static void test_symbols_of_the_last_packet_count(void **state)
{
	struct capture_symbol_line line = {"first", NULL, 1};
	struct example example;
	struct model *model;
	capture_id mapping;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	mapping = example_mapping(&example, "/lib/libwork.so");
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, NULL, mapping, 1));
	assert_int_equal(model_builder_visitor.symbols(example.builder, mapping, 1, &line, 1), 0);
	line.function = "second";
	assert_int_equal(model_builder_visitor.symbols(example.builder, mapping, 1, &line, 1), 0);
	model = example_end(&example);
	assert_string_equal(name_at(model, 0, 0), "second");
	model_free(model);
}

static void test_functions_are_one_by_name_and_module(void **state)
{
	struct example example;
	struct model *model;
	capture_id one, other;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	one = example_mapping(&example, "/lib/one.so");
	other = example_mapping(&example, "/lib/other.so");
	assert_int_equal(
		example_mapping(&example, "/lib/one.so"), 3); /* as joined files repeat it */
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, "f", one, 1),
		example_frame(&example, "f", one, 2), example_frame(&example, "f", other, 1),
		example_frame(&example, "f", 3, 3));
	model = example_end(&example);
	assert_int_equal(model->modules.count, 2);
	assert_int_equal(model->functions.count, 2);
	assert_int_equal(frame_at(model, 0, 0)->function, frame_at(model, 0, 1)->function);
	assert_int_not_equal(frame_at(model, 0, 0)->function, frame_at(model, 0, 2)->function);
	assert_int_equal(frame_at(model, 0, 0)->function, frame_at(model, 0, 3)->function);
	assert_string_equal(model->modules.items[0].name, "one.so");
	assert_int_equal(model->modules.items[0].build_id.length, 3);
	model_free(model);
}

static void test_unnamed_frames_say_where(void **state)
{
	struct strbuf name = {0};
	struct example example;
	struct model *model;
	capture_id mapping;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	mapping = example_mapping(&example, "/usr/lib/libfoo.so");
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, NULL, mapping, 0x1234),
		example_frame(&example, "", mapping, 0x5678),
		example_frame(&example, NULL, 0, 0xdead));
	model = example_end(&example);
	assert_int_equal(model->functions.count, 2);
	assert_string_equal(name_at(model, 0, 0), "[unknown] libfoo.so");
	assert_string_equal(name_at(model, 0, 2), "[unknown]");
	assert_true(model->functions.items[0].unnamed);
	model_frame_name(model, model->stack_frames.items[0], &name);
	assert_string_equal(strbuf_cstr(&name), "[unknown] libfoo.so+0x1234");
	strbuf_clear(&name);
	model_frame_name(model, model->stack_frames.items[2], &name);
	assert_string_equal(strbuf_cstr(&name), "[unknown] 0xdead");
	strbuf_done(&name);
	model_free(model);
}

static void test_samples_are_sorted(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_samples(&example, 1, 1, 0, 9000, 1);
	example_samples(&example, 1, 2, 0, 3000, 1);
	example_samples(&example, 1, 1, 0, 5000, 1);
	model = example_end(&example);
	assert_int_equal(model->samples.items[0].time_ns, 3000);
	assert_int_equal(model->samples.items[1].time_ns, 5000);
	assert_int_equal(model->samples.items[2].time_ns, 9000);
	assert_int_equal(model->samples.items[0].stack, MODEL_NONE);
	model_free(model);
}

static const char *process_of_sample(const struct model *model, size_t index)
{
	uint32_t thread = model->samples.items[index].thread;

	return model->processes.items[model->threads.items[thread].process].name;
}

static void test_a_pid_used_again_is_another_process(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "old", 1000);
	example_thread(&example, 7, 7, "old-main");
	example_process(&example, 7, "new", 5000);
	example_thread(&example, 7, 7, "new-main");
	example_samples(&example, 7, 7, 0, 500, 1); /* before both: the earliest */
	example_samples(&example, 7, 7, 0, 4999, 1);
	example_samples(&example, 7, 7, 0, 5000, 1);
	model = example_end(&example);
	assert_int_equal(model->processes.count, 2);
	assert_string_equal(process_of_sample(model, 0), "old");
	assert_string_equal(process_of_sample(model, 1), "old");
	assert_string_equal(process_of_sample(model, 2), "new");
	assert_string_equal(model->threads.items[model->samples.items[2].thread].name, "new-main");
	model_free(model);
}

static void test_exec_renames_the_process(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "sh", 1000);
	example_process(&example, 7, "python", 1000);
	model = example_end(&example);
	assert_int_equal(model->processes.count, 1);
	assert_string_equal(model->processes.items[0].name, "python");
	model_free(model);
}

static void test_what_nobody_described_gets_a_name(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "work", 0);
	example_samples(&example, 7, 7, 0, 1000, 1);
	example_samples(&example, 7, 8, 0, 2000, 1);
	example_samples(&example, 9, 9, 0, 3000, 1);
	model = example_end(&example);
	assert_string_equal(model->threads.items[0].name, "work");
	assert_string_equal(model->threads.items[1].name, "tid 8");
	assert_string_equal(model->threads.items[2].name, "pid 9");
	assert_string_equal(process_of_sample(model, 2), "pid 9");
	model_free(model);
}

static void test_the_last_account_counts(void **state)
{
	struct capture_loss loss = {"sample_ring", 3, 17};
	const char *note = "a note";
	struct capture_stats stats = {.samples_lost = 1, .end_time_ns = 2000};
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	assert_int_equal(model_builder_visitor.stats(example.builder, &stats), 0);
	stats = (struct capture_stats){
		.samples_lost = 17,
		.end_time_ns = 900001000,
		.losses = &loss,
		.loss_count = 1,
		.notes = &note,
		.note_count = 1,
		.complete = true,
	};
	assert_int_equal(model_builder_visitor.stats(example.builder, &stats), 0);
	model = example_end(&example);
	assert_int_equal(model->cut_off_count, 0);
	assert_int_equal(model->stats.values.samples_lost, 17);
	assert_ptr_not_equal(model->stats.values.losses, &loss);
	assert_string_equal(model->stats.values.losses[0].where, "sample_ring");
	assert_string_equal(model->stats.values.notes[0], "a note");
	assert_int_equal(model_duration_ns(model), 900000000);
	assert_string_equal(model->session.command_line, "work --fast");
	model_free(model);
}

/* Joined files: the first recording has its end, the second none, the third not even an account. */
static void test_recordings_without_an_end(void **state)
{
	const struct capture_session again = {.start_time_ns = 5000000000};
	const struct capture_session last = {.start_time_ns = 9000000000};
	struct capture_stats stats = {.end_time_ns = 900001000, .complete = true};
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	assert_int_equal(model_builder_visitor.stats(example.builder, &stats), 0);
	assert_int_equal(model_builder_visitor.session(example.builder, &again), 0);
	stats = (struct capture_stats){.end_time_ns = 5250000000};
	assert_int_equal(model_builder_visitor.stats(example.builder, &stats), 0);
	model = example_end(&example);
	assert_int_equal(model->cut_off_count, 1);
	assert_int_equal(model->cut_off_ns, 250000000);
	assert_string_equal(model->stats.values.notes[0],
		"Of 2 recordings 1 was cut off at 0.25 s: sonde was killed, its disk "
		"was full, or it still runs; what came later is missing.");
	model_free(model);

	example_begin(&example, EXAMPLE_PERIOD_NS);
	assert_int_equal(model_builder_visitor.session(example.builder, &last), 0);
	model = example_end(&example);
	assert_int_equal(model->cut_off_count, 2);
	assert_int_equal(model->stats.values.note_count, 1);
	model_free(model);
}

static void test_broken_references_are_left_out(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_frames(&example, WIRE_STOP_COMPLETE, 0, 99);
	example_samples(&example, 1, 1, 55, 1000, 1);
	example_samples(&example, 1, 1, 1, 2000, 1);
	model = example_end(&example);
	assert_int_equal(model->stacks.items[0].count, 0);
	assert_int_equal(model->samples.items[0].stack, MODEL_NONE);
	assert_int_equal(model_stack_leaf(model, model->samples.items[1].stack), MODEL_NONE);
	model_free(model);
}

static uint64_t selected_count(const struct model *model, uint32_t stack)
{
	uint64_t count = 0;

	array_foreach (&model->samples, sample)
		count += sample->stack == stack;
	return count;
}

/* Frames stay. */
static void check_callstacks_begin_anew(struct example *example)
{
	struct model *model;

	model_builder_pause(example->builder, false);
	model_builder_forget_callstacks(example->builder);
	example->stacks = 0;
	example_frames(example, WIRE_STOP_COMPLETE, 2);
	example_samples(example, 1, 1, 1, 6000, 1);
	assert_int_equal(model_builder_snapshot(example->builder, 1, &model), 0);
	assert_int_equal(model->samples.count, 1);
	assert_string_equal(name_at(model, 0, 0), "g");
}

/* A recording that goes on: a picture, more samples and a name that came late, another picture. */
static void test_snapshots_of_a_recording_that_goes_on(void **state)
{
	struct capture_symbol_line line = {"late", NULL, 1};
	struct capture_sample waiting = {.time_ns = 3500,
		.pid = 1,
		.tid = 1,
		.callstack = 1,
		.wait = WIRE_WAIT_LOCK,
		.duration_ns = 20000000};
	struct example example;
	struct model *model;
	capture_id mapping, other;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	mapping = example_mapping(&example, "/lib/libwork.so");
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, NULL, mapping, 1));
	example_samples(&example, 1, 1, 1, 2000, 3);
	assert_int_equal(model_builder_snapshot(example.builder, 1, &model), 0);
	assert_int_equal(model->samples.count, 3);
	assert_string_equal(name_at(model, 0, 0), "[unknown] libwork.so");

	/* What one picture is changed by is not in the next. */
	assert_int_equal(model_builder_visitor.sample(example.builder, &waiting), 0);
	assert_int_equal(model_builder_snapshot(example.builder, 1, &model), 0);
	assert_int_equal(model_weigh(model, MODEL_WEIGHT_WALL), 0);
	assert_int_equal(model->modules.count, 2);
	assert_int_equal(model_sample_weight_ns(model), MODEL_UNIT_NS);
	assert_int_equal(model_builder_visitor.symbols(example.builder, mapping, 1, &line, 1), 0);
	other = example_mapping(&example, "/lib/libother.so");
	example_frames(&example, WIRE_STOP_COMPLETE, example_frame(&example, "g", other, 1));
	example_samples(&example, 1, 1, 2, 10 * EXAMPLE_PERIOD_NS, 2);
	assert_int_equal(model_builder_snapshot(example.builder, 1, &model), 0);
	assert_int_equal(model_sample_weight_ns(model), EXAMPLE_PERIOD_NS);
	assert_int_equal(model->modules.count, 2);
	assert_string_equal(model->modules.items[1].name, "libother.so");
	assert_string_equal(name_at(model, 0, 0), "late");
	assert_int_equal(selected_count(model, 0), 4);
	assert_int_equal(selected_count(model, 1), 2);

	/* A window: older samples and their stacks are left out, and dropped when that is said. */
	assert_int_equal(
		model_builder_snapshot(example.builder, 10 * EXAMPLE_PERIOD_NS, &model), 0);
	assert_int_equal(model->samples.count, 2);
	assert_int_equal(model->stacks.items[0].count, 0);
	assert_int_equal(model->stacks.items[1].count, 1);
	model_builder_forget_samples(example.builder, 10 * EXAMPLE_PERIOD_NS);
	assert_int_equal(model_builder_snapshot(example.builder, 1, &model), 0);
	assert_int_equal(model->samples.count, 2);
	model_builder_pause(example.builder, true);
	example_samples(&example, 1, 1, 2, 20 * EXAMPLE_PERIOD_NS, 7);
	assert_int_equal(model_builder_snapshot(example.builder, 1, &model), 0);
	assert_int_equal(model->samples.count, 2);
	check_callstacks_begin_anew(&example);
	model_builder_free(example.builder);
}

static void test_a_missing_file_is_a_sentence(void **state)
{
	struct model *model = NULL;
	struct errmsg err = {0};

	assert_true(model_load(&model, "/nonexistent/x.pftrace", NULL, NULL, &err) < 0);
	assert_null(model);
	assert_non_null(strstr(err.text, "/nonexistent/x.pftrace"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_expand_to_inlined_frames),
		cmocka_unit_test(test_symbols_of_the_last_packet_count),
		cmocka_unit_test(test_functions_are_one_by_name_and_module),
		cmocka_unit_test(test_unnamed_frames_say_where),
		cmocka_unit_test(test_samples_are_sorted),
		cmocka_unit_test(test_a_pid_used_again_is_another_process),
		cmocka_unit_test(test_exec_renames_the_process),
		cmocka_unit_test(test_what_nobody_described_gets_a_name),
		cmocka_unit_test(test_the_last_account_counts),
		cmocka_unit_test(test_recordings_without_an_end),
		cmocka_unit_test(test_broken_references_are_left_out),
		cmocka_unit_test(test_snapshots_of_a_recording_that_goes_on),
		cmocka_unit_test(test_a_missing_file_is_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
