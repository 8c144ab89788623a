/* SPDX-License-Identifier: Apache-2.0 */
/* What a section says, as the terminal, JSON, its schema and CSV show it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/render.h"

static const struct report_column cause_columns[] = {
	{.key = "cause", .kind = REPORT_TEXT},
	{.key = "time_ns", .kind = REPORT_NS},
};
static const struct report_shape cause_shape = REPORT_SHAPE(cause_columns);

static const struct report_column kernel_columns[] = {
	{.title = "Time", .kind = REPORT_SHARE},
	{.key = "total_ns", .title = "Total", .kind = REPORT_NS, .help = "of all runs"},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	{.key = "energy_j", .title = "Energy", .kind = REPORT_JOULES, .unknown = "-"},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_UNKNOWN},
	{.key = "name", .title = "Kernel", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 8},
};
static const struct report_shape kernel_shape = REPORT_SHAPE(kernel_columns);

static const struct report_column point_columns[] = {
	{.key = "time_ns", .kind = REPORT_NS},
	{.key = "length", .kind = REPORT_COUNT},
};
static const struct report_shape point_shape = REPORT_SHAPE(point_columns);

static const struct report_column members[] = {
	{.key = "device", .kind = REPORT_TEXT},
	{.key = "causes", .kind = REPORT_MAP, .shape = &cause_shape},
	{.key = "kernels", .total = "kernels_total", .kind = REPORT_ROWS, .shape = &kernel_shape},
	{.key = "series", .kind = REPORT_LIST, .shape = &point_shape},
	{.key = "is_replayed", .kind = REPORT_FLAG},
};
static const struct report_shape member_shape = REPORT_SHAPE(members);
static const struct report_column section = {
	.key = "device", .kind = REPORT_OBJECT, .shape = &member_shape};

static void add_kernel(
	struct result *result, const char *name, uint64_t ns, double joules, uint32_t pid)
{
	result_share(result, (double)ns, 4e6);
	result_u64(result, ns);
	result_u64(result, 1234);
	result_number(result, joules);
	result_known(result, pid != 0, pid);
	result_null(result);
	result_text(result, name);
}

static void make(struct result *result)
{
	uint32_t kernels;

	result_open(result);
	result_text(result, "GPU \x1b[0m");
	result_open(result);
	result_text(result, "host");
	result_i64(result, -5000);
	result_close(result);
	kernels = result_open(result);
	add_kernel(result, "gemm", 3000000, 1.5, 7);
	add_kernel(result, "=softmax, \"fast\"", 1000000, NAN, 0);
	result_leave_out(result, 1000);
	result_close(result);
	result_open(result);
	result_u64(result, 10);
	result_u64(result, 2);
	result_close(result);
	result_flag(result, true);
	result_close(result);
	result_heading(result, "Kernels");
	result_sentencef(result, 2, "%d kernels ran.", 2);
	result_show(result, kernels, &(struct result_show){.limit = 1, .noun = "kernels"});
	result_advise(result,
		&(struct result_advice){.id = "short",
			.saves_ns = 1000,
			.evidence = {{"kernels", 2}, {"share", 0.25}}},
		"Launch fewer.");
}

static void test_terminal(void **state _unused_)
{
	_cleanup_result_ struct result result = {.column = &section};
	_cleanup_strbuf_ struct strbuf out = {0};

	make(&result);
	assert_int_equal(report_render_terminal(&result, &(struct terminal){.width = 80}, &out), 0);
	assert_string_equal(strbuf_cstr(&out),
		"\nKernels\n"
		"2 kernels ran.\n"
		"   Time    Total  Count  Energy  Kernel\n"
		"75.00 %  3.00 ms  1,234  1.50 J  gemm\n"
		"\xe2\x80\xa6 1,001 more kernels (--limit shows more)\n"
		"\xe2\x86\x92 Launch fewer.\n");
}

static void test_json(void **state _unused_)
{
	_cleanup_result_ struct result result = {.column = &section};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	make(&result);
	assert_int_equal(report_render_json(&result, &json), 0);
	assert_string_equal(strbuf_cstr(&out),
		"{\"device\":\"GPU \\u001b[0m\",\"causes\":{\"host\":-5000},"
		"\"kernels\":[{\"total_ns\":3000000,\"count\":1234,\"energy_j\":1.5,\"pid\":7,"
		"\"name\":\"gemm\"},{\"total_ns\":1000000,\"count\":1234,\"energy_j\":null,"
		"\"pid\":null,\"name\":\"=softmax, "
		"\\\"fast\\\"\"}],\"kernels_total\":1002,\"series\":[[10,2]],"
		"\"is_replayed\":true}");
	strbuf_clear(&out);
	json = (struct json_writer){.out = &out};
	json_begin_array(&json);
	report_render_advice_json(&result, &json);
	json_end_array(&json);
	assert_string_equal(strbuf_cstr(&out),
		"[{\"section\":\"device\",\"id\":\"short\",\"sentence\":\"Launch "
		"fewer.\",\"evidence\":{\"kernels\":2,\"share\":0.25},\"saves_ns\":1000,\"docs\":null}]");
}

static void test_nothing(void **state _unused_)
{
	_cleanup_result_ struct result result = {.column = &section};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	assert_int_equal(report_render_json(&result, &json), 0);
	assert_string_equal(strbuf_cstr(&out), "null");
	assert_int_equal(report_render_csv(&result, &out), -ENODATA);
}

/* Its members are the document's, all null when it says nothing. */
static void test_no_key(void **state _unused_)
{
	static const struct report_column flags[] = {
		{.key = "is_replayed", .kind = REPORT_FLAG}, {.kind = REPORT_TEXT, .title = "How"}};
	static const struct report_shape flag_shape = REPORT_SHAPE(flags);
	static const struct report_column without = {
		.title = "about", .kind = REPORT_OBJECT, .shape = &flag_shape};
	_cleanup_result_ struct result result = {.column = &without};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	json_begin_object(&json);
	assert_int_equal(report_render_member(&result, &json), 0);
	json_end_object(&json);
	assert_string_equal(strbuf_cstr(&out), "{\"is_replayed\":null}");
	result_open(&result);
	result_flag(&result, false);
	result_text(&result, "as it was");
	result_close(&result);
	result_title(&result, "a command of many words");
	strbuf_clear(&out);
	json = (struct json_writer){.out = &out};
	json_begin_object(&json);
	assert_int_equal(report_render_member(&result, &json), 0);
	json_end_object(&json);
	assert_string_equal(strbuf_cstr(&out), "{\"is_replayed\":false}");
	strbuf_clear(&out);
	assert_int_equal(report_render_terminal(&result, &(struct terminal){.width = 12}, &out), 0);
	assert_string_equal(strbuf_cstr(&out), "a comm\xe2\x80\xa6words\n");
}

/* A bar is the mean of as many numbers as the width needs, and at least ten are drawn. */
static void test_bars(void **state _unused_)
{
	static const struct report_column numbers[] = {{.kind = REPORT_COUNT}};
	static const struct report_shape number_shape = REPORT_SHAPE(numbers);
	static const struct report_column list = {
		.key = "samples", .kind = REPORT_LIST, .shape = &number_shape};
	static const uint64_t values[] = {0, 1, 4, 8};
	const struct result_bars bars = {.title = "CPU use", .unit = "CPUs", .scale = 0.5};
	_cleanup_result_ struct result result = {.column = &list};
	_cleanup_strbuf_ struct strbuf out = {0};
	uint32_t table = result_open(&result);

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_u64(&result, values[i]);
	result_draw(&result, table, &bars);
	assert_int_equal(report_render_terminal(&result, &(struct terminal){.width = 80}, &out), 0);
	assert_string_equal(strbuf_cstr(&out),
		"CPU use: \xe2\x96\x95 \xe2\x96\x81\xe2\x96\x84\xe2\x96\x88\xe2\x96\x8f peak 4.00 "
		"CPUs\n");
	for (size_t i = 0; i < 16; i++)
		result_u64(&result, 7);
	result_close(&result);
	strbuf_clear(&out);
	assert_int_equal(report_render_terminal(&result, &(struct terminal){.width = 10}, &out), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "peak 3.50 CPUs\n"));
}

static void test_csv(void **state _unused_)
{
	_cleanup_result_ struct result result = {.column = &section};
	_cleanup_strbuf_ struct strbuf out = {0};

	make(&result);
	assert_int_equal(report_render_csv(&result, &out), 0);
	assert_string_equal(strbuf_cstr(&out), "total_ns,count,energy_j,pid,name\r\n"
					       "3000000,1234,1.5,7,gemm\r\n"
					       "1000000,1234,,,\"'=softmax, \"\"fast\"\"\"\r\n");
}

static void test_schema(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	report_render_schema(&members[2], &json);
	assert_string_equal(strbuf_cstr(&out),
		"{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"object\",\"properties\":{"
		"\"total_ns\":{\"type\":[\"number\",\"null\"],\"description\":\"of all runs\"},"
		"\"count\":{\"type\":[\"integer\",\"null\"]},"
		"\"energy_j\":{\"type\":[\"number\",\"null\"]},"
		"\"pid\":{\"type\":[\"integer\",\"null\"]},"
		"\"name\":{\"type\":[\"string\",\"null\"]}},"
		"\"required\":[\"total_ns\",\"count\",\"energy_j\",\"pid\",\"name\"],"
		"\"additionalProperties\":false}}");
	strbuf_clear(&out);
	json = (struct json_writer){.out = &out};
	report_render_schema(&members[3], &json);
	assert_string_equal(strbuf_cstr(&out),
		"{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"array\",\"prefixItems\":["
		"{\"type\":[\"number\",\"null\"]},{\"type\":[\"integer\",\"null\"]}],\"items\":"
		"false}}");
	strbuf_clear(&out);
	json = (struct json_writer){.out = &out};
	json_begin_object(&json);
	report_render_schema_closed(&member_shape, &json);
	json_end_object(&json);
	assert_string_equal(strbuf_cstr(&out),
		"{\"required\":[\"device\",\"causes\",\"kernels\",\"kernels_total\",\"series\","
		"\"is_replayed\"],\"additionalProperties\":false}");
}

/* One of several goes, with its sentence and nothing else. */
static void advice_is_taken_back(void **state)
{
	static const char *const ids[] = {"first", "second", "third"};
	_cleanup_result_ struct result result = {.column = &section};
	struct terminal terminal = {.width = 80};
	_cleanup_strbuf_ struct strbuf out = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		result_advise(&result, &(struct result_advice){.id = ids[i]}, ids[i]);
	result_drop_advice(&result, 1);
	assert_int_equal(result.advice.count, 2);
	assert_string_equal(result.advice.items[1].id, "third");
	assert_int_equal(report_render_terminal(&result, &terminal, &out), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "first"));
	assert_null(strstr(strbuf_cstr(&out), "second"));
	assert_non_null(strstr(strbuf_cstr(&out), "third"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_no_key),
		cmocka_unit_test(test_bars),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(advice_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
