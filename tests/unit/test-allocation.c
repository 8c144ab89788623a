/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory, everywhere: each scenario runs again and again, with the first allocation failing,
 * then the second, and so on until none is left to fail; once that one alone and once it and all
 * after it. Every run must end in an error or whole, with nothing leaked (the sanitizers look) and
 * no crash. The linker puts the functions below in the place of the allocators of our own code
 * (--wrap); libraries keep theirs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../support/elf_path.h"
#include "analyses/device/launched_by.h"
#include "analyses/inference/layers.h"
#include "analyses/inference/phases.h"
#include "analyses/inference/runs.h"
#include "analyses/memory/memory.h"
#include "analyses/path/critical_path.h"
#include "analyses/program/ranks.h"
#include "analyses/program/row_diff.h"
#include "analyses/program/sequences.h"
#include "analyses/program/trace_programs.h"
#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "capture-device-example.h"
#include "compat/hta/diff.h"
#include "compat/hta/hta.h"
#include "elf/elf_file.h"
#include "exporters/exporter.h"
#include "importers/kineto/kineto.h"
#include "inference-example.h"
#include "model/model.h"
#include "model/trace_capture.h"
#include "sources/process/address_space.h"
#include "symbols/symbols.h"
#include "trace-example.h"
#include "unwind/build.h"

#define MAX_ALLOCATIONS 20000

/* ---- the allocator ---- */

static struct {
	unsigned long count, fails_at; /* fails_at 0: never */
	bool keeps_failing;
} allocations;

static bool fails_now(void)
{
	unsigned long number = ++allocations.count;

	return allocations.fails_at &&
	       (number == allocations.fails_at ||
		       (allocations.keeps_failing && number > allocations.fails_at));
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return fails_now() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
	return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
	return fails_now() ? NULL : __real_strndup(text, length);
}

/* ---- running ---- */

/* How a scenario may end when an allocation failed. */
enum outcome {
	MUST_FAIL, /* with -ENOMEM */
	MAY_COPE,  /* or whole, or with less: a missing name, no cache */
};

/* Cleans up after itself; returns 0 or a negative errno. */
typedef int scenario_function(void);

static int run_failing_at(scenario_function *scenario, unsigned long number, bool keeps_failing)
{
	int result;

	allocations.count = 0;
	allocations.fails_at = number;
	allocations.keeps_failing = keeps_failing;
	result = scenario();
	allocations.fails_at = 0;
	return result;
}

static void check_every_failure(
	scenario_function *scenario, enum outcome outcome, bool keeps_failing)
{
	for (unsigned long number = 1; number <= MAX_ALLOCATIONS; number++) {
		int result = run_failing_at(scenario, number, keeps_failing);

		if (allocations.count < number) {
			assert_int_equal(result, 0);
			return;
		}
		if (result != -ENOMEM && (outcome == MUST_FAIL || result != 0))
			fail_msg("allocation %lu failed, and the result was %d", number, result);
	}
	fail_msg("more than %d allocations", MAX_ALLOCATIONS);
}

static void check(scenario_function *scenario, enum outcome outcome)
{
	assert_int_equal(run_failing_at(scenario, 0, false), 0);
	assert_true(allocations.count > 0);
	print_message("%lu allocations\n", allocations.count);
	check_every_failure(scenario, outcome, false);
	check_every_failure(scenario, outcome, true);
}

/* ---- base ---- */

static int use_strbuf(void)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct json_writer json = {.out = &text};

	json_begin_array(&json);
	for (int i = 0; i < 100; i++)
		json_string(&json, "a text of some length");
	json_end_array(&json);
	return strbuf_status(&text);
}

static int use_map(void)
{
	struct map_u64 map = {0};
	int result = 0;

	for (uint64_t key = 0; key < 100 && result == 0; key++)
		result = map_u64_set(&map, key, key);
	for (uint64_t key = 0; key < 100 && result == 0; key++)
		assert_true(map_u64_get(&map, key, NULL));
	map_u64_done(&map);
	return result;
}

static int use_array(void)
{
	ARRAY_OF(int) numbers = {0};
	int result = 0;

	for (int i = 0; i < 100 && result == 0; i++)
		result = array_append(&numbers, i);
	array_done(&numbers);
	return result;
}

static int use_intern(void)
{
	struct intern intern = {0};
	int result = 0;

	for (uint32_t i = 0; i < 2000 && result >= 0; i++) {
		char name[128];
		uint32_t id;

		snprintf(name, sizeof(name), "%0100u", i);
		result = intern_add(&intern, name, 100, &id);
		assert_true(result < 0 || id == i);
	}
	/* What is in stays findable after a failure. */
	for (uint32_t i = 0; i < intern.entries.count; i++) {
		uint32_t id = UINT32_MAX;

		assert_true(intern_find(&intern, intern_get(&intern, i), 100, &id));
		assert_int_equal(id, i);
	}
	intern_done(&intern);
	return result < 0 ? result : 0;
}

static void test_base(void **state)
{
	check(use_strbuf, MUST_FAIL);
	check(use_map, MUST_FAIL);
	check(use_array, MUST_FAIL);
	check(use_intern, MUST_FAIL);
}

static char folder[] = "/tmp/sonde-test-allocation-XXXXXX";
static char file_path[64], capture_path[64], device_path[64];

static int use_files(void)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	int result = make_directories(folder, 0700);

	if (result == 0)
		result = write_file_atomically(file_path, "text", 4);
	if (result == 0)
		result = read_whole_file(file_path, 100, &text);
	return result;
}

/* NULL means "no cache", whatever the reason. */
static int use_cache(void)
{
	free(cache_directory("test"));
	return 0;
}

static void test_files(void **state)
{
	check(use_files, MUST_FAIL);
	check(use_cache, MAY_COPE);
}

/* ---- captures ---- */

static int write_capture(void)
{
	return write_example_file(file_path, false, false);
}

static int write_plain_capture(void)
{
	return write_example_file(file_path, true, true);
}

static void test_capture_writer(void **state)
{
	check(write_capture, MUST_FAIL);
	check(write_plain_capture, MUST_FAIL);
}

static int load_model(void)
{
	_cleanup_model_ struct model *model = NULL;
	struct errmsg err = {0};
	int result = model_load(&model, capture_path, NULL, NULL, &err);

	assert_true(result == 0 ? model->samples.count == 22 : !model && err.text[0]);
	return result;
}

static void test_model(void **state)
{
	check(load_model, MAY_COPE); /* without a text that nothing refers to */
}

static struct model *shared_model;
static const struct exporter *tried_exporter;

static int export_model(void)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	static const struct selection everything;
	struct errmsg err = {0};
	int result = 0;

	/* Rows are made anew each time. */
	if (shared_model->traces.count)
		trace_free(shared_model->traces.items[--shared_model->traces.count]);
	if (tried_exporter->needs_rows)
		result = model_make_rows(shared_model);
	if (result == 0)
		result = tried_exporter->export(shared_model, &everything, NULL, &out, &err);
	return result < 0 ? result : strbuf_status(&out);
}

static void try_exporters(const char *path)
{
	assert_int_equal(model_load(&shared_model, path, NULL, NULL, NULL), 0);
	for (const struct exporter *const *exporter = exporters; *exporter; exporter++) {
		if (!(*exporter)->export)
			continue; /* a folder, of what these captures lack */
		if ((*exporter)->shows == SELECTION_TRACES && !shared_model->device_works.count)
			continue; /* there is nothing for it */
		if (strcmp((*exporter)->name, "roofline") == 0 ||
			strcmp((*exporter)->name, "collectives") == 0 ||
			strcmp((*exporter)->name, "memory") == 0)
			continue; /* these captures have no sizes, collectives or allocations */
		print_message("%s: ", (*exporter)->name);
		tried_exporter = *exporter;
		/* A capture's writer deflates later what it had no memory for. */
		check(export_model,
			strcmp((*exporter)->name, "pftrace") == 0 ? MAY_COPE : MUST_FAIL);
	}
	shared_model = model_free(shared_model);
}

static void test_exporters(void **state)
{
	try_exporters(capture_path);
	try_exporters(device_path);
}

static int export_tables(void)
{
	_cleanup_export_files_ struct export_files files = {0};
	struct errmsg err = {0};

	return exporter_find("vllm-csv")->export_files(shared_model, NULL, NULL, &files, &err);
}

static void test_tables(void **state)
{
	shared_model = example_vllm();
	check(export_tables, MUST_FAIL);
	shared_model = model_free(shared_model);
}

static int analyse_inference(void)
{
	_cleanup_inference_ struct inference inference = {0};
	_cleanup_phase_use_ struct phase_use phases = {0};
	_cleanup_layer_use_ struct layer_use layers = {0};
	struct spread gaps;
	int result = inference_init(&inference, shared_model);

	if (result < 0)
		return result;
	result = phase_use_init(&phases, shared_model, NULL, &inference);
	if (result < 0)
		return result;
	result = inference_gaps(&inference, &inference.requests.items[0], &gaps);
	return result < 0 ? result : layer_use_init(&layers, shared_model, NULL);
}

static void test_inference(void **state)
{
	struct example example;

	example_inference_begin(&example);
	for (uint64_t i = 1; i < 3; i++) {
		example_token(&example, 100 * i * MS, "again", 0, "prefill");
		example_token(&example, (100 * i + 50) * MS, "again", 0, "decode");
		example_token(&example, (100 * i + 60) * MS, "again", 1, "decode");
	}
	example_begin_range(&example, 300 * MS, "sonde.model", "layer 0",
		FIELDS(NUMBER("layer", 0), TEXT("role", "layer")));
	example_begin_range(&example, 310 * MS, "sonde.model", "layer 0 q",
		FIELDS(NUMBER("layer", 0), TEXT("role", "q")));
	example_end_range(&example, 320 * MS, "sonde.model");
	example_end_range(&example, 330 * MS, "sonde.model");
	example_samples(&example, PID, PID, 0, 105 * MS, 20);
	shared_model = example_end(&example);
	check(analyse_inference, MUST_FAIL);
	shared_model = model_free(shared_model);
}

static int compare_runs(void)
{
	_cleanup_run_comparison_ struct run_comparison comparison = {0};
	struct runs runs = {0};
	int result = 0;

	for (int i = 0; result == 0 && i < 3; i++) {
		struct run run = {
			.model = "", .precision = "", .figures = {1 + i, 1 + i, 1 + i, 1, 1}};

		run.labels[RUN_BATCH] = i;
		result = array_append(&runs.items, run);
	}
	if (result == 0)
		result = runs_find_optimal(&runs);
	if (result >= 0)
		result = run_comparison_init(&comparison, &runs);
	array_done(&runs.items);
	return result;
}

static void test_runs(void **state)
{
	check(compare_runs, MUST_FAIL);
}

static int analyse_devices(void)
{
	const struct launched_work wanted = {.kinds = 1U << TRACE_COMPUTE | 1U << TRACE_MEMORY};
	const struct trace_view_options options = {0};
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_trace_ struct trace *trace = NULL;
	struct launched_by most;
	int result = trace_of_recording(&trace, shared_model);

	if (result == 0)
		result = trace_view_init(&view, trace, 0, &options);
	return result < 0 ? result : launched_by_find(&most, &view, &wanted);
}

static void test_device_analyses(void **state)
{
	assert_int_equal(model_load(&shared_model, device_path, NULL, NULL, NULL), 0);
	check(analyse_devices, MUST_FAIL);
	shared_model = model_free(shared_model);
}

/* ---- traces ---- */

static struct trace *shared_trace;
static struct trace_view shared_views[2];
static const struct trace_definitions *shared_definitions;

/* Two threads, a wait of each kind, a step and a collective. */
static void make_trace(void)
{
	struct trace *trace = shared_trace = example_trace_new();
	struct trace_flow flow = {.id = 1, .category_name = example_text(trace, "fwdbwd")};
	struct trace_memory memory = {.bytes = 8, .total_allocated = 8};
	uint32_t row;

	example_host(trace, TRACE_USER_ANNOTATION, "ProfilerStep#1", 1, 0, 900000, 0);
	example_host(trace, TRACE_CPU_OP, "forward", 1, 1000, 90000, 0);
	example_host(trace, TRACE_CPU_OP, "autograd", 2, 200000, 90000, 0);
	for (uint64_t i = 1; i <= 4; i++)
		example_launch(trace, "ncclKernel", (int64_t)i % 2 + 1, (int64_t)i * 2000, 1000,
			(int64_t)i * 100000, 50000, i);
	example_host(trace, TRACE_RUNTIME, "cudaEventRecord", EXAMPLE_PID, 7000, 1000, 5);
	example_host(trace, TRACE_RUNTIME, "cudaDeviceSynchronize", EXAMPLE_PID, 20000, 600000, 6);
	example_device(trace, TRACE_SYNC, "Context Sync", 0, 1, 20000, 500000, 6);
	example_device(trace, TRACE_SYNC, "Event Sync", 0, 1, 20000, 500000, 6);
	trace->works.items[trace->works.count - 1].wait_stream = 1;
	trace->works.items[trace->works.count - 1].wait_correlation = 5;
	flow.track = example_track(trace, EXAMPLE_PID, 1, false);
	assert_int_equal(array_append(&trace->flows, flow), 0);
	flow.track = example_track(trace, EXAMPLE_PID, 2, false);
	flow.is_end = true;
	assert_int_equal(array_append(&trace->flows, flow), 0);
	row = example_host(trace, TRACE_CPU_INSTANT, "[memory]", 1, 5000, TRACE_NO_DURATION, 0);
	trace->events.items[row].detail = 0;
	assert_int_equal(array_append(&trace->memory, memory), 0);
	example_trace_finish(trace);
}

static int analyse_trace(void)
{
	_cleanup_critical_paths_ struct critical_paths paths = {0};
	_cleanup_row_diff_ struct row_diff diff = {0};
	_cleanup_trace_sequences_ struct trace_sequences sequences = {0};
	_cleanup_model_ struct model *programs = NULL;
	_cleanup_ranks_ struct ranks ranks = {0};
	_cleanup_trace_memory_ struct trace_memory_use memory = {0};
	int r = shared_definitions->paths(
		&paths, &shared_views[0], &(struct critical_path_options){.annotation = ""});

	if (r == 0 && shared_definitions == &hta_definitions)
		r = hta_diff_init(
			&diff, (const struct trace_view *[]){&shared_views[0], &shared_views[1]});
	else if (r == 0)
		r = row_diff_init(
			&diff, (struct row_diff_input[]){{.views = &shared_views[0], .count = 1},
				       {.views = &shared_views[1], .count = 1}});
	r = r
		    ?: trace_sequences_init(&sequences, &shared_views[0],
			       &(struct trace_sequence_options){.shortest = 1});
	programs = calloc(1, sizeof(*programs));
	if (r == 0)
		r = programs ? trace_programs_fill(programs, shared_views, 2) : -ENOMEM;
	r = r
		    ?: ranks_init(&ranks,
			       &(struct rank_input){
				       .model = programs, .views = shared_views, .view_count = 2});
	return r ?: trace_memory_init(&memory, shared_trace);
}

static void test_trace_analyses(void **state)
{
	make_trace();
	for (int hta = 0; hta < 2; hta++) {
		shared_definitions = hta ? &hta_definitions : &own_definitions;
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(shared_definitions->view(&shared_views[i], shared_trace, i,
						 &(struct trace_view_options){0}),
				0);
		check(analyse_trace, MUST_FAIL);
		trace_view_done(&shared_views[0]);
		trace_view_done(&shared_views[1]);
	}
	shared_trace = trace_free(shared_trace);
}

/* ---- files of the target ---- */

static int build_unwind_table(void)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	struct unwind_table table = {0};
	int result = open_elf(&elf, FIXTURE, FIXTURE, NULL);

	if (result == 0)
		result = unwind_table_build(&table, elf, NULL, NULL);
	unwind_table_done(&table);
	return result;
}

static int open_symbols(void)
{
	_cleanup_symbol_table_ struct symbol_table *table = NULL;
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	int result = open_elf(&elf, FIXTURE, FIXTURE, NULL);

	return result < 0 ? result : symbol_table_open(&table, elf, NULL, "", NULL, NULL);
}

static void test_elf_files(void **state)
{
	check(build_unwind_table, MAY_COPE);
	check(open_symbols, MAY_COPE);
}

static int apply_events(void)
{
	static const enum sideband_type types[] = {
		SIDEBAND_MMAP, SIDEBAND_COMM, SIDEBAND_FORK, SIDEBAND_MMAP, SIDEBAND_EXIT};
	struct address_spaces *spaces = NULL;
	int result = address_spaces_new(&spaces, NULL);

	for (uint32_t i = 0; i < 200 && result == 0; i++) {
		struct sideband_event event = {
			.type = types[i % ARRAY_SIZE(types)],
			.time_ns = i,
			.pid = (8u << 20) + i / 7,
			.tid = (8u << 20) + i / 7,
			.parent_pid = 8u << 20,
			.address = 0x10000ULL * (i + 1),
			.length = 0x1000,
			.inode = i + 1,
			.name = "/lib/name",
		};

		result = address_spaces_apply(spaces, &event, false);
	}
	address_spaces_free(spaces);
	return result;
}

static void test_address_spaces(void **state)
{
	check(apply_events, MAY_COPE);
}

static int set_up_group(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	setenv("XDG_CACHE_HOME", folder, 1);
	snprintf(file_path, sizeof(file_path), "%s/file", folder);
	snprintf(capture_path, sizeof(capture_path), "%s/capture", folder);
	snprintf(device_path, sizeof(device_path), "%s/device", folder);
	return write_example_file(capture_path, false, false) < 0
		       ? -1
		       : write_file(device_path, false, false, write_device_example);
}

static int tear_down_group(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* ---- traces ---- */

static char trace_path[64];

/* A file with what a trace has a place for, and with damage; compressed, so that there is a thread.
 */
static void write_trace(void)
{
	static const char text[] =
		"{\"distributedInfo\": {\"backend\": \"nccl\", \"pg_config\": [{\"pg_name\": "
		"\"0\"}]}, "
		"\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"caf\xe9 "
		"\\u00e9\", "
		"\"pid\": 1, \"tid\": \"main\", \"ts\": 1.5, \"dur\": 2, \"args\": {\"Ev Idx\": 1, "
		"\"Input Dims\": [[1]], \"New\": {}}}, {\"ph\": \"X\", \"cat\": \"kernel\", "
		"\"name\": "
		"\"k\", \"pid\": 0, \"tid\": 7, \"ts\": 3, \"dur\": 1, \"args\": {\"stream\": 7, "
		"\"correlation\": 5, \"Group size\": 2}} {\"ph\": \"broken, {\"ph\": \"s\", "
		"\"id\": 5, "
		"\"ts\": 1}, {\"ph\": \"C\", \"name\": \"c\", \"ts\": 1, \"args\": {\"x\": 1}}, "
		"{\"ph\": \"B\", \"name\": \"b\", \"ts\": 1}, {\"ph\": \"E\", \"ts\": 2}, {\"ph\": "
		"\"X\", \"cat\": \"cuda_runtime\", \"ts\": 2, \"args\": {\"correlation\": 5}}, "
		"{\"ph\": "
		"\"i\", \"cat\": \"cpu_instant_event\", \"ts\": 2, \"args\": {\"Bytes\": 5}}, "
		"{\"ph\": "
		"\"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": 7, \"args\": {\"name\": "
		"\"stream\"}}]}";
	gzFile file;

	snprintf(trace_path, sizeof(trace_path), "%s/trace.json.gz", folder);
	file = gzopen(trace_path, "w");
	assert_non_null(file);
	assert_int_equal(gzwrite(file, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(gzclose(file), Z_OK);
}

static int read_trace(void)
{
	const struct trace_read_options options = {.keep_arguments = true};
	_cleanup_trace_ struct trace *trace = NULL;
	struct errmsg err = {0};
	int result = kineto_read(&trace, trace_path, &options, &err);

	assert_true(result == 0 ? trace->events.count == 5 : !trace && err.text[0]);
	return result;
}

static void test_traces(void **state)
{
	write_trace();
	check(read_trace, MUST_FAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_capture_writer),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_exporters),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_inference),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_device_analyses),
		cmocka_unit_test(test_trace_analyses),
		cmocka_unit_test(test_traces),
		cmocka_unit_test(test_elf_files),
		cmocka_unit_test(test_address_spaces),
	};

	return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
