/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/trace_report_json.h"

#include "exporters/report_tables_json.h"

void trace_json_ns(struct json_writer *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ns);
}

void trace_json_place(struct json_writer *json, const struct trace_view *view, uint32_t device)
{
	int64_t number = view->devices.items[device].number;

	json_member_u64(json, "rank", view->rank);
	json_key(json, "device");
	if (number == TRACE_NO_NUMBER)
		json_null(json);
	else
		json_i64(json, number);
}

static double share(int64_t part, int64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

void trace_json_temporal(struct json_writer *json, const struct trace_view *view,
	const struct trace_temporal *temporal)
{
	for (uint32_t i = 0; i < temporal->devices.count; i++) {
		const struct trace_temporal_device *device = &temporal->devices.items[i];
		int64_t span_ns = trace_temporal_span_ns(device);

		json_begin_object(json);
		trace_json_place(json, view, i);
		trace_json_ns(json, "kernel_time_ns", span_ns);
		trace_json_ns(json, "idle_ns", trace_temporal_idle_ns(device));
		trace_json_ns(json, "compute_ns", device->by_kind_ns[TRACE_COMPUTE]);
		trace_json_ns(json, "non_compute_ns", trace_temporal_non_compute_ns(device));
		trace_json_ns(json, "communication_ns", device->by_kind_ns[TRACE_COMMUNICATION]);
		trace_json_ns(json, "memory_ns", device->by_kind_ns[TRACE_MEMORY]);
		json_member_double(
			json, "idle_share", share(trace_temporal_idle_ns(device), span_ns));
		json_member_double(
			json, "compute_share", share(device->by_kind_ns[TRACE_COMPUTE], span_ns));
		json_member_double(json, "non_compute_share",
			share(trace_temporal_non_compute_ns(device), span_ns));
		json_end_object(json);
	}
}
