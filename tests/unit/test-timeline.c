/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of timelines, beside what going over all slices gives. */
#include "trace-example.h"

#include <endian.h>
#include <errno.h>
#include <math.h>

#include "model-example.h"
#include "query/timeline/timeline.h"

static const char *const path = "trace.json";

/* ---- an answer ---- */

struct answer {
	struct strbuf bytes;
	uint32_t count, flows, flows_left_out;
};

static uint32_t u32_at(const struct answer *answer, size_t offset)
{
	uint32_t value;

	assert_true(offset + sizeof(value) <= answer->bytes.length);
	memcpy(&value, answer->bytes.data + offset, sizeof(value));
	return le32toh(value);
}

static double f64_at(const struct answer *answer, size_t offset)
{
	uint64_t bits;
	double value;

	assert_true(offset + sizeof(bits) <= answer->bytes.length);
	memcpy(&bits, answer->bytes.data + offset, sizeof(bits));
	bits = le64toh(bits);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The n-th array of doubles, then of numbers, of slices. */
static double real_of(const struct answer *answer, unsigned array, uint32_t i)
{
	return f64_at(answer, 48 + 8 * ((size_t)array * answer->count + i));
}

static uint32_t number_of(const struct answer *answer, unsigned array, uint32_t i)
{
	return u32_at(
		answer, 48 + 24 * (size_t)answer->count + 4 * ((size_t)array * answer->count + i));
}

enum { REAL_START, REAL_DURATION, REAL_BUSY };
enum { NUMBER_NAME, NUMBER_MERGED, NUMBER_LANE, NUMBER_CATEGORY };

static void ask(const struct timeline *timeline, const struct timeline_request *request,
	struct answer *answer)
{
	struct errmsg err;
	size_t expected;

	strbuf_clear(&answer->bytes);
	assert_int_equal(timeline_tile(timeline, request, &answer->bytes, &err), 0);
	assert_int_equal(u32_at(answer, 0), TIMELINE_MAGIC);
	assert_int_equal(u32_at(answer, 8), request->track);
	answer->count = u32_at(answer, 36);
	answer->flows = u32_at(answer, 40);
	answer->flows_left_out = u32_at(answer, 44);
	expected = u32_at(answer, 12) ? 40 * (size_t)answer->count
				      : 40 * (size_t)answer->count + 32 * (size_t)answer->flows;
	assert_int_equal(answer->bytes.length, 48 + expected);
}

/* ---- made-up slices ---- */

#define NAMES 5
#define LANES 6

struct slice {
	int64_t start_ns, duration_ns;
	uint32_t name;
};

struct made {
	uint64_t random;
	struct trace *trace;
	ARRAY_OF(struct slice) lanes[LANES];
};

static uint64_t next_random(struct made *made, uint64_t below)
{
	made->random = hash_u64(made->random + 1);
	return below ? made->random % below : 0;
}

/* Slices next to each other in [start, end), with others inside of them. */
static void fill(struct made *made, unsigned lane, int64_t start_ns, int64_t end_ns)
{
	static const char *const names[NAMES] = {"a", "b", "c", "d", "e"};

	while (lane < LANES && start_ns < end_ns) {
		/* Some are short, some are long, some touch. */
		uint64_t scale = 1ULL << next_random(made, 18);
		int64_t at = start_ns +
			     (int64_t)next_random(made, 2 * scale) * (int64_t)next_random(made, 2);
		int64_t duration = 1 + (int64_t)next_random(made, 2 * scale);
		uint32_t name = (uint32_t)(next_random(made, 3) ? 0 : next_random(made, NAMES));
		struct slice slice = {at, MIN(duration, end_ns - at), name};

		if (at >= end_ns)
			return;
		example_host(made->trace, TRACE_CPU_OP, names[name], 1, at, slice.duration_ns, 0);
		assert_int_equal(array_append(&made->lanes[lane], slice), 0);
		/* A slice of the same length would be the outer one of both. */
		if (slice.duration_ns > 2)
			fill(made, lane + 1, at + 1, at + slice.duration_ns - 1);
		start_ns = at + slice.duration_ns;
	}
}

static struct model *model_of(struct trace *trace)
{
	struct model *model = model_new();

	assert_non_null(model);
	example_trace_finish(trace);
	assert_int_equal(array_append(&model->traces, trace), 0);
	return model;
}

static struct timeline *timeline_of(struct model *model)
{
	const struct query query = {.paths = &path, .count = 1, .model = model};
	struct timeline *timeline = NULL;
	struct errmsg err;

	assert_int_equal(timeline_new(&timeline, &query, &err), 0);
	return timeline;
}

/* ---- the same by going over all ---- */

struct expected {
	int64_t start_ns, end_ns, busy_ns, by_name_ns[NAMES];
	int64_t column; /* -1: a long one */
	uint32_t merged, lane;
};

struct expected_slices {
	ARRAY_OF(struct expected) items;
};

static void add_expected(struct expected_slices *slices, const struct slice *slice, uint32_t lane,
	const struct timeline_request *request, int64_t column_ns)
{
	int64_t end_ns = slice->start_ns + slice->duration_ns;
	struct expected added = {.start_ns = slice->start_ns,
		.end_ns = end_ns,
		.busy_ns = slice->duration_ns,
		.column = MAX(0, slice->start_ns - request->from_ns) / column_ns,
		.merged = 1,
		.lane = lane};
	struct expected *last =
		slices->items.count ? &slices->items.items[slices->items.count - 1] : NULL;

	if (slice->start_ns >= request->to_ns || end_ns <= request->from_ns)
		return;
	added.by_name_ns[slice->name] = slice->duration_ns;
	if (slice->duration_ns >= column_ns)
		added.column = -1;
	if (last && last->lane == lane && added.column >= 0 && last->column == added.column) {
		last->end_ns = end_ns;
		last->busy_ns += slice->duration_ns;
		last->by_name_ns[slice->name] += slice->duration_ns;
		last->merged++;
		return;
	}
	assert_int_equal(array_append(&slices->items, added), 0);
}

static void check_name(
	const struct timeline *timeline, uint32_t name, const struct expected *expected)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	struct errmsg err;
	int letter;

	assert_int_equal(timeline_names(timeline, &name, 1, &text, &err), 0);
	letter = strbuf_cstr(&text)[2] - 'a';
	assert_in_range(letter, 0, NAMES - 1);
	assert_true(expected->by_name_ns[letter] > 0);
	for (int other = 0; other < NAMES; other++)
		assert_true(
			other == letter || 2 * expected->by_name_ns[other] <= expected->busy_ns);
}

static void check_tile(const struct timeline *timeline, const struct made *made,
	const struct timeline_request *request, struct answer *answer)
{
	int64_t column_ns =
		(request->to_ns - request->from_ns + request->columns - 1) / request->columns;
	struct expected_slices expected = {0};

	for (uint32_t lane = 0; lane < LANES; lane++) {
		array_foreach (&made->lanes[lane], slice)
			add_expected(&expected, slice, lane, request, column_ns);
	}
	ask(timeline, request, answer);
	assert_int_equal(answer->count, expected.items.count);
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct expected *slice = &expected.items.items[i];

		assert_true(real_of(answer, REAL_START, i) == (double)slice->start_ns);
		assert_true(real_of(answer, REAL_DURATION, i) ==
			    (double)(slice->end_ns - slice->start_ns));
		assert_true(real_of(answer, REAL_BUSY, i) == (double)slice->busy_ns);
		assert_int_equal(number_of(answer, NUMBER_MERGED, i), slice->merged);
		assert_int_equal(number_of(answer, NUMBER_LANE, i), slice->lane);
		assert_int_equal(number_of(answer, NUMBER_CATEGORY, i), TRACE_CPU_OP);
		check_name(timeline, number_of(answer, NUMBER_NAME, i), slice);
	}
	array_done(&expected.items);
}

static void test_tiles_of_random_slices(void **state)
{
	enum { SPAN_NS = 20000000, TILES = 300 };
	struct made made = {.random = 7, .trace = example_trace_new()};
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	struct answer answer = {0};

	/* The first begins at 0, as the timeline does. */
	example_host(made.trace, TRACE_CPU_OP, "a", 1, 0, 1, 0);
	assert_int_equal(array_append(&made.lanes[0], (struct slice){0, 1, 0}), 0);
	fill(&made, 0, 1, SPAN_NS);
	model = model_of(made.trace);
	timeline = timeline_of(model);
	for (int i = 0; i < TILES; i++) {
		int64_t span =
			1 + (int64_t)next_random(&made, 1ULL << (1 + next_random(&made, 25)));
		int64_t from = (int64_t)next_random(&made, SPAN_NS);
		const struct timeline_request request = {
			.from_ns = from,
			.to_ns = from + span,
			.columns = 1 + (uint32_t)next_random(&made, 2000),
		};

		check_tile(timeline, &made, &request, &answer);
	}
	strbuf_done(&answer.bytes);
	for (int lane = 0; lane < LANES; lane++)
		array_done(&made.lanes[lane]);
}

/* ---- what else there is ---- */

static void test_nothing_long_is_dropped(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	const struct timeline_request request = {.to_ns = 100000, .columns = 10};
	struct answer answer = {0};

	for (int i = 0; i < 1000; i++)
		example_host(trace, TRACE_CPU_OP, "short", 1, i * 10, 5, 0);
	example_host(trace, TRACE_CPU_OP, "long", 1, 10000, 20000, 0);
	for (int i = 0; i < 1000; i++)
		example_host(trace, TRACE_CPU_OP, "short", 1, 30000 + i * 70, 5, 0);
	model = model_of(trace);
	timeline = timeline_of(model);
	ask(timeline, &request, &answer);
	assert_int_equal(answer.count, 9);
	assert_true(real_of(&answer, REAL_START, 1) == 10000);
	assert_true(real_of(&answer, REAL_DURATION, 1) == 20000);
	assert_int_equal(number_of(&answer, NUMBER_MERGED, 0), 1000);
	assert_int_equal(number_of(&answer, NUMBER_MERGED, 1), 1);
	strbuf_done(&answer.bytes);
}

static void test_spikes_of_counters_survive(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf tracks = {0};
	struct timeline_request request = {
		.track = 0, .from_ns = 1000, .to_ns = 100000, .columns = 7};
	struct answer answer = {0};
	double smallest = INFINITY, largest = -INFINITY;

	example_host(trace, TRACE_CPU_OP, "op", 1, 0, 10, 0);
	for (int64_t i = 0; i < 100000; i++) {
		const struct trace_counter counter = {.time_ns = i,
			.name = example_text(trace, "bytes"),
			.value = i == 77777   ? 1e6
				 : i == 33333 ? -5
				 : i == 500   ? (double)NAN
					      : 1};

		assert_int_equal(array_append(&trace->counters, counter), 0);
	}
	model = model_of(trace);
	timeline = timeline_of(model);
	assert_int_equal(timeline_tracks(timeline, 1, &tracks), 0);
	assert_non_null(strstr(strbuf_cstr(&tracks), "\"minimum\":-5,\"maximum\":1000000"));
	request.track = strstr(strbuf_cstr(&tracks), "\"counter\"") <
					strstr(strbuf_cstr(&tracks), "\"thread\"")
				? 0
				: 1;
	ask(timeline, &request, &answer);
	assert_int_equal(answer.count, 8);
	assert_true(real_of(&answer, 0, 0) == 1000);
	for (uint32_t i = 0; i < answer.count; i++) {
		smallest = fmin(smallest, real_of(&answer, 2, i));
		largest = fmax(largest, real_of(&answer, 3, i));
	}
	assert_true(smallest == -5 && largest == 1e6);
	strbuf_done(&answer.bytes);
}

static void test_flows(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	struct timeline_request request = {.track = 1, .to_ns = 10000, .columns = 1000};
	struct answer answer = {0};

	for (int i = 0; i < 5; i++)
		example_launch(
			trace, "kernel", 7, i * 1000, 50, i * 1000 + 500, 200, 1 + (uint64_t)i);
	model = model_of(trace);
	timeline = timeline_of(model);
	ask(timeline, &request, &answer);
	assert_int_equal(answer.count, 5);
	assert_int_equal(answer.flows, 5);
	assert_true(f64_at(&answer, 48 + 40 * 5) == 0);
	assert_true(f64_at(&answer, 48 + 40 * 5 + 8 * 5) == 500);
	/* Too small to be there by themselves. */
	request.columns = 2;
	ask(timeline, &request, &answer);
	assert_int_equal(answer.flows, 0);
	strbuf_done(&answer.bytes);
}

/* ---- one slice ---- */

static const char *slice_at(
	const struct timeline *timeline, struct timeline_slice_request request, struct strbuf *out)
{
	struct errmsg err;

	strbuf_clear(out);
	assert_int_equal(timeline_slice(timeline, &request, out, &err), 0);
	return strbuf_cstr(out);
}

static void assert_has(const char *text, const char *part)
{
	assert_non_null(strstr(text, part));
}

/* An operator that makes two calls, each of which launches a kernel. */
static void test_links_of_launches(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf out = {0};
	const char *text;

	example_host(trace, TRACE_CPU_OP, "aten::mm", 100, 0, 900, 0);
	example_launch(trace, "first", 7, 100, 50, 5000, 200, 1);
	example_launch(trace, "second", 7, 300, 50, 6000, 100, 2);
	example_launch(trace, "third", 7, 2000, 50, 7000, 100, 3);
	model = model_of(trace);
	timeline = timeline_of(model);

	text = slice_at(timeline, (struct timeline_slice_request){.track = 0, .at_ns = 899}, &out);
	assert_has(text, "\"name\":\"aten::mm\"");
	assert_has(text, "\"previous_ns\":null,\"next_ns\":2000");
	assert_has(text, "{\"kind\":\"launched\",\"track\":1,\"lane\":0,\"name\":\"first\","
			 "\"start_ns\":5000,\"duration_ns\":200,\"from_ns\":100,\"from_lane\":1}");
	assert_has(text, "\"name\":\"second\"");
	assert_null(strstr(text, "third"));
	assert_has(text, "\"links_left_out\":0");

	text = slice_at(timeline, (struct timeline_slice_request){.track = 1, .at_ns = 6000}, &out);
	assert_has(text, "\"kind\":\"launched_by\",\"track\":0,\"lane\":1");
	assert_has(text, "\"start_ns\":300");
	assert_has(text, "\"stack\":[\"aten::mm\",");
	assert_has(text, "\"title\":\"correlation id\",\"kind\":\"text\",\"value\":\"2\"");
}

static void add_flow(struct trace *trace, int64_t time_ns, uint64_t id, uint32_t track, bool is_end)
{
	const struct trace_flow flow = {.time_ns = time_ns,
		.id = id,
		.track = track,
		.category_name = example_text(trace, TRACE_FLOW_TO_BACKWARD),
		.is_end = is_end};

	assert_int_equal(array_append(&trace->flows, flow), 0);
}

static void test_links_of_gradients(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf out = {0};
	const char *text;

	example_host(trace, TRACE_CPU_OP, "linear", 1, 0, 100, 0);
	example_host(trace, TRACE_CPU_OP, "addmm", 1, 10, 50, 0);
	example_host(trace, TRACE_CPU_OP, "relu", 1, 200, 50, 0);
	example_host(trace, TRACE_CPU_OP, "AddmmBackward0", 2, 1000, 80, 0);
	add_flow(trace, 10, 5, 0, false);
	add_flow(trace, 1000, 5, 1, true);
	add_flow(trace, 200, 6, 0, false); /* its end is missing */
	model = model_of(trace);
	timeline = timeline_of(model);

	text = slice_at(timeline, (struct timeline_slice_request){.track = 0, .at_ns = 0}, &out);
	assert_has(
		text, "\"kind\":\"backward\",\"track\":1,\"lane\":0,\"name\":\"AddmmBackward0\"");
	assert_has(text, "\"from_ns\":10,\"from_lane\":1");
	text = slice_at(timeline, (struct timeline_slice_request){.track = 1, .at_ns = 1000}, &out);
	assert_has(text, "\"kind\":\"forward\",\"track\":0,\"lane\":1,\"name\":\"addmm\"");
	text = slice_at(timeline, (struct timeline_slice_request){.track = 0, .at_ns = 200}, &out);
	assert_has(text, "\"links\":[]");
}

static void test_many_links_are_counted(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf out = {0};

	example_host(trace, TRACE_CPU_OP, "step", 100, 0, 1000000, 0);
	for (int i = 0; i < TIMELINE_LINKS_MAX + 30; i++)
		example_launch(
			trace, "k", 7, 10 + i * 100, 50, 1000000 + i * 100, 50, 1 + (uint64_t)i);
	model = model_of(trace);
	timeline = timeline_of(model);
	assert_has(slice_at(timeline, (struct timeline_slice_request){0}, &out),
		"\"links_left_out\":30");
}

static void test_slices_that_are_not_there(void **state)
{
	static const struct timeline_slice_request requests[] = {
		{.track = 9}, {.lane = 3}, {.at_ns = 50}, {.at_ns = -1}};
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;

	example_host(trace, TRACE_CPU_OP, "op", 1, 0, 10, 0);
	example_host(trace, TRACE_CPU_OP, "op", 1, 100, 10, 0);
	model = model_of(trace);
	timeline = timeline_of(model);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		_cleanup_strbuf_ struct strbuf out = {0};
		struct errmsg err;

		assert_int_equal(timeline_slice(timeline, &requests[i], &out, &err), -EINVAL);
		assert_int_equal(out.length, 0);
	}
}

static void test_deep_and_distant_rows(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf tracks = {0};
	struct timeline_request request = {.to_ns = INT64_MAX / 4, .columns = 100};
	struct answer answer = {0};

	for (int i = 0; i < 2 * TIMELINE_LANES_MAX; i++)
		example_host(trace, TRACE_CPU_OP, "deep", 1, i, 10000 - 2 * i, 0);
	example_host(trace, TRACE_CPU_OP, "late", 1, INT64_MAX - 5, INT64_MAX, 0);
	example_host(trace, TRACE_CPU_OP, "moment", 1, 20000, TRACE_NO_DURATION, 0);
	model = model_of(trace);
	timeline = timeline_of(model);
	assert_int_equal(timeline_tracks(timeline, 1, &tracks), 0);
	assert_non_null(
		strstr(strbuf_cstr(&tracks), "\"lanes\":128,\"slices\":130,\"too_deep\":128"));
	ask(timeline, &request, &answer);
	strbuf_done(&answer.bytes);
}

static void check_refused(
	const struct timeline *timeline, struct timeline_request request, const char *word)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	assert_int_equal(timeline_tile(timeline, &request, &out, &err), -EINVAL);
	assert_non_null(strstr(err.text, word));
	assert_int_equal(out.length, 0);
}

static void test_refused(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;

	example_host(trace, TRACE_CPU_OP, "op", 1, 0, 10, 0);
	model = model_of(trace);
	timeline = timeline_of(model);
	check_refused(timeline, (struct timeline_request){.track = 1, .to_ns = 1, .columns = 1},
		"no track 1");
	check_refused(timeline, (struct timeline_request){.columns = 1}, "later one");
	check_refused(timeline, (struct timeline_request){.from_ns = -1, .to_ns = 9, .columns = 1},
		"later one");
	check_refused(
		timeline, (struct timeline_request){.to_ns = INT64_MAX, .columns = 1}, "later one");
	check_refused(timeline, (struct timeline_request){.to_ns = 1}, "columns wide");
	check_refused(
		timeline, (struct timeline_request){.to_ns = 1, .columns = 5000}, "columns wide");
}

/* The last track is that of the rate: its value in each bin that begins in the request. */
static void ask_rate(const struct timeline *timeline, const char *name, uint32_t track,
	int64_t end_ns, struct answer *answer)
{
	_cleanup_strbuf_ struct strbuf tracks = {0};
	const struct timeline_request request = {.track = track, .to_ns = end_ns, .columns = 1000};

	assert_int_equal(timeline_tracks(timeline, 1, &tracks), 0);
	assert_has(strbuf_cstr(&tracks), name);
	ask(timeline, &request, answer);
	assert_true(answer->count > 0);
}

/* Work of two streams that runs side by side counts once; half of the time is idle. */
static void test_how_busy_a_device_is(void **state)
{
	struct trace *trace = example_trace_new();
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	struct answer answer = {0};
	double sum = 0;

	for (int i = 0; i < 100; i++) {
		example_device(trace, TRACE_KERNEL, "a", 0, 7, i * 100000, 40000, 0);
		example_device(trace, TRACE_KERNEL, "b", 0, 8, i * 100000 + 10000, 40000, 0);
	}
	model = model_of(trace);
	timeline = timeline_of(model);
	ask_rate(timeline, "busy (%)", 2, 10000000, &answer);
	for (uint32_t i = 0; i < answer.count; i++) {
		double busy = real_of(&answer, 4, i);

		assert_true(busy >= 0 && busy <= 100);
		sum += busy;
	}
	/* To 99.5 % of the way: the last work ends there. */
	assert_true(fabs(sum / answer.count - 50) < 1);
	strbuf_done(&answer.bytes);
}

/* ---- recordings ---- */

static void test_samples(void **state)
{
	struct example example;
	capture_id frames[2];
	_cleanup_model_ struct model *model = NULL;
	_cleanup_timeline_ struct timeline *timeline = NULL;
	_cleanup_strbuf_ struct strbuf names = {0};
	const struct timeline_request request = {.to_ns = 100000000, .columns = 10};
	struct answer answer = {0};
	uint32_t name;
	struct errmsg err;

	example_begin(&example, EXAMPLE_PERIOD_NS);
	example_process(&example, 7, "work", 1000);
	example_thread(&example, 7, 7, "work");
	example_mapping(&example, "/bin/work");
	example_mapping(&example, "/usr/lib/libpython3.11.so.1.0");
	frames[0] = example_frame(&example, "spin", 1, 0x10);
	frames[1] = example_frame(&example, "_PyEval_EvalFrameDefault", 2, 0x10);
	example_samples(&example, 7, 7, example_stack(&example, WIRE_STOP_COMPLETE, 2, frames),
		1000 + EXAMPLE_PERIOD_NS, 50);
	model = example_end(&example);
	timeline = timeline_of(model);
	ask(timeline, &request, &answer);
	assert_int_equal(answer.count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(number_of(&answer, NUMBER_MERGED, i), 10);
		assert_true(real_of(&answer, REAL_BUSY, i) == 10 * EXAMPLE_PERIOD_NS);
	}
	name = number_of(&answer, NUMBER_NAME, 0);
	assert_int_equal(timeline_names(timeline, &name, 1, &names, &err), 0);
	assert_string_equal(strbuf_cstr(&names), "[\"spin\"]");
	assert_has(slice_at(timeline, (struct timeline_slice_request){0}, &names),
		"\"category\":null");
	assert_has(strbuf_cstr(&names), "\"stack\":[\"spin\",");
	ask_rate(timeline, "CPUs busy", 1, 50 * EXAMPLE_PERIOD_NS, &answer);
	for (uint32_t i = 0; i + 1 < answer.count; i++)
		assert_true(fabs(real_of(&answer, 4, i) - 1) < 1e-9);
	strbuf_done(&answer.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiles_of_random_slices),
		cmocka_unit_test(test_nothing_long_is_dropped),
		cmocka_unit_test(test_spikes_of_counters_survive),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_links_of_launches),
		cmocka_unit_test(test_links_of_gradients),
		cmocka_unit_test(test_many_links_are_counted),
		cmocka_unit_test(test_slices_that_are_not_there),
		cmocka_unit_test(test_deep_and_distant_rows),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_how_busy_a_device_is),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
