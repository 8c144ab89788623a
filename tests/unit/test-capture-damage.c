/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures that are cut off, damaged, concatenated, or no captures at all, and disks that fill up:
 * what was good is read, and the rest is a sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "capture-example.h"
#include "capture/fields.h"
#include "capture/protobuf.h"

static char folder[64], path[96];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-capture-damage.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/capture", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static void load_example(struct strbuf *bytes, bool uncompressed)
{
	assert_int_equal(write_example_file(path, uncompressed, false), 0);
	assert_int_equal(read_whole_file(path, 1 << 20, bytes), 0);
}

static int read_bytes(const void *bytes, size_t length, struct strbuf *text,
	struct capture_read_result *read, struct errmsg *err)
{
	strbuf_clear(text);
	return capture_read_memory(bytes, length, "x.pftrace", &text_visitor, text, read, err);
}

/* Every prefix is a capture: it reads without an error and gives a prefix of the whole. */
static void check_truncation(bool uncompressed)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, whole = {0}, text = {0};
	struct capture_read_result read;
	size_t boundaries = 0;
	struct errmsg err;

	load_example(&bytes, uncompressed);
	assert_int_equal(read_bytes(bytes.data, bytes.length, &whole, &read, &err), 0);
	assert_false(read.truncated);
	assert_int_equal(read.bytes, bytes.length);
	for (size_t length = 1; length < bytes.length; length++) {
		if (read_bytes(bytes.data, length, &text, &read, &err) != 0)
			fail_msg("cut at %zu: %s", length, err.text);
		assert_true(text.length < whole.length);
		assert_memory_equal(strbuf_cstr(&text), whole.data, text.length);
		assert_int_equal(read.truncated, read.bytes < length);
		assert_int_equal(read.truncated_at, read.truncated ? read.bytes : 0);
		boundaries += !read.truncated;
	}
	assert_in_range(boundaries, uncompressed ? 20 : 0, uncompressed ? 50 : 3);
}

static void test_truncation(void **state)
{
	check_truncation(true);
	check_truncation(false);
}

/* Damage is found or it is not, but the answer is always one of the two. */
static void check_flips(bool uncompressed)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, text = {0};
	static const unsigned char masks[] = {0x01, 0x80, 0xff};
	struct capture_read_result read;
	unsigned failures = 0;
	struct errmsg err;

	load_example(&bytes, uncompressed);
	for (size_t i = 0; i < bytes.length; i++) {
		unsigned char *byte = (unsigned char *)bytes.data + i;
		int result;

		*byte ^= masks[i % 3];
		err.text[0] = '\0';
		result = read_bytes(bytes.data, bytes.length, &text, &read, &err);
		*byte ^= masks[i % 3];
		assert_true(result == 0 || result == -EBADMSG || result == -EOPNOTSUPP);
		assert_int_equal(result == 0, err.text[0] == '\0');
		failures += result < 0;
	}
	assert_true(failures > 100);
}

static void test_flips(void **state)
{
	check_flips(true);
	check_flips(false);
}

static void test_corrupt_sentence(void **state)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, text = {0};
	struct capture_read_result read;
	struct errmsg err;
	size_t good;

	load_example(&bytes, true);
	good = bytes.length;
	strbuf_add(&bytes, "garbage");
	assert_int_equal(read_bytes(bytes.data, bytes.length, &text, &read, &err), -EBADMSG);
	assert_int_equal(read.bytes, good);
	strbuf_clear(&text);
	strbuf_addf(&text,
		"x.pftrace is corrupt at offset %zu: there is no packet; copy the file again, or "
		"record again",
		good);
	assert_string_equal(err.text, text.data);
}

/* The first packet's deflate stream, which is some kilobytes, with wrong bytes in it. */
static void test_corrupt_compressed(void **state)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, text = {0};
	struct capture_read_result read;
	struct errmsg err;

	load_example(&bytes, false);
	for (size_t i = 256; i < 288; i++)
		bytes.data[i] ^= 0x55;
	assert_int_equal(read_bytes(bytes.data, bytes.length, &text, &read, &err), -EBADMSG);
	assert_string_equal(err.text,
		"x.pftrace is corrupt at offset 0: a compressed packet does not inflate; copy the "
		"file again, or record again");
}

/* In one compressed packet: one that says nothing in so many bytes, and those of a capture. */
static void compress_behind(size_t padding, const struct strbuf *capture, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf packets = {0}, packet = {0};
	uLongf deflated;
	size_t begin, field;

	begin = pb_begin(&packets, TRACE_PACKET);
	field = pb_begin(&packets, 3000);
	memset(strbuf_extend(&packets, padding), 0, padding);
	pb_end(&packets, field);
	pb_end(&packets, begin);
	strbuf_add_bytes(&packets, capture->data, capture->length);
	deflated = compressBound(packets.length);
	assert_int_equal(compress(strbuf_extend(&packet, deflated), &deflated,
				 (const Bytef *)packets.data, packets.length),
		Z_OK);
	begin = pb_begin(out, TRACE_PACKET);
	pb_put_bytes(out, PACKET_COMPRESSED, packet.data, deflated);
	pb_end(out, begin);
	assert_int_equal(strbuf_status(out), 0);
}

/* Its length is not known before it is inflated. */
static void test_large_compressed(void **state)
{
	_cleanup_strbuf_ struct strbuf plain = {0}, large = {0}, excess = {0}, one = {0}, two = {0};
	struct capture_read_result read;
	struct errmsg err;

	load_example(&plain, true);
	assert_int_equal(read_bytes(plain.data, plain.length, &one, &read, &err), 0);
	compress_behind((size_t)3 << 20, &plain, &large);
	assert_int_equal(read_bytes(large.data, large.length, &two, &read, &err), 0);
	assert_string_equal(one.data, two.data);
	strbuf_clear(&two);
	compress_behind((size_t)16 << 20, &plain, &excess);
	assert_int_equal(read_bytes(excess.data, excess.length, &two, &read, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "a compressed packet becomes larger than 16 MiB"));
}

static size_t count_lines(const char *text, const char *start)
{
	size_t lines = 0, length = strlen(start);

	for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		lines += strncmp(text, start, length) == 0;
	return lines;
}

/* Two captures in one file: mappings are shared, stacks and samples are there twice. */
static void test_concatenation(void **state)
{
	_cleanup_strbuf_ struct strbuf first = {0}, both = {0}, one = {0}, text = {0};
	struct capture_read_result read;
	struct errmsg err;

	load_example(&first, false);
	load_example(&both, true);
	assert_int_equal(read_bytes(first.data, first.length, &one, &read, &err), 0);
	strbuf_add_bytes(&both, first.data, first.length);
	assert_int_equal(read_bytes(both.data, both.length, &text, &read, &err), 0);
	assert_int_equal(read.skipped_packets, 0);
	assert_int_equal(count_lines(text.data, "session "), 2);
	assert_int_equal(count_lines(text.data, "mapping "), EXAMPLE_MAPPINGS);
	assert_int_equal(count_lines(text.data, "frame "), 2 * EXAMPLE_FRAMES);
	assert_int_equal(count_lines(text.data, "callstack "), 2 * WIRE_STOP_MAX);
	assert_int_equal(count_lines(text.data, "sample time=999999999500 "), 2);
	assert_int_equal(count_lines(text.data, "symbols "), 12);
	assert_non_null(strstr(text.data, "callstack 15 no_user_stack frames 8 9\n"));
	assert_non_null(strstr(text.data,
		"sample time=1000000000000 4242/4300 cpu=21 mode=2 callstack=15 gil=held/0\n"));
}

static void check_no_capture(const char *bytes, size_t length, const char *why)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct capture_read_result read;
	char expected[256];
	struct errmsg err;

	assert_int_equal(read_bytes(bytes, length, &text, &read, &err), -EBADMSG);
	snprintf(expected, sizeof(expected),
		"x.pftrace is not a sonde capture: at offset 0 %s; `sonde record -o FILE` makes "
		"one; traces of PyTorch's profiler (JSON) are read, too",
		why);
	assert_string_equal(err.text, expected);
}

static void test_no_captures(void **state)
{
	static const char *const texts[] = {"{\"traceEvents\": []}", "hello\n",
		"\x7f"
		"ELF\2\1\1",
		"\nHello, this is a text that begins with an empty line, as some do, and goes on "
		"for longer than its second byte would say if it were a length.\n",
		"\n{\"a\": 1}\n", "PERFILE2", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n"};

	check_no_capture(NULL, 0, "the file ends");
	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
		check_no_capture(texts[i], strlen(texts[i]), "there is no packet");
}

static void check_refused(const char *name, int error, const char *sentence)
{
	struct capture_read_result read = {.packets = 7};
	struct errmsg err;

	assert_int_equal(capture_read(name, &text_visitor, NULL, &read, &err), error);
	if (!strstr(err.text, name) || !strstr(err.text, sentence))
		fail_msg("%s", err.text);
	assert_int_equal(read.packets, 0);
}

static void test_no_files(void **state)
{
	unlink(path);
	check_refused(path, -ENOENT, "No such file");
	check_refused(folder, -EISDIR, "is a directory");
	check_refused("/dev/null", -EINVAL, "not a regular file");
	check_refused("/proc/self/status", -EBADMSG, "is not a sonde capture");
	assert_int_equal(mkfifo(path, 0600), 0);
	check_refused(path, -EINVAL, "not a regular file");
	unlink(path);
}

static void gzip(const struct strbuf *bytes, struct strbuf *out)
{
	z_stream stream = {.next_in = (Bytef *)bytes->data, .avail_in = (uInt)bytes->length};
	size_t room = bytes->length + 1000;

	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, 0), Z_OK);
	stream.next_out = strbuf_extend(out, room);
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	out->length -= stream.avail_out;
	deflateEnd(&stream);
}

static void test_gzip(void **state)
{
	_cleanup_strbuf_ struct strbuf bytes = {0}, zipped = {0}, expected = {0}, text = {0};
	struct capture_read_result read;
	struct errmsg err;
	size_t one;

	load_example(&bytes, true);
	gzip(&bytes, &zipped);
	one = zipped.length;
	assert_int_equal(read_bytes(bytes.data, bytes.length, &expected, &read, &err), 0);
	assert_int_equal(read_bytes(zipped.data, one, &text, &read, &err), 0);
	assert_string_equal(text.data, expected.data);
	assert_false(read.truncated);
	assert_int_equal(read_bytes(zipped.data, one / 2, &text, &read, &err), 0);
	assert_true(read.truncated);
	assert_memory_equal(text.data, expected.data, text.length);
	gzip(&bytes, &zipped);
	assert_int_equal(read_bytes(zipped.data, zipped.length, &text, &read, &err), 0);
	assert_int_equal(count_lines(text.data, "session "), 2);
	zipped.data[one / 2] ^= 0x55;
	assert_int_equal(read_bytes(zipped.data, zipped.length, &text, &read, &err), -EBADMSG);
}

static void test_cannot_create(void **state)
{
	struct capture_writer *writer = NULL;
	char missing[128];
	struct errmsg err;

	snprintf(missing, sizeof(missing), "%s/no/capture", folder);
	assert_int_equal(capture_writer_open(&writer, missing, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, missing));
	assert_non_null(strstr(err.text, "make the folder first"));
	assert_int_equal(capture_writer_open(&writer, folder, NULL, &err), -EISDIR);
	assert_non_null(strstr(err.text, "-o FILE"));
	assert_null(writer);
}

/* After the first failure: the same error, no further words, nothing in memory, nothing written. */
static void check_stays_failed(struct capture_writer *writer, int error)
{
	uint64_t bytes = capture_writer_bytes(writer);
	struct errmsg err = {"untouched"};

	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(write_example_samples(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), error);
	assert_string_equal(err.text, "");
	assert_int_equal(capture_writer_bytes(writer), bytes);
	assert_int_equal(capture_writer_close(writer, &err), error);
	assert_non_null(strstr(err.text, "cannot write"));
}

static void test_full_device(void **state)
{
	struct capture_writer *writer;
	struct errmsg err;

	if (access("/dev/full", W_OK) < 0)
		skip();
	assert_int_equal(capture_writer_open(&writer, "/dev/full", NULL, &err), 0);
	assert_int_equal(write_example(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), -ENOSPC);
	assert_string_equal(err.text,
		"cannot write /dev/full: No space left on device; it holds what was recorded up to "
		"byte 0; free some space, or write to another disk with -o FILE");
	check_stays_failed(writer, -ENOSPC);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A disk that fills up in the middle of a flush: the file ends where the flush before it ended. */
static void test_full_disk(void **state)
{
	_cleanup_strbuf_ struct strbuf before = {0}, after = {0};
	struct capture_writer_options options = {.size = sizeof(options), .uncompressed = true};
	struct capture_read_result read;
	struct capture_writer *writer;
	struct errmsg err;
	uint64_t good;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(capture_writer_open(&writer, path, &options, &err), 0);
	assert_int_equal(capture_writer_name(writer, &err), 0);
	assert_int_equal(write_example(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), 0);
	good = capture_writer_bytes(writer);
	assert_int_equal(capture_read(path, &text_visitor, &before, &read, &err), 0);
	limit_file_size(good + 100);
	assert_int_equal(write_example_samples(writer), 0);
	assert_int_equal(capture_writer_flush(writer, &err), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	assert_non_null(strstr(err.text, "ulimit -f"));
	check_stays_failed(writer, -EFBIG);
	assert_int_equal(capture_read(path, &text_visitor, &after, &read, &err), 0);
	assert_false(read.truncated);
	assert_int_equal(read.bytes, good);
	assert_string_equal(after.data, before.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_flips),
		cmocka_unit_test(test_corrupt_sentence),
		cmocka_unit_test(test_corrupt_compressed),
		cmocka_unit_test(test_large_compressed),
		cmocka_unit_test(test_concatenation),
		cmocka_unit_test(test_no_captures),
		cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_cannot_create),
		cmocka_unit_test(test_full_device),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
