/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde top --json`: an interval as one object. */
#include "base/json.h"
#include "cli/top/view.h"
#include "report/cpu/samples.h"
#include "report/render.h"

static int write_rows(const struct top_view *view, const struct model *model,
	const struct selected *selected, struct json_writer *json)
{
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	_cleanup_result_ struct result result = {.column = report_breakdown_column(view->by)};
	int r = breakdown_init(&breakdown, model, selected, view->by, view->sort);

	if (r < 0)
		return r;
	report_add_breakdown(&result, model, &breakdown, 0, breakdown.rows.count);
	json_key(json, "rows");
	return report_render_json(&result, json);
}

int top_view_json(struct top_view *view, struct model *model, struct strbuf *out)
{
	_cleanup_(selected_done) struct selected selected = {0};
	const struct top_load load = top_view_load(view, model);
	struct json_writer json = {.out = out};
	int r;

	json_begin_object(&json);
	json_member_text(&json, "format", "sonde-top");
	json_member_u64(&json, "version", 1);
	json_member_u64(&json, "window_ns", MIN(view->window_ns, view->seen_ns));
	json_member_u64(&json, "cpu_count", model->session.cpu_count);
	json_member_double(&json, "busy_cpus", load.busy_cpus);
	json_member_double(&json, "waiting_threads", load.waiting_threads);
	json_member_u64(&json, "samples", model->samples.count);
	json_member_u64(&json, "samples_lost", model->stats.values.samples_lost);
	json_member_text(&json, "by", breakdown_by_to_string(view->by));
	r = top_view_prepare(view, model, &selected);
	r = r ?: write_rows(view, model, &selected, &json);
	json_end_object(&json);
	strbuf_add_char(out, '\n');
	return r ?: strbuf_status(out);
}
