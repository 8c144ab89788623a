/* SPDX-License-Identifier: Apache-2.0 */
/* What launching costs, and how many launches wait. */
#include <errno.h>

#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* ---- launches ---- */

static const struct report_column single_columns[] = {
	{.key = "correlation", .kind = REPORT_INTEGER},
	{.key = "works", .kind = REPORT_COUNT},
	{.key = "cpu_duration_ns", .kind = REPORT_NS},
	{.key = "gpu_duration_ns", .kind = REPORT_NS},
	{.key = "launch_delay_ns", .kind = REPORT_NS},
};
static const struct report_shape single_shape = REPORT_SHAPE(single_columns);

#define DISTRIBUTION(of_key, of_help)                                                              \
	{                                                                                          \
		.key = (of_key), .kind = REPORT_OBJECT, .shape = &columns_describe_shape,          \
		.help = (of_help)                                                                  \
	}

static const struct report_column launch_columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "launches", .title = "Launches", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "works", .title = "Work", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	DISTRIBUTION("cpu_duration_ns", "how long the call took"),
	{.title = "Call", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "99 %", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	DISTRIBUTION("gpu_duration_ns", "all work of the call"),
	{.title = "GPU", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	DISTRIBUTION("launch_delay_ns", "from the call's return to the start of its first work"),
	{.title = "Delay", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .is_lead = true},
	REPORT_RANK_SPREAD(0),
	DISTRIBUTION("idle_queue_latency_ns",
		"from the call's begin to the start of its first work, for launches whose stream "
		"was idle"),
	{.title = "If idle", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.title = "99 %", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	DISTRIBUTION("submit_ns",
		"from when the driver took the first work of a launch until it handed it to the "
		"device; of no launch: not recorded (CUDA: --cuda-latency)"),
	{.title = "Submit", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .hide = REPORT_HIDE_EMPTY},
	DISTRIBUTION("queue_ns", "from then to the start of that work"),
	{.title = "Queue", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .hide = REPORT_HIDE_EMPTY},
	{.title = "99 %", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN, .hide = REPORT_HIDE_EMPTY},
	{.key = "shorter_than_call",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.help = "their work took less time"},
	{.title = "Short", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN, .decimals = 1},
	{.key = "calls_over_50_us",
		.title = ">50 \xc2\xb5s",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM},
	{.key = "delays_over_100_us",
		.title = ">100 \xc2\xb5s",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM},
	{.key = "name",
		.title = "By",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 20},
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &single_shape,
		.help = "each launch; null unless --by names this section"},
};
static const struct report_shape launch_shape = REPORT_SHAPE(launch_columns);

static void add_single_launches(
	struct result *result, const struct launches *launches, uint32_t call)
{
	result_open(result);
	array_foreach (&launches->rows, launch) {
		if (launch->call != call)
			continue;
		result_u64(result, launch->correlation);
		result_u64(result, launch->works);
		result_i64(result, launch->call_ns);
		result_i64(result, launch->work_ns);
		result_i64(result, launch->delay_ns);
	}
	result_close(result);
}

static int add_call(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct launches *launches, uint32_t index)
{
	const struct launch_call *call = &launches->calls.items[index];
	struct trace_describe figures[LAUNCH_FIGURE_MAX];

	for (int i = 0; i < LAUNCH_FIGURE_MAX; i++) {
		int r = launches_describe(launches, index, (enum launch_figure)i, &figures[i]);

		if (r < 0)
			return r;
	}
	result_u64(result, view->rank);
	result_u64(result, call->launches);
	result_u64(result, call->works);
	for (int i = 0; i < LAUNCH_FIGURE_MAX; i++) {
		columns_add_describe(result, &figures[i]);
		result_number(result, figures[i].median);
		if (i == LAUNCH_CALL || i == LAUNCH_LATENCY || i == LAUNCH_QUEUE)
			result_number(result, figures[i].p99);
		if (i == LAUNCH_DELAY)
			report_add_rank_spread(result);
	}
	result_u64(result, call->short_works);
	result_share(result, (double)call->short_works, (double)call->launches);
	result_u64(result, call->long_calls);
	result_u64(result, call->long_delays);
	result_text(result, trace_text(view->trace, call->name));
	if (input->is_alone && input->is_json)
		add_single_launches(result, launches, index);
	else
		result_null(result);
	return 0;
}

static int add_launches(struct result *result, const struct report_input *input, size_t index)
{
	const struct trace_view *view = &input->trace->views[index];
	const struct launches *launches = trace_results_launches(input->trace->results, index);
	int r = launches ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	for (uint32_t call = 0; r == 0 && call < launches->calls.count; call++)
		r = add_call(result, input, view, launches, call);
	return r;
}

/* Does any launch say when it was handed to the device? */
static bool has_times(const struct report_input *input)
{
	for (size_t i = 0; i < input->trace->count; i++) {
		const struct launches *launches = trace_results_launches(input->trace->results, i);

		for (size_t k = 0; launches && k < launches->rows.count; k++) {
			if (launches->rows.items[k].queue_ns >= 0)
				return true;
		}
	}
	return false;
}

static int make_launches(struct result *result, const struct report_input *input)
{
	uint32_t table;
	int r = 0;

	if (!columns_has_works(result, input))
		return 0;
	table = result_open(result);
	for (size_t i = 0; r == 0 && i < input->trace->count; i++)
		r = add_launches(result, input, i);
	if (r < 0)
		return r;
	result_close(result);
	table = report_join_ranks(result, input, table);
	result_heading(result, "Launches");
	result_sentencef(result, 2,
		"Medians of: the call, its work on the GPU, the delay from the call's return to "
		"the work's start, and from the call's begin where the stream was idle.%s 99 %%: "
		"of the figure before. Short: launches whose work takes less than their call. >50 "
		"\xc2\xb5s: such calls; >100 \xc2\xb5s: such delays.",
		has_times(input) ? " Submit: from when the driver took it until it handed it to "
				   "the GPU; Queue: from then to the start."
				 : "");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "calls"});
	return 0;
}

const struct report_section launches_section = {
	.value = {.key = "launches",
		.kind = REPORT_ROWS,
		.shape = &launch_shape,
		.help = "what launching costs, by call"},
	.by = "launches",
	.summary = "what launching costs, by call",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make_launches,
};

/* ---- queues ---- */

static const struct report_column point_columns[] = {
	{.key = "time_ns", .kind = REPORT_NS},
	{.key = "length", .kind = REPORT_COUNT},
};
static const struct report_shape point_shape = REPORT_SHAPE(point_columns);

static const struct report_column queue_columns[] = {
	REPORT_STREAM_COLUMNS,
	{.key = "launches",
		.title = "Launches",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.views = REPORT_ALL_VIEWS},
	{.key = "mean",
		.title = "Mean length",
		.kind = REPORT_NUMBER,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.decimals = 2,
		.help = "over time"},
	REPORT_RANK_SPREAD(0),
	{.key = "max", .title = "Longest", .kind = REPORT_COUNT, .join = REPORT_JOIN_MOST},
	{.key = "span_ns", .kind = REPORT_NS, .help = "from the first change to the last"},
	{.key = "empty_ns", .kind = REPORT_NS, .help = "no launch waited"},
	{.title = "Empty", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	{.key = "full_ns",
		.kind = REPORT_NS,
		.help = "1,024 launches waited: the next call blocks"},
	{.title = "Full", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	DISTRIBUTION("at_changes", "the lengths at the moments of change, each of them once"),
	REPORT_FOREIGN_NUMBER("Mean"),
	REPORT_FOREIGN_NUMBER("Std"),
	REPORT_FOREIGN_NUMBER("Min"),
	REPORT_FOREIGN_NUMBER("25%"),
	REPORT_FOREIGN_NUMBER("50%"),
	REPORT_FOREIGN_NUMBER("75%"),
	REPORT_FOREIGN_NUMBER("Max"),
	{.key = "series",
		.kind = REPORT_LIST,
		.shape = &point_shape,
		.help = "each change; null unless --by names this section"},
};
static const struct report_shape queue_shape = REPORT_SHAPE(queue_columns);

static void add_series(
	struct result *result, const struct queue *queue, const struct queue_stream *stream)
{
	result_open(result);
	for (uint32_t i = stream->first; i < stream->first + stream->count; i++) {
		result_i64(result, queue->points.items[i].time_ns);
		result_i64(result, queue->points.items[i].length);
	}
	result_close(result);
}

static void add_stream(struct result *result, const struct report_input *input,
	const struct trace_view *view, const struct queue *queue, const struct queue_stream *stream)
{
	const struct trace_describe *points = &stream->points;
	const double values[] = {points->mean, points->deviation, points->least, points->quarter,
		points->median, points->three_quarters, points->most};

	columns_add_stream(result, input->trace, view, stream->stream);
	result_u64(result, stream->launches);
	result_number(result, stream->mean);
	report_add_rank_spread(result);
	result_i64(result, stream->longest);
	result_i64(result, stream->span_ns);
	result_i64(result, stream->empty_ns);
	result_share(result, (double)stream->empty_ns, (double)stream->span_ns);
	result_i64(result, stream->full_ns);
	result_share(result, (double)stream->full_ns, (double)stream->span_ns);
	columns_add_describe(result, points);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		result_number(result, values[i]);
	if (input->is_alone && input->is_json)
		add_series(result, queue, stream);
	else
		result_null(result);
}

static int make_queue(struct result *result, const struct report_input *input)
{
	uint32_t table;

	if (!columns_has_works(result, input))
		return 0;
	table = result_open(result);
	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_queue_ struct queue queue = {0};
		int r;

		r = input->trace->definitions->queue(&queue, view);
		if (r < 0)
			return r;
		array_foreach (&queue.streams, stream)
			add_stream(result, input, view, &queue, stream);
	}
	result_close(result);
	table = report_join_ranks(result, input, table);
	result_heading(result, "Queue length (launches that wait on a stream)");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10),
			.noun = "streams",
			.view = report_view_of(input->trace)});
	return 0;
}

const struct report_section queue_section = {
	.value = {.key = "queue",
		.kind = REPORT_ROWS,
		.shape = &queue_shape,
		.help = "how many launches wait on each stream"},
	.by = "queue",
	.summary = "how many launches wait on each stream",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make_queue,
};
