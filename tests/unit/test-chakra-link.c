/* SPDX-License-Identifier: Apache-2.0 */
/* Linking: which rule matches what, where device work goes, and what waits for what. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chakra/link/link.h"
#include "chakra/link/linked_json.h"
#include "compat/chakra_trace_link/chakra_trace_link.h"
#include "importers/pytorch_et/pytorch_et.h"
#include "trace-example.h"

static struct errmsg err;
static struct chakra_link_result result;

/* Both traces; host nodes are JSON in `text`. */
struct pair {
	struct strbuf text;
	struct execution_trace *host;
	struct trace *device;
};

static void pair_done(struct pair *pair)
{
	execution_trace_free(pair->host);
	trace_free(pair->device);
	strbuf_done(&pair->text);
}
#define _cleanup_pair_ _cleanup_(pair_done)

static struct pair pair_new(void)
{
	struct pair pair = {.device = example_trace_new()};

	strbuf_addf(&pair.text,
		"{\"schema\":\"1.0.2-chakra.0.0.4\",\"pid\":%d,\"time\":\"t\",\"start_ts\":1,"
		"\"nodes\":[",
		EXAMPLE_PID);
	strbuf_add(&pair.text, "{\"id\":1,\"ctrl_deps\":1,\"name\":"
			       "\"[pytorch|profiler|execution_trace|process]\"}");
	return pair;
}

static void add_thread(struct pair *pair, uint64_t id, uint64_t tid)
{
	strbuf_addf(&pair->text,
		",{\"id\":%llu,\"ctrl_deps\":1,\"name\":"
		"\"[pytorch|profiler|execution_trace|thread]\",\"attrs\":[{\"name\":\"tid\","
		"\"value\":%llu}]}",
		(unsigned long long)id, (unsigned long long)tid);
}

static void add_node(struct pair *pair, uint64_t id, uint64_t parent, const char *name,
	uint64_t rf_id, uint64_t tid)
{
	strbuf_addf(&pair->text,
		",{\"id\":%llu,\"ctrl_deps\":%llu,\"name\":\"%s\",\"attrs\":[{\"name\":\"rf_id\","
		"\"value\":%llu},{\"name\":\"tid\",\"value\":%llu}]}",
		(unsigned long long)id, (unsigned long long)parent, name, (unsigned long long)rf_id,
		(unsigned long long)tid);
}

/* An operator's row, with ids; 0: none. */
static uint32_t add_row(struct pair *pair, const char *name, int64_t tid, int64_t start_ns,
	int64_t duration_ns, uint64_t rf_id, uint64_t external_id)
{
	struct trace *device = pair->device;
	uint32_t row = example_host(device, TRACE_CPU_OP, name, tid, start_ns, duration_ns, 0);
	struct trace_op op = {.rf_id = rf_id ? rf_id : TRACE_NO_ID,
		.sequence = TRACE_NO_NUMBER,
		.collective = MODEL_NONE};

	device->events.items[row].external_id = external_id ? external_id : TRACE_NO_ID;
	device->events.items[row].detail = (uint32_t)device->ops.count;
	assert_int_equal(array_append(&device->ops, op), 0);
	return row;
}

static void add_call(
	struct pair *pair, const char *name, int64_t tid, int64_t start_ns, uint64_t correlation)
{
	example_host(pair->device, TRACE_RUNTIME, name, tid, start_ns, 2, correlation);
}

static uint32_t add_kernel(struct pair *pair, const char *name, int64_t stream, int64_t start_ns,
	int64_t duration_ns, uint64_t correlation)
{
	return example_device(
		pair->device, TRACE_KERNEL, name, 0, stream, start_ns, duration_ns, correlation);
}

static int try_link(struct pair *pair, const struct chakra_link_options *options)
{
	strbuf_add(&pair->text, "]}");
	assert_int_equal(strbuf_status(&pair->text), 0);
	pair->host = execution_trace_new("et.json");
	assert_non_null(pair->host);
	pair->host->bytes = pair->text.data;
	pair->host->length = pair->text.length;
	assert_int_equal(pytorch_et_parse(pair->host, &err), 0);
	example_trace_finish(pair->device);
	return chakra_link(pair->host, pair->device, options, &result, &err);
}

static void link_pair(struct pair *pair)
{
	int r = try_link(pair, NULL);

	if (r < 0)
		print_error("%s\n", err.text);
	assert_int_equal(r, 0);
}

static const struct execution_node *find(const struct pair *pair, const char *name)
{
	array_foreach (&pair->host->nodes, node) {
		if (execution_text_equals(node->name, name))
			return node;
	}
	fail_msg("there is no node %s", name);
	return NULL;
}

static void assert_parent(const struct pair *pair, const char *name, const char *parent)
{
	assert_int_equal(find(pair, name)->parent, find(pair, parent)->id);
}

static bool waits_for(const struct pair *pair, const char *name, const char *on)
{
	const struct execution_node *node = find(pair, name);
	uint64_t id = find(pair, on)->id;

	for (uint32_t i = 0; i < node->order_dep_count; i++) {
		if (pair->host->deps.items[node->first_order_dep + i] == id)
			return true;
	}
	for (uint32_t i = 0; i < node->sync_dep_count; i++) {
		if (pair->host->deps.items[node->first_sync_dep + i] == id)
			return true;
	}
	return false;
}

/* main: "outer" [0,100) around "inner" [10,20); "next" [200,300). Offset 0 means by rf id. */
static struct pair three_operators(uint64_t offset)
{
	struct pair pair = pair_new();
	const struct {
		const char *name;
		int64_t start_ns, duration_ns;
	} rows[] = {{"outer", 0, 100}, {"inner", 10, 10}, {"next", 200, 100}};

	add_thread(&pair, 2, 1);
	add_node(&pair, 5, 4, "inner", 12, 1);
	add_node(&pair, 4, 2, "outer", 11, 1);
	add_node(&pair, 9, 2, "next", 13, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		add_row(&pair, rows[i].name, EXAMPLE_PID, rows[i].start_ns, rows[i].duration_ns,
			offset ? 0 : 11 + i, offset ? 11 + i + offset : 0);
	return pair;
}

static void test_by_rf_id(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	pair.device->base_ns = 1000;
	link_pair(&pair);
	assert_int_equal(result.host_nodes, 3);
	assert_int_equal(result.matched[EXECUTION_BY_RF_ID], 3);
	assert_int_equal(result.matched[EXECUTION_UNMATCHED], 0);
	assert_int_equal(find(&pair, "outer")->start_ns, 1000);
	assert_int_equal(find(&pair, "outer")->inclusive_ns, 100);
	assert_int_equal(find(&pair, "outer")->exclusive_ns, 90);
	assert_int_equal(find(&pair, "inner")->match, EXECUTION_BY_RF_ID);
	/* Ids are places, by the old ids. */
	for (size_t i = 0; i < pair.host->nodes.count; i++)
		assert_int_equal(pair.host->nodes.items[i].id, i);
	assert_int_equal(find(&pair, "outer")->id, 2);
	assert_parent(&pair, "inner", "outer");
	assert_int_equal(pair.host->nodes.items[0].parent, 0);
}

static void test_another_name_is_no_match(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	for (uint64_t i = 0; i < 20; i++) {
		add_node(&pair, 20 + i, 2, i ? "same" : "other", 50 + i, 1);
		add_row(&pair, "same", EXAMPLE_PID, 1000 + (int64_t)i * 10, 5, 50 + i, 0);
	}
	link_pair(&pair);
	assert_int_equal(result.names_differ, 1);
	assert_int_equal(result.matched[EXECUTION_BY_RF_ID], 22);
	assert_int_equal(find(&pair, "other")->start_ns, TRACE_NO_NUMBER);
}

/* What Kineto makes of names: no newlines, other slashes, and "unknown" for what it cannot print.
 */
static void test_names_as_kineto_writes_them(void **state)
{
	static const char *const names[][2] = {
		{"line\\nbreak", "linebreak"},
		{"back\\\\slash", "back/slash"},
		{"bell\\u0007", "unknown"},
		{"printed", "unknown"},
		{"short", "shorter"},
	};
	_cleanup_pair_ struct pair pair = three_operators(0);

	for (uint64_t i = 0; i < ARRAY_SIZE(names); i++) {
		add_node(&pair, 20 + i, 2, names[i][0], 50 + i, 1);
		add_row(&pair, names[i][1], EXAMPLE_PID, 1000 + (int64_t)i * 10, 5, 50 + i, 0);
	}
	for (uint64_t i = 0; i < 20; i++) {
		add_node(&pair, 40 + i, 2, "same", 80 + i, 1);
		add_row(&pair, "same", EXAMPLE_PID, 2000 + (int64_t)i * 10, 5, 80 + i, 0);
	}
	link_pair(&pair);
	assert_int_equal(result.names_differ, 2);
	assert_int_equal(find(&pair, "line\nbreak")->start_ns, 1000);
	assert_int_equal(find(&pair, "back\\slash")->start_ns, 1010);
	assert_int_equal(find(&pair, "bell\a")->start_ns, 1020);
	assert_int_equal(find(&pair, "printed")->start_ns, TRACE_NO_NUMBER);
}

static void test_by_offset(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(7);

	link_pair(&pair);
	assert_int_equal(result.matched[EXECUTION_BY_OFFSET], 3);
	assert_int_equal(result.offset, 7);
	assert_int_equal(find(&pair, "next")->start_ns, 200);
}

/* Two threads that do much the same, rows that have no node, and ids that say nothing. */
static void test_by_tree(void **state)
{
	_cleanup_pair_ struct pair pair = pair_new();

	add_thread(&pair, 2, 1);
	add_thread(&pair, 3, 2);
	add_row(&pair, "ProfilerStep#1", 201, 0, 10000, 0, 0);
	for (uint64_t i = 0; i < 40; i++) {
		add_node(&pair, 10 + 10 * i, 2, i % 2 ? "mm" : "add", 0, 1);
		add_node(&pair, 12 + 10 * i, 10 + 10 * i, "empty", 0, 1);
		add_row(&pair, i % 2 ? "mm" : "add", 201, 100 * (int64_t)i, 50, 0, 0);
		add_row(&pair, "empty", 201, 100 * (int64_t)i + 10, 10, 0, 0);
	}
	add_node(&pair, 1000, 3, "backward", 0, 2);
	add_node(&pair, 1002, 1000, "mm", 0, 2);
	add_row(&pair, "backward", 202, 20, 5000, 0, 0);
	add_row(&pair, "mm", 202, 30, 500, 0, 0);
	link_pair(&pair);
	assert_int_equal(result.matched[EXECUTION_BY_TREE], 82);
	assert_int_equal(find(&pair, "backward")->start_ns, 20);
	for (size_t i = 0; i < pair.host->nodes.count; i++) {
		const struct execution_node *node = &pair.host->nodes.items[i];

		if (execution_text_equals(node->name, "empty"))
			assert_int_equal(
				node->start_ns, pair.host->nodes.items[node->parent].start_ns + 10);
	}
}

static void test_different_runs_are_refused(void **state)
{
	_cleanup_pair_ struct pair pair = pair_new();

	for (uint64_t i = 0; i < 30; i++) {
		add_node(&pair, 10 + i, 1, i % 2 ? "a" : "b", 10 + i, 1);
		add_row(&pair, i % 3 ? "c" : "a", EXAMPLE_PID, (int64_t)i * 10, 5, 10 + i, 10 + i);
	}
	assert_int_equal(try_link(&pair, NULL), -ENODATA);
	assert_non_null(strstr(err.text, "different runs"));
	assert_non_null(strstr(err.text, "of 30 ids of record functions that are in both, 25 are"));
}

/* Steps that warm up have operators before those of the other trace, and that is fine. */
static void test_operators_before_and_after_the_other_trace(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	for (uint64_t i = 0; i < 50; i++)
		add_node(&pair, i % 2 ? 20 + i : 3, 2, "warm-up", 50 + i, 1);
	link_pair(&pair);
	assert_int_equal(result.matched[EXECUTION_BY_RF_ID], 3);
	assert_int_equal(result.matched[EXECUTION_UNMATCHED], 50);
}

/* A few agree by chance, or the other file is damaged in the middle. */
static void test_less_than_half_is_refused(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_pair_ struct pair pair = three_operators(i ? 0 : 7);

		for (uint64_t j = 0; j < 5; j++)
			add_node(&pair, i ? 6 : 20, 2, "unknown", 50 + j, 1);
		assert_int_equal(try_link(&pair, NULL), -ENODATA);
		assert_non_null(strstr(err.text, "only 3 of 8 operators"));
		assert_non_null(strstr(err.text, "which has 3;"));
	}
}

static void test_another_process_is_refused(void **state)
{
	const struct chakra_link_options any = {.any_process = true};

	for (unsigned i = 0; i < 2; i++) {
		_cleanup_pair_ struct pair pair = three_operators(0);

		array_foreach (&pair.device->tracks, track)
			track->pid = 4711;
		assert_int_equal(try_link(&pair, i ? &any : NULL), i ? 0 : -ENODATA);
		if (!i)
			assert_non_null(strstr(err.text, "of process 100"));
	}
}

static void test_work_goes_to_the_operator_around_its_launch(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	/* After "inner" has ended, which Chakra's linker gives it to. */
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30, 1);
	add_kernel(&pair, "late", 7, 40, 10, 1);
	add_call(&pair, "cuLaunchKernel", EXAMPLE_PID, 12, 2);
	add_kernel(&pair, "driver", 7, 60, 10, 2);
	add_call(&pair, "cudaMemsetAsync", EXAMPLE_PID, 210, 3);
	example_device(pair.device, TRACE_MEMSET, "fill", 0, 7, 220, 5, 3);
	add_call(&pair, "cudaGraphLaunch", EXAMPLE_PID, 230, 4);
	add_kernel(&pair, "graph1", 7, 240, 5, 4);
	add_kernel(&pair, "graph2", 8, 241, 5, 4);
	add_call(&pair, "hipExtModuleLaunchKernel", EXAMPLE_PID, 260, 5);
	add_kernel(&pair, "hip", 7, 270, 5, 5);
	add_kernel(&pair, "lost", 7, 280, 5, 99);
	link_pair(&pair);
	assert_parent(&pair, "late", "outer");
	assert_parent(&pair, "driver", "inner");
	assert_parent(&pair, "fill", "next");
	assert_parent(&pair, "graph1", "next");
	assert_parent(&pair, "graph2", "next");
	assert_parent(&pair, "hip", "next");
	assert_int_equal(result.device_rows, 7);
	assert_int_equal(result.linked, 6);
	assert_int_equal(result.linked_graphs, 2);
	assert_int_equal(result.without_launch, 1);
	/* Right behind its operator, by start. */
	assert_int_equal(find(&pair, "fill")->id, find(&pair, "next")->id + 1);
	assert_int_equal(find(&pair, "hip")->id, find(&pair, "next")->id + 4);
	assert_int_equal(pair.host->works.items[find(&pair, "fill")->work].stream, 7);
}

static void test_launches_outside_of_operators(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	add_call(&pair, "cudaGraphLaunch", EXAMPLE_PID, 150, 1);
	add_kernel(&pair, "replay", 7, 160, 10, 1);
	add_call(&pair, "cudaLaunchKernel", 999, 150, 2);
	add_kernel(&pair, "stranger", 7, 180, 10, 2);
	link_pair(&pair);
	assert_parent(&pair, "replay", "[pytorch|profiler|execution_trace|thread]");
	assert_int_equal(find(&pair, "replay")->inter_thread_dep, find(&pair, "outer")->id);
	assert_int_equal(result.linked_to_threads, 1);
	assert_int_equal(result.without_operator, 1);
	assert_int_equal(result.linked, 1);
}

/* Where External ids of kernels are those of operators, work without its launch has one, too. */
static void test_work_whose_launch_is_missing(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(7);
	uint32_t row;

	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30, 1);
	row = add_kernel(&pair, "told", 7, 40, 10, 1);
	pair.device->events.items[row].external_id = 18;
	row = add_kernel(&pair, "missing", 7, 210, 10, 77);
	pair.device->events.items[row].external_id = 20;
	link_pair(&pair);
	assert_parent(&pair, "missing", "next");
	assert_int_equal(result.linked_by_external_id, 1);
}

static void test_order_on_a_stream(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	for (uint64_t i = 1; i <= 5; i++)
		add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 20 + 5 * (int64_t)i, i);
	add_kernel(&pair, "k1", 7, 100, 10, 1);
	add_kernel(&pair, "k2", 7, 110, 20, 2);
	/* It began before the one before it had ended. */
	add_kernel(&pair, "k3", 7, 120, 20, 3);
	add_kernel(&pair, "k4", 7, 140, 10, 4);
	add_kernel(&pair, "other", 8, 145, 10, 5);
	link_pair(&pair);
	assert_true(waits_for(&pair, "k2", "k1"));
	assert_true(waits_for(&pair, "k3", "k1"));
	assert_false(waits_for(&pair, "k3", "k2"));
	assert_true(waits_for(&pair, "k4", "k3"));
	assert_int_equal(find(&pair, "other")->order_dep_count, 0);
	assert_int_equal(result.order_deps, 3);
}

/* A cuda_sync row of this kind. */
static void add_sync(struct pair *pair, const char *kind, int64_t stream, int64_t wait_stream,
	uint64_t correlation, uint64_t record)
{
	struct trace *device = pair->device;
	uint32_t row = example_device(device, TRACE_SYNC, kind, 0, stream, 0, 1, correlation);
	struct trace_work *work = &device->works.items[device->events.items[row].detail];

	work->sync_kind = example_text(device, kind);
	work->wait_stream = wait_stream;
	work->wait_correlation = record;
}

static void test_waits_for_events(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 20, 1);
	add_kernel(&pair, "made", 7, 100, 10, 1);
	add_call(&pair, "cudaEventRecord", EXAMPLE_PID, 25, 2);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 28, 3);
	add_kernel(&pair, "later", 7, 110, 100, 3);
	add_call(&pair, "cudaStreamWaitEvent", EXAMPLE_PID, 30, 4);
	add_sync(&pair, "Stream Wait Event", 8, 7, 4, 2);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 35, 5);
	add_kernel(&pair, "used", 8, 120, 10, 5);
	link_pair(&pair);
	assert_true(waits_for(&pair, "used", "made"));
	assert_false(waits_for(&pair, "used", "later"));
}

static void test_calls_that_wait_for_the_device(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	add_node(&pair, 30, 2, "last", 14, 1);
	add_row(&pair, "last", EXAMPLE_PID, 400, 10, 14, 0);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 20, 1);
	add_kernel(&pair, "on7", 7, 100, 10, 1);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30, 2);
	add_kernel(&pair, "on8", 8, 100, 10, 2);
	/* The thread's last launch was on stream 8. */
	add_call(&pair, "cudaStreamSynchronize", EXAMPLE_PID, 150, 3);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 210, 4);
	add_kernel(&pair, "slow", 7, 220, 1000, 4);
	add_call(&pair, "cudaDeviceSynchronize", EXAMPLE_PID, 310, 5);
	link_pair(&pair);
	assert_true(waits_for(&pair, "next", "on8"));
	assert_false(waits_for(&pair, "next", "on7"));
	/* What had not ended cannot have been waited for. */
	assert_true(waits_for(&pair, "last", "on8"));
	assert_false(waits_for(&pair, "last", "slow"));
	assert_int_equal(result.sync_deps, 2);
}

static void test_threads_wait_for_one_another(void **state)
{
	_cleanup_pair_ struct pair pair = pair_new();

	add_thread(&pair, 2, 1);
	add_thread(&pair, 3, 2);
	add_node(&pair, 10, 2, "forward", 10, 1);
	add_row(&pair, "forward", 201, 0, 1000, 10, 0);
	add_node(&pair, 11, 3, "backward", 11, 2);
	add_row(&pair, "backward", 202, 2000, 3000000, 11, 0);
	add_node(&pair, 12, 3, "again", 12, 2);
	add_row(&pair, "again", 202, 3500000, 10, 12, 0);
	add_node(&pair, 13, 2, "step", 13, 1);
	add_row(&pair, "step", 201, 4000000, 10, 13, 0);
	link_pair(&pair);
	assert_int_equal(find(&pair, "forward")->inter_thread_dep, EXECUTION_NO_ID);
	assert_int_equal(find(&pair, "backward")->inter_thread_dep, find(&pair, "forward")->id);
	assert_int_equal(find(&pair, "again")->inter_thread_dep, EXECUTION_NO_ID);
	assert_int_equal(find(&pair, "step")->inter_thread_dep, find(&pair, "again")->id);
}

static void test_damaged_hosts(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);

	/* Parents that are missing, in a circle, and an id that comes twice. */
	add_node(&pair, 40, 77, "orphan", 0, 1);
	add_node(&pair, 41, 42, "round", 0, 1);
	add_node(&pair, 42, 41, "and round", 0, 1);
	add_node(&pair, 42, 2, "twice", 0, 1);
	link_pair(&pair);
	assert_int_equal(result.orphans, 1);
	assert_int_equal(find(&pair, "orphan")->parent, EXECUTION_NO_ID);
	assert_parent(&pair, "round", "and round");
	assert_parent(&pair, "twice", "[pytorch|profiler|execution_trace|thread]");
}

static void test_compat_has_the_faults(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);
	const struct chakra_link_options compat = {.definition = chakra_trace_link};

	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30, 1);
	add_kernel(&pair, "late", 7, 40, 10, 1);
	add_call(&pair, "cudaMemsetAsync", EXAMPLE_PID, 210, 3);
	example_device(pair.device, TRACE_MEMSET, "fill", 0, 7, 220, 5, 3);
	/* All operators have External ids of their own, but the kernel has none. */
	for (uint32_t i = 0; i < 3; i++)
		pair.device->events.items[i].external_id = 50 + i;
	assert_int_equal(try_link(&pair, &compat), 0);
	assert_parent(&pair, "late", "inner");
	assert_int_equal(result.linked, 1);
	assert_int_equal(find(&pair, "late")->order_dep_count, 0);
}

/*
 * Python's doubles have absolute microseconds to a quarter: of 20 µs around 9.123 it says that 11.0
 * are left, which the converter cuts.
 */
static void test_compat_counts_in_doubles(void **state)
{
	const struct chakra_link_options compat = {.definition = chakra_trace_link};
	const int64_t start_ns = 1706850122862342123;

	(void)state;
	for (int is_compat = 0; is_compat < 2; is_compat++) {
		_cleanup_pair_ struct pair pair = pair_new();

		add_thread(&pair, 2, 1);
		add_node(&pair, 4, 2, "outer", 11, 1);
		add_node(&pair, 5, 4, "inner", 12, 1);
		add_row(&pair, "outer", EXAMPLE_PID, start_ns, 20000, 11, 0);
		add_row(&pair, "inner", EXAMPLE_PID, start_ns + 3187, 9123, 12, 0);
		assert_int_equal(try_link(&pair, is_compat ? &compat : NULL), 0);
		assert_int_equal(
			find(&pair, "outer")->exclusive_ns, is_compat ? 11000 : 20000 - 9123);
		assert_int_equal(find(&pair, "inner")->exclusive_ns, 9123);
	}
}

/* Only kernels as NCCL 2.18 names them keep their process group. */
static void test_compat_loses_groups(void **state)
{
	const struct chakra_link_options compat = {.definition = chakra_trace_link};
	static const char *const names[] = {"ncclKernel_AllReduce", "ncclDevKernel_AllReduce"};

	(void)state;
	for (int is_compat = 0; is_compat < 2; is_compat++) {
		_cleanup_pair_ struct pair pair = three_operators(0);

		for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
			const struct trace_collective group = {
				.group_name = example_text(pair.device, "7")};
			struct trace_work *work;

			add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30 + i * 10, i + 1);
			add_kernel(&pair, names[i], 7, 40 + i * 100, 10, i + 1);
			work = &pair.device->works.items[pair.device->works.count - 1];
			work->collective = (uint32_t)pair.device->collectives.count;
			assert_int_equal(array_append(&pair.device->collectives, group), 0);
		}
		for (uint32_t i = 0; i < 3; i++)
			pair.device->events.items[i].external_id = 50 + i;
		assert_int_equal(try_link(&pair, is_compat ? &compat : NULL), 0);
		for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
			const struct execution_node *node = find(&pair, names[i]);
			const struct execution_work *work = &pair.host->works.items[node->work];

			assert_int_equal(work->group_name.length != 0, !is_compat || i == 1);
		}
	}
}

/* What is written is read again. */
static void test_written_and_read(void **state)
{
	_cleanup_pair_ struct pair pair = three_operators(0);
	_cleanup_output_file_ struct output_file file = {0};
	_cleanup_execution_trace_ struct execution_trace *again = execution_trace_new("again");
	const struct linked_json_options options = {0};

	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 30, 1);
	add_kernel(&pair, "say \"hi\"\\\x01\xff", 7, 40, 10, 1);
	add_call(&pair, "cudaLaunchKernel", EXAMPLE_PID, 50, 2);
	add_kernel(&pair, "second", 7, 60, 1234567, 2);
	pair.device->base_ns = 1700000000000000001;
	link_pair(&pair);
	linked_json_write(pair.host, &options, &file);
	assert_non_null(again);
	again->bytes = file.out.data;
	again->length = file.out.length;
	assert_int_equal(pytorch_et_parse(again, &err), 0);
	assert_int_equal(again->nodes.count, pair.host->nodes.count);
	assert_int_equal(again->skipped_nodes + again->mended, 0);
	for (size_t i = 0; i < again->nodes.count; i++) {
		const struct execution_node *old = &pair.host->nodes.items[i];
		const struct execution_node *new = &again->nodes.items[i];

		assert_int_equal(new->id, old->id);
		assert_int_equal(new->parent, old->parent);
		assert_int_equal(new->start_ns, old->start_ns);
		assert_int_equal(new->inclusive_ns, old->inclusive_ns);
		assert_int_equal(new->exclusive_ns, old->exclusive_ns);
		assert_int_equal(new->match, old->match);
		assert_int_equal(new->rf_id, old->rf_id);
		assert_int_equal(new->order_dep_count, old->order_dep_count);
		assert_int_equal(new->work == MODEL_NONE, old->work == MODEL_NONE);
	}
	assert_int_equal(again->nodes.items[3].name.length, strlen("say \"hi\"\\\x01\xef\xbf\xbd"));
	assert_int_equal(again->works.items[1].correlation, 2);
}

/* Wherever a byte is that JSON does not allow: lists are copied as the file has them. */
static void test_lists_are_cleaned(void **state)
{
	static const char *const bad[][2] = {{"\n", " "}, {"\x1f", " "}, {"\xff", "\xef\xbf\xbd"},
		{"\xc3\xa4", "\xc3\xa4"}, {"\x7f", "\x7f"}};
	_cleanup_pair_ struct pair pair = three_operators(0);

	link_pair(&pair);
	for (size_t i = 0; i < ARRAY_SIZE(bad) * 24; i++) {
		_cleanup_output_file_ struct output_file file = {0};
		_cleanup_strbuf_ struct strbuf list = {0}, expected = {0};
		const char *const *byte = bad[i / 24];

		for (unsigned is_cleaned = 0; is_cleaned < 2; is_cleaned++)
			strbuf_addf(is_cleaned ? &expected : &list, "[\"%.*s%s%.*s\"]",
				(int)(i % 24), "abcdefghijklmnopqrstuvwx", byte[is_cleaned],
				24 - (int)(i % 24), "abcdefghijklmnopqrstuvwx");
		pair.host->nodes.items[2].inputs.values =
			(struct execution_text){list.data, (uint32_t)list.length};
		linked_json_write(pair.host, &(struct linked_json_options){0}, &file);
		assert_non_null(strstr(strbuf_cstr(&file.out), strbuf_cstr(&expected)));
	}
}

/* Random pairs: nothing depends on what is missing or comes later, and all work is enclosed. */
static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state = hash_u64(random_state + 1);
	return random_state % limit;
}

static void add_random_operators(struct pair *pair, int64_t tid, int64_t start_ns, int64_t end_ns,
	uint64_t parent, uint64_t *next_id, unsigned depth)
{
	while (end_ns - start_ns > 20 && *next_id < 900) {
		int64_t from = start_ns + (int64_t)random_below(10);
		int64_t to = from + (int64_t)random_below((uint64_t)(end_ns - from));
		uint64_t id = (*next_id)++;

		add_node(pair, id, parent, "op", id, (uint64_t)tid);
		add_row(pair, "op", tid, from, to - from, id, 0);
		if (depth < 6)
			add_random_operators(pair, tid, from, to, id, next_id, depth + 1);
		start_ns = to;
	}
}

static const struct trace_event *row_of(const struct pair *pair, const struct execution_node *node)
{
	for (uint32_t i = 0; i < pair->device->events.count; i++) {
		const struct trace_event *event = &pair->device->events.items[i];
		const struct trace_op *op = trace_op(pair->device, event);

		if (event->category == TRACE_CPU_OP && op && op->rf_id == node->rf_id)
			return event;
	}
	return NULL;
}

/* The shortest operator around the launch, looked for among all. */
static void check_work(const struct pair *pair, const struct execution_node *node)
{
	uint64_t correlation = pair->host->works.items[node->work].correlation, launch = 0;
	const struct trace_event *call, *parent;
	uint64_t enclosing = 0;

	assert_true(id_map_get(&pair->device->launches, correlation, &launch));
	call = &pair->device->events.items[launch];
	parent = row_of(pair, &pair->host->nodes.items[node->parent]);
	if (!parent) {
		array_foreach (&pair->device->events, event)
			enclosing += event->category == TRACE_CPU_OP &&
				     event->track == call->track &&
				     event->start_ns <= call->start_ns &&
				     trace_end_ns(event) >= trace_end_ns(call);
		assert_int_equal(enclosing, 0);
		return;
	}
	assert_int_equal(parent->track, call->track);
	assert_true(parent->start_ns <= call->start_ns);
	assert_true(trace_end_ns(parent) >= trace_end_ns(call));
	array_foreach (&pair->device->events, event) {
		if (event->category == TRACE_CPU_OP && event->track == call->track &&
			event->start_ns <= call->start_ns &&
			trace_end_ns(event) >= trace_end_ns(call))
			assert_true(event->duration_ns >= parent->duration_ns);
	}
}

static void check_deps(const struct pair *pair, const struct execution_node *node)
{
	const struct execution_node *nodes = pair->host->nodes.items;

	for (uint32_t i = 0; i < node->order_dep_count + node->sync_dep_count; i++) {
		uint32_t first = i < node->order_dep_count
					 ? node->first_order_dep + i
					 : node->first_sync_dep + i - node->order_dep_count;
		uint64_t on = pair->host->deps.items[first];

		assert_true(on < pair->host->nodes.count);
		assert_true(nodes[on].start_ns + nodes[on].inclusive_ns <= node->start_ns);
	}
	if (node->inter_thread_dep == EXECUTION_NO_ID || node->work != MODEL_NONE)
		return;
	assert_true(node->inter_thread_dep < pair->host->nodes.count);
	assert_true(nodes[node->inter_thread_dep].start_ns +
			    nodes[node->inter_thread_dep].inclusive_ns <
		    node->start_ns);
}

static void test_random_pairs(void **state)
{
	static const char *const calls[] = {"cudaLaunchKernel", "cudaGraphLaunch",
		"cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize"};

	for (uint64_t round = 0; round < 60; round++) {
		_cleanup_pair_ struct pair pair = pair_new();
		uint64_t next_id = 10;

		random_state = round;
		for (int64_t tid = 1; tid <= 3; tid++) {
			add_thread(&pair, 1 + (uint64_t)tid, (uint64_t)tid);
			add_random_operators(&pair, tid, 0, 4000, 1 + (uint64_t)tid, &next_id, 0);
		}
		for (uint64_t i = 1; i < 60; i++) {
			int64_t start_ns = (int64_t)random_below(4000);
			uint64_t kind = random_below(ARRAY_SIZE(calls));

			add_call(&pair, calls[kind], 1 + (int64_t)random_below(4), start_ns, i);
			for (uint64_t j = 0; j < (kind == 1 ? 3 : kind < 3); j++)
				add_kernel(&pair, "k", (int64_t)random_below(3),
					start_ns + (int64_t)random_below(50),
					(int64_t)random_below(60), i);
		}
		link_pair(&pair);
		assert_int_equal(result.linked + result.without_operator, result.device_rows);
		array_foreach (&pair.host->nodes, node) {
			if (node->work != MODEL_NONE)
				check_work(&pair, node);
			check_deps(&pair, node);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_rf_id),
		cmocka_unit_test(test_another_name_is_no_match),
		cmocka_unit_test(test_names_as_kineto_writes_them),
		cmocka_unit_test(test_by_offset),
		cmocka_unit_test(test_by_tree),
		cmocka_unit_test(test_different_runs_are_refused),
		cmocka_unit_test(test_operators_before_and_after_the_other_trace),
		cmocka_unit_test(test_less_than_half_is_refused),
		cmocka_unit_test(test_another_process_is_refused),
		cmocka_unit_test(test_work_goes_to_the_operator_around_its_launch),
		cmocka_unit_test(test_launches_outside_of_operators),
		cmocka_unit_test(test_work_whose_launch_is_missing),
		cmocka_unit_test(test_order_on_a_stream),
		cmocka_unit_test(test_waits_for_events),
		cmocka_unit_test(test_calls_that_wait_for_the_device),
		cmocka_unit_test(test_threads_wait_for_one_another),
		cmocka_unit_test(test_damaged_hosts),
		cmocka_unit_test(test_compat_has_the_faults),
		cmocka_unit_test(test_compat_counts_in_doubles),
		cmocka_unit_test(test_compat_loses_groups),
		cmocka_unit_test(test_written_and_read),
		cmocka_unit_test(test_lists_are_cleaned),
		cmocka_unit_test(test_random_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
