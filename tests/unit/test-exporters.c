/* SPDX-License-Identifier: Apache-2.0 */
/* Names made safe and short, figures, and what each exporter writes of a small model.
 * tests/e2e/check_exports.py parses whole files.
 */
#include "model-example.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/map.h"
#include "base/source_text.h"
#include "exporters/chrome/time.h"
#include "exporters/exporter.h"
#include "exporters/flamegraph/flamegraph.h"
#include "model/format.h"
#include "model/shorten.h"

#define ELLIPSIS "\xe2\x80\xa6"

typedef void escape_function(struct strbuf *out, const char *text);

static void check_escape(escape_function *escape, const char *text, const char *expected)
{
	struct strbuf out = {0};

	escape(&out, text);
	assert_string_equal(strbuf_cstr(&out), expected);
	strbuf_done(&out);
}

static void test_plain(void **state)
{
	check_escape(escape_plain, "read_line \xc3\xa9", "read_line \xc3\xa9");
	check_escape(escape_plain, "a\nb\x1b[2J\x7f", "a\\x0ab\\x1b[2J\\x7f");
	check_escape(escape_plain,
		"\xc2\x9b"
		"1m",
		"\\u009b1m");                                      /* C1: CSI */
	check_escape(escape_plain, "x\xe2\x80\xaey", "x\\u202ey"); /* turns the direction */
	check_escape(escape_plain, "a\xff\xc3(", "a\xef\xbf\xbd\xef\xbf\xbd(");
}

static void test_other_escapes(void **state)
{
	check_escape(escape_xml, "a<b>&\"'\x01]]>", "a&lt;b&gt;&amp;&quot;&#39;\\x01]]&gt;");
	check_escape(escape_folded, "f;g\nh", "f\\x3bg\\x0ah");
	check_escape(escape_csv, "plain", "plain");
	check_escape(escape_csv, "a,\"b\"", "\"a,\"\"b\"\"\"");
	check_escape(escape_csv, "a\x1b]0;b\a\n\r\xc2\x9b", "a\\x1b]0;b\\x07\\x0a\\x0d\\u009b");
	check_escape(escape_csv, "=1+1", "'=1+1");
	check_escape(escape_csv, "@a,b", "\"'@a,b\"");
	check_escape(escape_csv, "a=b", "a=b");
	check_escape(escape_lines, "a\x1b[2J\nb\tc\r\n", "a\\x1b[2J\nb\\x09c\\x0d\n");
	check_escape(escape_shell, "runs/a-1_b.pftrace", "runs/a-1_b.pftrace");
	check_escape(escape_shell,
		"gr\xc3\xb6\xc3\x9f"
		"e",
		"gr\xc3\xb6\xc3\x9f"
		"e");
	check_escape(escape_shell, "my run's.pftrace", "'my run'\\''s.pftrace'");
	check_escape(escape_shell, "$(reboot)", "'$(reboot)'");
	check_escape(escape_shell, "~x", "'~x'");
	check_escape(escape_shell, "-o", "./-o");
	check_escape(escape_shell, "", "''");
	check_escape(escape_glob, "/any [folder]/*?\\x", "/any \\[folder]/\\*\\?\\\\x");
	check_escape(escape_csv, " x", "\" x\"");
	check_escape(escape_csv, "\xff,", "\"\xef\xbf\xbd,\"");
}

static void test_commands_of_several_lines(void **state)
{
	check_escape(format_command, "python3 train.py -n 5", "python3 train.py -n 5");
	check_escape(
		format_command, "python3 -c import x\nx.y()\n", "python3 -c import x " ELLIPSIS);
	check_escape(format_command, "python3 -c \r\n\n  import x\nx.y()",
		"python3 -c import x " ELLIPSIS);
	check_escape(format_command, "python3 -c import x\n", "python3 -c import x");
	check_escape(format_command, "sh -c \n", "sh -c ");
	check_escape(format_command, "\n", "");
	check_escape(format_command, "", "");
}

static void check_short(const char *name, size_t columns, const char *expected)
{
	struct strbuf out = {0};

	shorten_name(&out, name, columns);
	assert_string_equal(strbuf_cstr(&out), expected);
	assert_true(shorten_columns(strbuf_cstr(&out)) <= columns);
	strbuf_done(&out);
}

static void test_shortening(void **state)
{
	const char *push = "std::vector<int, std::allocator<int> >::push_back(int const&)";

	check_short(push, 80, push);
	check_short(push, 50, "std::vector<" ELLIPSIS ">::push_back(int const&)");
	check_short(push, 30, "std::vector<" ELLIPSIS ">::push_back(" ELLIPSIS ")");
	check_short(push, 20, ELLIPSIS "::push_back(" ELLIPSIS ")");
	check_short("operator<<(std::ostream&, T<int>)", 20, "operator<<(" ELLIPSIS ")");
	check_short(
		"A<int>::operator->(int, int)", 24, "A<" ELLIPSIS ">::operator->(" ELLIPSIS ")");
	check_short("f<void (*)(int) -> long>(x)", 10, "f<" ELLIPSIS ">(x)");
	check_short("[unknown] libfoo.so.1+0x1f600", 40, "[unknown] libfoo.so.1+0x1f600");
	check_short("[unknown] libfoo.so.1+0x1f600", 28, "libfoo.so.1+0x1f600");
	check_short("[unknown] libfoo.so.1+0x1f600", 18, ELLIPSIS "+0x1f600");
	check_short("[unknown] libfoo.so.1+0x1f600", 6, "[unk" ELLIPSIS "0");
	check_short("a_long_c_function_name", 10, "a_long" ELLIPSIS "ame");
	check_short("<frozen importlib>", 8, "<froz" ELLIPSIS "b>");
	check_short("f<unbalanced", 8, "f<unb" ELLIPSIS "ed");
	check_short("abc", 2, "a" ELLIPSIS);
	check_short("abc", 0, "");
	check_short("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 6,
		"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9" ELLIPSIS "\xc3\xa9");
	/* Two columns for each character. */
	check_short("漢字漢字漢字", 7, "漢字" ELLIPSIS "字");
	check_short("漢字漢字漢字", 6, "漢字" ELLIPSIS);
	check_short("漢字漢字漢字", 12, "漢字漢字漢字");
}

/* Shortened together. */
static void check_apart(const char *const *names, const char *const *expected, size_t count,
	size_t columns, bool is_function)
{
	char *texts[8] = {0};

	assert_true(count <= ARRAY_SIZE(texts));
	assert_int_equal(shorten_all(texts, names, count, columns, is_function), 0);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(texts[i], expected[i]);
		assert_true(shorten_columns(texts[i]) <= columns);
		free(texts[i]);
	}
}

#define ELEMENTWISE "void at::native::vectorized_elementwise_kernel<4, "
#define OF_ARRAYS   ", at::detail::Array<char*, 3> >(int, at::detail::Array<char*, 3>)"

static void test_different_names_stay_different(void **state)
{
	static const char *const kernels[] = {
		ELEMENTWISE "at::native::FillFunctor<float>" OF_ARRAYS,
		ELEMENTWISE "at::native::CUDAFunctor_add<float>" OF_ARRAYS,
		ELEMENTWISE "at::native::CUDAFunctor_add<c10::Half>" OF_ARRAYS,
		ELEMENTWISE "at::native::mse_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::"
			    "operator()() const::{lambda(float, float)#1}" OF_ARRAYS,
		"volta_sgemm_128x64_nn",
	};
	static const char *const shown[] = {
		"vectorized" ELLIPSIS "FillFunctor<float>" ELLIPSIS,
		"vectorized" ELLIPSIS "CUDAFunctor_add<fl" ELLIPSIS,
		"vectorized" ELLIPSIS "CUDAFunctor_add<Ha" ELLIPSIS,
		"vectorized" ELLIPSIS "mse_kernel_cuda(fl" ELLIPSIS,
		"volta_sgemm_128x64_nn",
	};
	static const char *const tiles[] = {
		"Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1_SN_WG64_4_1",
		"Cijk_Alik_Bljk_SB_MT64x16x16_MI16x16x1_SN_WG64_4_1",
		"Cijk_Alik_Bljk_SB_MT64x16x16_MI16x16x1_SN_WG64_4_1",
	};
	static const char *const shown_tiles[] = {
		"Cijk_A" ELLIPSIS "32_MI16x16x1" ELLIPSIS,
		"Cijk_A" ELLIPSIS "16_MI16x16x1" ELLIPSIS,
		"Cijk_A" ELLIPSIS "16_MI16x16x1" ELLIPSIS,
	};
	static const char *const ranges[] = {
		"Optimizer.zero_grad#AdamW.zero_grad", "Optimizer.zero_grad#Adam2.zero_grad"};
	static const char *const shown_ranges[] = {
		"Opti" ELLIPSIS "W.zero" ELLIPSIS, "Opti" ELLIPSIS "2.zero" ELLIPSIS};

	(void)state;
	check_apart(kernels, shown, ARRAY_SIZE(kernels), 30, true);
	check_apart(tiles, shown_tiles, ARRAY_SIZE(tiles), 20, true);
	check_apart(ranges, shown_ranges, ARRAY_SIZE(ranges), 12, false);
}

static void check_duration(uint64_t ns, const char *expected)
{
	struct strbuf out = {0};

	format_duration(&out, ns);
	assert_string_equal(strbuf_cstr(&out), expected);
	strbuf_done(&out);
}

static void test_figures(void **state)
{
	struct strbuf out = {0};

	check_duration(0, "0 s");
	check_duration(999, "999 ns");
	check_duration(1500, "1.50 \xc2\xb5s");
	check_duration(45600000, "45.6 ms");
	check_duration(999600000, "1.00 s");
	check_duration(599 * NS_PER_S, "599 s");
	check_duration(605 * NS_PER_S, "10 min 5 s");
	check_duration(3700 * NS_PER_S, "1 h 1 min");
	format_count(&out, 1234567);
	strbuf_add_char(&out, ' ');
	format_count(&out, 123);
	strbuf_add_char(&out, ' ');
	format_bytes(&out, 1536);
	strbuf_add_char(&out, ' ');
	format_duration_change(&out, -0.5);
	assert_string_equal(strbuf_cstr(&out), "1,234,567 123 1.50 KiB -500 ms");
	strbuf_clear(&out);
	format_rate(&out, 0.61304);
	strbuf_add_char(&out, ' ');
	format_rate(&out, 9999.4);
	strbuf_add_char(&out, ' ');
	format_rate(&out, 14792.6);
	assert_string_equal(strbuf_cstr(&out), "0.613 9999 14,793");
	strbuf_done(&out);
}

/* main → f, three samples; main → f (inlined g), two; no stack, one. */
static struct model *sample_model(void)
{
	static const struct capture_symbol_line lines[] = {{"g", "g.c", 3}, {"f", "f.c", 9}};
	struct example example;
	capture_id app, entry;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	app = example_mapping(&example, "/bin/app");
	entry = example_frame(&example, "main", app, 1);
	example_frames(&example, WIRE_STOP_COMPLETE, entry, example_frame(&example, "f", app, 2));
	example_frames(&example, WIRE_STOP_COMPLETE, entry, example_frame(&example, NULL, app, 3));
	assert_int_equal(model_builder_visitor.symbols(example.builder, app, 3, lines, 2), 0);
	example_process(&example, 7, "app;x", 0);
	example_thread(&example, 7, 8, "worker");
	example_samples(&example, 7, 7, 1, 1000, 3);
	example_samples(&example, 7, 8, 2, 1000, 2);
	example_samples(&example, 7, 8, 0, 900000000, 1);
	return example_end(&example);
}

static char *export_model(
	const struct model *model, const char *format, const struct export_options *options)
{
	const struct exporter *exporter = exporter_find(format);
	struct strbuf out = {0};

	assert_non_null(exporter);
	assert_int_equal(exporter->export(model, NULL, options, &out, NULL), 0);
	assert_true(out.length > 0);
	return out.data;
}

static char *export_with(const char *format, const struct export_options *options)
{
	struct model *model = sample_model();
	char *text = export_model(model, format, options);

	model_free(model);
	return text;
}

static void test_folded(void **state)
{
	struct export_options options = {.size = sizeof(options), .roots = CALL_TREE_ROOTS_THREAD};
	char *plain = export_with("folded", NULL), *rooted = export_with("folded", &options);

	assert_string_equal(plain, "main;f 3\nmain;f;g_[i] 2\n[no stack] 1\n");
	assert_string_equal(rooted,
		"app\\x3bx;worker;main;f;g_[i] 2\napp\\x3bx;app\\x3bx;main;f 3\n"
		"app\\x3bx;worker;[no stack] 1\n");
	free(plain);
	free(rooted);
}

static void test_csv(void **state)
{
	char *text = export_with("csv", NULL);

	assert_non_null(strstr(text,
		"\r\n0.5,3000000,3,,,,,0.833333333,5000000,5,,,,,f,true,app,/bin/app,native,f.c,"));
	assert_non_null(strstr(text, ",[no stack],false,,,,,\r\n"));
	free(text);
}

/* The first three samples touch: one slice of 3 ms for main and f; the far one stands alone. */
static void test_chrome(void **state)
{
	char *text = export_with("chrome", NULL);

	assert_non_null(strstr(text,
		"{\"ph\":\"X\",\"name\":\"f\",\"cat\":\"native\",\"args\":{\"module\":\"app\","
		"\"self_samples\":3},\"ts\":"));
	assert_non_null(strstr(text, ".000,\"dur\":3000.000,\"pid\":7,\"tid\":7}"));
	assert_non_null(strstr(text, "\"name\":\"[no stack]\""));
	assert_non_null(strstr(text, "\"name\":\"thread_name\""));
	free(text);
}

/* What a reader has: the text's numbers as doubles. */
struct read_span {
	double ts, dur;
};

static struct read_span write_and_read(
	const struct chrome_clock *clock, uint64_t start_ns, uint64_t end_ns)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct read_span span;
	const char *text;
	char *end;

	chrome_add_span(&out, clock, start_ns, end_ns);
	text = strbuf_cstr(&out);
	assert_int_equal(strncmp(text, ",\"ts\":", 6), 0);
	span.ts = strtod(text + 6, &end);
	assert_int_equal(strncmp(end, ",\"dur\":", 7), 0);
	span.dur = strtod(end + 7, &end);
	assert_int_equal(*end, '\0');
	return span;
}

static int compare_times(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Slices that touch, and slices that end with what they lie in, do so in doubles, too: of traces of
 * a microsecond to a month, whose nanoseconds are read as they are.
 */
static void test_chrome_times_are_exact(void **state)
{
	uint64_t random = 1;

	for (uint64_t length_ns = 1000; length_ns < 24ULL * 3600 * NS_PER_S; length_ns *= 3) {
		struct chrome_clock clock = {.origin_ns = 12345, .first_ns = NS_PER_US};

		while (clock.first_ns < length_ns + NS_PER_US)
			clock.first_ns *= 2;
		for (int i = 0; i < 3000; i++) {
			uint64_t times[3];
			struct read_span outer, before, after;
			double first;

			for (int j = 0; j < 3; j++) {
				random = hash_u64(random + 1);
				times[j] = clock.origin_ns + random % length_ns;
			}
			qsort(times, ARRAY_SIZE(times), sizeof(*times), compare_times);
			outer = write_and_read(&clock, times[0], times[2]);
			before = write_and_read(&clock, times[0], times[1]);
			after = write_and_read(&clock, times[1], times[2]);
			assert_true(outer.ts == before.ts);
			assert_true(before.ts + before.dur == after.ts);
			assert_true(after.ts + after.dur == outer.ts + outer.dur);
			/* As speedscope does: times since the first one. */
			first = (double)clock.first_ns / NS_PER_US;
			assert_true(before.ts - first + before.dur == after.ts - first);
			assert_true(after.ts - first + after.dur == outer.ts - first + outer.dur);
			assert_int_equal((uint64_t)(outer.ts * 1000 + 0.5),
				clock.first_ns + times[0] - clock.origin_ns);
			assert_int_equal((uint64_t)(outer.dur * 1000 + 0.5), times[2] - times[0]);
		}
	}
}

#define WORK(queue_id, begin, end, call, call_duration)                                            \
	{                                                                                          \
		.kind = WIRE_DEVICE_KERNEL, .name = "k", .device = "gpu", .pid = 7, .tid = 8,      \
		.queue = (queue_id), .start_ns = (begin), .end_ns = (end), .launch_ns = (call),    \
		.launch_duration_ns = (call_duration), .correlation = (call)                       \
	}

static struct model *device_model(void)
{
	static const struct capture_device_work works[] = {
		WORK(1, 3000, 5000, 1000, 500), /* two nodes of a graph: one call */
		WORK(1, 5000, 6000, 1000, 500),
		WORK(1, 5500, 7000, 2000, 10), /* overlaps: a place of its own */
		WORK(2, 5500, 7000, 0, 0),     /* whose call is not known */
		{.kind = WIRE_DEVICE_WRITE,
			.device = "another \"gpu\"",
			.pid = 7,
			.start_ns = 9000,
			.end_ns = 9000,
			.bytes = 64},
	};
	struct model_builder *builder;
	struct model *model;

	assert_int_equal(model_builder_new(&builder), 0);
	for (size_t i = 0; i < ARRAY_SIZE(works); i++)
		assert_int_equal(model_builder_visitor.device_work(builder, &works[i]), 0);
	assert_int_equal(model_builder_finish(builder, NULL, &model), 0);
	model_builder_free(builder);
	return model;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)); text++)
		count++;
	return count;
}

static void test_chrome_device_work(void **state)
{
	struct selection selection = {0};
	_cleanup_model_ struct model *model = device_model();
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	const char *text;

	assert_int_equal(exporter_find("chrome")->export(model, &selection, NULL, &out, &err), 0);
	text = strbuf_cstr(&out);
	assert_int_equal(count_of(text, "\"cat\":\"kernel\""), 4);
	assert_int_equal(count_of(text, "\"cat\":\"gpu_memcpy\""), 1);
	assert_int_equal(count_of(text, "\"cat\":\"cuda_runtime\""), 2);
	assert_int_equal(count_of(text, "\"ph\":\"s\""), 2);
	assert_int_equal(count_of(text, "\"ph\":\"f\""), 3);
	assert_int_equal(count_of(text, "\"name\":\"process_name\""), 3);
	assert_non_null(strstr(text, "\"queue 1 of"));
	assert_non_null(strstr(text, "(7), 2\""));
	assert_non_null(strstr(text, "another \\\"gpu\\\""));
	selection.process = "no such process";
	strbuf_clear(&out);
	assert_int_equal(selection_narrow(&selection, model, &err), 0);
	assert_int_equal(exporter_find("chrome")->export(model, &selection, NULL, &out, &err), 0);
	assert_null(strstr(strbuf_cstr(&out), "\"kernel\""));
}

/* Two windows of 10 ms, less than half a period apart: samples at the end of the one and the begin
 * of the other, which would be one slice. */
static void test_windows(void **state)
{
	static const uint64_t begins[] = {100000000, 110400000};
	struct example example;
	struct model *model;
	char *text;
	capture_id stack;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	stack = example_frames(&example, WIRE_STOP_COMPLETE,
		example_frame(&example, "f", example_mapping(&example, "/bin/app"), 1));
	for (uint32_t i = 0; i < 2; i++) {
		const struct capture_window window = {.number = i + 1,
			.begin_ns = begins[i],
			.end_ns = begins[i] + 10000000,
			.first_step = 1,
			.opened_by = CAPTURE_TRIGGER_FLAG,
			.closed_by = CAPTURE_REASON_TRIGGER};
		const struct capture_step step = {.time_ns = begins[i] + 2000000,
			.pid = 7,
			.tid = 7,
			.number = 5 + i,
			.name = "s"};

		assert_int_equal(model_builder_visitor.window(example.builder, &window), 0);
		assert_int_equal(model_builder_visitor.step(example.builder, &step), 0);
	}
	example_samples(&example, 7, 7, stack, begins[0] + 9500000, 1);
	example_samples(&example, 7, 7, stack, begins[1], 1);
	model = example_end(&example);
	text = export_model(model, "chrome", NULL);
	assert_int_equal(count_of(text, "\"self_samples\":1"), 2);
	assert_non_null(
		strstr(text, "\"dur\":500.000")); /* of the window's last half millisecond */
	assert_non_null(strstr(text, "\"name\":\"window 2\""));
	assert_non_null(strstr(text, "\"args\":{\"number\":2,\"opened_by\":\"flag\","
				     "\"closed_by\":\"trigger\"}"));
	assert_int_equal(count_of(text, "\"end\":\"cut off\""), 2);
	free(text);
	text = export_model(model, "flamegraph", NULL);
	assert_non_null(strstr(text, "20.0 ms")); /* recorded, not the 20.4 ms that passed */
	free(text);
	model_free(model);
}

/* Into one file; those of rows have tests/e2e/test_traces.py. */
static bool writes_samples(const struct exporter *exporter)
{
	return exporter->export && exporter->shows == SELECTION_SAMPLES;
}

static void test_every_exporter_runs_and_repeats(void **state)
{
	for (const struct exporter *const *exporter = exporters; *exporter; exporter++) {
		char *one, *other;

		if (!writes_samples(*exporter))
			continue;
		one = export_with((*exporter)->name, NULL);
		other = export_with((*exporter)->name, NULL);
		assert_string_equal(one, other);
		assert_ptr_equal(exporter_find((*exporter)->name), *exporter);
		free(one);
		free(other);
	}
	assert_null(exporter_find("nonsense"));
}

static void test_a_bad_filter_stops_every_exporter(void **state)
{
	struct model *model = sample_model();
	struct selection selection = {.symbol = "("};

	for (const struct exporter *const *exporter = exporters; *exporter; exporter++) {
		struct strbuf out = {0};
		struct errmsg err = {0};

		if (!writes_samples(*exporter))
			continue;
		assert_int_equal((*exporter)->export(model, &selection, NULL, &out, &err), -EINVAL);
		assert_non_null(strstr(err.text, "--symbol"));
		strbuf_done(&out);
	}
	model_free(model);
}

/* No samples at all: still whole files. */
static void test_an_empty_model(void **state)
{
	struct example example;
	struct model *model;

	example_begin(&example, 0);
	model = example_end(&example);
	for (const struct exporter *const *exporter = exporters; *exporter; exporter++) {
		struct strbuf out = {0};

		if (!writes_samples(*exporter))
			continue;
		assert_int_equal((*exporter)->export(model, NULL, NULL, &out, NULL), 0);
		assert_null(strstr(strbuf_cstr(&out), "nan"));
		strbuf_done(&out);
	}
	model_free(model);
}

static void test_differential_flamegraph(void **state)
{
	static const struct selection everything = {0};
	struct model *model = sample_model();
	struct selected selected;
	struct call_tree tree;
	struct strbuf out = {0};

	assert_int_equal(selection_apply(&everything, model, &selected, NULL), 0);
	assert_int_equal(call_tree_init(&tree), 0);
	assert_int_equal(call_tree_add(&tree, 0, model, &selected, CALL_TREE_ROOTS_NONE), 0);
	/* After: only the samples of f with g inlined. */
	memset(selected.samples, 0, model->samples.count * sizeof(bool));
	for (size_t i = 0; i < model->samples.count; i++)
		selected.samples[i] = model->samples.items[i].stack == 1;
	assert_int_equal(call_tree_add(&tree, 1, model, &selected, CALL_TREE_ROOTS_NONE), 0);
	assert_int_equal(call_tree_finish(&tree), 0);
	assert_int_equal(flamegraph_write_diff(&tree, MODEL_WEIGHT_CPU, "a<b", "c", &out), 0);
	assert_non_null(strstr(strbuf_cstr(&out), "a&lt;b \xe2\x86\x92 c"));
	assert_non_null(strstr(strbuf_cstr(&out), "df r6")); /* g: 2 of 6 before, all after */
	assert_non_null(strstr(strbuf_cstr(&out), "33.33 % \xe2\x86\x92 after 100.00 %"));
	assert_non_null(strstr(strbuf_cstr(&out), "df b")); /* no stack: gone, and still drawn */
	strbuf_done(&out);
	call_tree_done(&tree);
	selected_done(&selected);
	model_free(model);
}

static void check_shortened(void (*shorten)(struct strbuf *, const char *, size_t),
	const char *text, size_t columns, const char *expected)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	shorten(&out, text, columns);
	assert_string_equal(strbuf_cstr(&out), expected);
}

static void test_paths_keep_their_end(void **state)
{
	static const char path[] = "/home/me/experiments/train.py:80";

	check_shortened(shorten_path, path, 32, path);
	check_shortened(shorten_path, path, 26, "\xe2\x80\xa6/experiments/train.py:80");
	check_shortened(shorten_path, path, 24,
		"\xe2\x80\xa6"
		"experiments/train.py:80");
	check_shortened(shorten_path, path, 15, "\xe2\x80\xa6/train.py:80");
	check_shortened(shorten_path, "/実験/訓練.py:80", 10, "\xe2\x80\xa6練.py:80");
	check_shortened(shorten_path, path, 6, "\xe2\x80\xa6py:80");
	check_shortened(shorten_path, path, 1, "\xe2\x80\xa6");
	check_shortened(shorten_path, path, 0, "");
	check_shortened(shorten_end, "loss.backward()", 9, "loss.bac\xe2\x80\xa6");
}

static void write_file(const char *path, mode_t mode, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void check_line(
	struct source_text *source, const char *path, uint32_t number, const char *expected)
{
	_cleanup_strbuf_ struct strbuf out = {0};

	assert_int_equal(source_text_line(source, path, number, &out), 0);
	assert_string_equal(strbuf_cstr(&out), expected);
}

static void test_source_is_read_with_care(void **state)
{
	char folder[] = "/tmp/sonde-test-source-XXXXXX", path[64], other[64];
	_cleanup_source_text_ struct source_text *source = NULL;
	_cleanup_source_text_ struct source_text *before = NULL;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/train.py", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(source_text_new(&source, 0), 0);
	assert_int_equal(source_text_new(&before, 1 * NS_PER_S), 0);
	write_file(path, 0644, "import torch\n\tloss.backward()  \r\nlast\n");
	check_line(source, path, 1, "import torch");
	check_line(source, path, 2, "loss.backward()");
	check_line(source, path, 3, "last");
	check_line(source, path, 4, "");
	check_line(source, path, 0, "");
	check_line(before, path, 1, ""); /* changed since the recording */
	check_line(source, "/dev/zero", 1, "");
	check_line(source, folder, 1, "");
	check_line(source, "<string>", 1, "");
	assert_int_equal(symlink(path, other), 0);
	check_line(source, other, 1, "");
	unlink(other);
	assert_int_equal(mkfifo(other, 0644), 0);
	check_line(before, other, 1, ""); /* does not wait for a writer */
	unlink(other);
	if (geteuid() == 0) {
		snprintf(other, sizeof(other), "%s/secret", folder);
		write_file(other, 0600, "hash\n");
		check_line(source, other, 1, "");
		unlink(other);
	}
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_keep_their_end),
		cmocka_unit_test(test_source_is_read_with_care),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_other_escapes),
		cmocka_unit_test(test_commands_of_several_lines),
		cmocka_unit_test(test_shortening),
		cmocka_unit_test(test_different_names_stay_different),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_chrome),
		cmocka_unit_test(test_chrome_times_are_exact),
		cmocka_unit_test(test_chrome_device_work),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_every_exporter_runs_and_repeats),
		cmocka_unit_test(test_a_bad_filter_stops_every_exporter),
		cmocka_unit_test(test_an_empty_model),
		cmocka_unit_test(test_differential_flamegraph),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
