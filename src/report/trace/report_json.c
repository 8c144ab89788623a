/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace/report_json.h"

#include <errno.h>
#include <math.h>

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
