/* SPDX-License-Identifier: Apache-2.0 */
#include "query/weigh.h"

#include "load/trace_samples.h"
#include "model/trace_capture.h"
#include "report/rows.h"

static int weigh_foreign(struct model *model, const char *path, struct shown_options *shown,
	const struct selection *selection, struct strbuf *notes, struct errmsg *err)
{
	static const struct trace_view_options whole = {0};
	_cleanup_trace_report_ struct trace_report rows = {0};
	_cleanup_idle_spans_ struct idle_spans idle = {0};
	int r = trace_report_init(&rows, model, &whole, UINT64_MAX, err);

	if (r == 0)
		r = fill_trace_samples(model, rows.views, rows.count, shown, path, &idle, err);
	if (r == 0)
		r = selection_narrow(selection, model, err);
	if (r == 0)
		r = weigh_capture(model, shown, &idle, NULL, err);
	if (r == 0 && shown_weight(shown) == MODEL_WEIGHT_WALL)
		strbuf_add(notes, "A trace has no samples: this is how long threads were in "
				  "operators, calls, annotations and Python functions, running or "
				  "waiting.");
	return r;
}

int query_weigh(struct model *model, const char *path, struct shown_options *shown,
	const struct selection *selection, struct energy_use *ret_energy, struct strbuf *notes,
	struct errmsg *err)
{
	if (model_is_foreign(model))
		return weigh_foreign(model, path, shown, selection, notes, err);
	return select_and_weigh(model, shown, selection, ret_energy, err);
}
