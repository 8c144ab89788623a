/* SPDX-License-Identifier: Apache-2.0 */
/* Traces into captures, and back as they were. */
#include "trace-equal.h"

#include <stdio.h>
#include <unistd.h>

#include "importers/kineto/kineto.h"
#include "model/trace_capture.h"
#include "model/trace_write.h"

static char folder[] = "/tmp/sonde-trace-capture-XXXXXX";
static char capture_path[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(capture_path, sizeof(capture_path), "%s/capture", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(capture_path);
	return rmdir(folder);
}

static void write_capture(struct trace *const *traces, size_t count, bool uncompressed)
{
	const struct capture_writer_options options = {
		.size = sizeof(options), .uncompressed = uncompressed};
	struct capture_writer *writer;
	struct errmsg err = {{0}};

	assert_int_equal(capture_writer_open(&writer, capture_path, &options, &err), 0);
	assert_int_equal(trace_write(writer, traces, count, &err), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
}

static struct model *read_capture(void)
{
	struct errmsg err = {{0}};
	struct model *model;

	assert_int_equal(model_load(&model, capture_path, NULL, NULL, &err), 0);
	assert_int_equal(model->completeness.skipped_packets, 0);
	return model;
}

static void check_round_trip(struct trace *trace, bool uncompressed)
{
	_cleanup_model_ struct model *model = NULL;

	write_capture(&trace, 1, uncompressed);
	assert_true(capture_holds_traces(capture_path));
	model = read_capture();
	assert_int_equal(model->traces.count, 1);
	assert_true(model_is_foreign(model));
	assert_same_trace(trace, model->traces.items[0]);
}

/* ---- made by hand ---- */

static struct trace *trace_of(const char *events)
{
	const struct trace_read_options options = {.keep_arguments = true};
	char path[80];
	struct errmsg err = {{0}};
	struct trace *trace;
	FILE *file;

	snprintf(path, sizeof(path), "%s/trace.json", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
		"{\"schemaVersion\": 1, \"baseTimeNanoseconds\": "
		"1700000000000000000,\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, "
		"\"world_size\": 8,\"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": "
		"\"default_pg\",\"backend_config\": \"cuda:nccl\", \"pg_size\": 8, \"ranks\": [0, "
		"1]}]},\"traceEvents\": [%s], \"trace_id\": \"a \\\"b\\\"\"}",
		events);
	fclose(file);
	assert_int_equal(kineto_read(&trace, path, &options, &err), 0);
	unlink(path);
	return trace;
}

static const char all_kinds[] =
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":77,\"tid\":0,\"args\":{\"name\":"
	"\"python\"}},"
	"{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":0,\"tid\":0,\"args\":{\"labels\":\"GPU "
	"0\"}},"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":77,\"tid\":78,\"args\":{\"name\":"
	"\"launches of python (77)\",\"owner tid\":77}},"
	"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":0,\"tid\":7,\"args\":{\"sort_index\":"
	"7}},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":77,\"tid\":78,\"ts\":1.001,"
	"\"dur\":9,"
	"\"args\":{\"External id\":5,\"Record function id\":18446744073709551614,\"Ev Idx\":0,"
	"\"Sequence number\":-4,\"Fwd thread id\":1,\"Input Dims\":[[2,3],[]],\"Input "
	"type\":[\"float\"],"
	"\"Input Strides\":[],\"Concrete Inputs\":[\"\"],\"Call stack\":\"a.py(1): "
	"f\",\"odd\":{\"x\":[1]}}},"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":77,\"tid\":"
	"78,\"ts\":2,"
	"\"dur\":3,\"args\":{\"cbid\":211,\"correlation\":9000000000}},"
	"{\"ph\":\"s\",\"id\":9000000000,\"pid\":77,\"tid\":78,\"ts\":2,\"cat\":\"ac2g\",\"name\":"
	"\"ac2g\"},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<float>\",\"pid\":0,\"tid\":7,\"ts\":6,"
	"\"dur\":40,"
	"\"args\":{\"External "
	"id\":5,\"device\":0,\"context\":1,\"stream\":7,\"correlation\":9000000000,"
	"\"registers per thread\":32,\"shared memory\":0,\"grid\":[4,1,1],\"block\":[128,1,1],"
	"\"est. achieved occupancy %%\":50,\"queued\":0,\"graph id\":3,\"graph node id\":12}},"
	"{\"ph\":\"f\",\"id\":9000000000,\"pid\":0,\"tid\":7,\"ts\":6,\"cat\":\"ac2g\",\"name\":"
	"\"ac2g\",\"bp\":\"e\"},"
	/* of the same launch, overlapping on its stream */
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,\"tid\":7,"
	"\"ts\":16,"
	"\"dur\":90,\"args\":{\"correlation\":9000000000,\"stream\":7,\"Collective "
	"name\":\"allreduce\","
	"\"dtype\":\"Float\",\"In msg nelems\":64,\"Out msg nelems\":64,\"Group size\":8,"
	"\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0, 1]\",\"Comms "
	"Id\":18446744073709551615}},"
	"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy "
	"HtoD\",\"pid\":0,\"tid\":7,\"ts\":120,\"dur\":0,"
	"\"args\":{\"bytes\":4096,\"memory bandwidth (GB/s)\":0.333}},"
	"{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"step\",\"pid\":0,\"tid\":7,"
	"\"ts\":5,\"dur\":200},"
	"{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait "
	"Event\",\"pid\":0,\"tid\":7,\"ts\":8,\"dur\":1,"
	"\"args\":{\"cuda_sync_kind\":\"Stream Wait Event\",\"wait_on_stream\":9,"
	"\"wait_on_cuda_event_record_corr_id\":4,\"wait_on_cuda_event_id\":-1,\"correlation\":6}},"
	/* these two overlap without nesting, and so do the next */
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"a\",\"pid\":77,\"tid\":79,\"ts\":-10,"
	"\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"b\",\"pid\":77,\"tid\":79,\"ts\":0,"
	"\"dur\":20},"
	"{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"f.py(3): "
	"g\",\"pid\":77,\"tid\":79,\"ts\":5,\"dur\":20,"
	"\"args\":{\"Python id\":4,\"Python parent id\":null,\"Python module id\":2}},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"zero\",\"pid\":77,\"tid\":79,\"ts\":5,\"dur\":"
	"0},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"negative\",\"pid\":77,\"tid\":79,\"ts\":5,"
	"\"dur\":-3},"
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":77,\"tid\":78,"
	"\"ts\":3,"
	"\"args\":{\"Addr\":139926520725504,\"Bytes\":-512,\"Total Allocated\":512,\"Total "
	"Reserved\":2048,"
	"\"Device Type\":1,\"Device Id\":0,\"Ev Idx\":8}},"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":0,\"dur\":300,\"pid\":\"Spans\",\"tid\":\"PyTorch "
	"Profiler\","
	"\"name\":\"PyTorch Profiler (0)\",\"args\":{\"Op count\":0}},"
	"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration "
	"Start\",\"pid\":\"Traces\",\"tid\":\"\",\"ts\":0},"
	"{\"ph\":\"s\",\"id\":1,\"pid\":77,\"tid\":79,\"ts\":5,\"cat\":\"fwdbwd\",\"name\":"
	"\"fwdbwd\"},"
	"{\"ph\":\"f\",\"id\":1,\"pid\":77,\"tid\":78,\"ts\":1.001,\"cat\":\"fwdbwd\",\"name\":"
	"\"fwdbwd\",\"bp\":\"e\"},"
	"{\"ph\":\"C\",\"name\":\"memory\",\"pid\":77,\"tid\":0,\"ts\":7,\"args\":{\"bytes\":1.5,"
	"\"peak\":2}},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"far\",\"pid\":99999999999,\"tid\":-5,\"ts\":1,"
	"\"dur\":1}";

static void test_all_kinds_of_rows(void **state)
{
	_cleanup_trace_ struct trace *trace = trace_of(all_kinds);

	(void)state;
	assert_int_equal(trace->events.count, 16);
	assert_true(trace->collectives.count >= 1);
	assert_int_equal(trace->counters.count, 2);
	assert_int_equal(trace->flows.count, 4);
	check_round_trip(trace, true);
	check_round_trip(trace, false);
}

static const struct trace_op *op_of(const struct trace *trace, const char *name)
{
	array_foreach (&trace->events, event) {
		if (strcmp(trace_text(trace, event->name), name) == 0)
			return trace_op(trace, event);
	}
	fail_msg("no row is called %s", name);
	return NULL;
}

/* What analyses look at stays, though the rows that have it have other arguments, too. */
static void test_without_arguments(void **state)
{
	static const char call_with_kernel[] =
		",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipLaunchKernel\",\"pid\":77,"
		"\"tid\":78,\"ts\":200,\"dur\":1,\"args\":{\"kernel\":\"gemm\"}}";
	char events[sizeof(all_kinds) + sizeof(call_with_kernel)];
	_cleanup_trace_ struct trace *trace = NULL;
	_cleanup_model_ struct model *model = NULL;
	const struct trace *read;
	struct errmsg err = {{0}};

	(void)state;
	snprintf(events, sizeof(events), "%s%s", all_kinds, call_with_kernel);
	trace = trace_of(events);
	write_capture(&trace, 1, false);
	assert_int_equal(model_load_for_rows(&model, capture_path, false, NULL, NULL, &err), 0);
	read = model->traces.items[0];
	assert_false(read->arguments_kept);
	assert_int_equal(read->events.count, trace->events.count);
	assert_int_equal(read->works.count, trace->works.count);
	assert_int_equal(read->flows.count, 2);
	array_foreach (&read->flows, flow)
		assert_string_equal(trace_text(read, flow->category_name), TRACE_FLOW_TO_BACKWARD);
	assert_non_null(op_of(trace, "cudaLaunchKernel"));
	assert_null(op_of(read, "cudaLaunchKernel"));
	assert_non_null(op_of(read, "hipLaunchKernel"));
	assert_string_equal(trace_text(read, op_of(read, "aten::mm")->call_stack), "");
	assert_string_equal(trace_text(read, op_of(read, "aten::mm")->input_dims), "[[2,3],[]]");
}

static void test_without_rows(void **state)
{
	_cleanup_trace_ struct trace *trace = trace_new("none");

	(void)state;
	assert_int_equal(trace_finish(trace), 0);
	check_round_trip(trace, true);
}

/* Long tracks have sequences of their own; each row overlaps the one before. */
static void test_long_tracks_that_overlap(void **state)
{
	_cleanup_trace_ struct trace *trace = trace_new("long");
	uint32_t name, category;

	(void)state;
	assert_true(intern_add(&trace->strings, "row", 3, &name) > 0);
	assert_true(intern_add(&trace->strings, "cpu_op", 6, &category) > 0);
	for (uint32_t track = 0; track < 3; track++)
		assert_int_equal(
			array_append(&trace->tracks, (struct trace_track){.pid = 5,
							     .tid = 6 + track,
							     .process_sort = TRACE_NO_NUMBER,
							     .thread_sort = TRACE_NO_NUMBER}),
			0);
	for (uint32_t i = 0; i < 3000; i++) {
		struct trace_event event = {
			.start_ns = (int64_t)(i % 500) * 1000 - 5000,
			.duration_ns = 200000 + (i % 7) * 1000,
			.external_id = i / 4, /* the same, one more, any */
			.correlation = i % 3 ? i / 3 + 1 : 0,
			.name = name,
			.category_name = category,
			.category = TRACE_CPU_OP,
			.track = i % 3,
			.detail = MODEL_NONE,
			.file_index = 3 * i,
		};

		assert_int_equal(array_append(&trace->events, event), 0);
	}
	assert_int_equal(trace_finish(trace), 0);
	check_round_trip(trace, true);
}

/* So many that they are put in order in another way. */
static void test_many_rows(void **state)
{
	_cleanup_trace_ struct trace *trace = trace_new("many");
	uint32_t name, category;

	(void)state;
	assert_true(intern_add(&trace->strings, "row", 3, &name) > 0);
	assert_true(intern_add(&trace->strings, "cpu_op", 6, &category) > 0);
	for (uint32_t track = 0; track < 3; track++)
		assert_int_equal(
			array_append(&trace->tracks, (struct trace_track){.pid = 5,
							     .tid = 6 + track,
							     .process_sort = TRACE_NO_NUMBER,
							     .thread_sort = TRACE_NO_NUMBER}),
			0);
	for (uint32_t i = 0; i * sizeof(struct trace_event) < (size_t)34 << 20; i++) {
		struct trace_event event = {
			.start_ns = i * INT64_C(10000),
			.duration_ns = i % 10 * INT64_C(1000),
			.external_id = TRACE_NO_ID,
			.name = name,
			.category_name = category,
			.category = TRACE_CPU_OP,
			.track = i / 7 % 3,
			.detail = MODEL_NONE,
			.file_index = i,
		};

		if (array_append(&trace->events, event) < 0)
			fail();
	}
	assert_int_equal(trace_finish(trace), 0);
	check_round_trip(trace, false);
}

static void test_ranks_in_one_capture(void **state)
{
	struct trace *traces[2] = {trace_of(all_kinds), trace_of(all_kinds)};
	struct model *model;

	(void)state;
	traces[1]->rank = 4;
	traces[1]->base_ns -= 1000000000;
	write_capture(traces, 2, false);
	model = read_capture();
	assert_int_equal(model->traces.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_same_trace(traces[i], model->traces.items[i]);
		trace_free(traces[i]);
	}
	model_free(model);
}

/* ---- real ones ---- */

static void check_file(const char *path)
{
	const struct trace_read_options options = {.keep_arguments = true};
	_cleanup_trace_ struct trace *trace = NULL;
	struct errmsg err = {{0}};

	if (kineto_read(&trace, path, &options, &err) < 0)
		fail_msg("%s", err.text);
	check_round_trip(trace, false);
}

static void test_real_traces(void **state)
{
	static const char *const names[] = {
		"kineto/backward_thread.json",
		"kineto/cpu_only.json.gz",
		"kineto/critical_path_alexnet.json.gz",
		"kineto/cuda_event_sync_multi_stream.json.gz",
		"kineto/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
		"kineto/mtia_inference_rank_0.json.gz",
		"kineto/ns_resolution.json.gz",
		"kineto/timeline_rank0.json.gz",
		"megatron-tp8-upgraded/kineto_1.json.gz",
	};
	const char *traces = getenv("SONDE_TRACES");
	char path[512];

	(void)state;
	if (!traces || access(traces, R_OK) < 0) {
		print_message("SONDE_TRACES names no folder of traces\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", traces, names[i]);
		check_file(path);
	}
}

/* As the injected library makes them: the start of the process, the ring, the launch. */
static uint64_t correlation_of(uint64_t start, uint64_t ring, uint64_t launch)
{
	return start << 48 | ring << 40 | launch;
}

/* Two ranks that started in one millisecond, each of whose rings numbers its launches from 1. */
static void test_correlations_of_processes_differ(void **state)
{
	const struct capture_writer_options options = {.size = sizeof(options)};
	struct capture_device_work work = {
		.kind = WIRE_DEVICE_KERNEL, .name = "k", .device = "d", .global_size = {1, 1, 1}};
	_cleanup_trace_ struct trace *trace = NULL;
	struct errmsg err = {{0}};
	struct capture_writer *writer;
	struct model *model;
	unsigned works = 0, calls = 0, pairs = 0;

	(void)state;
	assert_int_equal(capture_writer_open(&writer, capture_path, &options, &err), 0);
	for (uint32_t i = 0; i < 8; i++) {
		work.pid = work.tid = 100 + i / 4;
		work.correlation = correlation_of(0xffff, 1 + i % 4, 1);
		work.launch_ns = (1ULL << 50) + i * 1000;
		work.launch_duration_ns = 10;
		work.start_ns = work.queued_ns = work.launch_ns + 100;
		work.end_ns = work.start_ns + 50;
		assert_int_equal(capture_writer_device_work(writer, &work), 0);
	}
	assert_int_equal(capture_writer_close(writer, &err), 0);
	model = read_capture();
	assert_int_equal(trace_of_recording(&trace, model), 0);
	array_foreach (&trace->events, event) {
		works += event->category == TRACE_KERNEL;
		calls += event->category == TRACE_RUNTIME;
		array_foreach (&trace->events, other)
			pairs += event->category == TRACE_KERNEL &&
				 other->category == TRACE_RUNTIME &&
				 event->correlation == other->correlation;
	}
	assert_int_equal(works, 8);
	assert_int_equal(calls, 8);
	assert_int_equal(pairs, 8);
	assert_int_equal(trace->repeated_correlations, 0);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_correlations_of_processes_differ),
		cmocka_unit_test(test_all_kinds_of_rows),
		cmocka_unit_test(test_without_arguments),
		cmocka_unit_test(test_without_rows),
		cmocka_unit_test(test_long_tracks_that_overlap),
		cmocka_unit_test(test_many_rows),
		cmocka_unit_test(test_ranks_in_one_capture),
		cmocka_unit_test(test_real_traces),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
