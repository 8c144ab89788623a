/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace/report_json.h"

#include "report/tables_json.h"

void trace_json_ns(struct json_writer *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns);
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
