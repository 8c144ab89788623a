/* SPDX-License-Identifier: Apache-2.0 */
/* Kineto's traces as rows: whole ones, and what real and hostile files do to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "importers/kineto/kineto.h"
#include "kineto-text.h"

#define WINDOW ((size_t)64 * 1024)

/* As Kineto writes, line breaks included: an operator, its launch and kernel, a copy, a sync. */
static const char sample[] =
	"\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, "
	"\"name\": \"GPU \\\"X\\\"\"\n    }\n  ],\n"
	"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, "
	"\"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": "
	"\"cuda:nccl\", \"pg_size\": 2, \"ranks\": [0, 1]}]},\n"
	"  \"baseTimeNanoseconds\": 1712194000000000000,\n  \"traceEvents\": [\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1102, "
	"\"tid\": 1262,\n    \"ts\": 5519689.047, \"dur\": 63.813,\n    \"args\": {\n      "
	"\"External id\": 2049,\"Record function id\": 7, \"Sequence number\": 18456, \"Fwd thread "
	"id\": 1, \"Ev Idx\": 0, \"Input Dims\": [[2, 3], [3, 4]], \"Input type\": [\"float\", "
	"\"float\"], \"New\": {\"a\": [1]}\n    }\n  },\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
	"\"pid\": 1102, \"tid\": 1262,\n    \"ts\": 5519700.000, \"dur\": 5,\n    \"args\": "
	"{\n      \"External id\": 2049,\"cbid\": 211, \"correlation\": 11\n    }\n  },\n"
	"  {\n    \"ph\": \"s\", \"id\": 11, \"pid\": 1102, \"tid\": 1262, \"ts\": "
	"5519700.000,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm<128, 2>\", \"pid\": 0, "
	"\"tid\": 7,\n    \"ts\": 5519720.500, \"dur\": 12.25,\n    \"args\": {\n      \"External "
	"id\": 2049,      \"queued\": 3, \"device\": 0, \"context\": 1,      \"stream\": 7, "
	"\"correlation\": 11,      \"registers per thread\": 30,      \"shared memory\": 64,      "
	"\"blocks per SM\": 5.300000,      \"grid\": [4, 106, 1],      \"block\": [128, 1, 1], "
	"\"graph id\": 5, \"graph node id\": 6, \"Collective name\": \"allreduce\", \"Process "
	"Group Ranks\": \"[0, 1]\", \"Comms Id\": 18446744073709551615, \"In msg nelems\": "
	"1024\n    }\n  },\n"
	"  {\n    \"ph\": \"f\", \"id\": 11, \"pid\": 0, \"tid\": 7, \"ts\": 5519720.500,\n    "
	"\"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Wait Event\", \"pid\": "
	"0, \"tid\": 7,\n    \"ts\": 5519740, \"dur\": 1,\n    \"args\": {\"cuda_sync_kind\": "
	"\"Stream Wait Event\", \"stream\": 7, \"wait_on_stream\": 8, "
	"\"wait_on_cuda_event_record_corr_id\": 9, \"wait_on_cuda_event_id\": 2, \"correlation\": "
	"12}\n  },\n"
	"  {\n    \"name\": \"[memory]\", \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": "
	"\"t\", \"pid\": 1102, \"tid\": 1262, \"ts\": 5519690.000, \"args\": {\"Ev Idx\": 4, "
	"\"Addr\": 140000000000000, \"Bytes\": -512, \"Total Allocated\": 1024, \"Total "
	"Reserved\": 2048, \"Device Type\": 1, \"Device Id\": 0}\n  },\n"
	"  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 5519689.000, \"pid\": 1102, "
	"\"tid\": 0,\n    \"args\": {\n      \"name\": \"python\"\n    }\n  },\n"
	"  {\n    \"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": 1, \"pid\": 0, \"tid\": "
	"0, \"args\": {\"sort_index\": 5000000}\n  },\n"
	"  {\n    \"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 1, \"pid\": 0, \"tid\": 7, "
	"\"args\": {\"name\": \"stream 7\"}\n  },\n"
	"  {\n    \"name\": \"GPU 0 Memory\", \"ph\": \"C\", \"pid\": 0, \"ts\": 5519720, "
	"\"args\": {\"used\": 1.5, \"device\": 2}\n  },\n"
	"  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": "
	"\"\", \"tid\": \"\", \"ts\": 5519800.183\n  },\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"Trace\", \"ts\": 5519600, \"dur\": 300, \"pid\": "
	"\"Spans\", \"tid\": \"PyTorch Profiler\", \"name\": \"PyTorch Profiler (0)\", \"args\": "
	"{\"Op count\": 0}\n  }\n  ],\n"
	"  \"traceName\": \"/tmp/trace.json\",\n  \"displayTimeUnit\": \"ms\"\n}\n";

static struct trace *read_trace(const char *text, bool keep_arguments)
{
	struct trace *trace = NULL;

	assert_int_equal(
		kineto_parse_text(&trace, text, strlen(text), WINDOW, SIZE_MAX, keep_arguments), 0);
	return trace;
}

/* These events as all of a file. */
static struct trace *read_events(const char *events)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_addf(&text, "{\"traceEvents\": [%s]}", events);
	return read_trace(strbuf_cstr(&text), true);
}

static const struct trace_event *row(const struct trace *trace, size_t index)
{
	assert_true(index < trace->events.count);
	return &trace->events.items[index];
}

static const char *row_name(const struct trace *trace, size_t index)
{
	return trace_text(trace, row(trace, index)->name);
}

static void test_header(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_trace(sample, true);

	assert_int_equal(trace->rank, 3);
	assert_int_equal(trace->world_size, 8);
	assert_string_equal(trace_text(trace, trace->backend), "nccl");
	assert_int_equal(trace->base_ns, 1712194000000000000);
	assert_true(trace->has_fractions);
	assert_int_equal(trace->groups.count, 1);
	assert_string_equal(trace_text(trace, trace->groups.items[0].description), "default_pg");
	assert_string_equal(trace_text(trace, trace->groups.items[0].ranks), "[0, 1]");
	assert_int_equal(trace->groups.items[0].size, 2);
	assert_non_null(
		strstr(trace_text(trace, trace->header), "\"traceName\": \"/tmp/trace.json\""));
	assert_non_null(strstr(trace_text(trace, trace->header), "\"GPU \\\"X\\\"\""));
	assert_false(trace->damage.truncated);
	assert_int_equal(trace->damage.skipped_events, 0);
	assert_int_equal(trace->damage.mended_events, 0);
}

static void test_operator(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_trace(sample, true);
	const struct trace_event *event = row(trace, 0);
	const struct trace_op *op = trace_op(trace, event);

	assert_string_equal(row_name(trace, 0), "aten::mm");
	assert_int_equal(event->category, TRACE_CPU_OP);
	assert_int_equal(event->start_ns, 5519689047);
	assert_int_equal(event->duration_ns, 63813);
	assert_int_equal(event->external_id, 2049);
	assert_int_equal(op->rf_id, 7);
	assert_int_equal(op->sequence, 18456);
	assert_int_equal(op->forward_thread, 1);
	assert_int_equal(op->ev_idx, 0);
	assert_int_equal(op->python_id, TRACE_NO_NUMBER);
	assert_string_equal(trace_text(trace, op->input_dims), "[[2, 3], [3, 4]]");
	assert_string_equal(trace_text(trace, op->input_types), "[\"float\", \"float\"]");
	assert_string_equal(trace_text(trace, op->others), "\"New\": {\"a\": [1]}");
	assert_int_equal(op->collective, MODEL_NONE);
}

static void test_device_work(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_trace(sample, true);
	const struct trace_event *event = row(trace, 2);
	const struct trace_work *work = trace_work(trace, event);
	const struct trace_collective *collective = &trace->collectives.items[work->collective];

	assert_int_equal(event->category, TRACE_KERNEL);
	assert_int_equal(event->correlation, 11);
	assert_int_equal(trace_launch(trace, event), 1);
	assert_int_equal(work->stream, 7);
	assert_int_equal(work->grid[1], 106);
	assert_int_equal(work->block[0], 128);
	assert_int_equal(work->registers, 30);
	assert_int_equal(work->shared_bytes, 64);
	assert_int_equal(work->graph, 5);
	assert_int_equal(work->graph_node, 6);
	assert_int_equal(work->queued_ns, 3000);
	assert_string_equal(trace_text(trace, work->others), "\"blocks per SM\": 5.300000");
	assert_string_equal(trace_text(trace, collective->name), "allreduce");
	assert_string_equal(trace_text(trace, collective->group_ranks), "[0, 1]");
	assert_int_equal(collective->in_elements, 1024);
	assert_true(collective->communicator == UINT64_MAX);
	work = trace_work(trace, row(trace, 3));
	assert_string_equal(trace_text(trace, work->sync_kind), "Stream Wait Event");
	assert_int_equal(work->wait_stream, 8);
	assert_int_equal(work->wait_event, 2);
	assert_int_equal(work->wait_correlation, 9);
}

static void test_moments_tracks_flows_counters(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_trace(sample, true);
	const struct trace_memory *memory = &trace->memory.items[row(trace, 4)->detail];
	const struct trace_track *track;

	assert_int_equal(row(trace, 4)->duration_ns, TRACE_NO_DURATION);
	assert_int_equal(memory->bytes, -512);
	assert_int_equal(memory->address, 140000000000000);
	assert_string_equal(trace_text(trace, memory->others), "\"Ev Idx\": 4");
	track = &trace->tracks.items[row(trace, 0)->track];
	assert_int_equal(track->pid, 1102);
	assert_int_equal(track->tid, 1262);
	assert_false(track->is_device);
	assert_string_equal(trace_text(trace, track->process_name), "python");
	track = &trace->tracks.items[row(trace, 2)->track];
	assert_true(track->is_device);
	assert_int_equal(track->process_sort, 5000000);
	assert_string_equal(trace_text(trace, track->thread_name), "stream 7");
	track = &trace->tracks.items[row(trace, 6)->track];
	assert_int_equal(track->pid, TRACE_NO_NUMBER);
	assert_string_equal(trace_text(trace, track->pid_text), "Spans");
	assert_int_equal(trace->flows.count, 2);
	assert_int_equal(trace->flows.items[1].id, 11);
	assert_true(trace->flows.items[1].is_end);
	assert_int_equal(trace->counters.count, 2);
	assert_int_equal(row(trace, 6)->file_index, 12);
}

static void test_arguments_that_are_not_kept(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_trace(sample, false);
	const struct trace_op *op = trace_op(trace, row(trace, 0));

	assert_int_equal(trace->events.count, 7);
	assert_int_equal(op->rf_id, 7);
	assert_int_not_equal(op->input_dims, 0);
	assert_int_equal(op->call_stack, 0);
	assert_int_equal(op->others, 0);
	assert_int_equal(trace->header, 0);
	assert_int_equal(trace->counters.count, 2);
	assert_null(trace_op(trace, row(trace, 1)));
	assert_int_equal(trace->flows.count, 0);
}

static void test_arrows_to_the_backward_pass_are_kept(void **state _unused_)
{
	static const char text[] =
		"{\"traceEvents\": ["
		"{\"ph\": \"s\", \"id\": 1, \"pid\": 1, \"tid\": 1, \"ts\": 1, \"cat\": \"ac2g\"},"
		"{\"ph\": \"s\", \"id\": 2, \"pid\": 1, \"tid\": 1, \"ts\": 2, \"cat\": \"fwdbwd\"},"
		"{\"ph\": \"f\", \"id\": 2, \"pid\": 1, \"tid\": 2, \"ts\": 3, \"cat\": \"fwdbwd\"}"
		"]}";
	_cleanup_trace_ struct trace *trace = read_trace(text, false);

	assert_int_equal(trace->flows.count, 2);
	assert_int_equal(trace->flows.items[0].id, 2);
}

/* However the text comes, the trace is the same. */
static void test_windows(void **state _unused_)
{
	_cleanup_trace_ struct trace *whole = read_trace(sample, true);
	_cleanup_strbuf_ struct strbuf expected = {0};

	kineto_describe(whole, &expected);
	for (size_t step = 1; step < sizeof(sample); step += step < 100 ? 1 : 97) {
		_cleanup_trace_ struct trace *trace = NULL;
		_cleanup_strbuf_ struct strbuf text = {0};

		assert_int_equal(
			kineto_parse_text(&trace, sample, strlen(sample), step, SIZE_MAX, true), 0);
		kineto_describe(trace, &text);
		assert_string_equal(strbuf_cstr(&text), strbuf_cstr(&expected));
	}
}

/* Cut anywhere, what is left is the beginning, and it is said that the end is not there. */
static void test_every_cut(void **state _unused_)
{
	_cleanup_trace_ struct trace *whole = read_trace(sample, true);
	size_t rows = 0, first_events = (size_t)(strstr(sample, "traceEvents\": [") - sample) + 15;

	for (size_t cut = 0; cut < strlen(sample) - 2; cut++) {
		_cleanup_trace_ struct trace *trace = NULL;
		int r = kineto_parse_text(&trace, sample, cut, WINDOW, WINDOW, true);

		if (r < 0) {
			assert_int_equal(r, -ENODATA);
			assert_int_equal(rows, 0);
			continue;
		}
		assert_true(cut >= first_events);
		assert_true(trace->damage.truncated);
		assert_true(trace->damage.skipped_events <= 1);
		assert_true(trace->events.count >= rows);
		rows = trace->events.count;
		for (size_t i = 0; i < rows; i++)
			assert_string_equal(row_name(trace, i), row_name(whole, i));
	}
	assert_int_equal(rows, 7);
}

#define EVENT(name, time)                                                                          \
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                                   \
	"\", \"pid\": 1, \"tid\": 2, \"ts\": " time ", \"dur\": 1}"

static void test_commas(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events(EVENT("a", "1") EVENT(
		"b", "2") ",," EVENT("c",
		"3") ",{\"ph\": \"X\" \"name\": \"d\", \"pid\": 1, \"tid\": 2 \"ts\": 4,},");

	assert_int_equal(trace->events.count, 4);
	assert_string_equal(row_name(trace, 3), "d");
	assert_int_equal(trace->damage.mended_events, 3);
	assert_int_equal(trace->damage.skipped_events, 0);
	assert_false(trace->damage.truncated);
}

/* What was between members before is compared with what is there now: it may differ. */
static void test_spaces_that_differ(void **state _unused_)
{
	static const char *const forms[] = {
		"{\"ph\":\"X\",\"ts\":1.5,\"id\":3,\"args\":{\"stream\":7,\"Ev Idx\":12}},",
		"{\"ph\": \"X\", \"ts\": 1.5, \"id\": 3, \"args\": {\"stream\": 7, \"Ev Idx\": "
		"12}},",
		"{\"ph\":  \"X\" ,\"ts\":\n1.5, \"id\" :3, \"args\":   {\"stream\":\t7 ,\"Ev Idx\" "
		": 12 }},",
		"{\"ph\": \"X\", \"ts\":1.5, \"ids\": 3, \"args\": {\"streams\": 6, \"stream\": 7, "
		"\"Ev Idx\":12}},",
	};
	_cleanup_strbuf_ struct strbuf events = {0};
	_cleanup_trace_ struct trace *trace = NULL;

	for (size_t i = 0; i < 64; i++)
		strbuf_add(&events, forms[i % 7 % ARRAY_SIZE(forms)]);
	trace = read_events(strbuf_cstr(&events));
	assert_int_equal(trace->events.count, 64);
	for (size_t i = 0; i < 64; i++) {
		const struct trace_op *op = trace_op(trace, row(trace, i));

		assert_int_equal(row(trace, i)->start_ns, 1500);
		assert_non_null(op);
		assert_int_equal(op->ev_idx, 12);
		assert_non_null(strstr(trace_text(trace, op->others), "\"stream\""));
	}
	assert_int_equal(trace->damage.mended_events, 0);
}

static void test_bytes_in_names(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events(EVENT("tab\tand\x01", "1") "," EVENT(
		"caf\xe9", "2") "," EVENT("caf\xe9", "3") "," EVENT("fran\xc3\xa7"
								    "ais \\u00e9\\n",
		"4") "," EVENT("say \"hi\" now", "5") "," EVENT("nul\\u0000", "6"));

	assert_string_equal(row_name(trace, 0), "tab\tand\x01");
	assert_string_equal(row_name(trace, 1), "caf\xef\xbf\xbd");
	assert_int_equal(row(trace, 1)->name, row(trace, 2)->name);
	assert_string_equal(row_name(trace, 3), "fran\xc3\xa7"
						"ais \xc3\xa9\n");
	assert_string_equal(row_name(trace, 4), "say \"hi\" now");
	assert_string_equal(row_name(trace, 5), "nul\xef\xbf\xbd");
	assert_int_equal(trace->damage.mended_events, 5);
	assert_int_equal(trace->damage.skipped_events, 0);
}

/* Texts that are kept stay JSON, whatever bytes they have. */
static void test_bytes_in_arguments(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events(
		"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"tid\": "
		"2, \"ts\": 1, \"dur\": 1, \"args\": {\"Call stack\": \"a\n\\\"b\xff\", "
		"\"Input Dims\": [\n1,\n2]}}");
	const struct trace_op *op = trace_op(trace, row(trace, 0));

	assert_string_equal(trace_text(trace, op->call_stack), "\"a\\u000a\\\"b\xef\xbf\xbd\"");
	assert_string_equal(trace_text(trace, op->input_dims), "[ 1, 2]");
	assert_int_equal(trace->damage.mended_events, 1);
}

static void test_events_that_are_broken(void **state _unused_)
{
	static const char *const broken[] = {
		"{\"ph\": \"X\", \"name\": \"x",
		"{\"ph\": \"X\", \"name\": \"x\", \"pid\": ",
		"{\"ph\": \"X\", \"name\": \"x\", \"args\": {\"Input Dims\": [[1, 2], \"ts\": 1}},",
		"{\"ph\": \"X\", \"name\": x y, \"ts\": 1},",
		"{\"ph\": \"X\", \"name\": \"x\", \"ts\": 1, \"dur\"},",
		"{\"ph\": \"X\", \"name\": \"x\"]}, ",
		"garbage",
		"}}}",
		"{\"ph\": \"Z\"},",
		"{\"ph\": \"X\", \"name\": \"x\", \"pid\": 1, \"ts\": \"never\"},",
		"{\"ph\": \"X\", \"name\": \"x\", \"pid\": 1, \"dur\": 5},",
		"[1, 2],",
		"null,",
	};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		_cleanup_strbuf_ struct strbuf events = {0};
		_cleanup_trace_ struct trace *trace = NULL;

		strbuf_add(&events, EVENT("before", "1") ",");
		strbuf_add(&events, broken[i]);
		strbuf_add(&events, EVENT("after", "2") "," EVENT("last", "3"));
		trace = read_events(strbuf_cstr(&events));
		assert_int_equal(trace->events.count, 3);
		assert_string_equal(row_name(trace, 1), "after");
		assert_string_equal(row_name(trace, 2), "last");
		assert_true(trace->damage.skipped_events >= 1);
		assert_true(trace->damage.skipped_bytes >= 1);
		assert_false(trace->damage.truncated);
	}
}

/* The last event is broken: what follows the list is given up, but the file has an end. */
static void test_last_event_is_broken(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace =
		read_events(EVENT("a", "1") ", {\"ph\": \"X\", \"na\"");

	assert_int_equal(trace->events.count, 1);
	assert_int_equal(trace->damage.skipped_events, 1);
	assert_false(trace->damage.truncated);
}

static void test_times(void **state _unused_)
{
#define TIMES(time, duration)                                                                      \
	"{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": " time                   \
	", \"dur\": " duration "},"
	_cleanup_trace_ struct trace *trace = read_events(TIMES("1712195495519689.047",
		"0.001") TIMES("1.7e15", "1e3") TIMES("5", "-3") TIMES("6", "18446744073709551.611")
			TIMES("7", "18446744073709551615") TIMES("18446744073709551.614",
				"1") TIMES("18446744073709551615", "1") TIMES("\"8\"",
				"null") TIMES("99999999999999999", "1") TIMES("0.000",
				"68.0") "{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"ts\": 9}");

	assert_int_equal(row(trace, 0)->start_ns, 1712195495519689047);
	assert_int_equal(row(trace, 0)->duration_ns, 1);
	assert_int_equal(row(trace, 1)->start_ns, 1700000000000000000);
	assert_int_equal(row(trace, 1)->duration_ns, 1000000);
	assert_int_equal(row(trace, 2)->duration_ns, 0);
	assert_int_equal(row(trace, 3)->duration_ns, 0);
	assert_int_equal(row(trace, 4)->duration_ns, 0);
	assert_int_equal(row(trace, 5)->start_ns, -2);
	assert_int_equal(row(trace, 6)->start_ns, -1000);
	assert_int_equal(row(trace, 7)->start_ns, 8000);
	assert_int_equal(row(trace, 8)->duration_ns, 68000);
	assert_int_equal(row(trace, 9)->duration_ns, TRACE_NO_DURATION);
	assert_int_equal(trace->events.count, 10);
	assert_int_equal(trace->damage.repaired_times, 4);
	assert_int_equal(trace->damage.skipped_events, 1);
}

static void test_ids(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events(
		"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"pid\": \"12\", \"tid\": "
		"18446744073709551615, \"ts\": 1, \"args\": {\"External id\": "
		"18446744073709551614, \"Ev Idx\": 18446744073709551615, \"Sequence number\": "
		"\"5\", \"Record function id\": -1}},{\"ph\": \"X\", \"pid\": 12, \"tid\": "
		"\"stream 7\", \"ts\": 2},{\"ph\": \"X\", \"ts\": 3},{\"ph\": \"s\", \"id\": "
		"\"0x1f\", \"ts\": 3}, {\"ph\": \"s\", \"id\": \"word\", \"ts\": 3}");
	const struct trace_track *tracks = trace->tracks.items;
	const struct trace_op *op = trace_op(trace, row(trace, 0));

	assert_int_equal(tracks[0].pid, 12);
	assert_int_equal(tracks[0].tid, TRACE_NO_NUMBER);
	assert_string_equal(trace_text(trace, tracks[0].tid_text), "18446744073709551615");
	assert_true(row(trace, 0)->external_id == UINT64_MAX - 1);
	assert_int_equal(op->ev_idx, TRACE_NO_NUMBER);
	assert_int_equal(op->sequence, 5);
	assert_string_equal(trace_text(trace, op->others),
		"\"Record function id\": -1, \"Ev Idx\": 18446744073709551615");
	assert_int_equal(tracks[1].pid, 12);
	assert_string_equal(trace_text(trace, tracks[1].tid_text), "stream 7");
	assert_int_equal(tracks[2].pid, TRACE_NO_NUMBER);
	assert_int_equal(trace->flows.items[0].id, 31);
	assert_true(trace->flows.items[1].id >> 63);
}

static void test_begin_and_end(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events(
		"{\"ph\": \"B\", \"name\": \"outer\", \"pid\": 1, \"tid\": 1, \"ts\": 10},{\"ph\": "
		"\"B\", \"name\": \"inner\", \"pid\": 1, \"tid\": 1, \"ts\": 11},{\"ph\": \"B\", "
		"\"name\": \"other\", \"pid\": 1, \"tid\": 2, \"ts\": 12},{\"ph\": \"E\", \"pid\": "
		"1, \"tid\": 1, \"ts\": 15},{\"ph\": \"E\", \"pid\": 1, \"tid\": 1, \"ts\": "
		"20},{\"ph\": \"E\", \"pid\": 1, \"tid\": 1, \"ts\": 21}");

	assert_int_equal(row(trace, 0)->duration_ns, 10000);
	assert_int_equal(row(trace, 1)->duration_ns, 4000);
	assert_int_equal(row(trace, 2)->duration_ns, TRACE_NO_DURATION);
	assert_int_equal(trace->damage.unended_events, 1);
	assert_int_equal(trace->damage.skipped_events, 1);
}

static void test_other_shapes_of_files(void **state _unused_)
{
	static const char *const files[] = {
		"[" EVENT("a", "1") "]",
		"[" EVENT("a", "1") ",",
		"\xef\xbb\xbf  {\"traceEvents\":[" EVENT("a", "1") "]}",
		"{\"x\": \"y\" z\", \"traceEvents\": [" EVENT("a", "1") "]}",
		"{\"traceEvents\": [" EVENT("a", "1") "], \"distributedInfo\": {\"rank\": 5}}",
		"{\"schemaVersion\": 99, \"new\": [[{}]], \"traceEvents\": [{\"args\": {\"later\": "
		"1}, \"cat\": \"a_new_kind\", \"dur\": 1, \"name\": \"a\", \"ph\": \"X\", \"pid\": "
		"1, \"tid\": 2, \"ts\": 1, \"vector\": [1, {\"x\": 2}]}]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_trace_ struct trace *trace = read_trace(files[i], true);

		assert_int_equal(trace->events.count, 1);
		assert_string_equal(row_name(trace, 0), "a");
		assert_int_equal(row(trace, 0)->start_ns, 1000);
		assert_int_equal(trace->damage.skipped_events, 0);
		assert_false(trace->damage.truncated);
	}
}

/* Without reading the events: of distributedInfo itself, not of what lies in it or in a text. */
static void test_rank_of_a_file(void **state)
{
	static const struct {
		const char *text;
		uint32_t rank; /* UINT32_MAX: none */
	} files[] = {
		{"{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3}, \"traceEvents\": []}",
			3},
		{"{\"traceEvents\": [], \"distributedInfo\" :\n {\"rank\": \"5\"}}", 5},
		{"{\"distributedInfo\": {\"pg_config\": [{\"rank\": 9}], \"rank\": 1}}", 1},
		{"{\"a\": \"\\\"distributedInfo\\\": {\\\"rank\\\": 7}\"}", UINT32_MAX},
		{"{\"distributedInfo\": {\"rank\": 4294967295}}", UINT32_MAX},
		{"{\"distributedInfo\": {\"rank\": -1}}", UINT32_MAX},
		{"{\"distributedInfo\": [{\"rank\": 2}]}", UINT32_MAX},
		{"{\"distributedInfo\": {\"rank\": ", UINT32_MAX},
		{"{\"distributedInfo\"", UINT32_MAX},
		{"", UINT32_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
		size_t length = strlen(files[i].text);
		uint32_t rank = UINT32_MAX;
		char path[32];

		assert_true(fd >= 0);
		assert_int_equal(write(fd, files[i].text, length), length);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		assert_int_equal(kineto_rank(path, &rank), files[i].rank != UINT32_MAX);
		assert_int_equal(rank, files[i].rank);
	}
}

/* A second document and the like, in whatever windows they come: space alone is no loss. */
static void test_bytes_behind_the_end(void **state _unused_)
{
	static const struct {
		const char *text;
		unsigned behind;
	} files[] = {
		{"{\"traceEvents\": [" EVENT("a", "1") "]} \n \n", 0},
		{"[" EVENT("a", "1") "]\n", 0},
		{"{\"traceEvents\": [" EVENT("a", "1") "]}\n{\"traceEvents\": []}\n", 20},
		{"[" EVENT("a", "1") "] }  x ", 5},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		for (size_t step = 1; step < 200; step++) {
			_cleanup_trace_ struct trace *trace = NULL;

			assert_int_equal(kineto_parse_text(&trace, files[i].text,
						 strlen(files[i].text), step, WINDOW, true),
				0);
			assert_int_equal(trace->events.count, 1);
			assert_int_equal(trace->damage.skipped_bytes, files[i].behind);
			assert_false(trace->damage.truncated);
		}
	}
}

static void test_what_is_no_trace(void **state _unused_)
{
	static const char *const files[] = {"", " ", "{}", "[1, 2]", "hello",
		"{\"traceEvents\": 5}", "{\"traceEvents\": }",
		"{\"schema\": \"1.0.1\", \"nodes\": [{\"id\": 1}]}", "\x1f\x8b", "{\"traceEvents\"",
		"[[[[", "{\"a\":{\"b\":"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct trace *trace = NULL;

		assert_int_equal(
			kineto_parse_text(&trace, files[i], strlen(files[i]), 7, WINDOW, true),
			-ENODATA);
		assert_null(trace);
	}
}

static void test_no_events(void **state _unused_)
{
	_cleanup_trace_ struct trace *trace = read_events("");

	assert_int_equal(trace->events.count, 0);
	assert_int_equal(trace->tracks.count, 0);
}

static void test_depth(void **state _unused_)
{
	const size_t depth = 1000000;
	_cleanup_strbuf_ struct strbuf events = {0};
	_cleanup_trace_ struct trace *trace = NULL;

	strbuf_add(&events, EVENT("a", "1") ",{\"ph\": \"X\", \"name\": \"deep\", \"ts\": 2, "
					    "\"args\": {\"x\": ");
	memset(strbuf_extend(&events, depth), '[', depth);
	memset(strbuf_extend(&events, depth), ']', depth);
	strbuf_add(&events, "}}," EVENT("b", "3") ",");
	memset(strbuf_extend(&events, depth), '{', depth);
	strbuf_add(&events, EVENT("c", "4"));
	trace = read_events(strbuf_cstr(&events));
	assert_int_equal(trace->events.count, 4);
	assert_string_equal(row_name(trace, 1), "deep");
	assert_string_equal(row_name(trace, 3), "c");
}

static void test_large_name(void **state _unused_)
{
	const size_t length = 1 << 20;
	_cleanup_strbuf_ struct strbuf events = {0};
	_cleanup_trace_ struct trace *trace = NULL;

	strbuf_add(&events, "{\"ph\": \"X\", \"ts\": 1, \"name\": \"");
	memset(strbuf_extend(&events, length), 'n', length);
	strbuf_add(&events, "\"}," EVENT("after", "2"));
	trace = read_events(strbuf_cstr(&events));
	assert_int_equal(strlen(row_name(trace, 0)), length);
	assert_string_equal(row_name(trace, 1), "after");
}

/* Larger than any window: lost, and said; what follows is not. */
static void test_event_beyond_the_window(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_trace_ struct trace *trace = NULL;

	strbuf_add(&text, "{\"traceEvents\": [" EVENT("a", "1") ",{\"ph\": \"X\", \"name\": \"");
	memset(strbuf_extend(&text, 3 * WINDOW), 'n', 3 * WINDOW);
	strbuf_add(&text, "\", \"ts\": 2}," EVENT("b", "3") "]}");
	assert_int_equal(kineto_parse_text(&trace, text.data, text.length, 4096, WINDOW, false), 0);
	assert_int_equal(trace->events.count, 2);
	assert_string_equal(row_name(trace, 1), "b");
	assert_int_equal(trace->damage.skipped_events, 1);
	assert_true(trace->damage.skipped_bytes > 3 * WINDOW);
}

static void test_many_threads(void **state _unused_)
{
	const int threads = 100000;
	_cleanup_strbuf_ struct strbuf events = {0};
	_cleanup_trace_ struct trace *trace = NULL;

	for (int i = 0; i < 2 * threads; i++)
		strbuf_addf(&events, "%s{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":1}",
			i ? "," : "", i % threads / 1000, i % threads, 2 * threads - i);
	trace = read_events(strbuf_cstr(&events));
	assert_int_equal(trace->tracks.count, threads);
	assert_int_equal(trace->tracks.items[99999].tid, 99999);
	assert_int_equal(trace->tracks.items[5].count, 2);
	assert_int_equal(trace->rows.items[trace->tracks.items[5].first], threads + 5);
}

/* Rows of a thread are by start, longer ones first, whatever order the file has. */
static void test_order_of_rows(void **state _unused_)
{
	uint32_t seed = 1;

	for (int round = 0; round < 50; round++) {
		_cleanup_strbuf_ struct strbuf events = {0};
		_cleanup_trace_ struct trace *trace = NULL;

		for (int i = 0; i < 3 + round * 5; i++) {
			seed = seed * 1664525 + 1013904223;
			strbuf_addf(&events,
				"%s{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":%u}",
				i ? "," : "", round % 2 ? (seed >> 8) % 40 : (unsigned)i % 17,
				(seed >> 20) % 4);
		}
		trace = read_events(strbuf_cstr(&events));
		assert_int_equal(trace->rows.count, 3 + round * 5);
		for (size_t i = 1; i < trace->rows.count; i++) {
			uint32_t a = trace->rows.items[i - 1], b = trace->rows.items[i];
			const struct trace_event *before = row(trace, a), *after = row(trace, b);

			assert_true(before->start_ns <= after->start_ns);
			if (before->start_ns < after->start_ns)
				continue;
			assert_true(before->duration_ns >= after->duration_ns);
			if (before->duration_ns == after->duration_ns)
				assert_true(a < b);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_operator),
		cmocka_unit_test(test_device_work),
		cmocka_unit_test(test_moments_tracks_flows_counters),
		cmocka_unit_test(test_arguments_that_are_not_kept),
		cmocka_unit_test(test_arrows_to_the_backward_pass_are_kept),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_commas),
		cmocka_unit_test(test_spaces_that_differ),
		cmocka_unit_test(test_bytes_in_names),
		cmocka_unit_test(test_bytes_in_arguments),
		cmocka_unit_test(test_events_that_are_broken),
		cmocka_unit_test(test_last_event_is_broken),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_other_shapes_of_files),
		cmocka_unit_test(test_rank_of_a_file),
		cmocka_unit_test(test_bytes_behind_the_end),
		cmocka_unit_test(test_what_is_no_trace),
		cmocka_unit_test(test_no_events),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_large_name),
		cmocka_unit_test(test_event_beyond_the_window),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_order_of_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
