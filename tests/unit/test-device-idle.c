/* SPDX-License-Identifier: Apache-2.0 */
/* Why a device was idle, in models made up to the nanosecond. */
#include "model-example.h"

#include "analyses/device/idle_rows.h"
#include "analyses/device/idle_spans.h"
#include "analyses/trace_results.h"
#include "model/trace_capture.h"
#include "model/weigh.h"

#define PID 7
#define MS  1000000ULL

/* Thread 7 launches; its stacks: 1 main → load, 2 main → step. */
static void begin(struct example *example)
{
	capture_id app, entry;

	example_begin(example, EXAMPLE_PERIOD_NS);
	app = example_mapping(example, "/bin/app");
	entry = example_frame(example, "main", app, 1);
	example_frames(example, WIRE_STOP_COMPLETE, entry, example_frame(example, "load", app, 2));
	example_frames(example, WIRE_STOP_COMPLETE, entry, example_frame(example, "step", app, 3));
	example_process(example, PID, "work", 100);
	example_thread(example, PID, 7, "main");
	example_thread(example, PID, 8, "worker");
}

/* What is found in a model. */
struct found {
	struct trace *trace;
	struct trace_view view;
	struct trace_results results;
	const struct device_idle *idle;
	const struct idle_rows *rows;
};

/* Launched when it starts, by thread 7. */
static struct capture_device_work work_at(uint64_t start_ns, uint64_t end_ns)
{
	return (struct capture_device_work){
		.start_ns = start_ns,
		.end_ns = end_ns,
		.launch_ns = start_ns,
		.pid = PID,
		.tid = 7,
		.correlation = start_ns,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "kernel",
		.device = "GPU 0",
		.queue = 1,
	};
}

static void add_work(struct example *example, struct capture_device_work work)
{
	assert_int_equal(model_builder_visitor.device_work(example->builder, &work), 0);
}

static void add_busy(struct example *example, uint64_t start_ns, uint64_t end_ns)
{
	add_work(example, work_at(start_ns, end_ns));
}

static void add_wait(struct example *example, uint32_t tid, enum wire_wait wait, capture_id stack,
	uint64_t start_ns, uint64_t end_ns)
{
	struct capture_sample sample = {
		.time_ns = end_ns,
		.duration_ns = end_ns - start_ns,
		.pid = PID,
		.tid = tid,
		.callstack = stack,
		.wait = wait,
	};

	assert_int_equal(model_builder_visitor.sample(example->builder, &sample), 0);
}

static void add_finish(struct example *example, uint64_t start_ns, uint64_t end_ns)
{
	struct capture_launch launch = {
		.time_ns = start_ns,
		.duration_ns = end_ns - start_ns,
		.pid = PID,
		.tid = 7,
		.kind = WIRE_DEVICE_FINISH,
	};

	assert_int_equal(model_builder_visitor.launch(example->builder, &launch), 0);
}

static const struct device_idle_place *device(const struct found *found, uint32_t index)
{
	return &found->idle->places.items[index];
}

/* Whatever the causes, nothing is dropped and nothing counts twice. */
static void check_sums(const struct found *found)
{
	for (uint32_t i = 0; i < found->view.devices.count; i++) {
		int64_t causes = 0, rows = 0, parts = 0;

		for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++)
			causes += device(found, i)->by_cause_ns[cause];
		array_foreach (&found->rows->rows, row)
			rows += row->device == i ? row->time_ns : 0;
		array_foreach (&found->idle->gaps, gap)
			parts += gap->place == i ? gap->end_ns - gap->start_ns : 0;
		assert_int_equal(causes, device(found, i)->idle_ns);
		assert_int_equal(rows, device(found, i)->idle_ns);
		assert_int_equal(parts, device(found, i)->idle_ns);
	}
}

static struct model *analyse(struct example *example, struct found *found)
{
	struct model *model = example_end(example);

	assert_int_equal(trace_of_recording(&found->trace, model), 0);
	assert_int_equal(
		trace_view_init(&found->view, found->trace, 0, &(struct trace_view_options){0}), 0);
	found->results = (struct trace_results){
		.definitions = &own_definitions, .views = &found->view, .count = 1};
	found->idle = trace_results_idle(&found->results, 0);
	found->rows = trace_results_idle_rows(&found->results);
	assert_true(found->idle && found->rows);
	check_sums(found);
	return model;
}

static void end(struct model *model, struct found *found)
{
	trace_results_done(&found->results);
	trace_view_done(&found->view);
	trace_free(found->trace);
	model_free(model);
}

static void check_row(const struct model *model, const struct idle_row *row,
	enum device_idle_cause cause, const char *function, int64_t time_ns, uint64_t gaps,
	uint64_t samples)
{
	assert_int_equal(row->cause, cause);
	assert_int_equal(row->time_ns, time_ns);
	assert_int_equal(row->gaps, gaps);
	assert_int_equal(row->samples, samples);
	if (!function)
		assert_int_equal(row->frame, MODEL_NONE);
	else
		assert_string_equal(
			model_function_name(model, model->frames.items[row->frame].function),
			function);
}

/* Only what no queue fills is idle, each device by itself. */
static void test_overlapping_queues(void **state)
{
	struct example example;
	struct found found;
	struct model *model;
	struct capture_device_work other = work_at(12 * MS, 25 * MS);

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	other.queue = 2;
	add_work(&example, other);
	add_busy(&example, 14 * MS, 15 * MS); /* inside */
	add_busy(&example, 40 * MS, 50 * MS);
	other = work_at(30 * MS, 31 * MS);
	other.device = "GPU 1";
	add_work(&example, other);
	model = analyse(&example, &found);
	assert_int_equal(found.view.devices.count, 2);
	assert_int_equal(device(&found, 0)->idle_ns, 15 * MS);
	assert_int_equal(device(&found, 0)->gap_count, 1);
	assert_int_equal(device(&found, 1)->idle_ns, 0);
	end(model, &found);
}

/* Running samples stand for a period around them; a gap's ends cut them. */
static void test_gap_while_running(void **state)
{
	struct example example;
	struct found found;
	struct model *model;

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	add_busy(&example, 30 * MS, 31 * MS);
	example_samples(&example, PID, 7, 1, 20 * MS, 3); /* 19.5 to 22.5 */
	example_samples(&example, PID, 7, 2, 25 * MS, 1); /* 24.5 to 25.5 */
	example_samples(&example, PID, 8, 2, 26 * MS, 4); /* another thread's */
	model = analyse(&example, &found);
	assert_int_equal(found.rows->rows.count, 3);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_HOST, NULL, 6500000, 1, 0);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_RUNNING, "load", 2500000, 1, 3);
	check_row(model, &found.rows->rows.items[2], DEVICE_IDLE_RUNNING, "step", 1 * MS, 1, 1);
	end(model, &found);
}

/* One wait over two gaps is one sample in both; where it overlaps running samples, it counts. */
static void test_gaps_while_waiting(void **state)
{
	struct example example;
	struct found found;
	struct model *model;

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	add_busy(&example, 22 * MS, 23 * MS);
	add_busy(&example, 30 * MS, 31 * MS);
	add_busy(&example, 40 * MS, 41 * MS);
	add_wait(&example, 7, WIRE_WAIT_LOCK, 1, 19 * MS, 28 * MS);
	example_samples(&example, PID, 7, 2, 28 * MS, 2); /* 27.5 to 29.5 */
	add_wait(&example, 7, WIRE_WAIT_GIL, 1, 31 * MS, 33 * MS);
	add_wait(&example, 7, WIRE_WAIT_SOCKET, 1, 33 * MS, 34 * MS);
	add_wait(&example, 7, WIRE_WAIT_CPU, 2, 34 * MS, 40 * MS);
	model = analyse(&example, &found);
	assert_int_equal(device(&found, 0)->gap_count, 3);
	assert_int_equal(found.rows->rows.count, 6);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_LOCK, "load", 7 * MS, 2, 1);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_CPU, "step", 6 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[2], DEVICE_IDLE_GIL, "load", 2 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[3], DEVICE_IDLE_RUNNING, "step", 1500000, 1, 2);
	check_row(model, &found.rows->rows.items[4], DEVICE_IDLE_CHANNEL, "load", 1 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[5], DEVICE_IDLE_HOST, NULL, 500000, 1, 0);
	end(model, &found);
}

/* From when it is launched on, the thread is not what the device waits for. */
static void test_launched_not_started(void **state)
{
	struct example example;
	struct found found;
	struct model *model;
	struct capture_device_work work = work_at(30 * MS, 31 * MS);

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	work.launch_ns = 15 * MS;
	add_work(&example, work);
	work = work_at(40 * MS, 41 * MS);
	work.launch_ns = 39 * MS;
	add_work(&example, work);
	add_wait(&example, 7, WIRE_WAIT_SLEEP, 1, 15 * MS, 50 * MS);
	model = analyse(&example, &found);
	assert_int_equal(found.rows->rows.count, 3);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_OTHER, NULL, 10 * MS, 1, 0);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_SLEEP, "load", 8 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[2], DEVICE_IDLE_LAUNCH, NULL, 1 * MS, 1, 0);
	end(model, &found);
}

/* A call that waits for the device has the stack of the sample in it, where there is one. */
static void test_waiting_for_the_device(void **state)
{
	struct example example;
	struct found found;
	struct model *model;

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	add_busy(&example, 30 * MS, 31 * MS);
	add_finish(&example, 12 * MS, 24 * MS);
	add_wait(&example, 7, WIRE_WAIT_LOCK, 2, 12 * MS, 23 * MS);
	add_wait(&example, 7, WIRE_WAIT_SLEEP, 1, 23 * MS + 7, 27 * MS); /* was not in the call */
	model = analyse(&example, &found);
	assert_int_equal(found.rows->rows.count, 4);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_HOST, NULL, 3 * MS, 1, 0);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_SLEEP, "load", 3 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[2], DEVICE_IDLE_BLOCKED, "step", 3 * MS, 1, 1);
	check_row(model, &found.rows->rows.items[3], DEVICE_IDLE_BLOCKED, NULL, 1 * MS, 1, 0);
	end(model, &found);
}

/* Short waits that are only counted have a time, but no place in it. */
static void test_no_sample(void **state)
{
	struct example example;
	struct found found;
	struct model *model;
	struct capture_device_work work = work_at(30 * MS, 31 * MS);
	struct capture_sample counted = {
		.time_ns = 30 * MS,
		.duration_ns = 10 * MS,
		.pid = PID,
		.tid = 7,
		.wait = WIRE_WAIT_LOCK,
		.wait_count = 5,
	};

	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	work.tid = 0; /* not known who launched it */
	add_work(&example, work);
	add_busy(&example, 40 * MS, 41 * MS);
	/* Launched before, shorter than 30 us; as short, and launched later; not shorter. */
	work = work_at(41 * MS + 29999, 42 * MS);
	work.launch_ns = 40 * MS;
	add_work(&example, work);
	add_busy(&example, 42 * MS + 29, 43 * MS);
	work = work_at(43 * MS + 30000, 44 * MS);
	work.launch_ns = 40 * MS;
	add_work(&example, work);
	assert_int_equal(model_builder_visitor.sample(example.builder, &counted), 0);
	model = analyse(&example, &found);
	assert_int_equal(device(&found, 0)->gap_count, 5);
	assert_int_equal(found.rows->rows.count, 4);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_UNKNOWN, NULL, 10 * MS, 1, 0);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_HOST, NULL, 9 * MS + 29, 2, 0);
	check_row(model, &found.rows->rows.items[2], DEVICE_IDLE_OTHER, NULL, 30000, 1, 0);
	check_row(model, &found.rows->rows.items[3], DEVICE_IDLE_KERNEL, NULL, 29999, 1, 0);
	end(model, &found);
}

/* A copy from pageable memory: its call returns when the copy has ended, and begins long before. */
static void test_blocking_copy(void **state)
{
	struct capture_device_work copy = work_at(500 * MS, 510 * MS);
	struct found found;
	struct example example;
	struct model *model;

	copy.kind = WIRE_DEVICE_WRITE;
	copy.launch_ns = 47 * MS;
	copy.launch_duration_ns = 463 * MS;
	begin(&example);
	add_busy(&example, 10 * MS, 20 * MS);
	add_work(&example, copy);
	model = analyse(&example, &found);
	check_row(model, &found.rows->rows.items[0], DEVICE_IDLE_BLOCKED, NULL, 453 * MS, 1, 0);
	check_row(model, &found.rows->rows.items[1], DEVICE_IDLE_HOST, NULL, 27 * MS, 1, 0);
	assert_int_equal(device(&found, 0)->by_cause_ns[DEVICE_IDLE_BLOCKED], 453 * MS);
	end(model, &found);
}

static void test_no_work(void **state)
{
	struct example example;
	struct found found;
	struct model *model;

	begin(&example);
	example_samples(&example, PID, 7, 1, 20 * MS, 3);
	model = analyse(&example, &found);
	assert_int_equal(found.view.devices.count, 0);
	assert_int_equal(found.rows->rows.count, 0);
	end(model, &found);
}

/* A model with every kind of overlap at odd times: the sum is exact, in ns. */
static void test_many(void **state)
{
	struct example example;
	struct found found;
	struct model *model;
	uint64_t idle_ns = 0;

	begin(&example);
	for (uint64_t i = 0; i < 500; i++) {
		struct capture_device_work work = work_at(i * 777777 + 50 * MS, 0);

		work.end_ns = work.start_ns + 100001 + i * 7;
		work.launch_ns = work.start_ns - (i % 5) * 333333;
		idle_ns += i < 499 ? 777777 - (100001 + i * 7) : 0;
		add_work(&example, work);
	}
	example_samples(&example, PID, 7, 1, 40 * MS + 13, 100);
	example_samples(&example, PID, 7, 2, 41 * MS + 400013, 90);
	for (uint64_t i = 0; i < 50; i++)
		add_wait(&example, 7, (enum wire_wait)(1 + i % 13), 2, i * 7 * MS + 3,
			i * 7 * MS + (i % 4) * 3 * MS + 8);
	add_finish(&example, 60 * MS, 80 * MS);
	add_finish(&example, 70 * MS, 90 * MS);
	model = analyse(&example, &found);
	assert_int_equal(device(&found, 0)->idle_ns, idle_ns);
	assert_true(device(&found, 0)->by_cause_ns[DEVICE_IDLE_BLOCKED] > 0);
	assert_true(device(&found, 0)->by_cause_ns[DEVICE_IDLE_LAUNCH] > 0);
	end(model, &found);
}

/* The samples become these spans, whole stacks kept and the leaf added. */
static void test_weighed_by_spans(void **state)
{
	struct example example;
	struct model *model;
	struct model_span spans[] = {
		{.start_ns = 10 * MS, .end_ns = 12 * MS, .stack = 0, .leaf = "[idle: sleep]"},
		{.start_ns = 12 * MS,
			.end_ns = 12 * MS + 250,
			.stack = MODEL_NONE,
			.thread = MODEL_NONE, /* the process's first */
			.leaf = "[idle: unknown]"},
	};

	begin(&example);
	example_samples(&example, PID, 7, 1, 20 * MS, 5);
	model = example_end(&example);
	assert_int_equal(model_weigh_spans(model, "[idle]", spans, 2), 0);
	assert_int_equal(model->samples.count, 2);
	assert_int_equal(model->samples.items[0].count, 2 * MS);
	assert_int_equal(model->samples.items[1].count, 250);
	assert_int_equal(model->samples.items[1].thread, 0);
	assert_int_equal(model->stacks.items[model->samples.items[0].stack].count, 3);
	assert_int_equal(model->stacks.items[model->samples.items[1].stack].count, 1);
	assert_string_equal(
		model_function_name(model, model->functions.count - 1), "[idle: unknown]");
	model_free(model);
}

static void test_names(void **state)
{
	for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
		assert_non_null(device_idle_cause_name((enum device_idle_cause)cause));
		assert_non_null(device_idle_cause_leaf((enum device_idle_cause)cause));
		assert_non_null(device_idle_cause_meaning((enum device_idle_cause)cause));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlapping_queues),
		cmocka_unit_test(test_gap_while_running),
		cmocka_unit_test(test_gaps_while_waiting),
		cmocka_unit_test(test_launched_not_started),
		cmocka_unit_test(test_waiting_for_the_device),
		cmocka_unit_test(test_no_sample),
		cmocka_unit_test(test_blocking_copy),
		cmocka_unit_test(test_no_work),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_weighed_by_spans),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
