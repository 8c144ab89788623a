/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the CPU did, as JSON. */
#include <errno.h>

#include "analyses/program/cpu_ops.h"
#include "report/tables_json.h"
#include "report/trace/report_json.h"

static bool has_works(const struct trace_results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		if (results->views[i].works.count)
			return true;
	}
	return false;
}

static void write_advice(struct json_writer *json, unsigned advice)
{
	json_key(json, "advice");
	json_begin_array(json);
	for (unsigned bit = 1; bit < TRACE_CPU_ADVICE_END; bit <<= 1) {
		if (advice & bit)
			json_string(json, trace_cpu_advice_name((enum trace_cpu_advice)bit));
	}
	json_end_array(json);
}

int trace_json_cpu_summary(struct json_writer *json, struct trace_results *results)
{
	struct trace_cpu_summary summary;
	int r;

	json_key(json, "cpu_summary");
	if (results->views->options.hta_compatible || has_works(results)) {
		json_null(json);
		return 0;
	}
	r = trace_cpu_summary_init(&summary, results->views, results->count);
	if (r < 0 || !summary.operators) {
		json_null(json);
		return r;
	}
	json_begin_object(json);
	json_member_u64(json, "threads", summary.threads);
	json_member_u64(json, "operators", summary.operators);
	trace_json_ns(json, "span_ns", summary.span_ns);
	trace_json_ns(json, "in_operators_ns", summary.in_operators_ns);
	trace_json_ns(json, "self_ns", summary.self_ns);
	trace_json_ns(json, "communication_ns", summary.communication_ns);
	json_key(json, "heaviest");
	json_begin_array(json);
	for (size_t i = 0; i < TRACE_CPU_HEAVIEST && summary.heaviest[i].name; i++) {
		json_begin_object(json);
		json_member_text(json, "name", summary.heaviest[i].name);
		trace_json_ns(json, "self_ns", summary.heaviest[i].self_ns);
		json_end_object(json);
	}
	json_end_array(json);
	write_advice(json, summary.advice);
	json_end_object(json);
	return 0;
}
