/* SPDX-License-Identifier: Apache-2.0 */
/* What the report of traces says of all ranks together, as JSON. */
#include <errno.h>

#include "analyses/program/summary.h"
#include "report/tables_json.h"
#include "report/trace/report_json.h"

static void write_advice(struct json_writer *json, const struct trace_summary *summary)
{
	json_key(json, "advice");
	json_begin_array(json);
	for (unsigned bit = 1; bit < TRACE_ADVICE_END; bit <<= 1) {
		if (summary->advice & bit)
			json_string(json, trace_advice_name((enum trace_advice)bit));
	}
	json_end_array(json);
	json_key(json, "advice_saves_ns");
	json_begin_object(json);
	for (unsigned bit = 1; bit < TRACE_ADVICE_END; bit <<= 1) {
		int64_t saves_ns = trace_summary_saves_ns(summary, (enum trace_advice)bit);

		if (summary->advice & bit && saves_ns)
			trace_json_ns(json, trace_advice_name((enum trace_advice)bit), saves_ns);
	}
	json_end_object(json);
}

static void write_row_name(
	struct json_writer *json, const char *key, const struct trace *trace, uint32_t row)
{
	json_member_text(json, key,
		row == MODEL_NONE ? NULL : trace_text(trace, trace->events.items[row].name));
}

static void write_block(struct json_writer *json, const struct trace_results *results,
	const struct trace_summary_block *block)
{
	const struct trace *trace;

	json_key(json, "longest_blocking_call");
	if (block->view == MODEL_NONE) {
		json_null(json);
		return;
	}
	trace = results->views[block->view].trace;
	json_begin_object(json);
	json_member_u64(json, "rank", results->views[block->view].rank);
	write_row_name(json, "name", trace, block->row);
	trace_json_ns(json, "duration_ns", trace->events.items[block->row].duration_ns);
	trace_json_ns(json, "idle_ns", block->idle_ns);
	write_row_name(json, "operator", trace, block->op);
	write_row_name(json, "python", trace, block->python);
	json_end_object(json);
}

int trace_json_summary(struct json_writer *json, struct trace_results *results)
{
	struct trace_summary summary;
	int r;

	json_key(json, "summary");
	if (results->views->options.hta_compatible) {
		json_null(json);
		return 0;
	}
	r = trace_summary_init(&summary, results);
	if (r < 0 || !summary.devices) {
		json_null(json);
		return r;
	}
	json_begin_object(json);
	json_member_u64(json, "devices", summary.devices);
	trace_json_ns(json, "kernel_time_ns", summary.span_ns);
	trace_json_ns(json, "compute_ns", summary.compute_ns);
	trace_json_ns(json, "communication_ns", summary.communication_ns);
	trace_json_ns(
		json, "communication_beside_compute_ns", summary.communication_beside_compute_ns);
	trace_json_ns(json, "only_communication_ns", summary.only_communication_ns);
	trace_json_ns(json, "only_memory_ns", summary.only_memory_ns);
	json_key(json, "communication_kernels");
	json_communication(json, summary.communication_works);
	trace_json_ns(json, "idle_ns", summary.idle_ns);
	json_key(json, "idle_by_cause_ns");
	json_begin_object(json);
	for (int i = 0; i < TRACE_IDLE_CAUSE_MAX; i++)
		trace_json_ns(json, trace_idle_cause_name((enum trace_idle_cause)i),
			summary.idle_by_cause_ns[i]);
	json_end_object(json);
	json_member_u64(json, "launches", summary.launches);
	json_member_u64(json, "launches_shorter_than_call", summary.short_launches);
	write_block(json, results, &summary.longest_block);
	write_advice(json, &summary);
	json_end_object(json);
	return 0;
}
