/* SPDX-License-Identifier: Apache-2.0 */
/* Text files through a window: plain, gzip and zstd, whole and damaged; and traces out of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "base/text_input.h"
#include "importers/kineto/kineto.h"

/* A file that is there while a test runs. */
static char path[] = "/tmp/sonde-text-XXXXXX";

static int make_file(void **state _unused_)
{
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state _unused_)
{
	return unlink(path);
}

static void write_file(const void *bytes, size_t length)
{
	_cleanup_fclose_ FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
}

static void add_gzip(struct strbuf *out, const void *bytes, size_t length)
{
	z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)length};
	size_t bound = length + length / 100 + 1000;

	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, 0), Z_OK);
	stream.next_out = strbuf_room(out, bound);
	assert_non_null(stream.next_out);
	stream.avail_out = (uInt)bound;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	strbuf_take(out, bound - stream.avail_out);
	deflateEnd(&stream);
}

static void add_zstd(struct strbuf *out, const void *bytes, size_t length)
{
	size_t bound = ZSTD_compressBound(length);
	void *room = strbuf_room(out, bound);

	assert_non_null(room);
	strbuf_take(out, ZSTD_compress(room, bound, bytes, length, 3));
}

/* Some text that does not repeat. */
static void add_text(struct strbuf *out, size_t length)
{
	uint32_t seed = 1;

	while (out->length < length) {
		seed = seed * 1664525 + 1013904223;
		strbuf_addf(out, "%x,", seed >> 4);
	}
}

/* The whole of the file, taken out of the window in odd pieces. */
static enum text_damage read_all(struct strbuf *out)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	struct text_window window = {0};
	size_t used = 0;

	assert_int_equal(text_input_open(&input, path, NULL), 0);
	do {
		assert_int_equal(text_input_move(input, used, &window, NULL), 0);
		used = window.is_last ? window.length : window.length - window.length / 7;
		strbuf_add_bytes(out, window.bytes, used);
	} while (!window.is_last);
	return text_input_damage(input);
}

static void assert_read(const struct strbuf *file, const struct strbuf *text)
{
	_cleanup_strbuf_ struct strbuf got = {0};

	write_file(file->data, file->length);
	assert_int_equal(read_all(&got), TEXT_WHOLE);
	assert_int_equal(got.length, text->length);
	assert_memory_equal(got.data, text->data, text->length);
}

static void test_formats(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0}, zstd = {0};

	add_text(&text, 3000001);
	add_gzip(&gzip, text.data, text.length);
	add_zstd(&zstd, text.data, text.length);
	assert_true(gzip.length < text.length);
	assert_read(&text, &text);
	assert_read(&gzip, &text);
	assert_read(&zstd, &text);
}

static void test_members(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0}, zstd = {0};

	add_text(&text, 600000);
	add_gzip(&gzip, text.data, 300000);
	add_gzip(&gzip, "", 0);
	add_gzip(&gzip, text.data + 300000, text.length - 300000);
	add_zstd(&zstd, text.data, 300000);
	add_zstd(&zstd, text.data + 300000, text.length - 300000);
	assert_read(&gzip, &text);
	assert_read(&zstd, &text);
	memset(strbuf_extend(&gzip, 512), 0, 512);
	assert_read(&gzip, &text);
}

static void test_empty(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(read_all(&text), TEXT_WHOLE);
	write_file("\x1f", 1);
	assert_int_equal(read_all(&text), TEXT_WHOLE);
	assert_int_equal(text.length, 1);
}

/* Cut anywhere, what came before is there, and the cut is said. */
static void assert_cuts_are_said(const struct strbuf *file, const struct strbuf *text)
{
	for (size_t cut = 4; cut < file->length; cut += 1 + file->length / 40) {
		_cleanup_strbuf_ struct strbuf got = {0};

		write_file(file->data, cut);
		assert_int_equal(read_all(&got), TEXT_CUT);
		assert_true(got.length <= text->length);
		assert_memory_equal(strbuf_cstr(&got), text->data, got.length);
	}
}

static void test_cuts(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0}, zstd = {0};

	add_text(&text, 700000);
	add_gzip(&gzip, text.data, text.length);
	add_zstd(&zstd, text.data, text.length);
	assert_cuts_are_said(&gzip, &text);
	assert_cuts_are_said(&zstd, &text);
}

static void test_damage(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0}, got = {0};

	add_text(&text, 700000);
	add_gzip(&gzip, text.data, text.length);
	gzip.data[gzip.length - 6] ^= 1; /* the checksum */
	write_file(gzip.data, gzip.length);
	assert_int_equal(read_all(&got), TEXT_DAMAGED);
	assert_int_equal(got.length, text.length);
	memset(gzip.data + gzip.length / 2, 0xff, 100);
	write_file(gzip.data, gzip.length);
	assert_int_equal(read_all(&got), TEXT_DAMAGED);
}

/* A reader that uses nothing sees more and more, to the largest window. */
static void test_window_grows(void **state _unused_)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	_cleanup_strbuf_ struct strbuf gzip = {0};
	_cleanup_free_ char *zeros = calloc(1, TEXT_WINDOW_MAX + 1000);
	struct text_window window;
	size_t before = 0;

	assert_non_null(zeros);
	add_gzip(&gzip, zeros, TEXT_WINDOW_MAX + 1000);
	write_file(gzip.data, gzip.length);
	assert_int_equal(text_input_open(&input, path, NULL), 0);
	do {
		assert_int_equal(text_input_move(input, 0, &window, NULL), 0);
		assert_true(window.length > before);
		before = window.length;
	} while (!window.is_full);
	assert_int_equal(window.length, TEXT_WINDOW_MAX);
	assert_false(window.is_last);
	assert_int_equal(text_input_move(input, 1000, &window, NULL), 0);
	assert_int_equal(window.length, TEXT_WINDOW_MAX);
	assert_int_equal(text_input_move(input, window.length, &window, NULL), 0);
	assert_int_equal(window.length, 0);
	assert_true(window.is_last);
}

/* The thread that decodes is stopped, too, while it waits for room. */
static void test_reader_gives_up(void **state _unused_)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	_cleanup_strbuf_ struct strbuf text = {0}, zstd = {0};

	add_text(&text, 5000000);
	add_zstd(&zstd, text.data, text.length);
	write_file(zstd.data, zstd.length);
	assert_int_equal(text_input_open(&input, path, NULL), 0);
}

static void test_what_cannot_be_read(void **state _unused_)
{
	struct text_input *input = NULL;
	struct errmsg err = {{0}};

	assert_int_equal(text_input_open(&input, "/nonexistent/trace.json", &err), -ENOENT);
	assert_string_equal(
		err.text, "cannot open /nonexistent/trace.json: No such file or directory");
	assert_int_equal(text_input_open(&input, "/tmp", &err), -EISDIR);
	assert_non_null(strstr(err.text, "name a file"));
	assert_null(input);
}

#define EVENT "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1.5,\"dur\":2},\n"

static void add_events(struct strbuf *out, unsigned count)
{
	strbuf_add(out, "{\"traceEvents\": [\n");
	for (unsigned i = 0; i < count; i++)
		strbuf_add(out, EVENT);
	strbuf_add(out, "{\"ph\":\"i\",\"ts\":9}]}");
}

static void test_trace_of_a_file(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0};
	_cleanup_trace_ struct trace *trace = NULL, *cut = NULL;
	struct errmsg err = {{0}};

	add_events(&text, 20000);
	add_gzip(&gzip, text.data, text.length);
	write_file(gzip.data, gzip.length);
	assert_int_equal(kineto_read(&trace, path, NULL, &err), 0);
	assert_int_equal(trace->events.count, 20001);
	assert_string_equal(trace->path, path);
	assert_false(trace->damage.truncated);
	write_file(gzip.data, gzip.length - 9);
	assert_int_equal(kineto_read(&cut, path, NULL, &err), 0);
	assert_true(cut->damage.truncated);
}

static void test_file_that_is_no_trace(void **state _unused_)
{
	struct trace *trace = NULL;
	struct errmsg err = {{0}};

	write_file("hello", 5);
	assert_int_equal(kineto_read(&trace, path, NULL, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no event of a Kineto or Chrome trace is in it"));
	assert_null(trace);
}

/* What is behind the compressed data is no part of the trace, and said: much of it, and little. */
static void test_bytes_behind_members(void **state _unused_)
{
	static const char head[] = "{\"traceEvents\": [" EVENT "]}";
	static const size_t lengths[] = {0, 1, 300000};
	_cleanup_strbuf_ struct strbuf garbage = {0};

	add_text(&garbage, 300000);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		size_t length = lengths[i / 2];
		_cleanup_strbuf_ struct strbuf file = {0};
		_cleanup_trace_ struct trace *trace = NULL;

		(i % 2 ? add_gzip : add_zstd)(&file, head, strlen(head));
		strbuf_add_bytes(&file, garbage.data, length);
		write_file(file.data, file.length);
		assert_int_equal(kineto_read(&trace, path, NULL, NULL), 0);
		assert_int_equal(trace->events.count, 1);
		assert_int_equal(trace->damage.skipped_bytes, length);
		assert_false(trace->damage.truncated);
	}
}

/* A small file with much text: its size does not matter, what is kept of it does. */
static void test_bombs(void **state _unused_)
{
	const size_t spaces = (size_t)70 * 1000 * 1000;
	const struct trace_read_options small = {.max_bytes = 1000000};
	_cleanup_strbuf_ struct strbuf text = {0}, gzip = {0}, bomb = {0};
	_cleanup_trace_ struct trace *trace = NULL, *none = NULL;
	_cleanup_free_ char *room = malloc(spaces);
	struct errmsg err = {{0}};

	assert_non_null(room);
	memset(room, ' ', spaces);
	add_gzip(&gzip, "{\"traceEvents\": [" EVENT, strlen("{\"traceEvents\": [" EVENT));
	add_gzip(&gzip, room, spaces);
	add_gzip(&gzip, EVENT "]}", strlen(EVENT "]}"));
	write_file(gzip.data, gzip.length);
	assert_int_equal(kineto_read(&trace, path, &small, &err), 0);
	assert_int_equal(trace->events.count, 2);
	assert_false(trace->damage.truncated);
	assert_int_equal(trace->damage.skipped_bytes, 0);
	add_events(&text, 50000);
	add_gzip(&bomb, text.data, text.length);
	write_file(bomb.data, bomb.length);
	assert_int_equal(kineto_read(&none, path, &small, &err), -EFBIG);
	assert_non_null(strstr(err.text, "need more than 0.001 GB of memory"));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_formats),
		FILE_TEST(test_members),
		FILE_TEST(test_empty),
		FILE_TEST(test_cuts),
		FILE_TEST(test_damage),
		FILE_TEST(test_window_grows),
		FILE_TEST(test_reader_gives_up),
		cmocka_unit_test(test_what_cannot_be_read),
		FILE_TEST(test_trace_of_a_file),
		FILE_TEST(test_file_that_is_no_trace),
		FILE_TEST(test_bytes_behind_members),
		FILE_TEST(test_bombs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
