/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and steps in the model, and what analyses make of the time between windows. */
#include "model-example.h"

#include "analyses/cpu/timeline.h"
#include "analyses/device/device_work.h"
#include "analyses/device/idle_spans.h"
#include "analyses/device/temporal.h"
#include "analyses/program/step_use.h"
#include "analyses/program/window_use.h"
#include "model/trace_capture.h"
#include "model/windows.h"

#define PID 7
#define MS  1000000ULL

static void begin(struct example *example)
{
	example_begin(example, EXAMPLE_PERIOD_NS);
	example_process(example, PID, "train", 100);
	example_thread(example, PID, PID, "main");
}

static void say_window(struct example *example, const struct capture_window *window)
{
	assert_int_equal(model_builder_visitor.window(example->builder, window), 0);
}

static void add_window(struct example *example, uint32_t number, uint64_t begin_ns, uint64_t end_ns)
{
	const struct capture_window window = {
		.number = number,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.first_step = 1,
		.opened_by = CAPTURE_TRIGGER_STEPS,
		.closed_by = CAPTURE_REASON_SCHEDULE,
		.leader_pid = PID,
	};

	say_window(example, &window);
}

static void add_step_of(
	struct example *example, uint32_t pid, uint64_t number, uint64_t time_ns, const char *name)
{
	const struct capture_step step = {
		.time_ns = time_ns, .pid = pid, .tid = pid, .number = number, .name = name};

	assert_int_equal(model_builder_visitor.step(example->builder, &step), 0);
}

static void add_step(struct example *example, uint64_t number, uint64_t time_ns)
{
	add_step_of(example, PID, number, time_ns, "step");
}

static void add_work(struct example *example, uint64_t start_ns, uint64_t end_ns)
{
	const struct capture_device_work work = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.queued_ns = start_ns,
		.launch_ns = start_ns,
		.pid = PID,
		.tid = PID,
		.correlation = start_ns,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "kernel",
		.device = "GPU 0",
		.queue = 1,
	};

	assert_int_equal(model_builder_visitor.device_work(example->builder, &work), 0);
}

static struct model *end_chosen(struct example *example, const char *text)
{
	struct window_choice choice;

	assert_int_equal(window_choice_parse(text, &choice, NULL), 0);
	model_builder_choose_windows(example->builder, &choice);
	return example_end(example);
}

static void end_recording(struct example *example, uint64_t end_ns)
{
	const struct capture_stats stats = {.end_time_ns = end_ns, .complete = true};

	assert_int_equal(model_builder_visitor.stats(example->builder, &stats), 0);
}

static void test_durations(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 2, 50 * MS, 60 * MS); /* in any order */
	add_window(&example, 1, 10 * MS, 30 * MS);
	end_recording(&example, 100 * MS + 1000);
	model = example_end(&example);
	assert_int_equal(model->windows.count, 2);
	assert_int_equal(model->windows.items[0].number, 1);
	assert_int_equal(model_duration_ns(model), 30 * MS);
	assert_int_equal(model_elapsed_ns(model), 100 * MS);
	assert_int_equal(model_window_at(model, 10 * MS - 1), MODEL_NONE);
	assert_int_equal(model_window_at(model, 10 * MS), 0);
	assert_int_equal(model_window_at(model, 30 * MS), MODEL_NONE);
	assert_int_equal(model_window_at(model, 50 * MS), 1);
	assert_int_equal(model_window_at(model, 60 * MS), MODEL_NONE);
	assert_int_equal(model_recorded_ns(model, 0, 20 * MS), 10 * MS);
	assert_int_equal(model_recorded_ns(model, 20 * MS, 55 * MS), 15 * MS);
	assert_int_equal(model_recorded_ns(model, 55 * MS, 20 * MS), 0);
	assert_int_equal(model_recorded_ns(model, 31 * MS, 49 * MS), 0);
	assert_true(model_is_continuous(model, 11 * MS, 30 * MS));
	assert_false(model_is_continuous(model, 11 * MS, 51 * MS));
	model_free(model);
}

static void test_no_windows(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	end_recording(&example, 100 * MS + 1000);
	model = example_end(&example);
	assert_int_equal(model_duration_ns(model), 100 * MS);
	assert_int_equal(model_recorded_ns(model, 5, 105), 100);
	assert_true(model_is_continuous(model, 5, 105));
	assert_int_equal(model_window_at(model, 5), MODEL_NONE);
	model_free(model);
}

/* Said at its begin and at its end; the second was killed, and joined captures overlap. */
static void test_ends(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 0);
	add_window(&example, 1, 10 * MS, 20 * MS);
	add_window(&example, 1, 15 * MS, 25 * MS);
	add_window(&example, 2, 30 * MS, 0);
	example_samples(&example, PID, PID, 0, 35 * MS, 1);
	model = example_end(&example);
	assert_int_equal(model->windows.count, 3);
	assert_int_equal(model->windows.items[0].closed_by, CAPTURE_REASON_SCHEDULE);
	assert_int_equal(model->windows.items[1].begin_ns, 20 * MS);
	assert_int_equal(model->windows.items[1].end_ns, 25 * MS);
	assert_int_equal(model->windows.items[2].end_ns, 35 * MS + 1);
	assert_int_equal(model->windows.items[2].closed_by, CAPTURE_REASON_COLLECTOR_GONE);
	assert_int_equal(model_window_at(model, 35 * MS), 2);
	model_free(model);
}

static void check_step(const struct model *model, size_t index, uint64_t number, uint64_t start_ns,
	uint64_t end_ns, bool is_cut)
{
	const struct model_step *step = &model->steps.items[index];

	assert_int_equal(step->number, number);
	assert_int_equal(step->start_ns, start_ns);
	assert_int_equal(step->end_ns, end_ns);
	assert_int_equal(step->is_cut, is_cut);
}

/* A step ends with the next, the leader's last one with the window, and others' are cut there. */
static void test_steps(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	example_process(&example, 8, "follower", 100);
	add_window(&example, 1, 10 * MS, 30 * MS);
	add_window(&example, 2, 50 * MS, 60 * MS);
	add_step_of(&example, 8, 2, 12 * MS, "step");
	add_step(&example, 3, 10 * MS);
	add_step(&example, 4, 18 * MS);
	add_step(&example, 5, 30 * MS); /* where the window ends */
	add_step(&example, 6, 52 * MS);
	add_step_of(&example, PID, 1, 11 * MS, "other");
	model = example_end(&example);
	assert_int_equal(model->steps.count, 5);
	assert_string_equal(model->steps.items[0].name, "other");
	check_step(model, 0, 1, 11 * MS, 30 * MS, false);
	check_step(model, 1, 3, 10 * MS, 18 * MS, false);
	check_step(model, 2, 4, 18 * MS, 30 * MS, false);
	check_step(model, 3, 6, 52 * MS, 60 * MS, false);
	check_step(model, 4, 2, 12 * MS, 30 * MS, true);
	model_free(model);
}

/* The window says no leader, but a step began with it. */
static void test_unknown_leader(void **state)
{
	struct capture_window window = {.number = 1,
		.begin_ns = 10 * MS,
		.end_ns = 30 * MS,
		.first_step = 3,
		.last_step = 4,
		.closed_by = CAPTURE_REASON_SCHEDULE};
	struct example example;
	struct model *model;

	begin(&example);
	say_window(&example, &window);
	add_step_of(&example, 8, 3, 12 * MS, "step");
	add_step(&example, 3, 10 * MS);
	add_step(&example, 4, 18 * MS);
	model = example_end(&example);
	assert_int_equal(model->windows.items[0].leader_pid, PID);
	check_step(model, 1, 4, 18 * MS, 30 * MS, false);
	check_step(model, 2, 3, 12 * MS, 30 * MS, true);
	model_free(model);
}

static void test_steps_without_windows(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	add_step(&example, 1, 10 * MS);
	add_step(&example, 2, 18 * MS);
	end_recording(&example, 20 * MS);
	model = example_end(&example);
	check_step(model, 0, 1, 10 * MS, 18 * MS, false);
	check_step(model, 1, 2, 18 * MS, 20 * MS, true);
	model_free(model);
}

static void test_choice(void **state)
{
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 30 * MS);
	add_window(&example, 2, 50 * MS, 60 * MS);
	add_window(&example, 3, 70 * MS, 75 * MS);
	add_step(&example, 3, 10 * MS);
	add_step(&example, 6, 52 * MS);
	example_samples(&example, PID, PID, 0, 11 * MS, 3);
	example_samples(&example, PID, PID, 0, 51 * MS, 2);
	add_work(&example, 12 * MS, 13 * MS);
	add_work(&example, 52 * MS, 53 * MS);
	end_recording(&example, 100 * MS);
	model = end_chosen(&example, "2-3");
	assert_int_equal(model->windows.count, 2);
	assert_int_equal(model->whole_window_count, 3);
	assert_int_equal(model_duration_ns(model), 15 * MS);
	assert_int_equal(model->samples.count, 2);
	assert_int_equal(model->steps.count, 1);
	assert_int_equal(model->device_works.count, 1);
	assert_int_equal(model->launches.launches, 1);
	model_free(model);
}

static void check_no_choice(const char *text)
{
	struct window_choice choice = {.count = 77};
	struct errmsg err = {""};

	assert_int_equal(window_choice_parse(text, &choice, &err), -EINVAL);
	assert_non_null(strstr(err.text, text));
	assert_int_equal(choice.count, 77);
}

static void test_choice_texts(void **state)
{
	struct window_choice choice;

	assert_int_equal(window_choice_parse("3,5-7", &choice, NULL), 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(window_choice_has(&choice, i), i == 3 || (i >= 5 && i <= 7));
	check_no_choice("");
	check_no_choice("0");
	check_no_choice("-1");
	check_no_choice("3-2");
	check_no_choice("1,");
	check_no_choice("1-");
	check_no_choice("1;2");
	check_no_choice("99999999999999999999");
	check_no_choice("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
}

/* 2 ms of gap in each window; the 30 ms between the windows are not one. */
static void test_idle(void **state)
{
	_cleanup_weight_spans_ struct weight_spans idle = {0};
	_cleanup_device_work_ struct device_work work = {0};
	_cleanup_temporal_ struct temporal temporal = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	const struct trace_view_options options = {0};
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 20 * MS);
	add_window(&example, 2, 40 * MS, 60 * MS);
	add_work(&example, 12 * MS, 13 * MS);
	add_work(&example, 15 * MS, 16 * MS);
	add_work(&example, 45 * MS, 46 * MS);
	add_work(&example, 48 * MS, 61 * MS); /* longer than the window */
	model = example_end(&example);
	assert_int_equal(idle_spans_init(&idle, model), 0);
	assert_int_equal(idle.items.count, 2);
	array_foreach (&idle.items, span)
		assert_int_equal(span->end_ns - span->start_ns, 2 * MS);
	assert_int_equal(device_work_init(&work, model), 0);
	assert_int_equal(work.devices.items[0].busy_ns, 15 * MS);
	assert_int_equal(trace_of_recording(&trace, model), 0);
	assert_int_equal(trace_view_init(&view, trace, 0, &options), 0);
	assert_int_equal(temporal_init(&temporal, &view), 0);
	assert_int_equal(temporal.devices.items[0].idle_ns, 4 * MS);
	assert_int_equal(temporal_span_ns(&temporal.devices.items[0]), 4 * MS + 15 * MS);
	model_free(model);
}

/* A wait that began before the window counts from the window's begin on. */
static void test_waits(void **state)
{
	const struct capture_sample wait = {
		.time_ns = 12 * MS,
		.duration_ns = 11 * MS,
		.pid = PID,
		.tid = PID,
		.wait = WIRE_WAIT_SLEEP,
	};
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 20 * MS);
	assert_int_equal(model_builder_visitor.sample(example.builder, &wait), 0);
	model = example_end(&example);
	assert_int_equal(model->samples.items[0].duration_ns, 2 * MS);
	model_free(model);
}

static void test_timeline(void **state)
{
	static bool all[] = {true, true};
	const struct selected selected = {.samples = all, .count = 2};
	_cleanup_timeline_ struct timeline timeline = {0};
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 20 * MS);
	add_window(&example, 2, 1000 * MS, 1010 * MS);
	example_samples(&example, PID, PID, 0, 19 * MS, 1);
	example_samples(&example, PID, PID, 0, 1001 * MS, 1);
	model = example_end(&example);
	assert_int_equal(timeline_init(&timeline, model, &selected, 4), 0);
	assert_int_equal(timeline.interval_ns, 5 * MS + 1);
	assert_int_equal(timeline.samples[1], 1);
	assert_int_equal(timeline.samples[2], 1);
	model_free(model);
}

static void test_use(void **state)
{
	_cleanup_window_use_ struct window_use windows = {0};
	_cleanup_step_use_ struct step_use steps = {0};
	struct example example;
	struct model *model;

	begin(&example);
	add_window(&example, 1, 10 * MS, 30 * MS);
	add_window(&example, 2, 50 * MS, 60 * MS);
	for (unsigned i = 0; i < 4; i++) /* 2, 4, 6 and 8 ms */
		add_step(&example, i, (10 + i * (i + 1)) * MS);
	add_step(&example, 9, 59 * MS);
	example_samples(&example, PID, PID, 0, 12 * MS, 1);
	example_samples(&example, PID, PID, 0, 23 * MS, 2);
	add_work(&example, 16 * MS, 19 * MS);
	add_work(&example, 17 * MS, 20 * MS);
	model = example_end(&example);
	assert_int_equal(window_use_init(&windows, model, NULL), 0);
	assert_int_equal(windows.rows.items[0].steps, 4);
	assert_int_equal(windows.rows.items[0].samples, 3);
	assert_int_equal(windows.rows.items[0].works, 2);
	assert_int_equal(windows.rows.items[0].device_busy_ns, 4 * MS);
	assert_int_equal(windows.rows.items[1].steps, 1);
	assert_int_equal(windows.rows.items[1].samples, 0);
	assert_int_equal(step_use_init(&steps, model, NULL), 0);
	assert_int_equal(steps.rows.count, 1);
	assert_int_equal(steps.rows.items[0].count, 5);
	assert_int_equal(steps.rows.items[0].total_ns, 21 * MS);
	assert_int_equal(steps.rows.items[0].minimum_ns, MS);
	assert_int_equal(steps.rows.items[0].p50_ns, 4 * MS);
	assert_int_equal(steps.rows.items[0].p95_ns, 8 * MS);
	assert_int_equal(steps.rows.items[0].samples, 3);
	assert_int_equal(steps.costs.items[1].samples, 1);
	assert_int_equal(steps.costs.items[2].device_busy_ns, 4 * MS);
	assert_int_equal(steps.costs.items[3].samples, 2);
	assert_int_equal(model->steps.items[steps.slowest.items[0]].number, 3);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_no_windows),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_unknown_leader),
		cmocka_unit_test(test_steps_without_windows),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_choice_texts),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
