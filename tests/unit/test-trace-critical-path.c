/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of traces made up to the nanosecond: ours, and as HTA has it. */
#include "trace-example.h"

#include "analyses/path/critical_path.h"
#include "base/map.h"
#include "compat/hta/hta.h"

#define MS NS_PER_MS

static const struct critical_path_options windows_each = {.first = 1};
static const struct critical_path_options whole = {.annotation = "", .first = 1};

static void find(struct critical_paths *paths, struct trace *trace, bool hta,
	const struct critical_path_options *options)
{
	_cleanup_trace_view_ struct trace_view view = {0};
	const struct trace_definitions *definitions = hta ? &hta_definitions : &own_definitions;
	struct trace_view_options view_options = {0};

	example_trace_finish(trace);
	assert_int_equal(definitions->view(&view, trace, 0, &view_options), 0);
	assert_int_equal(definitions->paths(paths, &view, options), 0);
}

/* Steps follow each other without holes, in time, and add up. */
static void check_path(const struct critical_path *path)
{
	int64_t sum_ns = 0, bound_ns = 0, names_ns = 0;

	for (size_t i = 0; i < path->steps.count; i++) {
		const struct critical_path_step *step = &path->steps.items[i];

		sum_ns += step->duration_ns;
		if (!i)
			continue;
		assert_int_equal(step->from, step[-1].to);
		assert_int_equal(step->from_is_start, step[-1].to_is_start);
	}
	for (int i = 0; i < TRACE_PATH_BOUND_MAX; i++)
		bound_ns += path->by_bound[i];
	array_foreach (&path->names, name)
		names_ns += name->time_ns;
	assert_int_equal(sum_ns, path->total_ns);
	assert_int_equal(bound_ns, path->total_ns);
	assert_int_equal(names_ns, path->total_ns);
}

/* Ours: no step goes back in time, or takes more than there is. */
static void check_times(const struct critical_path *path)
{
	int64_t now_ns = INT64_MIN;

	array_foreach (&path->steps, step) {
		assert_true(step->duration_ns >= 0);
		assert_true(step->start_ns >= now_ns);
		now_ns = step->start_ns + step->duration_ns;
	}
	if (path->steps.count) {
		assert_true(now_ns <= path->last_ns);
		assert_true(path->total_ns <= path->last_ns - path->steps.items[0].start_ns);
	}
}

static const struct critical_path *only(const struct critical_paths *paths)
{
	assert_int_equal(paths->windows.count, 1);
	check_path(&paths->windows.items[0]);
	check_times(&paths->windows.items[0]);
	return &paths->windows.items[0];
}

static int64_t time_of(const struct trace *trace, const struct critical_path *path,
	const char *name, enum trace_path_bound bound)
{
	array_foreach (&path->names, item) {
		if (strcmp(trace_text(trace, item->name), name) == 0 && item->bound == bound)
			return item->time_ns;
	}
	return -1;
}

static void time_of_operators_is_their_own(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_host(trace, TRACE_CPU_OP, "outer", 1, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "first", 1, 10, 30, 0);
	example_host(trace, TRACE_CPU_OP, "second", 1, 50, 40, 0);
	example_host(trace, TRACE_CPU_OP, "next", 1, 200, 7, 0);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->nodes, 8);
	assert_int_equal(path->total_ns, 107);
	assert_int_equal(path->last_ns, 207);
	assert_int_equal(time_of(trace, path, "outer", TRACE_PATH_CPU), 30);
	assert_int_equal(time_of(trace, path, "first", TRACE_PATH_CPU), 30);
	assert_int_equal(time_of(trace, path, "second", TRACE_PATH_CPU), 40);
	assert_int_equal(time_of(trace, path, "next", TRACE_PATH_CPU), 7);
}

/* A launch at 5, its kernel from 30 to 80, and a call from 25 to 90 that waits for it. */
static void path_leads_over_the_device_where_the_program_waits(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_host(trace, TRACE_CPU_OP, "aten::mm", EXAMPLE_PID, 0, 20, 0);
	example_launch(trace, "gemm", 7, 5, 5, 30, 50, 1);
	example_host(trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 25, 65, 2);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->total_ns, 90);
	assert_int_equal(path->by_bound[TRACE_PATH_CPU], 5 + 10);
	assert_int_equal(path->by_bound[TRACE_PATH_LAUNCH_OVERHEAD], 25);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_COMPUTE], 50);
	assert_int_equal(paths.inferred_waits, 1);
	assert_int_equal(paths.sync_rows, 0);
}

/* The call's wait is told by a row, which names another stream than the one that ends last. */
static void told_waits_come_before_worked_out_ones(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_launch(trace, "waited", 7, 5, 5, 30, 40, 1);
	example_launch(trace, "other", 8, 12, 2, 31, 54, 2);
	example_host(trace, TRACE_RUNTIME, "cudaStreamSynchronize", EXAMPLE_PID, 25, 65, 3);
	example_device(trace, TRACE_SYNC, "Stream Sync", 0, 7, 25, 46, 3);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(time_of(trace, path, "waited", TRACE_PATH_GPU_COMPUTE), 40);
	assert_int_equal(time_of(trace, path, "other", TRACE_PATH_GPU_COMPUTE), -1);
	assert_int_equal(time_of(trace, path, "cudaStreamSynchronize", TRACE_PATH_CPU), 20);
	assert_int_equal(paths.sync_rows, 1);
	assert_int_equal(paths.inferred_waits, 0);
}

/* cudaMemcpyAsync() returned when its copy had ended: the memory was paged. */
static void copies_that_end_within_their_call_were_waited_for(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_launch(trace, "gemm", 7, 0, 5, 10, 60, 1);
	example_host(trace, TRACE_RUNTIME, "cudaMemcpyAsync", EXAMPLE_PID, 6, 90, 2);
	example_device(trace, TRACE_MEMCPY, "Memcpy DtoH", 0, 7, 72, 20, 2);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->total_ns, 96);
	assert_int_equal(path->by_bound[TRACE_PATH_LAUNCH_OVERHEAD], 10);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_COMPUTE], 60);
	assert_int_equal(path->by_bound[TRACE_PATH_KERNEL_OVERHEAD], 2);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_MEMORY], 20);
	assert_int_equal(path->by_bound[TRACE_PATH_CPU], 4);
	assert_int_equal(paths.inferred_waits, 1);
}

/* A row of a wait on stream `stream` for the event that call `record` recorded on stream `on`. */
static void add_event_wait(struct trace *trace, const char *name, int64_t stream, int64_t start_ns,
	uint64_t correlation, int64_t on, uint64_t record)
{
	struct trace_work *work;

	example_device(trace, TRACE_SYNC, name, 0, stream, start_ns, 1, correlation);
	work = &trace->works.items[trace->works.count - 1];
	work->wait_stream = on;
	work->wait_correlation = record;
}

/* Stream 8 is told to wait for what stream 7 does. */
static struct trace *two_streams(void)
{
	struct trace *trace = example_trace_new();

	example_launch(trace, "produce", 7, 0, 4, 10, 100, 1);
	example_host(trace, TRACE_RUNTIME, "cudaEventRecord", EXAMPLE_PID, 5, 2, 2);
	example_host(trace, TRACE_RUNTIME, "cudaStreamWaitEvent", EXAMPLE_PID, 8, 2, 3);
	add_event_wait(trace, "Stream Wait Event", 8, 8, 3, 7, 2);
	example_launch(trace, "ncclDevKernel_AllReduce", 8, 11, 4, 115, 30, 4);
	example_host(trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 20, 140, 5);
	return trace;
}

static void streams_wait_for_events(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = two_streams();
	const struct critical_path *path;

	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->total_ns, 160);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_COMPUTE], 100);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_COMMUNICATION], 30);
	assert_int_equal(path->by_bound[TRACE_PATH_KERNEL_OVERHEAD], 5);
	assert_int_equal(path->by_bound[TRACE_PATH_LAUNCH_OVERHEAD], 10);
	assert_int_equal(path->by_bound[TRACE_PATH_CPU], 15);
}

static void events_are_waited_for_by_calls(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_launch(trace, "wanted", 7, 0, 4, 10, 50, 1);
	example_host(trace, TRACE_RUNTIME, "cudaEventRecord", EXAMPLE_PID, 5, 2, 2);
	example_launch(trace, "later", 7, 8, 2, 60, 200, 3);
	example_host(trace, TRACE_RUNTIME, "cudaEventSynchronize", EXAMPLE_PID, 11, 59, 4);
	add_event_wait(trace, "Event Sync", -1, 11, 4, 7, 2);
	find(&paths, trace, false, &(struct critical_path_options){.annotation = "", .first = 1});
	path = &paths.windows.items[0];
	check_path(path);
	check_times(path);
	/* The longest path is that of the later work. */
	assert_int_equal(path->last_ns, 260);
	assert_int_equal(time_of(trace, path, "wanted", TRACE_PATH_GPU_COMPUTE), 50);
	assert_int_equal(time_of(trace, path, "later", TRACE_PATH_GPU_COMPUTE), 200);
	assert_int_equal(paths.sync_rows, 1);
}

/* One call launches four kernels on two streams, which HTA knows one of. */
static void graph_launches_are_on_the_path(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0}, theirs = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_host(trace, TRACE_RUNTIME, "cudaGraphLaunch", EXAMPLE_PID, 1000, 10000, 1);
	example_device(trace, TRACE_KERNEL, "fork", 0, 7, 20000, 10000, 1);
	example_device(trace, TRACE_KERNEL, "short", 0, 7, 31000, 5000, 1);
	example_device(trace, TRACE_KERNEL, "long", 0, 8, 31000, 40000, 1);
	example_device(trace, TRACE_KERNEL, "join", 0, 7, 72000, 8000, 1);
	example_host(trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 12000, 70000, 2);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->total_ns, 81000);
	assert_int_equal(path->by_bound[TRACE_PATH_GPU_COMPUTE], 10000 + 40000 + 8000);
	assert_int_equal(path->by_bound[TRACE_PATH_KERNEL_OVERHEAD], 2000);
	assert_int_equal(path->by_bound[TRACE_PATH_LAUNCH_OVERHEAD], 19000);
	assert_int_equal(time_of(trace, path, "short", TRACE_PATH_GPU_COMPUTE), -1);
	find(&theirs, trace, true, &whole);
	assert_int_equal(theirs.windows.items[0].nodes, 6);
	assert_int_equal(theirs.windows.items[0].by_bound[TRACE_PATH_GPU_COMPUTE], 0);
}

/* A dependent launch: the second kernel begins while the first one runs. */
static void work_may_overlap_on_a_stream(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_launch(trace, "first", 7, 0, 4, 10, 100, 1);
	example_launch(trace, "second", 7, 5, 4, 90, 50, 2);
	example_host(trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 20, 120, 3);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(path->total_ns, 140);
	assert_int_equal(time_of(trace, path, "first", TRACE_PATH_GPU_COMPUTE), 80);
	assert_int_equal(time_of(trace, path, "second", TRACE_PATH_GPU_COMPUTE), 50);
}

static void rows_end_with_the_row_that_they_lie_in(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0}, theirs = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *path;

	example_host(trace, TRACE_CPU_OP, "outer", 1, 0, 100000, 0);
	example_host(trace, TRACE_CPU_OP, "inner", 1, 40000, 70000, 0);
	example_host(trace, TRACE_CPU_OP, "next", 1, 120000, 5000, 0);
	find(&paths, trace, false, &whole);
	path = only(&paths);
	assert_int_equal(paths.clipped_rows, 1);
	assert_int_equal(path->total_ns, 105000);
	assert_int_equal(time_of(trace, path, "inner", TRACE_PATH_CPU), 60000);
	/* HTA takes the end at 100 for the inner one's: its steps go back in time. */
	find(&theirs, trace, true, &whole);
	check_path(&theirs.windows.items[0]);
	assert_int_equal(theirs.windows.items[0].total_ns, 40000 + 70000 - 10000 + 5000);
}

/* Two steps; the second one's kernel runs when the step is over. */
static void steps_have_paths_of_their_own(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "a", EXAMPLE_PID, 10, 50, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", EXAMPLE_PID, 100, 100, 0);
	example_host(trace, TRACE_CPU_OP, "b", EXAMPLE_PID, 100, 30, 0);
	example_launch(trace, "gemm", 7, 110, 5, 150, 500, 1);
	find(&paths, trace, false, &windows_each);
	assert_int_equal(paths.windows.count, 2);
	check_path(&paths.windows.items[0]);
	check_path(&paths.windows.items[1]);
	assert_string_equal(trace_text(trace, paths.windows.items[0].name), "ProfilerStep#1");
	assert_int_equal(paths.windows.items[0].total_ns, 50);
	assert_int_equal(paths.windows.items[0].nodes, 2);
	assert_int_equal(paths.windows.items[1].total_ns, 10 + 40 + 500);
	assert_int_equal(paths.windows.items[1].last_ns, 650);
}

/* The device is still at work of the step before: this step's launch did not delay its kernel. */
static void work_waits_for_that_of_earlier_steps(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	const struct critical_path *second;

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", EXAMPLE_PID, 0, 100, 0);
	example_launch(trace, "gemm", 7, 10, 5, 20, 980, 1);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", EXAMPLE_PID, 100, 100, 0);
	example_launch(trace, "relu", 7, 110, 5, 1010, 50, 2);
	find(&paths, trace, false, &windows_each);
	assert_int_equal(paths.windows.count, 2);
	second = &paths.windows.items[1];
	check_path(second);
	check_times(second);
	assert_int_equal(second->by_bound[TRACE_PATH_LAUNCH_OVERHEAD], 0);
	assert_int_equal(second->by_bound[TRACE_PATH_EARLIER], 900);
	assert_int_equal(second->total_ns, 950);
}

/* Of annotations in one another the outermost one; what two share belongs to the first. */
static void windows_lie_apart(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", 1, 0, 100, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1 again", 2, 10, 80, 0);
	example_host(trace, TRACE_CPU_OP, "a", 1, 20, 30, 0);
	example_host(trace, TRACE_CPU_OP, "b", 1, 98, 5, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#2", 1, 97, 100, 0);
	find(&paths, trace, false, &windows_each);
	assert_int_equal(paths.windows.count, 2);
	assert_int_equal(paths.windows.items[0].total_ns, 35);
	assert_int_equal(paths.windows.items[1].nodes, 0);
	assert_int_equal(paths.windows.items[1].start_ns, 100);
}

static void windows_are_named_and_numbered(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	struct trace_view_options view_options = {0};
	struct critical_path_options options = {.annotation = "## forward"};

	example_host(trace, TRACE_USER_ANNOTATION, "## forward 1 ##", 1, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "a", 1, 10, 50, 0);
	example_host(trace, TRACE_USER_ANNOTATION, "## forward 2 ##", 1, 200, 100, 0);
	example_host(trace, TRACE_CPU_OP, "b", 1, 210, 20, 0);
	example_trace_finish(trace);
	assert_int_equal(trace_view_init(&view, trace, 0, &view_options), 0);
	options.first = options.last = 1;
	assert_int_equal(critical_paths_init(&paths, &view, &options), 0);
	assert_int_equal(only(&paths)->total_ns, 20);
	critical_paths_done(&paths);
	options.first = 0;
	assert_int_equal(critical_paths_init(&paths, &view, &options), 0);
	assert_int_equal(only(&paths)->total_ns, 70);
	critical_paths_done(&paths);
	options.first = options.last = 2;
	assert_int_equal(critical_paths_init(&paths, &view, &options), -ENOENT);
	options.annotation = "backward";
	options.first = 0;
	assert_int_equal(critical_paths_init(&paths, &view, &options), -ENOENT);
}

static void add_flow(struct trace *trace, int64_t tid, uint64_t id, bool is_end)
{
	struct trace_flow flow = {
		.id = id,
		.track = example_track(trace, EXAMPLE_PID, tid, false),
		.category_name = example_text(trace, "fwdbwd"),
		.is_end = is_end,
	};

	assert_int_equal(array_append(&trace->flows, flow), 0);
}

/* The backward pass runs on thread 2 between what thread 1 does: arrows say so, or nothing does. */
static struct trace *two_threads(bool with_flows)
{
	struct trace *trace = example_trace_new();

	example_host(trace, TRACE_CPU_OP, "forward_op", 1, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "backward_op", 2, 120, 300, 0);
	example_host(trace, TRACE_CPU_OP, "optimizer", 1, 450, 50, 0);
	if (with_flows) {
		add_flow(trace, 1, 1, false);
		add_flow(trace, 2, 1, true);
	}
	return trace;
}

static void backward_threads_follow_forward_ones(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0}, apart = {0};
	_cleanup_trace_ struct trace *trace = two_threads(true);
	_cleanup_trace_ struct trace *without = two_threads(false);

	find(&paths, trace, false, &whole);
	assert_int_equal(only(&paths)->total_ns, 450);
	find(&apart, without, false, &whole);
	assert_int_equal(only(&apart)->total_ns, 300);
}

/* Nothing that is known explains why the second kernel waited for 5 ms. */
static void gaps_without_a_reason_are_counted(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	example_launch(trace, "first", 7, 0, 4, 10, 100, 1);
	example_launch(trace, "second", 7, 5, 4, 110 + 5 * (int64_t)MS, 50, 2);
	find(&paths, trace, false, &whole);
	assert_int_equal(only(&paths)->total_ns, 160);
	assert_int_equal(paths.unexplained_gaps, 1);
	assert_int_equal(paths.unexplained_ns, 5 * MS);
}

/* Clocks that disagree: the kernel begins before it is launched, and ends after its wait. */
static void time_does_not_run_backwards(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	example_host(trace, TRACE_RUNTIME, "cudaLaunchKernel", EXAMPLE_PID, 100, 10, 1);
	example_device(trace, TRACE_KERNEL, "early", 0, 7, 50, 500, 1);
	example_host(trace, TRACE_RUNTIME, "cudaStreamSynchronize", EXAMPLE_PID, 120, 100, 2);
	example_device(trace, TRACE_SYNC, "Stream Sync", 0, 7, 120, 100, 2);
	find(&paths, trace, false, &whole);
	assert_int_equal(only(&paths)->total_ns, 500);
	assert_int_equal(paths.backward_edges, 2);
}

static void data_loading_has_its_own_place(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	example_host(trace, TRACE_USER_ANNOTATION, "enumerate(DataLoader)#_Single", 1, 0, 80, 0);
	example_host(trace, TRACE_CPU_OP, "aten::stack", 1, 20, 30, 0);
	find(&paths, trace, false, &whole);
	assert_int_equal(only(&paths)->by_bound[TRACE_PATH_DATA_LOADING], 50);
	assert_int_equal(paths.windows.items[0].by_bound[TRACE_PATH_CPU], 30);
}

/* Rows as deep as there are: nothing may recurse. */
static void depth_is_no_problem(void **state)
{
	enum { DEPTH = 100000 };
	_cleanup_critical_paths_ struct critical_paths paths = {0}, theirs = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();

	for (int64_t i = 0; i < DEPTH; i++)
		example_host(trace, TRACE_CPU_OP, "op", 1, 1000 * i, 2000 * (DEPTH - i), 0);
	find(&paths, trace, false, &whole);
	assert_int_equal(only(&paths)->total_ns, 2000 * (int64_t)DEPTH);
	find(&theirs, trace, true, &whole);
	check_path(&theirs.windows.items[0]);
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state = hash_u64(*state + 1);
	return *state % limit;
}

/* Whatever rows there are, a path is one: see check_path() and check_times(). */
static void paths_of_random_rows_hold_together(void **state)
{
	static const char *const calls[] = {"cudaLaunchKernel", "cudaGraphLaunch",
		"cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaStreamWaitEvent",
		"cudaEventRecord"};
	static const char *const waits[] = {
		"Stream Sync", "Context Sync", "Event Sync", "Stream Wait Event"};
	uint64_t random = 42;

	for (unsigned round = 0; round < 300; round++) {
		_cleanup_critical_paths_ struct critical_paths paths = {0}, theirs = {0};
		_cleanup_trace_ struct trace *trace = example_trace_new();

		for (unsigned i = 0; i < 60; i++) {
			int64_t start_ns = (int64_t)random_below(&random, 50) * 500;
			int64_t duration_ns = (int64_t)random_below(&random, 20) * 500 - 500;
			int64_t thread = (int64_t)random_below(&random, 3) + 1;
			uint64_t correlation = random_below(&random, 12);

			switch (random_below(&random, 4)) {
			case 0:
				example_host(trace, TRACE_CPU_OP, "op", thread, start_ns,
					duration_ns, 0);
				break;
			case 1:
				example_host(trace, TRACE_RUNTIME,
					calls[random_below(&random, ARRAY_SIZE(calls))], thread,
					start_ns, duration_ns, correlation);
				break;
			case 2:
				example_device(trace, TRACE_KERNEL, "kernel", 0, thread, start_ns,
					duration_ns, correlation);
				break;
			default:
				add_event_wait(trace,
					waits[random_below(&random, ARRAY_SIZE(waits))], thread,
					start_ns, correlation,
					(int64_t)random_below(&random, 3) + 1,
					random_below(&random, 12));
			}
		}
		find(&paths, trace, false, &whole);
		(void)only(&paths);
		find(&theirs, trace, true, &whole);
		check_path(&theirs.windows.items[0]);
	}
}

static void nothing_has_no_path(void **state)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0}, device = {0};
	_cleanup_trace_ struct trace *trace = example_trace_new();
	_cleanup_trace_ struct trace *kernels = example_trace_new();

	find(&paths, trace, false, &windows_each);
	assert_int_equal(paths.windows.count, 0);
	example_device(kernels, TRACE_KERNEL, "alone", 0, 7, 5, 10, 0);
	find(&device, kernels, false, &windows_each);
	assert_int_equal(only(&device)->total_ns, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_of_operators_is_their_own),
		cmocka_unit_test(path_leads_over_the_device_where_the_program_waits),
		cmocka_unit_test(told_waits_come_before_worked_out_ones),
		cmocka_unit_test(copies_that_end_within_their_call_were_waited_for),
		cmocka_unit_test(streams_wait_for_events),
		cmocka_unit_test(events_are_waited_for_by_calls),
		cmocka_unit_test(graph_launches_are_on_the_path),
		cmocka_unit_test(work_may_overlap_on_a_stream),
		cmocka_unit_test(rows_end_with_the_row_that_they_lie_in),
		cmocka_unit_test(steps_have_paths_of_their_own),
		cmocka_unit_test(work_waits_for_that_of_earlier_steps),
		cmocka_unit_test(windows_lie_apart),
		cmocka_unit_test(windows_are_named_and_numbered),
		cmocka_unit_test(backward_threads_follow_forward_ones),
		cmocka_unit_test(gaps_without_a_reason_are_counted),
		cmocka_unit_test(time_does_not_run_backwards),
		cmocka_unit_test(data_loading_has_its_own_place),
		cmocka_unit_test(depth_is_no_problem),
		cmocka_unit_test(paths_of_random_rows_hold_together),
		cmocka_unit_test(nothing_has_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
