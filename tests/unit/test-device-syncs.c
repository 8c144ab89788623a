/* SPDX-License-Identifier: Apache-2.0 */
/* What waited for what, in a recording of two GPUs made up to the nanosecond. */
#include "model-example.h"

#include "analyses/device/idle_rows.h"
#include "analyses/device/sync_rows.h"
#include "analyses/trace_results.h"
#include "model/trace_capture.h"

#define PID 7
#define MS  1000000ULL
#define US  1000ULL

struct found {
	struct model *model;
	struct trace *trace;
	struct trace_view view;
	struct trace_results results;
	const struct device_idle *idle;
	const struct idle_rows *blame;
	struct sync_rows rows;
};

static void add_event(struct example *example, const struct capture_device_event *event)
{
	assert_int_equal(model_builder_visitor.device_event(example->builder, event), 0);
}

static void add_gpu(struct example *example, uint32_t number)
{
	add_event(example,
		&(const struct capture_device_event){
			.kind = CAPTURE_GPU,
			.pid = PID,
			.text = "A GPU",
			.gpu = {.number = number, .uuid_high = number * 0x1111111100000000},
		});
}

static void add_kernel(struct example *example, uint32_t gpu, uint32_t stream, uint64_t correlation,
	uint64_t launch_ns, uint64_t start_ns, uint64_t end_ns)
{
	const struct capture_device_work work = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.launch_ns = launch_ns,
		.launch_duration_ns = 5 * US,
		.pid = PID,
		.tid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "kernel",
		.device = "A GPU",
		.gpu = gpu,
		.context = gpu,
		.stream = stream,
	};

	assert_int_equal(model_builder_visitor.device_work(example->builder, &work), 0);
}

static void add_stack(struct example *example, uint64_t correlation, capture_id stack)
{
	const struct capture_launch_stack launch = {.time_ns = 1,
		.pid = PID,
		.tid = PID,
		.correlation = correlation,
		.callstack = stack};

	assert_int_equal(model_builder_visitor.launch_stack(example->builder, &launch), 0);
}

static void add_call(
	struct example *example, const char *name, uint64_t correlation, uint64_t time_ns)
{
	add_event(example,
		&(const struct capture_device_event){
			.kind = CAPTURE_DEVICE_CALL,
			.pid = PID,
			.time_ns = time_ns,
			.text = name,
			.call = {.duration_ns = US, .correlation = correlation, .tid = PID},
		});
}

/* A call that waits, what the tracing library says of it, and a sample of the thread in it. */
static void add_host_wait(struct example *example, const struct capture_device_sync *sync,
	uint64_t start_ns, uint64_t end_ns, capture_id stack)
{
	const struct capture_launch call = {
		.time_ns = start_ns,
		.duration_ns = end_ns - start_ns,
		.pid = PID,
		.tid = PID,
		.correlation = sync->correlation,
		.kind = sync->type == WIRE_SYNC_EVENT ? WIRE_DEVICE_WAIT : WIRE_DEVICE_FINISH,
	};
	const struct capture_sample sample = {
		.time_ns = end_ns - US,
		.duration_ns = end_ns - US - start_ns,
		.pid = PID,
		.tid = PID,
		.callstack = stack,
		.wait = WIRE_WAIT_LOCK,
	};

	assert_int_equal(model_builder_visitor.launch(example->builder, &call), 0);
	add_event(example, &(const struct capture_device_event){.kind = CAPTURE_DEVICE_SYNC,
				   .pid = PID,
				   .time_ns = start_ns + US,
				   .sync = *sync});
	if (stack)
		assert_int_equal(model_builder_visitor.sample(example->builder, &sample), 0);
}

static void add_sync(struct example *example, const struct capture_device_sync *sync)
{
	add_event(example, &(const struct capture_device_event){
				   .kind = CAPTURE_DEVICE_SYNC, .pid = PID, .sync = *sync});
}

/* An event is recorded on a stream, and another stream waits for it. */
static void add_event_wait(struct example *example, uint64_t correlation, uint64_t time_ns,
	uint32_t from_gpu, uint32_t from_stream, uint32_t gpu, uint32_t stream)
{
	add_call(example, "cudaEventRecord", correlation, time_ns);
	add_sync(example, &(const struct capture_device_sync){
				  .type = WIRE_SYNC_RECORD,
				  .correlation = correlation,
				  .event_sync = correlation,
				  .context = from_gpu,
				  .stream = from_stream,
				  .event = 40,
			  });
	add_call(example, "cudaStreamWaitEvent", correlation + 1, time_ns + 10 * US);
	add_sync(example, &(const struct capture_device_sync){
				  .type = WIRE_SYNC_WAIT,
				  .correlation = correlation + 1,
				  .event_sync = correlation,
				  .context = gpu,
				  .stream = stream,
				  .event = 40,
			  });
}

/* Stacks: 1 main → load, 2 main → step. */
static void begin(struct example *example)
{
	capture_id app, entry;

	example_begin(example, EXAMPLE_PERIOD_NS);
	app = example_mapping(example, "/bin/app");
	entry = example_frame(example, "main", app, 1);
	example_frames(example, WIRE_STOP_COMPLETE, entry, example_frame(example, "load", app, 2));
	example_frames(example, WIRE_STOP_COMPLETE, entry, example_frame(example, "step", app, 3));
	example_process(example, PID, "work", 100);
	example_thread(example, PID, PID, "main");
	add_gpu(example, 1);
	add_gpu(example, 2);
}

static void analyse(struct example *example, struct found *found)
{
	*found = (struct found){.model = example_end(example)};
	assert_int_equal(trace_of_recording(&found->trace, found->model), 0);
	assert_int_equal(
		trace_view_init(&found->view, found->trace, 0, &(struct trace_view_options){0}), 0);
	found->results = (struct trace_results){
		.definitions = &own_definitions, .views = &found->view, .count = 1};
	found->idle = trace_results_idle(&found->results, 0);
	found->blame = trace_results_idle_rows(&found->results);
	assert_true(found->idle && found->blame);
	assert_int_equal(sync_rows_init(&found->rows, &found->view), 0);
}

static void end(struct found *found)
{
	sync_rows_done(&found->rows);
	trace_results_done(&found->results);
	trace_view_done(&found->view);
	trace_free(found->trace);
	model_free(found->model);
}

/* Of a stream, or with MODEL_NONE of a device. */
static const struct device_idle_place *place(
	const struct found *found, uint32_t device, int64_t stream)
{
	array_foreach (&found->idle->places, place) {
		bool is_stream = place->stream != MODEL_NONE;

		if (place->device == device && is_stream == (stream >= 0) &&
			(!is_stream || found->view.streams.items[place->stream].number == stream))
			return place;
	}
	fail();
	return NULL;
}

static void check_row(const struct found *found, const struct sync_row *row,
	enum device_sync_kind kind, const char *target, const char *function, uint64_t time_ns)
{
	assert_int_equal(row->kind, kind);
	assert_string_equal(row->target, target);
	assert_int_equal(row->count, 1);
	assert_int_equal(row->unknown, 0);
	assert_int_equal(row->time_ns, time_ns);
	assert_int_equal(row->most_ns, time_ns);
	if (!function)
		assert_int_equal(row->frame, MODEL_NONE);
	else
		assert_string_equal(model_function_name(found->model,
					    found->model->frames.items[row->frame].function),
			function);
}

/* Which of the rows of blame has this cause; there is one. */
static const struct idle_row *blamed(const struct found *found, enum device_idle_cause cause)
{
	const struct idle_row *found_row = NULL;

	array_foreach (&found->blame->rows, row) {
		if (row->cause != cause)
			continue;
		assert_null(found_row);
		found_row = row;
	}
	assert_non_null(found_row);
	return found_row;
}

/* Stream 8 has its kernel early, but waits for the long one of stream 7: the device is busy. */
static void test_stream_waits_for_a_stream(void **state)
{
	const struct device_idle_place *waiting;
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 8, 1, 1 * MS, 2 * MS, 3 * MS);
	add_kernel(&example, 1, 7, 2, 1 * MS + 100 * US, 3 * MS, 10 * MS);
	add_event_wait(&example, 10, 1 * MS + 200 * US, 1, 7, 1, 8);
	add_kernel(&example, 1, 7, 3, 1 * MS + 300 * US, 20 * MS, 21 * MS); /* after the record */
	add_stack(&example, 4, 2);
	add_kernel(&example, 1, 8, 4, 1 * MS + 400 * US, 10 * MS + 500, 11 * MS);
	analyse(&example, &found);
	waiting = place(&found, 0, 8);
	assert_int_equal(waiting->idle_ns, 7 * MS + 500);
	assert_int_equal(waiting->by_cause_ns[DEVICE_IDLE_EVENT], 7 * MS);
	assert_int_equal(waiting->by_cause_ns[DEVICE_IDLE_KERNEL], 500);
	assert_int_equal(place(&found, 0, -1)->by_cause_ns[DEVICE_IDLE_EVENT], 0);
	assert_int_equal(found.rows.rows.count, 1);
	check_row(&found, &found.rows.rows.items[0], DEVICE_SYNC_STREAM_WAIT, "event of stream 7",
		"step", 7 * MS);
	end(&found);
}

/* What had ended before the stream's work was there is no wait, but one of 0 ns. */
static void test_event_had_come(void **state)
{
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 7, 1, 1 * MS, 2 * MS, 3 * MS);
	add_event_wait(&example, 10, 1 * MS + 200 * US, 1, 7, 1, 8);
	add_kernel(&example, 1, 8, 2, 5 * MS, 6 * MS, 7 * MS);
	add_event_wait(&example, 20, 8 * MS, 1, 9, 1, 8); /* of a stream without work */
	add_kernel(&example, 1, 8, 3, 9 * MS, 10 * MS, 11 * MS);
	add_event_wait(&example, 30, 12 * MS, 1, 7, 1, 8); /* nothing waits */
	analyse(&example, &found);
	assert_int_equal(place(&found, 0, -1)->by_cause_ns[DEVICE_IDLE_EVENT], 0);
	assert_int_equal(place(&found, 0, -1)->by_cause_ns[DEVICE_IDLE_LAUNCH], 2 * MS);
	assert_int_equal(place(&found, 0, -1)->by_cause_ns[DEVICE_IDLE_HOST], 4 * MS);
	assert_int_equal(found.rows.rows.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct sync_row *row = &found.rows.rows.items[i];
		bool is_known = strcmp(row->target, "event of stream 7") == 0;

		assert_int_equal(row->time_ns, 0);
		assert_int_equal(row->count, is_known ? 2 : 1);
		assert_int_equal(row->unknown, !is_known);
	}
	end(&found);
}

/* A GPU is idle because its stream waits for an event of another GPU. */
static void test_device_waits_for_another(void **state)
{
	const struct device_idle_place *waiting;
	const struct idle_row *row;
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 7, 1, 1 * MS, 2 * MS, 10 * MS);
	add_kernel(&example, 2, 3, 2, 1 * MS + 100 * US, 3 * MS, 4 * MS);
	add_event_wait(&example, 10, 1 * MS + 200 * US, 1, 7, 2, 3);
	add_stack(&example, 3, 1);
	add_kernel(&example, 2, 3, 3, 1 * MS + 300 * US, 10 * MS + 200 * US, 12 * MS);
	analyse(&example, &found);
	waiting = place(&found, 1, -1);
	assert_int_equal(waiting->idle_ns, 6 * MS + 200 * US);
	assert_int_equal(waiting->by_cause_ns[DEVICE_IDLE_EVENT], 6 * MS);
	assert_int_equal(waiting->by_cause_ns[DEVICE_IDLE_OTHER], 200 * US);
	row = blamed(&found, DEVICE_IDLE_EVENT);
	assert_string_equal(row->target, "event of stream 7 of A GPU (GPU-11111111)");
	assert_int_equal(row->time_ns, 6 * MS);
	assert_string_equal(
		model_function_name(found.model, found.model->frames.items[row->frame].function),
		"load");
	check_row(&found, &found.rows.rows.items[0], DEVICE_SYNC_STREAM_WAIT,
		"event of stream 7 of A GPU (GPU-11111111)", "load", 6 * MS);
	end(&found);
}

/* The host comes back late from its wait, and launches only then. */
static void test_host_waits(void **state)
{
	const struct capture_device_sync of_stream = {.type = WIRE_SYNC_STREAM,
		.correlation = 30,
		.duration_ns = 1,
		.context = 1,
		.stream = 8,
		.event = WIRE_SYNC_NO_EVENT};
	const struct capture_device_sync of_all = {.type = WIRE_SYNC_CONTEXT,
		.correlation = 31,
		.duration_ns = 1,
		.context = 1,
		.stream = WIRE_SYNC_NO_STREAM,
		.event = WIRE_SYNC_NO_EVENT};
	const struct capture_device_sync of_event = {.type = WIRE_SYNC_EVENT,
		.correlation = 32,
		.duration_ns = 1,
		.context = 1,
		.stream = WIRE_SYNC_NO_STREAM,
		.event = 41};
	const struct idle_row *row;
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 8, 1, 1 * MS, 2 * MS, 11 * MS);
	add_host_wait(&example, &of_stream, 10 * MS, 12 * MS + 500 * US, 2);
	add_kernel(&example, 1, 7, 2, 13 * MS, 13 * MS + 100 * US, 14 * MS);
	add_host_wait(&example, &of_all, 20 * MS, 21 * MS, 1);
	add_host_wait(&example, &of_event, 22 * MS, 22 * MS + 1, 0);
	analyse(&example, &found);
	assert_int_equal(place(&found, 0, -1)->idle_ns, 2 * MS + 100 * US);
	assert_int_equal(place(&found, 0, -1)->by_cause_ns[DEVICE_IDLE_BLOCKED], 1500 * US);
	array_foreach (&found.blame->rows, part) {
		if (part->cause == DEVICE_IDLE_BLOCKED)
			assert_string_equal(part->target, "stream 8");
		else
			assert_null(part->target);
	}
	row = &found.blame->rows.items[0];
	assert_int_equal(row->time_ns, 1499 * US);
	assert_string_equal(row->name, "[a wait: cudaStreamSynchronize or the like]");
	assert_int_equal(found.rows.rows.count, 3);
	check_row(&found, &found.rows.rows.items[0], DEVICE_SYNC_STREAM, "stream 8", "step",
		2500 * US);
	check_row(&found, &found.rows.rows.items[1], DEVICE_SYNC_DEVICE, "A GPU (GPU-11111111)",
		"load", 1 * MS);
	check_row(&found, &found.rows.rows.items[2], DEVICE_SYNC_EVENT, "event", NULL, 1);
	end(&found);
}

/* A call of a wait with its own stack, of which no record says what it waited for. */
static void add_bare_wait(struct example *example, uint64_t correlation, uint64_t start_ns)
{
	const struct capture_launch call = {
		.time_ns = start_ns,
		.duration_ns = 2 * MS,
		.pid = PID,
		.tid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_FINISH,
	};

	add_stack(example, correlation, 2);
	assert_int_equal(model_builder_visitor.launch(example->builder, &call), 0);
}

static void add_copy(
	struct example *example, uint64_t correlation, uint64_t launch_ns, uint64_t duration_ns)
{
	const struct capture_device_work work = {
		.start_ns = launch_ns + US,
		.end_ns = launch_ns + 4 * US,
		.launch_ns = launch_ns,
		.launch_duration_ns = duration_ns,
		.pid = PID,
		.tid = PID,
		.correlation = correlation,
		.kind = WIRE_DEVICE_READ,
		.name = "to pageable memory",
		.device = "A GPU",
		.gpu = 1,
		.context = 1,
		.stream = 7,
	};

	add_stack(example, correlation, 1);
	assert_int_equal(model_builder_visitor.device_work(example->builder, &work), 0);
}

/* Calls that block have the line that called, whatever a sample saw in them. */
static void test_lines_of_calls(void **state)
{
	const struct capture_device_sync of_stream = {.type = WIRE_SYNC_STREAM,
		.correlation = 30,
		.duration_ns = 1,
		.context = 1,
		.stream = 8,
		.event = WIRE_SYNC_NO_EVENT};
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 8, 1, 1 * MS, 2 * MS, 11 * MS);
	add_stack(&example, 30, 1);
	add_host_wait(&example, &of_stream, 10 * MS, 15 * MS, 2);
	add_kernel(&example, 1, 8, 2, 15 * MS, 16 * MS, 17 * MS);
	add_bare_wait(&example, 40, 20 * MS);
	add_copy(&example, 50, 30 * MS, 3 * MS);
	add_copy(&example, 51, 34 * MS, 5 * US);       /* only hands it over */
	add_call(&example, "cudaMalloc", 60, 40 * MS); /* no wait */
	analyse(&example, &found);
	assert_int_equal(found.rows.rows.count, 3);
	check_row(
		&found, &found.rows.rows.items[0], DEVICE_SYNC_STREAM, "stream 8", "load", 5 * MS);
	check_row(&found, &found.rows.rows.items[1], DEVICE_SYNC_COPY, "to pageable memory", "load",
		3 * MS);
	check_row(&found, &found.rows.rows.items[2], DEVICE_SYNC_CALL,
		"[a wait: cudaDeviceSynchronize or the like]", "step", 2 * MS);
	array_foreach (&found.rows.rows, row)
		assert_int_not_equal(row->stack, MODEL_NONE);
	end(&found);
}

/* A device is idle because of a call that no sample was taken in: its own stack has the line. */
static void test_idle_by_line_of_call(void **state)
{
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 8, 1, 1 * MS, 2 * MS, 19 * MS);
	add_bare_wait(&example, 40, 18 * MS);
	add_kernel(&example, 1, 8, 2, 20 * MS, 20 * MS + 10 * US, 21 * MS);
	analyse(&example, &found);
	assert_int_equal(blamed(&found, DEVICE_IDLE_BLOCKED)->time_ns, 1 * MS);
	assert_string_equal(
		model_function_name(found.model,
			found.model->frames.items[blamed(&found, DEVICE_IDLE_BLOCKED)->frame]
				.function),
		"step");
	end(&found);
}

static void test_no_waits(void **state)
{
	struct example example;
	struct found found;

	begin(&example);
	add_kernel(&example, 1, 8, 1, 1 * MS, 2 * MS, 11 * MS);
	analyse(&example, &found);
	assert_int_equal(found.rows.rows.count, 0);
	assert_null(device_syncs_of_work(&found.rows.syncs, 0));
	assert_null(device_syncs_of_call(&found.rows.syncs, 0));
	end(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream_waits_for_a_stream),
		cmocka_unit_test(test_event_had_come),
		cmocka_unit_test(test_device_waits_for_another),
		cmocka_unit_test(test_host_waits),
		cmocka_unit_test(test_lines_of_calls),
		cmocka_unit_test(test_idle_by_line_of_call),
		cmocka_unit_test(test_no_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
