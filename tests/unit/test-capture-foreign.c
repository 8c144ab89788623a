/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces that sonde's writer would not write, packet by packet: other recorders' habits, lost
 * packets, other clocks, and files that try to use up memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/macros.h"
#include "capture-example.h"
#include "capture/fields.h"
#include "capture/protobuf.h"
#include "capture/trace_rows.h"

static struct strbuf trace, text;
static struct capture_read_result result;
static struct errmsg err;

static int start_over(void **state)
{
	strbuf_clear(&trace);
	strbuf_clear(&text);
	return 0;
}

static int clean_up(void **state)
{
	strbuf_done(&trace);
	strbuf_done(&text);
	return 0;
}

static int read_trace(void)
{
	err.text[0] = '\0';
	return capture_read_memory(
		trace.data, trace.length, "x", &text_visitor, &text, &result, &err);
}

static void expect_text(const char *expected)
{
	if (read_trace() != 0)
		fail_msg("%s", err.text);
	assert_string_equal(strbuf_cstr(&text), expected);
}

static void expect_corrupt(const char *cause)
{
	assert_int_equal(read_trace(), -EBADMSG);
	if (!strstr(err.text, cause))
		fail_msg("%s", err.text);
}

/* Packets begin with a sequence id and flags. */
static size_t begin(uint32_t sequence, uint32_t flags)
{
	size_t packet = pb_begin(&trace, TRACE_PACKET);

	pb_put_u64(&trace, PACKET_SEQUENCE_ID, sequence);
	if (flags)
		pb_put_u64(&trace, PACKET_SEQUENCE_FLAGS, flags);
	return packet;
}

static void end(size_t packet)
{
	pb_end(&trace, packet);
}

static void put_string(uint32_t list, uint64_t iid, const char *string)
{
	size_t entry = pb_begin(&trace, list);

	pb_put_u64(&trace, STRING_IID, iid);
	pb_put_bytes(&trace, STRING_BYTES, string, strlen(string));
	pb_end(&trace, entry);
}

static void put_frame(uint64_t iid, uint64_t function, uint64_t mapping)
{
	size_t entry = pb_begin(&trace, INTERNED_FRAMES);

	pb_put_u64(&trace, FRAME_IID, iid);
	pb_put_u64(&trace, FRAME_FUNCTION, function);
	pb_put_u64(&trace, FRAME_MAPPING, mapping);
	pb_end(&trace, entry);
}

static void put_callstack(uint64_t iid, uint64_t first, uint64_t second)
{
	size_t entry = pb_begin(&trace, INTERNED_CALLSTACKS);

	pb_put_u64(&trace, CALLSTACK_IID, iid);
	pb_put_u64(&trace, CALLSTACK_FRAMES, first);
	pb_put_u64(&trace, CALLSTACK_FRAMES, second);
	pb_end(&trace, entry);
}

static void put_mapping(uint64_t iid, const uint64_t *components, size_t count)
{
	size_t entry = pb_begin(&trace, INTERNED_MAPPINGS);

	pb_put_u64(&trace, MAPPING_IID, iid);
	for (size_t i = 0; i < count; i++)
		pb_put_u64(&trace, MAPPING_PATH, components[i]);
	pb_end(&trace, entry);
}

static void put_sample(uint32_t sequence, uint64_t time, uint64_t callstack)
{
	size_t packet = begin(sequence, SEQUENCE_NEEDS_STATE), sample;

	pb_put_u64(&trace, PACKET_TIMESTAMP, time);
	sample = pb_begin(&trace, PACKET_PERF_SAMPLE);
	pb_put_u64(&trace, PERF_SAMPLE_PID, 1);
	if (callstack)
		pb_put_u64(&trace, PERF_SAMPLE_CALLSTACK, callstack);
	pb_end(&trace, sample);
	end(packet);
}

/* Users before what they use, iids with gaps, and huge ones. */
static void test_any_order_any_iid(void **state)
{
	size_t packet = begin(1, SEQUENCE_CLEARED), interned;

	interned = pb_begin(&trace, PACKET_INTERNED_DATA);
	put_callstack(UINT64_MAX, 1ULL << 40, 3);
	put_frame(3, 77, 5);
	put_frame(1ULL << 40, 1000000, 9);
	put_mapping(5, (const uint64_t[]){2, 900}, 2);
	put_string(INTERNED_MAPPING_PATHS, 900, "lib.so");
	put_string(INTERNED_MAPPING_PATHS, 2, "usr");
	put_string(INTERNED_FUNCTION_NAMES, 77, "f");
	pb_end(&trace, interned);
	end(packet);
	put_sample(1, 5, UINT64_MAX);
	expect_text("mapping 1 path=\"/usr/lib.so\" build_id=\n"
		    "frame 1 function=\"f\" mapping=1 rel_pc=0 kind=1 source=- line=0\n"
		    "frame 2 function=- mapping=0 rel_pc=0 kind=1 source=- line=0\n"
		    "callstack 1 complete 2 1\n"
		    "sample time=5 1/0 cpu=0 mode=2 callstack=1\n");
	assert_int_equal(result.skipped_packets, 0);
	assert_int_equal(result.packets, 2);
}

static void test_packed_frame_ids(void **state)
{
	size_t packet = begin(1, SEQUENCE_CLEARED), interned, stack, ids;

	interned = pb_begin(&trace, PACKET_INTERNED_DATA);
	put_frame(1, 0, 0);
	put_frame(200, 0, 0);
	stack = pb_begin(&trace, INTERNED_CALLSTACKS);
	pb_put_u64(&trace, CALLSTACK_IID, 1);
	ids = pb_begin(&trace, CALLSTACK_FRAMES);
	pb_put_varint(&trace, 200);
	pb_put_varint(&trace, 1);
	pb_end(&trace, ids);
	pb_end(&trace, stack);
	pb_end(&trace, interned);
	end(packet);
	assert_int_equal(read_trace(), 0);
	assert_non_null(strstr(text.data, "callstack 1 complete 2 1\n"));
}

/* A stack with a missing frame is no stack, and samples of it are counted, not guessed. */
static void test_missing_state(void **state)
{
	size_t packet = begin(1, SEQUENCE_CLEARED), interned;

	interned = pb_begin(&trace, PACKET_INTERNED_DATA);
	put_frame(1, 0, 0);
	put_callstack(1, 1, 2);
	put_callstack(2, 1, 1);
	pb_end(&trace, interned);
	end(packet);
	put_sample(1, 1, 1);
	put_sample(1, 2, 2);
	put_sample(1, 3, 3);
	put_sample(2, 4, 2); /* another sequence, without a beginning */
	packet = begin(1, 0);
	pb_put_u64(&trace, PACKET_PREVIOUS_DROPPED, true);
	end(packet);
	put_sample(1, 5, 2);
	end(begin(1, SEQUENCE_CLEARED));
	put_sample(1, 6, 2);
	put_sample(1, 7, 0);
	expect_text("frame 1 function=- mapping=0 rel_pc=0 kind=1 source=- line=0\n"
		    "callstack 1 complete 1 1\n"
		    "sample time=2 1/0 cpu=0 mode=2 callstack=1\n"
		    "sample time=7 1/0 cpu=0 mode=2 callstack=0\n");
	assert_int_equal(result.skipped_packets, 6);
}

static void put_clock(uint32_t id, uint64_t time, uint64_t unit_ns)
{
	size_t clock = pb_begin(&trace, SNAPSHOT_CLOCKS);

	pb_put_u64(&trace, CLOCK_ENTRY_ID, id);
	pb_put_u64(&trace, CLOCK_ENTRY_TIMESTAMP, time);
	if (unit_ns)
		pb_put_u64(&trace, CLOCK_ENTRY_UNIT_NS, unit_ns);
	pb_end(&trace, clock);
}

static void put_default_clock(uint32_t sequence, uint32_t clock)
{
	size_t packet = begin(sequence, SEQUENCE_CLEARED);
	size_t defaults = pb_begin(&trace, PACKET_DEFAULTS);

	pb_put_u64(&trace, DEFAULTS_TIMESTAMP_CLOCK, clock);
	pb_end(&trace, defaults);
	end(packet);
}

/* BOOTTIME is the default, a sequence may have a clock of its own, REALTIME is known from another.
 */
static void test_clocks(void **state)
{
	size_t packet = begin(1, SEQUENCE_CLEARED), snapshot;

	snapshot = pb_begin(&trace, PACKET_CLOCK_SNAPSHOT);
	put_clock(CLOCK_ID_BOOTTIME, 5000, 0);
	put_clock(CLOCK_ID_MONOTONIC, 4000, 0);
	put_clock(CLOCK_ID_REALTIME, 1000000, 0);
	put_clock(70, 3, 1000); /* microseconds */
	pb_end(&trace, snapshot);
	end(packet);
	put_sample(1, 5010, 0);
	put_default_clock(1, 70);
	put_sample(1, 4, 0);
	put_default_clock(1, CLOCK_ID_REALTIME);
	put_sample(1, 1000030, 0);
	put_default_clock(2, 70); /* unknown in this sequence */
	put_sample(2, 9, 0);
	packet = begin(1, 0); /* tied to CLOCK_MONOTONIC by what is known of BOOTTIME */
	snapshot = pb_begin(&trace, PACKET_CLOCK_SNAPSHOT);
	put_clock(CLOCK_ID_BOOTTIME, 10000, 0);
	put_clock(200, 1, 0);
	pb_end(&trace, snapshot);
	end(packet);
	put_default_clock(1, 200);
	put_sample(1, 2, 0);
	expect_text("sample time=4010 1/0 cpu=0 mode=2 callstack=0\n"
		    "sample time=5000 1/0 cpu=0 mode=2 callstack=0\n"
		    "sample time=4030 1/0 cpu=0 mode=2 callstack=0\n"
		    "sample time=9 1/0 cpu=0 mode=2 callstack=0\n"
		    "sample time=9001 1/0 cpu=0 mode=2 callstack=0\n");
}

static void test_inline_stack_sample(void **state)
{
	size_t packet = begin(1, SEQUENCE_CLEARED), sample, context;

	pb_put_u64(&trace, PACKET_TIMESTAMP, 1);
	sample = pb_begin(&trace, PACKET_STACK_SAMPLE);
	context = pb_begin(&trace, STACK_SAMPLE_TASK);
	pb_put_u64(&trace, TASK_PID, 10);
	pb_put_u64(&trace, TASK_TID, 11);
	pb_end(&trace, context);
	context = pb_begin(&trace, STACK_SAMPLE_EXECUTION);
	pb_put_u64(&trace, EXECUTION_CPU, 3);
	pb_put_u64(&trace, EXECUTION_MODE, STACK_MODE_KERNEL);
	pb_end(&trace, context);
	pb_end(&trace, sample);
	end(packet);
	packet = begin(1, 0); /* a context that is not there */
	sample = pb_begin(&trace, PACKET_STACK_SAMPLE);
	pb_put_u64(&trace, STACK_SAMPLE_TASK_IID, 1);
	pb_end(&trace, sample);
	end(packet);
	expect_text("sample time=1 10/11 cpu=3 mode=1 callstack=0\n");
	assert_int_equal(result.skipped_packets, 1);
}

/* Perfetto's marks of lost samples, and packets of other data sources, are no samples. */
static void test_not_samples(void **state)
{
	static const uint32_t marks[] = {PERF_SAMPLE_RECORDS_LOST, PERF_SAMPLE_SKIPPED_REASON};

	for (unsigned i = 0; i < 2; i++) {
		size_t packet = begin(1, SEQUENCE_CLEARED);
		size_t sample = pb_begin(&trace, PACKET_PERF_SAMPLE);

		pb_put_u64(&trace, marks[i], 3);
		pb_end(&trace, sample);
		end(packet);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		size_t packet = begin(i, 0);

		pb_put_text(&trace, 900, "something else");
		end(packet);
	}
	expect_text("");
	assert_int_equal(result.packets, 1002);
}

/* Symbols are found by path and build id, wherever the packet comes from. */
static void test_foreign_symbols(void **state)
{
	static const char *const paths[] = {"/lib.so", "/[kernel]", "/unknown"};
	size_t packet = begin(1, SEQUENCE_CLEARED), interned;

	interned = pb_begin(&trace, PACKET_INTERNED_DATA);
	put_string(INTERNED_MAPPING_PATHS, 1, "lib.so");
	put_string(INTERNED_MAPPING_PATHS, 2, "[kernel]");
	put_mapping(1, (const uint64_t[]){1}, 1);
	put_mapping(2, (const uint64_t[]){2}, 1);
	pb_end(&trace, interned);
	end(packet);
	for (unsigned i = 0; i < 3; i++) {
		size_t symbols, address;

		packet = pb_begin(&trace, TRACE_PACKET);
		symbols = pb_begin(&trace, PACKET_MODULE_SYMBOLS);
		address = pb_begin(&trace, MODULE_ADDRESSES);
		pb_put_u64(&trace, ADDRESS_VALUE, i);
		pb_end(&trace, address);
		pb_put_text(&trace, MODULE_PATH, paths[i]);
		pb_end(&trace, symbols);
		end(packet);
	}
	expect_text("mapping 1 path=\"/lib.so\" build_id=\n"
		    "mapping 2 path=\"[kernel]\" build_id=\n"
		    "symbols mapping=1 rel_pc=0\n"
		    "symbols mapping=2 rel_pc=0x1\n");
}

/* Puts what `trace` holds into one compressed packet. */
static void compress_trace(void)
{
	uLongf length = compressBound(trace.length);
	_cleanup_free_ char *deflated = malloc(length);
	size_t packet;

	assert_non_null(deflated);
	assert_int_equal(
		compress((Bytef *)deflated, &length, (Bytef *)trace.data, trace.length), Z_OK);
	strbuf_clear(&trace);
	packet = pb_begin(&trace, TRACE_PACKET);
	pb_put_bytes(&trace, PACKET_COMPRESSED, deflated, length);
	end(packet);
}

static void test_compressed_twice(void **state)
{
	end(begin(1, 0));
	compress_trace();
	compress_trace();
	expect_corrupt("at offset 0: a compressed packet holds another one");
}

static void test_bomb(void **state)
{
	size_t packet = begin(1, 0), size = (size_t)17 << 20;
	char *zeros = strbuf_extend(&trace, size);

	assert_non_null(zeros);
	memset(zeros, 0, size);
	end(packet);
	compress_trace();
	assert_true(trace.length < 100000);
	expect_corrupt("larger than 16 MiB");
}

static void test_cut_inside_compressed(void **state)
{
	end(begin(1, 0));
	strbuf_add(&trace, "\x0a\x7f");
	compress_trace();
	expect_corrupt("the packets compressed in it are damaged");
}

static void test_zstd(void **state)
{
	size_t packet = begin(1, 0);

	pb_put_text(&trace, PACKET_ZSTD, "whatever");
	end(packet);
	assert_int_equal(read_trace(), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "zstd"));
}

static void test_too_many_sequences(void **state)
{
	for (uint32_t i = 1; i <= 65537; i++)
		end(begin(i, SEQUENCE_CLEARED));
	expect_corrupt("more than 65536 packet sequences");
}

static void test_huge_packet(void **state)
{
	end(begin(1, 0));
	pb_put_varint(&trace, PB_BYTES(TRACE_PACKET));
	pb_put_varint(&trace, UINT64_MAX);
	expect_corrupt("larger than 64 MiB");
	assert_int_equal(result.packets, 1);
}

static void test_bad_fields(void **state)
{
	static const char *const bad[] = {"\x03", "\x04", "\x06", "\x07", "\x01 too short",
		"\x0a\x7f cut", "\x05", "\x80", "\x82\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t packet;

		start_over(state);
		end(begin(1, 0));
		packet = begin(1, 0);
		strbuf_add(&trace, bad[i]);
		end(packet);
		expect_corrupt("at offset 4: a packet's fields do not decode");
	}
}

#define test_case(function) cmocka_unit_test_setup(function, start_over)

/* ---- GPUs, and counters that are named by their tracks ---- */

static int show_work(void *context, const struct capture_device_work *work)
{
	strbuf_addf(context, "work %s of %s, pid %u, queue %u: %llu to %llu, id %llu\n", work->name,
		work->device, work->pid, work->queue, (unsigned long long)work->start_ns,
		(unsigned long long)work->end_ns, (unsigned long long)work->correlation);
	return 0;
}

static int show_launch(void *context, const struct capture_launch *launch)
{
	strbuf_addf(context, "launch by %u/%u at %llu, id %llu\n", launch->pid, launch->tid,
		(unsigned long long)launch->time_ns, (unsigned long long)launch->correlation);
	return 0;
}

static int show_counter(void *context, const struct capture_counter *counter)
{
	strbuf_addf(context, "%s of %u: %g\n", counter->name, counter->pid, counter->value);
	return 0;
}

static void put_track(uint64_t uuid, uint64_t parent, uint32_t kind, const char *name)
{
	size_t packet = begin(1, 0), track = pb_begin(&trace, PACKET_TRACK_DESCRIPTOR), owner;

	pb_put_u64(&trace, TRACK_UUID, uuid);
	if (parent)
		pb_put_u64(&trace, TRACK_PARENT, parent);
	if (name)
		pb_put_text(&trace, TRACK_NAME, name);
	owner = pb_begin(&trace, kind);
	if (kind != TRACK_COUNTER)
		pb_put_u64(&trace, THREAD_PID, 100);
	if (kind == TRACK_THREAD)
		pb_put_u64(&trace, THREAD_TID, 101);
	pb_end(&trace, owner);
	pb_end(&trace, track);
	end(packet);
}

static size_t begin_event(uint64_t type, uint64_t track)
{
	size_t event = pb_begin(&trace, PACKET_TRACK_EVENT);

	pb_put_u64(&trace, EVENT_TYPE, type);
	pb_put_u64(&trace, EVENT_TRACK, track);
	return event;
}

static void test_gpus_and_counters(void **state)
{
	static const struct capture_visitor visitor = {
		.device_work = show_work, .launch = show_launch, .counter = show_counter};
	size_t packet = begin(1, SEQUENCE_CLEARED), part, inner;

	part = pb_begin(&trace, PACKET_INTERNED_DATA);
	put_string(INTERNED_SPECIFICATIONS, 4, "gemm");
	inner = pb_begin(&trace, INTERNED_CONTEXTS);
	pb_put_u64(&trace, CONTEXT_IID, 3);
	pb_put_u64(&trace, CONTEXT_PID, 100);
	pb_end(&trace, inner);
	pb_end(&trace, part);
	end(packet);
	put_track(10, 0, TRACK_PROCESS, NULL);
	put_track(11, 0, TRACK_THREAD, NULL);
	put_track(12, 10, TRACK_COUNTER, "power");
	/* a slice that submits two stages, one field packed, one not */
	packet = begin(1, 0);
	pb_put_u64(&trace, PACKET_TIMESTAMP, 500);
	part = begin_event(CAPTURE_RANGE_BEGIN, 11);
	inner = pb_begin(&trace, EVENT_GPU_CORRELATION);
	pb_put_u64(&trace, GPU_CORRELATION_SUBMISSIONS, 7);
	pb_put_bytes(&trace, GPU_CORRELATION_SUBMISSIONS, "\x08", 1);
	pb_end(&trace, inner);
	pb_end(&trace, part);
	end(packet);
	packet = begin(1, 0);
	pb_put_u64(&trace, PACKET_TIMESTAMP, 900);
	part = pb_begin(&trace, PACKET_GPU_STAGE);
	pb_put_u64(&trace, STAGE_EVENT_ID, 7);
	pb_put_u64(&trace, STAGE_DURATION, 50);
	pb_put_u64(&trace, STAGE_CONTEXT, 3);
	pb_put_u64(&trace, STAGE_GPU, 1);
	pb_put_u64(&trace, STAGE_QUEUE_IID, 9);
	pb_put_u64(&trace, STAGE_NAME_IID, 4);
	pb_end(&trace, part);
	end(packet);
	packet = begin(1, 0);
	pb_put_u64(&trace, PACKET_TIMESTAMP, 920);
	part = begin_event(EVENT_TYPE_COUNTER, 12);
	pb_put_u64(&trace, EVENT_COUNTER_INT, (uint64_t)-3);
	pb_end(&trace, part);
	end(packet);
	(void)state;
	assert_int_equal(
		capture_read_memory(trace.data, trace.length, "x", &visitor, &text, &result, &err),
		0);
	assert_string_equal(strbuf_cstr(&text),
		"launch by 100/101 at 500, id 7\nlaunch by 100/101 at 500, id 8\n"
		"work gemm of GPU 1, pid 100, queue 9: 900 to 950, id 7\npower of 100: -3\n");
}

/* Rows of a trace that refer to what is not there. */
static void test_rows_without_what_they_refer_to(void **state)
{
	size_t packet = begin(1, 0), part, inner;

	part = pb_begin(&trace, PACKET_TRACK_DESCRIPTOR);
	pb_put_u64(&trace, TRACK_UUID, 5);
	pb_put_u64(&trace, TRACK_ROW_TRACK, 1);
	pb_end(&trace, part);
	end(packet);
	packet = begin(1, SEQUENCE_CLEARED);
	part = pb_begin(&trace, PACKET_DEFAULTS);
	inner = pb_begin(&trace, DEFAULTS_TRACK_EVENT);
	pb_put_u64(&trace, EVENT_DEFAULT_TRACK, 5);
	pb_end(&trace, inner);
	pb_end(&trace, part);
	end(packet);
	for (unsigned i = 0; i < 2; i++) { /* all fields; then none is told */
		packet = begin(1, 0);
		part = pb_begin(&trace, PACKET_TRACK_EVENT);
		pb_put_u64(&trace, EVENT_TYPE, CAPTURE_ROW_BEGIN);
		pb_put_u64(&trace, EVENT_NAME_IID, 77);
		inner = pb_begin(&trace, EVENT_SONDE_ROW);
		if (i == 0)
			pb_put_u64(&trace, ROW_LAYOUT, UINT64_MAX);
		pb_put_u64(&trace, ROW_OTHERS, 99);
		pb_end(&trace, inner);
		pb_end(&trace, part);
		end(packet);
	}
	(void)state;
	expect_text("");
	assert_int_equal(result.skipped_packets, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_case(test_any_order_any_iid),
		test_case(test_packed_frame_ids),
		test_case(test_missing_state),
		test_case(test_clocks),
		test_case(test_inline_stack_sample),
		test_case(test_not_samples),
		test_case(test_foreign_symbols),
		test_case(test_compressed_twice),
		test_case(test_bomb),
		test_case(test_cut_inside_compressed),
		test_case(test_zstd),
		test_case(test_too_many_sequences),
		test_case(test_huge_packet),
		test_case(test_bad_fields),
		test_case(test_gpus_and_counters),
		test_case(test_rows_without_what_they_refer_to),
	};

	return cmocka_run_group_tests(tests, NULL, clean_up);
}
