/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace/report_json.h"

#include <errno.h>
#include <math.h>

#include "analyses/device/queue.h"
#include "analyses/program/ops.h"
#include "report/tables_json.h"

#define DIGITS 12

void trace_json_ns(struct json_writer *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns);
}

static void write_double(struct json_writer *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value, DIGITS);
}

void trace_json_share(struct json_writer *json, const char *key, double part, double whole)
{
	write_double(json, key, whole != 0 ? part / whole : (double)NAN);
}

void trace_json_number(struct json_writer *json, const char *key, int64_t number)
{
	json_key(json, key);
	if (number == TRACE_NO_NUMBER)
		json_null(json);
	else
		json_i64(json, number);
}

void trace_json_place(struct json_writer *json, const struct trace_view *view, uint32_t device)
{
	json_member_u64(json, "rank", view->rank);
	trace_json_number(json, "device", view->devices.items[device].number);
}

static void write_stream(struct json_writer *json, const struct trace_view *view, uint32_t stream)
{
	trace_json_place(json, view, view->streams.items[stream].device);
	trace_json_number(json, "stream", view->streams.items[stream].number);
}

void trace_json_name(struct json_writer *json, const struct trace_view *view, uint32_t string)
{
	json_member_text(json, "name", trace_text(view->trace, string));
}

/* As pandas names it. */
static void write_describe(
	struct json_writer *json, const char *key, const struct trace_describe *describe)
{
	json_key(json, key);
	json_begin_object(json);
	json_member_u64(json, "count", describe->count);
	write_double(json, "mean", describe->mean);
	write_double(json, "std", describe->deviation);
	write_double(json, "min", describe->least);
	write_double(json, "p25", describe->quarter);
	write_double(json, "p50", describe->median);
	write_double(json, "p75", describe->three_quarters);
	write_double(json, "p90", describe->p90);
	write_double(json, "p99", describe->p99);
	write_double(json, "max", describe->most);
	json_end_object(json);
}

static size_t rows_shown(size_t count, const struct trace_json_options *options)
{
	return options->limit ? MIN(options->limit, count) : count;
}

void trace_json_trace(struct json_writer *json, const struct trace_view *view)
{
	const struct trace *trace = view->trace;

	json_begin_object(json);
	json_member_text(json, "path", trace->path);
	json_member_known(json, "rank", trace->rank != MODEL_NONE, trace->rank);
	json_member_known(json, "world_size", trace->world_size != 0, trace->world_size);
	json_member_u64(json, "rows", trace->events.count);
	json_member_u64(json, "device_works", view->works.count);
	json_member_u64(json, "works_without_launch", view->works_without_launch);
	json_member_u64(json, "dropped_works", view->dropped_works);
	json_member_u64(json, "profiler_steps", view->steps);
	json_key(json, "damage");
	json_begin_object(json);
	json_member_u64(json, "skipped_events", trace->damage.skipped_events);
	json_member_u64(json, "skipped_bytes", trace->damage.skipped_bytes);
	json_member_u64(json, "mended_events", trace->damage.mended_events);
	json_member_u64(json, "repaired_times", trace->damage.repaired_times);
	json_member_u64(json, "unended_events", trace->damage.unended_events);
	json_member_u64(json, "negative_durations", view->negative_durations);
	json_key(json, "truncated");
	json_bool(json, trace->damage.truncated);
	json_end_object(json);
	json_end_object(json);
}

static int write_idle_place(struct json_writer *json, const struct trace_view *view,
	const struct trace_idle *idle, const struct trace_idle_place *place)
{
	bool is_device = place->stream == MODEL_NONE;
	struct trace_describe gaps;
	int r = 0;

	json_begin_object(json);
	trace_json_place(json, view, place->device);
	trace_json_number(json, "stream",
		is_device ? TRACE_NO_NUMBER : view->streams.items[place->stream].number);
	json_member_text(json, "of", is_device ? "device" : "stream");
	trace_json_ns(json, "idle_ns", place->idle_ns);
	json_key(json, "causes");
	json_begin_array(json);
	for (int i = 0; r == 0 && i < TRACE_IDLE_CAUSE_MAX; i++) {
		if (!place->is_listed[i])
			continue;
		json_begin_object(json);
		json_member_text(json, "cause", trace_idle_cause_name((enum trace_idle_cause)i));
		trace_json_ns(json, "idle_ns", place->by_cause_ns[i]);
		trace_json_share(
			json, "share", (double)place->by_cause_ns[i], (double)place->idle_ns);
		r = trace_idle_describe(idle, place, (enum trace_idle_cause)i, &gaps);
		if (r == 0)
			write_describe(json, "gaps_ns", &gaps);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	return r;
}

int trace_json_idle(struct json_writer *json, struct trace_results *results, size_t index,
	const struct trace_json_options *options)
{
	const struct trace_view *view = &results->views[index];
	int r = 0;
	const struct trace_idle *idle = trace_results_idle(results, index);

	if (!idle)
		return -ENOMEM;
	array_foreach (&idle->places, place)
		r = r ?: write_idle_place(json, view, idle, place);
	return r;
}

static void write_lengths(struct json_writer *json, const struct trace_queue *queue,
	const struct trace_queue_stream *stream)
{
	json_key(json, "series");
	json_begin_array(json);
	for (uint32_t i = stream->first; i < stream->first + stream->count; i++) {
		json_begin_array(json);
		json_i64(json, queue->points.items[i].time_ns);
		json_i64(json, queue->points.items[i].length);
		json_end_array(json);
	}
	json_end_array(json);
}

int trace_json_queue(struct json_writer *json, struct trace_results *results, size_t index,
	const struct trace_json_options *options)
{
	const struct trace_view *view = &results->views[index];
	_cleanup_trace_queue_ struct trace_queue queue = {0};
	int r = trace_queue_init(&queue, view);

	array_foreach (&queue.streams, stream) {
		json_begin_object(json);
		write_stream(json, view, stream->stream);
		json_member_u64(json, "launches", stream->launches);
		write_double(json, "mean", stream->mean);
		trace_json_number(json, "max", stream->longest);
		trace_json_ns(json, "span_ns", stream->span_ns);
		trace_json_ns(json, "empty_ns", stream->empty_ns);
		trace_json_ns(json, "full_ns", stream->full_ns);
		write_describe(json, "at_changes", &stream->points);
		if (options->details)
			write_lengths(json, &queue, stream);
		json_end_object(json);
	}
	return r;
}

static int write_figures(
	struct json_writer *json, const struct trace_launches *launches, uint32_t call)
{
	static const char *const names[TRACE_LAUNCH_FIGURE_MAX] = {
		[TRACE_LAUNCH_CALL] = "cpu_duration_ns",
		[TRACE_LAUNCH_WORK] = "gpu_duration_ns",
		[TRACE_LAUNCH_DELAY] = "launch_delay_ns",
		[TRACE_LAUNCH_LATENCY] = "idle_queue_latency_ns",
	};
	struct trace_describe figure;
	int r = 0;

	for (int i = 0; r == 0 && i < TRACE_LAUNCH_FIGURE_MAX; i++) {
		r = trace_launches_describe(launches, call, (enum trace_launch_figure)i, &figure);
		if (r == 0)
			write_describe(json, names[i], &figure);
	}
	return r;
}

static void write_single_launches(
	struct json_writer *json, const struct trace_launches *launches, uint32_t call)
{
	json_key(json, "rows");
	json_begin_array(json);
	array_foreach (&launches->rows, launch) {
		if (launch->call != call)
			continue;
		json_begin_object(json);
		json_member_u64(json, "correlation", launch->correlation);
		json_member_u64(json, "works", launch->works);
		trace_json_ns(json, "cpu_duration_ns", launch->call_ns);
		trace_json_ns(json, "gpu_duration_ns", launch->work_ns);
		trace_json_ns(json, "launch_delay_ns", launch->delay_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

int trace_json_launches(struct json_writer *json, struct trace_results *results, size_t index,
	const struct trace_json_options *options)
{
	const struct trace_view *view = &results->views[index];
	int r = 0;
	const struct trace_launches *launches = trace_results_launches(results, index);

	if (!launches)
		return -ENOMEM;
	array_foreach (&launches->calls, call) {
		json_begin_object(json);
		json_member_u64(json, "rank", view->rank);
		trace_json_name(json, view, call->name);
		json_member_u64(json, "launches", call->launches);
		json_member_u64(json, "works", call->works);
		json_member_u64(json, "shorter_than_call", call->short_works);
		json_member_u64(json, "calls_over_50_us", call->long_calls);
		json_member_u64(json, "delays_over_100_us", call->long_delays);
		r = r ?: write_figures(json, launches, (uint32_t)(call - launches->calls.items));
		if (options->details)
			write_single_launches(
				json, launches, (uint32_t)(call - launches->calls.items));
		json_end_object(json);
	}
	return r;
}

int trace_json_operators(struct json_writer *json, struct trace_results *results, size_t index,
	const struct trace_json_options *options)
{
	const struct trace_view *view = &results->views[index];
	_cleanup_trace_ops_ struct trace_ops ops = {0};
	int r = trace_ops_init(&ops, view);

	for (size_t i = 0; i < rows_shown(ops.rows.count, options); i++) {
		const struct trace_ops_row *row = &ops.rows.items[i];
		double count = (double)row->count;

		json_begin_object(json);
		json_member_u64(json, "rank", view->rank);
		trace_json_name(json, view, row->name);
		json_key(json, "kernels");
		json_begin_array(json);
		for (uint32_t k = row->first; k < row->first + row->works; k++)
			json_string(json, trace_text(view->trace, ops.sequences.items[k]));
		json_end_array(json);
		json_member_u64(json, "count", row->count);
		trace_json_ns(json, "gpu_ns", row->work_ns);
		trace_json_share(json, "mean_launch_delay_ns",
			row->name ? (double)row->launch_delay_ns : (double)NAN, count);
		trace_json_share(json, "mean_work_delay_ns", (double)row->work_delay_ns, count);
		json_end_object(json);
	}
	return r;
}
