/* SPDX-License-Identifier: Apache-2.0 */
/* Long traces by several threads: the same rows as by one, whatever is in the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "importers/kineto/kineto.h"
#include "trace-equal.h"

#define LONG ((size_t)8 * 1024 * 1024) /* several parts, behind what one thread reads first */

static char path[] = "/tmp/sonde-parallel-XXXXXX";

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

static struct trace *read_with(unsigned threads, bool keep_arguments)
{
	const struct trace_read_options options = {
		.keep_arguments = keep_arguments, .threads = threads};
	struct trace *trace = NULL;
	struct errmsg err = {{0}};

	if (kineto_read(&trace, path, &options, &err) < 0)
		fail_msg("%s", err.text);
	return trace;
}

/* Not only what strings say: also which there are, and in which order. */
static void assert_same_strings(const struct trace *a, const struct trace *b)
{
	assert_int_equal(a->strings.entries.count, b->strings.entries.count);
	for (size_t i = 0; i < a->strings.entries.count; i++)
		assert_string_equal(
			intern_get(&a->strings, (uint32_t)i), intern_get(&b->strings, (uint32_t)i));
}

static void assert_same_damage(const struct trace *a, const struct trace *b)
{
	assert_same(&a->damage, &b->damage, skipped_events);
	assert_same(&a->damage, &b->damage, skipped_bytes);
	assert_same(&a->damage, &b->damage, mended_events);
	assert_same(&a->damage, &b->damage, repaired_times);
	assert_same(&a->damage, &b->damage, unended_events);
	assert_same(&a->damage, &b->damage, truncated);
}

static void write_file(const struct strbuf *text)
{
	_cleanup_fclose_ FILE *file = fopen(path, "w");

	assert_int_equal(strbuf_status(text), 0);
	assert_non_null(file);
	assert_int_equal(fwrite(text->data, 1, text->length, file), text->length);
}

static void assert_same_by_threads(const struct strbuf *text, bool keep_arguments)
{
	_cleanup_trace_ struct trace *alone = NULL, *trace = NULL;

	write_file(text);
	alone = read_with(1, keep_arguments);
	trace = read_with(keep_arguments ? 20 : 2, keep_arguments);
	assert_same_damage(alone, trace);
	assert_same_strings(alone, trace);
	assert_same_trace(alone, trace);
}

/* ---- events: few, and long ---- */

static void add_row(struct strbuf *out, unsigned i)
{
	strbuf_addf(out,
		"{\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"op\\\"%u\", \"pid\": %u, "
		"\"tid\": \"t%u\",\n    \"ts\": %u.%03u, \"dur\": %d,\n    \"args\": {\n      "
		"\"External id\": %u, \"Record function id\": %u, \"Input Dims\": [[%u]], "
		"\"correlation\": %u, \"new\": {\"a\": [%u], \"long\": \"%1500s\"}\n    }\n  }",
		i % 3 ? "cpu_op" : "cuda_runtime", i % 5000, i % 4, i % 7, i, i % 1000,
		i % 911 ? (int)(i % 50) : -1, i, i, i % 10, i, i % 100, "");
}

static void add_kernel(struct strbuf *out, unsigned i)
{
	strbuf_addf(out,
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k%u\", \"pid\": 0, \"tid\": %u, "
		"\"ts\": %u, \"dur\": 3, \"args\": {\"device\": 0, \"stream\": %u, \"grid\": [%u, "
		"1, 1], \"correlation\": %u, \"Collective name\": \"c%u\", \"In msg nelems\": %u, "
		"\"odd\": %u}}",
		i % 300, i % 9, i, i % 9, i, i - 1, i % 12, i, i % 1000);
}

static void add_other(struct strbuf *out, unsigned i)
{
	switch (i / 8 % 5) {
	case 0:
		strbuf_addf(out,
			"{\"name\": \"[memory]\", \"ph\": \"i\", \"cat\": \"cpu_instant_event\", "
			"\"s\": \"t\", \"pid\": 1, \"tid\": 2, \"ts\": %u, \"args\": {\"Addr\": "
			"%u, \"Bytes\": -512, \"Device Type\": 1, \"x\": %u}}",
			i, i, i % 77);
		break;
	case 1:
		strbuf_addf(out,
			"{\"name\": \"used %u\", \"ph\": \"C\", \"pid\": 0, \"ts\": %u, \"args\": "
			"{\"s%u\": 1.5, \"t\": 2}}",
			i % 30, i, i % 20);
		break;
	case 2:
		strbuf_addf(out,
			"{\"ph\": \"%c\", \"id\": %u, \"pid\": 1, \"tid\": %u, \"ts\": %u, "
			"\"cat\": \"ac2g\", \"name\": \"ac2g\"}",
			i % 16 ? 's' : 'f', i, i % 7, i);
		break;
	case 3:
		strbuf_addf(
			out, "{\"ph\": \"b\", \"id\": %u, \"ts\": %u, \"name\": \"async\"}", i, i);
		break;
	default:
		/* A name that is no UTF-8, and looks like two events. */
		strbuf_addf(out,
			"{\"ph\": \"i\", \"cat\": \"c%u\", \"name\": \"\xff, {\\\"ph\\\": %u}, \", "
			"\"pid\": 7, \"tid\": 8, \"ts\": %u, \"args\": {\"later\": [0, {\"ph\": "
			"1}]}}",
			i % 40, i % 90, i);
	}
}

static void add_event(struct strbuf *out, unsigned i)
{
	if (i % 8 == 0)
		add_other(out, i);
	else if (i % 4 == 1)
		add_kernel(out, i);
	else
		add_row(out, i);
}

static void begin(struct strbuf *out)
{
	strbuf_add(out, "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 3}, "
			"\"traceEvents\": [\n  ");
}

static void end(struct strbuf *out)
{
	strbuf_add(out, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": "
			"{\"name\": \"python\"}}\n], \"traceName\": \"x\"}\n");
}

/* ---- tests ---- */

static void every_kind_of_event(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	begin(&text);
	for (unsigned i = 1; text.length < LONG; i++) {
		add_event(&text, i);
		strbuf_add(&text, ",\n  ");
	}
	end(&text);
	assert_same_by_threads(&text, false);
	assert_same_by_threads(&text, true);
}

/* Names of threads, rows that end later and flows of words, in some parts and in all. */
static void events_that_need_others(void **state _unused_)
{
	static const unsigned every[] = {5000, 50};

	for (size_t k = 0; k < ARRAY_SIZE(every); k++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		begin(&text);
		for (unsigned i = 1; text.length < LONG; i++) {
			add_event(&text, i);
			strbuf_add(&text, ",\n  ");
			if (i % every[k] != 0)
				continue;
			strbuf_addf(&text,
				"{\"ph\": \"B\", \"name\": \"b%u\", \"pid\": 1, \"tid\": 1, "
				"\"ts\": %u}, {\"ph\": \"E\", \"pid\": 1, \"tid\": %u, \"ts\": "
				"%u}, {\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, "
				"\"tid\": \"t%u\", \"args\": {\"name\": \"n%u\"}}, {\"ph\": \"s\", "
				"\"id\": \"w%u\", \"ts\": 1, \"pid\": 1, \"tid\": 1}, ",
				i, i, i % 2, i + 9, i % 4, i % 7, i, i);
		}
		end(&text);
		assert_same_by_threads(&text, k);
	}
}

static void damage(void **state _unused_)
{
	static const char *const damages[] = {
		"", ", ,", "@#$ [", "{\"ph\": \"X\", \"name\": \"not", "\"a word\"", "\x01\x02"};

	for (size_t k = 0; k < ARRAY_SIZE(damages); k++) {
		_cleanup_strbuf_ struct strbuf text = {0};

		begin(&text);
		for (unsigned i = 1; text.length < LONG; i++) {
			add_event(&text, i);
			strbuf_add(&text, i % 3000 ? ",\n  " : damages[k]);
		}
		end(&text);
		/* Also cut in the middle of an event. */
		if (k % 2)
			text.length -= 300;
		assert_same_by_threads(&text, k % 4 < 2);
	}
}

/* One event is longer than several parts; space is, too. */
static void long_pieces(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	begin(&text);
	for (unsigned i = 1; text.length < 2 * LONG; i++) {
		add_event(&text, i);
		strbuf_add(&text, ",\n  ");
		if (i != 3000 && i != 4000)
			continue;
		strbuf_add(&text, i == 3000 ? "{\"ph\": \"i\", \"ts\": 1, \"name\": \"" : "");
		for (unsigned k = 0; k < 5 * 1024; k++)
			strbuf_addf(&text, "%1024s", i == 3000 ? ",{\\\"ph\\\": 1" : "");
		strbuf_add(&text, i == 3000 ? "\"}," : "");
	}
	end(&text);
	assert_same_by_threads(&text, true);
}

static void too_much_for_memory(void **state _unused_)
{
	const struct trace_read_options options = {.threads = 3, .max_bytes = 1000000};
	_cleanup_strbuf_ struct strbuf text = {0};
	struct trace *trace = NULL;
	struct errmsg err = {{0}};

	begin(&text);
	for (unsigned i = 1; text.length < LONG; i++) {
		add_event(&text, i);
		strbuf_add(&text, ",\n  ");
	}
	write_file(&text);
	assert_int_equal(kineto_read(&trace, path, &options, &err), -EFBIG);
	assert_non_null(strstr(err.text, "need more than 0.001 GB of memory"));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(every_kind_of_event),
		FILE_TEST(events_that_need_others),
		FILE_TEST(damage),
		FILE_TEST(long_pieces),
		FILE_TEST(too_much_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
