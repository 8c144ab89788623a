/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of sections and analyses: a toy of each that was added by the steps of its header,
 * from the rows of a model to every form of the report.
 */
#include "trace-example.h"

#include "model-example.h"

#include <errno.h>

#include "model/trace_capture.h"
#include "report/document.h"
#include "report/rows.h"
#include "report/view.h"
#include "toy-analysis.h"
#include "toy-section.h"

#define PID 7

/* In place of the table in section_table.c. */
const struct report_section *const report_sections[] = {&toy_section, NULL};

/* ---- a made-up recording, and a made-up trace ---- */

static void add_range(
	struct example *example, enum capture_range_kind kind, uint64_t time_ns, const char *name)
{
	const struct capture_range_event event = {
		.time_ns = time_ns,
		.track = 1,
		.pid = PID,
		.tid = PID,
		.kind = kind,
		.domain = "",
		.name = name,
		.category = "",
	};

	assert_int_equal(model_builder_visitor.range(example->builder, &event), 0);
}

static struct model *make_recording(void)
{
	const struct capture_device_work work = {
		.start_ns = 4000,
		.end_ns = 4800,
		.pid = PID,
		.tid = PID,
		.correlation = 1,
		.kind = WIRE_DEVICE_KERNEL,
		.name = "gemm",
		.device = "GPU 0",
		.queue = 3,
	};
	struct example example;
	struct model *model;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, PID, "train", 1);
	example_thread(&example, PID, PID, "main");
	add_range(&example, CAPTURE_RANGE_BEGIN, 2000, "forward");
	add_range(&example, CAPTURE_RANGE_END, 3000, "");
	add_range(&example, CAPTURE_RANGE_BEGIN, 3000, "backward");
	add_range(&example, CAPTURE_RANGE_END, 6000, "");
	add_range(&example, CAPTURE_RANGE_MARK, 7000, "a mark");
	assert_int_equal(model_builder_visitor.device_work(example.builder, &work), 0);
	model = example_end(&example);
	assert_int_equal(model_make_rows(model), 0);
	assert_false(model_is_foreign(model));
	return model;
}

/* The model's, whose end it is. */
static struct trace *add_trace(struct model *model)
{
	struct trace *trace = example_trace_new();

	assert_int_equal(array_append(&model->traces, trace), 0);
	return trace;
}

static struct model *make_foreign(void)
{
	struct model *model = model_new();
	struct trace *trace;

	assert_non_null(model);
	trace = add_trace(model);
	example_host(trace, TRACE_CPU_OP, "aten::mm", EXAMPLE_PID, 1000, 100, 0);
	example_launch(trace, "gemm", 7, 1020, 10, 1200, 40, 1);
	example_host(trace, TRACE_CPU_OP, "aten::relu", EXAMPLE_PID, 1900, 300, 0);
	example_launch(trace, "relu", 7, 1920, 10, 2150, 50, 2);
	example_trace_finish(trace);
	assert_true(model_is_foreign(model));
	return model;
}

/* A trace with a moment alone. */
static struct model *make_moment(void)
{
	struct model *model = model_new();
	struct trace *trace;

	assert_non_null(model);
	trace = add_trace(model);
	example_host(trace, TRACE_USER_ANNOTATION, "a mark", EXAMPLE_PID, 10, TRACE_NO_DURATION, 0);
	example_trace_finish(trace);
	return model;
}

/* ---- the report of a model, by the toy alone ---- */

/* Returns what report_document_write() does. */
static int write_report(const struct model *model, const char *by, bool has_rows,
	enum report_form form, struct strbuf *out)
{
	static const struct trace_view_options options = {0};
	const struct report_view view = {.model = model};
	const struct terminal terminal = {.width = 80};
	_cleanup_trace_report_ struct trace_report rows = {0};
	struct errmsg err = {{0}};
	struct report_document document = {
		.input = {.view = &view,
			.trace = has_rows ? &rows : NULL,
			.is_json = form == REPORT_FORM_JSON},
		.by = by,
	};

	assert_int_equal(trace_report_init(&rows, model, &options, UINT64_MAX, &err), 0);
	return report_document_write(&document, form, &terminal, out, &err);
}

/* JSON without its line breaks and indentation, which no text in it has. */
static void join_lines(struct strbuf *json)
{
	char *to = json->data;

	for (const char *from = json->data; *from; from++) {
		if (*from == '\n')
			from += strspn(from + 1, " ");
		else
			*to++ = *from;
	}
	*to = '\0';
}

#define HEAD                                                                                       \
	"{\"format\": \"sonde-report\",\"version\": 2,\"sonde_version\": \"" SONDE_VERSION "\","

static void expect(
	const struct model *model, const char *by, enum report_form form, const char *text)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	assert_int_equal(write_report(model, by, true, form, &out), 0);
	if (form == REPORT_FORM_JSON)
		join_lines(&out);
	assert_string_equal(strbuf_cstr(&out), text);
}

/* ---- tests ---- */

static void the_analysis_of_a_trace(void **state _unused_)
{
	const struct trace_view_options options = {0};
	_cleanup_model_ struct model *model = make_foreign();
	_cleanup_trace_view_ struct trace_view view = {0};
	_cleanup_toy_longest_ struct toy_longest longest = {0};
	const struct toy_longest_row *row;

	assert_int_equal(trace_view_init(&view, model->traces.items[0], 0, &options), 0);
	assert_int_equal(toy_longest_init(&longest, &view), 0);
	assert_int_equal(longest.rows.count, 2);
	row = &longest.rows.items[0];
	assert_int_equal(row->spans, 4);
	assert_int_equal(row->longest_ns, 300);
	assert_int_equal(row->whole_ns, 1200);
	assert_int_equal(longest.rows.items[1].longest_ns, 50);
}

static void a_recording(void **state _unused_)
{
	_cleanup_model_ struct model *model = make_recording();

	expect(model, NULL, REPORT_FORM_TERMINAL,
		"\n"
		"Longest spans\n"
		"Of all spans backward takes longest.\n"
		"Track     Spans  Longest  Of its time  Span\n"
		"main          2  3.00 \xc2\xb5s      75.00 %  backward\n"
		"stream 3      1   800 ns     100.00 %  gemm\n"
		"\xe2\x86\x92 One span takes more than half of its track's time: look into it "
		"first.\n");
	expect(model, "longest", REPORT_FORM_CSV,
		"rank,track,spans,longest_ns,longest_share,name\r\n"
		"0,main,2,3000,0.75,backward\r\n"
		"0,stream 3,1,800,1,gemm\r\n");
	expect(model, NULL, REPORT_FORM_JSON,
		HEAD "\"longest_spans\": [{\"rank\": 0,\"track\": \"main\",\"spans\": "
		     "2,\"longest_ns\": 3000,\"longest_share\": 0.75,\"name\": "
		     "\"backward\"},{\"rank\": 0,\"track\": \"stream 3\",\"spans\": "
		     "1,\"longest_ns\": 800,\"longest_share\": 1,\"name\": \"gemm\"}],\"advice\": "
		     "[{\"section\": \"longest_spans\",\"id\": \"long_span\",\"sentence\": \"One "
		     "span takes more than half of its track's time: look into it "
		     "first.\",\"evidence\": {\"longest_ns\": 3000,\"whole_ns\": "
		     "4000},\"saves_ns\": null,\"docs\": null}]}");
}

static void a_foreign_trace(void **state _unused_)
{
	_cleanup_model_ struct model *model = make_foreign();

	expect(model, NULL, REPORT_FORM_TERMINAL,
		"\n"
		"Longest spans\n"
		"Of all spans aten::relu takes longest.\n"
		"Track       Spans  Longest  Of its time  Span\n"
		"thread 100      4   300 ns      25.00 %  aten::relu\n"
		"stream 7        2    50 ns       5.00 %  relu\n");
	expect(model, "longest", REPORT_FORM_CSV,
		"rank,track,spans,longest_ns,longest_share,name\r\n"
		"0,thread 100,4,300,0.25,aten::relu\r\n"
		"0,stream 7,2,50,0.05,relu\r\n");
	expect(model, NULL, REPORT_FORM_JSON,
		HEAD "\"longest_spans\": [{\"rank\": 0,\"track\": \"thread 100\",\"spans\": "
		     "4,\"longest_ns\": 300,\"longest_share\": 0.25,\"name\": "
		     "\"aten::relu\"},{\"rank\": 0,\"track\": \"stream 7\",\"spans\": "
		     "2,\"longest_ns\": 50,\"longest_share\": 0.05,\"name\": "
		     "\"relu\"}],\"advice\": []}");
}

/* Without rows there is no such section; --csv, which needs one, is refused. */
static void needs_that_are_not_met(void **state _unused_)
{
	_cleanup_model_ struct model *model = make_recording();
	_cleanup_strbuf_ struct strbuf text = {0}, json = {0}, csv = {0};

	assert_int_equal(write_report(model, "longest", false, REPORT_FORM_TERMINAL, &text), 0);
	assert_string_equal(strbuf_cstr(&text), "");
	assert_int_equal(write_report(model, "longest", false, REPORT_FORM_JSON, &json), 0);
	assert_null(strstr(strbuf_cstr(&json), "longest_spans"));
	assert_int_equal(write_report(model, "longest", false, REPORT_FORM_CSV, &csv), -ENOMSG);
	assert_ptr_equal(report_section_find("longest", REPORT_OF_RECORDING), &toy_section);
	assert_null(report_section_find("longest", REPORT_NEEDS_SAMPLES));
	assert_int_equal(report_sections_need("longest", REPORT_OF_FOREIGN), REPORT_NEEDS_ROWS);
}

/* By itself it says why it has nothing; beside others it is silent, and null in JSON. */
static void nothing_to_say(void **state _unused_)
{
	_cleanup_model_ struct model *model = make_moment();
	_cleanup_strbuf_ struct strbuf json = {0}, csv = {0};

	expect(model, "longest", REPORT_FORM_TERMINAL, "No thread and no stream has a span.\n");
	expect(model, NULL, REPORT_FORM_TERMINAL, "");
	assert_int_equal(write_report(model, NULL, true, REPORT_FORM_JSON, &json), 0);
	assert_non_null(strstr(strbuf_cstr(&json), "\"longest_spans\": null"));
	assert_int_equal(write_report(model, "longest", true, REPORT_FORM_CSV, &csv), -ENOMSG);
}

static void the_schema(void **state _unused_)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	const char *part;

	assert_int_equal(report_document_schema(&out), 0);
	join_lines(&out);
	part = strstr(strbuf_cstr(&out), "\"longest_spans\"");
	assert_non_null(part);
	assert_string_equal(part,
		"\"longest_spans\": {\"type\": [\"array\",\"null\"],"
		"\"description\": \"of each thread and stream\","
		"\"items\": {\"type\": \"object\",\"properties\": {"
		"\"rank\": {\"type\": [\"integer\",\"null\"]},"
		"\"track\": {\"type\": [\"string\",\"null\"],"
		"\"description\": \"a thread, or a stream\"},"
		"\"spans\": {\"type\": [\"integer\",\"null\"]},"
		"\"longest_ns\": {\"type\": [\"number\",\"null\"]},"
		"\"longest_share\": {\"type\": [\"number\",\"null\"],"
		"\"description\": \"of the time from the track's first start to its last end\"},"
		"\"name\": {\"type\": [\"string\",\"null\"]}},"
		"\"required\": [\"rank\",\"track\",\"spans\",\"longest_ns\",\"longest_share\","
		"\"name\"],\"additionalProperties\": false}}},"
		"\"required\": [\"format\",\"version\",\"sonde_version\",\"advice\"],"
		"\"additionalProperties\": false}");
}

static void names(void **state _unused_)
{
	struct report_name found[4];

	assert_int_equal(report_section_names(found, ARRAY_SIZE(found)), 1);
	assert_string_equal(found[0].by, "longest");
	assert_string_equal(found[0].summary, "the longest span of each thread and stream");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_analysis_of_a_trace),
		cmocka_unit_test(a_recording),
		cmocka_unit_test(a_foreign_trace),
		cmocka_unit_test(needs_that_are_not_met),
		cmocka_unit_test(nothing_to_say),
		cmocka_unit_test(the_schema),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
