/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to a capture is what is read from it; equal things are stored once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "capture-example.h"
#include "capture/protobuf.h"

static char path[64];

static int make_path(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/test-capture.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
	return unlink(path);
}

static struct capture_writer *open_writer(bool uncompressed)
{
	struct capture_writer_options options = {
		.size = sizeof(options), .uncompressed = uncompressed};
	struct capture_writer *writer = NULL;
	struct errmsg err;

	assert_int_equal(capture_writer_open(&writer, path, &options, &err), 0);
	assert_int_equal(capture_writer_name(writer, &err), 0);
	return writer;
}

static void read_text(struct strbuf *text)
{
	struct capture_read_result read;
	struct errmsg err = {"no message"};

	if (capture_read(path, &text_visitor, text, &read, &err) != 0)
		fail_msg("%s", err.text);
	assert_false(read.truncated);
	assert_int_equal(read.skipped_packets, 0);
}

/* The text of the example, made from what is written and not from what is read. */
static void expect_things(struct strbuf *text)
{
	static const char *const repaired_cmdline[] = {"python3", "", "bad\xef\xbf\xbd name"};
	struct capture_process first = example_processes[0];

	first.cmdline = repaired_cmdline;
	text_session(text, &example_session);
	text_process(text, &first);
	text_process(text, &example_processes[1]);
	text_process(text, &example_processes[2]);
	for (unsigned i = 0; i < 3; i++)
		text_thread(text, &example_threads[i]);
	for (unsigned i = 0; i < EXAMPLE_MAPPINGS; i++)
		text_mapping(text, i + 1, &example_mappings[i]);
	for (unsigned i = 0; i < EXAMPLE_FRAMES; i++)
		text_frame(text, i + 1, &example_frames[i]);
}

static void expect_waits(struct strbuf *text)
{
	static const char *const reasons[] = {"", "cpu", "lock", "gil", "poll", "sleep", "pipe",
		"socket", "disk", "page_fault", "child", "stopped", "other", "unseen", "file_lock",
		"unknown"};
	static const char *const gils[] = {"none", "held", "waiting", "released"};

	for (unsigned wait = 1; wait < ARRAY_SIZE(reasons); wait++) {
		strbuf_addf(text, "sample time=%llu 4242/4300 cpu=%u mode=1 callstack=%u",
			8200000000002ULL + wait, wait, wait == 5 ? 0 : wait % 8 + 1);
		if (wait % 4)
			strbuf_addf(text, " gil=%s/%u", gils[wait % 4], wait == 3 ? 4242 : 0);
		strbuf_addf(text, " %s=%u\n", reasons[wait], wait * 1000000);
	}
}

static void expect_rest(struct strbuf *text)
{
	static const capture_id frames[] = {1, 2, 3, 4, 5, 6, 7, 1};

	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++)
		text_callstack(text, stop + 1, frames, 1 + stop % 8, (enum wire_stop)stop,
			(enum wire_python)(stop % WIRE_PYTHON_USER_MODE));
	strbuf_add(text,
		"sample time=1000000000000 4242/4242 cpu=0 mode=1 callstack=1\n"
		"sample time=1000000000000 4242/4300 cpu=21 mode=2 callstack=2 gil=held/0\n"
		"sample time=1000010000000 4242/4242 cpu=42 mode=2 callstack=0 gil=waiting/4300\n"
		"sample time=8200000000000 4242/4300 cpu=63 mode=1 callstack=4 gil=released/0\n"
		"sample time=1000000005000 4242/4242 cpu=84 mode=2 callstack=5\n"
		"sample time=8200000000001 4242/4300 cpu=105 mode=2 callstack=6 gil=held/0\n"
		"sample time=999999999500 4242/4242 cpu=126 mode=1 callstack=7 gil=waiting/0\n");
	expect_waits(text);
	strbuf_add(text,
		"symbols mapping=2 rel_pc=0x1234 function=\"inlined\xef\xbf\xbd\" "
		"file=\"/src/a.h\" "
		"line=7 function=\"outer\" file=- line=0 function=\"\" file=\"\" line=1\n"
		"symbols mapping=4 rel_pc=0x9 function=\"inlined\xef\xbf\xbd\" file=\"/src/a.h\" "
		"line=7\n"
		"symbols mapping=8 rel_pc=0x9\n"
		"symbols mapping=10 rel_pc=0xa\n");
}

static void check_round_trip(bool uncompressed, bool stack_sample)
{
	_cleanup_strbuf_ struct strbuf expected = {0}, text = {0};

	assert_int_equal(write_example_file(path, uncompressed, stack_sample), 0);
	read_text(&text);
	expect_things(&expected);
	expect_rest(&expected);
	assert_true(text.length > expected.length);
	assert_memory_equal(text.data, expected.data, expected.length);
	assert_non_null(strstr(text.data,
		"symbols mapping=2 rel_pc=0xffffffffffffffff function=\"outer\" file=- line=0\n"));
	assert_non_null(strstr(text.data, "stats end=1000000000001 samples=7 lost=2 complete=0 "
					  "no_user_stack=1000 no_mapping=2000 "));
	assert_non_null(strstr(text.data,
		"compat=10000 new_mapping=11000 other_stack=12000 user_frames=11 "
		"kernel_frames=12 bpf=13/14 in_user_space=15 cpu=16 rss=17 start=27 end=28 "
		"tables=18/19/20 bytes=21"));
	assert_non_null(strstr(text.data,
		" loss=\"sample_ring\" cpu=3 count=17 loss=\"sideband_ring\" cpu=4294967295 "
		"count=18446744073709551615 note=\"GPU energy is missing: no NVML.\" note=\"\" "
		"exit=137 complete=1\n"));
	assert_non_null(strstr(text.data, " exit=-1 complete=0\n"));
	assert_non_null(strstr(text.data, "symbols mapping=0 rel_pc=0x7f0000001000 "));
}

static void test_round_trip_plain(void **state)
{
	check_round_trip(true, false);
}

static void test_round_trip_compressed(void **state)
{
	check_round_trip(false, false);
}

static void test_round_trip_stack_sample(void **state)
{
	check_round_trip(true, true);
	check_round_trip(false, true);
}

/* Order apart: a file has interned things in the packet that first needs them. */
static size_t count_line(const struct strbuf *text, const char *line, size_t length)
{
	const char *at = strbuf_cstr(text);
	size_t count = 0;

	for (; *at; at += strcspn(at, "\n") + 1)
		count += strncmp(at, line, length) == 0 && at[length] == '\n';
	return count;
}

/* A visitor in place of a file is told what a reader of the file would be. */
static void test_a_writer_without_a_file(void **state)
{
	static const char *const kinds[] = {"mapping ", "frame ", "callstack ", "sample "};
	_cleanup_strbuf_ struct strbuf live = {0}, read = {0};
	struct capture_writer *writer;
	struct errmsg err;
	size_t compared = 0;
	capture_id id, frame = 1;

	assert_int_equal(capture_writer_open_live(&writer, &text_visitor, &live, &err), 0);
	assert_int_equal(write_example(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	assert_int_equal(write_example_file(path, true, false), 0);
	read_text(&read);
	for (const char *line = strbuf_cstr(&read); *line; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");

		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			if (strncmp(line, kinds[i], strlen(kinds[i])) != 0)
				continue;
			assert_int_equal(
				count_line(&live, line, length), count_line(&read, line, length));
			compared++;
		}
	}
	assert_true(compared > 30);

	/* Callstacks are told once, and again when they were forgotten. */
	capture_writer_forget_callstacks(writer);
	for (int round = 0; round < 2; round++) {
		strbuf_clear(&live);
		assert_int_equal(capture_writer_callstack(writer, &frame, 1, WIRE_STOP_COMPLETE,
					 WIRE_PYTHON_NONE, &id),
			0);
		assert_int_equal(id, 1);
		assert_int_equal(live.length > 0, round == 0);
	}
	assert_int_equal(capture_writer_close(writer, &err), 0);
}

static void test_interning(void **state)
{
	struct capture_writer *writer = open_writer(false);
	struct capture_mapping mapping = {"/a", (const uint8_t *)"\x01", 1},
			       other = {"/a", NULL, 0};
	struct capture_frame frame = {.function = "f", .mapping = 1, .rel_pc = 5, .kind = 1};
	capture_id ids[8];

	assert_int_equal(capture_writer_mapping(writer, &mapping, &ids[0]), 0);
	assert_int_equal(capture_writer_mapping(writer, &other, &ids[1]), 0);
	assert_int_equal(capture_writer_mapping(writer, &mapping, &ids[2]), 0);
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[2], 1);
	for (unsigned i = 0; i < 7; i++) {
		struct capture_frame changed = frame;

		changed.function = i == 1 ? "g" : i == 6 ? NULL : "f";
		changed.mapping += i == 2;
		changed.rel_pc += i == 3;
		changed.line = i == 4;
		changed.source_file = i == 5 ? "f" : NULL;
		assert_int_equal(capture_writer_frame(writer, &changed, &ids[i]), 0);
		assert_int_equal(ids[i], i + 1);
	}
	assert_int_equal(capture_writer_frame(writer, &frame, &ids[7]), 0);
	assert_int_equal(ids[7], 1);
	capture_writer_free(writer);
}

static void test_callstack_interning(void **state)
{
	struct capture_writer *writer = open_writer(false);
	capture_id frames[3] = {1, 2, 3}, id;

	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(
			capture_writer_callstack(writer, frames, 3, 0, WIRE_PYTHON_NONE, &id), 0);
		assert_int_equal(id, 1);
		assert_int_equal(
			capture_writer_callstack(writer, frames, 2, 0, WIRE_PYTHON_NONE, &id), 0);
		assert_int_equal(id, 2);
		assert_int_equal(capture_writer_callstack(
					 writer, frames, 3, WIRE_STOP_DEPTH, WIRE_PYTHON_NONE, &id),
			0);
		assert_int_equal(id, 3);
		assert_int_equal(
			capture_writer_callstack(writer, NULL, 0, 0, WIRE_PYTHON_NONE, &id), 0);
		assert_int_equal(id, 4);
	}
	capture_writer_free(writer);
}

static int count_callback(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	size_t *counts = context;

	counts[id - 1] = count;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(frames[i], 1 + (i * 7) % 1000);
	return 0;
}

/* Deep stacks over many frames, told in one go and over several flushes. */
static void test_deep_stacks(void **state)
{
	struct capture_writer *writer = open_writer(false);
	capture_id frames[WIRE_MAX_USER_FRAMES + WIRE_MAX_KERNEL_FRAMES], id;
	struct capture_visitor visitor = {.callstack = count_callback};
	size_t counts[ARRAY_SIZE(frames)] = {0};
	struct errmsg err;

	for (unsigned i = 0; i < 1000; i++) {
		struct capture_frame frame = {.rel_pc = i, .kind = 1};

		assert_int_equal(capture_writer_frame(writer, &frame, &id), 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(frames); i++) {
		frames[i] = 1 + (i * 7) % 1000;
		assert_int_equal(
			capture_writer_callstack(writer, frames, i + 1, 0, WIRE_PYTHON_NONE, &id),
			0);
		assert_int_equal(
			capture_writer_sample(writer, &(struct capture_sample){.callstack = id}),
			0);
		if (i % 100 == 0)
			assert_int_equal(capture_writer_flush(writer, &err), 0);
	}
	assert_int_equal(capture_writer_close(writer, &err), 0);
	assert_int_equal(capture_read(path, &visitor, counts, NULL, &err), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(frames); i++)
		assert_int_equal(counts[i], i + 1);
}

static int check_long_name(void *context, const struct capture_thread *thread)
{
	size_t *expected = context;

	assert_int_equal(strlen(thread->name), *expected);
	*expected *= 3;
	return 0;
}

/* Packets on both sides of the sizes at which chunks are sealed and left plain. */
static void test_long_names(void **state)
{
	struct capture_visitor visitor = {.thread = check_long_name};
	_cleanup_free_ char *name = calloc(1, 2000000);
	size_t length = 10;
	struct errmsg err;

	assert_non_null(name);
	for (unsigned uncompressed = 0; uncompressed < 2; uncompressed++) {
		struct capture_writer *writer = open_writer(uncompressed);

		for (length = 10; length < 2000000; length *= 3) {
			struct capture_thread thread = {.pid = 1, .tid = 1, .name = name};

			memset(name, 'x', length);
			name[length] = '\0';
			assert_int_equal(capture_writer_thread(writer, &thread), 0);
		}
		assert_int_equal(capture_writer_close(writer, &err), 0);
		length = 10;
		assert_int_equal(capture_read(path, &visitor, &length, NULL, &err), 0);
		assert_true(length > 2000000);
	}
}

/* A sample of a known stack, in bytes of a plain capture. */
static void test_sample_size(void **state)
{
	struct capture_writer *writer = open_writer(true);
	capture_id frames[40], id = 0;
	uint64_t before;
	struct errmsg err;

	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(capture_writer_frame(
					 writer, &(struct capture_frame){.rel_pc = i}, &frames[i]),
			0);
	assert_int_equal(capture_writer_session(writer, &example_session), 0);
	assert_int_equal(capture_writer_callstack(writer, frames, 40, 0, WIRE_PYTHON_NONE, &id), 0);
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	before = capture_writer_bytes(writer);
	for (unsigned i = 0; i < 1000; i++) {
		struct capture_sample sample = {
			.time_ns = example_session.start_time_ns + (i + 1) * 10101010ULL,
			.pid = 4000000,
			.tid = 4000001,
			.cpu = 200,
			.mode = CAPTURE_MODE_USER,
			.callstack = id};

		assert_int_equal(capture_writer_sample(writer, &sample), 0);
	}
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	assert_in_range(capture_writer_bytes(writer) - before, 20000, 40000);
	capture_writer_close(writer, &err);
}

/* What was flushed is readable while the recording goes on. */
static void test_read_while_writing(void **state)
{
	struct capture_writer *writer = open_writer(false);
	_cleanup_strbuf_ struct strbuf first = {0}, second = {0};
	struct errmsg err;

	assert_int_equal(write_example_things(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	read_text(&first);
	assert_non_null(strstr(first.data, "frame 7 "));
	assert_int_equal(write_example_stacks(writer), 0);
	assert_int_equal(write_example_samples(writer), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
	read_text(&second);
	assert_memory_equal(first.data, second.data, first.length);
	assert_non_null(strstr(second.data, "sample time=999999999500 "));
}

static void test_without_session(void **state)
{
	struct capture_writer *writer = open_writer(false);
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_sample sample = {.time_ns = 12345, .pid = 1, .tid = 2, .mode = 2};
	struct errmsg err;

	assert_int_equal(capture_writer_sample(writer, &sample), 0);
	assert_int_equal(capture_writer_close(writer, &err), 0);
	read_text(&text);
	assert_string_equal(text.data, "sample time=12345 1/2 cpu=0 mode=2 callstack=0\n");
}

static int take_counts(void *context, const struct capture_sample *sample)
{
	struct capture_sample *last = context;

	*last = *sample;
	return 0;
}

/* Counts of samples, in both kinds of packets; none where none were made. */
static void test_counts_of_samples(void **state)
{
	static const struct capture_visitor visitor = {.sample = take_counts};
	struct capture_sample sample = {.time_ns = 12345,
		.pid = 1,
		.tid = 2,
		.mode = CAPTURE_MODE_USER,
		.cycles = 30303030,
		.instructions = 1ULL << 40};
	struct errmsg err;

	for (unsigned is_stack_sample = 0; is_stack_sample < 2; is_stack_sample++) {
		struct capture_writer_options options = {
			.size = sizeof(options), .stack_sample = is_stack_sample};
		struct capture_sample read = {0};
		struct capture_writer *writer;

		assert_int_equal(capture_writer_open(&writer, path, &options, &err), 0);
		assert_int_equal(capture_writer_name(writer, &err), 0);
		assert_int_equal(capture_writer_sample(writer, &sample), 0);
		assert_int_equal(capture_writer_close(writer, &err), 0);
		assert_int_equal(capture_read(path, &visitor, &read, NULL, &err), 0);
		assert_int_equal(read.cycles, sample.cycles);
		assert_int_equal(read.instructions, sample.instructions);
		assert_int_equal(read.gil, WIRE_GIL_NONE);
	}
}

static int stop_at_sample(void *context, const struct capture_sample *sample)
{
	return ++*(int *)context == 3 ? -ECANCELED : 0;
}

static int count_work(void *context, const struct capture_device_work *work)
{
	uint64_t *count = context;

	return work->correlation == ++*count && work->global_size[0] == 4096 ? 0 : -EILSEQ;
}

/* More in a second than there is time to deflate: the rest is plain, and all is read. */
static void test_more_than_is_deflated(void **state)
{
	static const struct capture_visitor visitor = {.device_work = count_work};
	struct capture_device_work work = {.kind = WIRE_DEVICE_KERNEL,
		.name = "k",
		.device = "d",
		.global_size = {4096, 1, 1}};
	const uint64_t count = 300000;
	struct capture_writer *writer = open_writer(false);
	uint64_t read = 0, raw_bytes;
	struct errmsg err;

	for (uint64_t i = 1; i <= count; i++) {
		work.correlation = i;
		work.start_ns = work.end_ns = work.queued_ns = work.launch_ns =
			i * 3000 + (1ULL << 50);
		assert_int_equal(capture_writer_device_work(writer, &work), 0);
	}
	assert_true(capture_writer_waiting(writer) > 0);
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	assert_int_equal(capture_writer_waiting(writer), 0);
	raw_bytes = capture_writer_bytes(writer);
	assert_int_equal(capture_writer_close(writer, &err), 0);
	assert_int_equal(capture_read(path, &visitor, &read, NULL, &err), 0);
	assert_int_equal(read, count);
	/* All deflated, as on a slow machine, are 3.7 MB, nothing deflated 25 MB. */
	assert_in_range(raw_bytes, 3000000, 25000000);
}

static void test_visitor_stops(void **state)
{
	struct capture_visitor visitor = {.sample = stop_at_sample};
	int samples = 0;

	assert_int_equal(write_example_file(path, false, false), 0);
	assert_int_equal(capture_read(path, &visitor, &samples, NULL, NULL), -ECANCELED);
	assert_int_equal(samples, 3);
}

static int watch_progress(void *context, uint64_t bytes, uint64_t total_bytes)
{
	uint64_t *last = context;

	assert_in_range(bytes, *last, total_bytes);
	*last = bytes;
	return 0;
}

static void test_progress(void **state)
{
	struct capture_visitor visitor = {.progress = watch_progress};
	struct capture_read_result read;
	uint64_t last = 0;

	assert_int_equal(write_example_file(path, false, false), 0);
	assert_int_equal(capture_read(path, &visitor, &last, &read, NULL), 0);
	assert_int_equal(last, read.bytes);
}

static void check_varint(uint64_t value, size_t length)
{
	_cleanup_strbuf_ struct strbuf bytes = {0};
	struct pb_cursor cursor;
	uint64_t back = ~value;

	pb_put_varint(&bytes, value);
	assert_int_equal(bytes.length, length);
	cursor = (struct pb_cursor){
		.at = (uint8_t *)bytes.data, .end = (uint8_t *)bytes.data + bytes.length};
	assert_int_equal(pb_read_varint(&cursor, &back), 1);
	assert_int_equal(back, value);
	cursor = (struct pb_cursor){
		.at = (uint8_t *)bytes.data, .end = (uint8_t *)bytes.data + bytes.length - 1};
	assert_int_equal(pb_read_varint(&cursor, &back), -EBADMSG);
}

static void test_varints(void **state)
{
	static const uint8_t overlong[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	struct pb_cursor cursor = {.at = overlong, .end = overlong + sizeof(overlong)};
	uint64_t value;

	check_varint(0, 1);
	check_varint(127, 1);
	check_varint(128, 2);
	check_varint(16383, 2);
	check_varint(16384, 3);
	check_varint(UINT32_MAX, 5);
	check_varint(UINT64_MAX, 10);
	assert_int_equal(pb_read_varint(&cursor, &value), -EBADMSG);
}

/* Nested messages on both sides of each length of a length. */
static void test_nesting(void **state)
{
	static const size_t sizes[] = {0, 1, 127, 128, 129, 16383, 16384, 70000, 3000000};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_strbuf_ struct strbuf out = {0};
		_cleanup_free_ char *content = calloc(1, sizes[i] + 1);
		size_t outer = pb_begin(&out, 1), inner = pb_begin(&out, 2000);
		struct pb_cursor cursor;
		struct pb_field field;

		assert_non_null(content);
		memset(content, 'a' + (int)i, sizes[i]);
		strbuf_add_bytes(&out, content, sizes[i]);
		pb_end(&out, inner);
		pb_end(&out, outer);
		cursor = (struct pb_cursor){
			.at = (uint8_t *)out.data, .end = (uint8_t *)out.data + out.length};
		assert_int_equal(pb_next(&cursor, &field), 1);
		assert_int_equal(field.tag, PB_BYTES(1));
		assert_ptr_equal(cursor.at, cursor.end);
		cursor = pb_cursor(field.bytes);
		assert_int_equal(pb_next(&cursor, &field), 1);
		assert_int_equal(field.tag, PB_BYTES(2000));
		assert_int_equal(field.bytes.length, sizes[i]);
		assert_memory_equal(field.bytes.at, content, sizes[i]);
		assert_int_equal(pb_next(&cursor, &field), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_plain),
		cmocka_unit_test(test_round_trip_compressed),
		cmocka_unit_test(test_round_trip_stack_sample),
		cmocka_unit_test(test_a_writer_without_a_file),
		cmocka_unit_test(test_interning),
		cmocka_unit_test(test_callstack_interning),
		cmocka_unit_test(test_deep_stacks),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_sample_size),
		cmocka_unit_test(test_read_while_writing),
		cmocka_unit_test(test_without_session),
		cmocka_unit_test(test_counts_of_samples),
		cmocka_unit_test(test_more_than_is_deflated),
		cmocka_unit_test(test_visitor_stops),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_varints),
		cmocka_unit_test(test_nesting),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
