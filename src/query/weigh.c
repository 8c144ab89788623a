/* SPDX-License-Identifier: Apache-2.0 */
#include "query/weigh.h"

#include "analyses/trace_narrow.h"
#include "load/trace_samples.h"
#include "model/trace_capture.h"
#include "query/answer.h"
#include "report/rows.h"

static int weigh_foreign(struct model *model, const char *path, struct shown_options *shown,
	const struct selection *selection, struct strbuf *notes, struct errmsg *err)
{
	static const struct trace_view_options defaults = {0};
	_cleanup_trace_report_ struct trace_report rows = {0};
	_cleanup_weight_spans_ struct weight_spans spans = {0};
	int r = trace_narrow(selection, model, err);

	if (r == 0)
		r = trace_report_init(&rows, model, &defaults, UINT64_MAX, err);
	if (r == 0)
		r = fill_trace_samples(model, rows.views, rows.count, shown, path, &spans, err);
	if (r == 0)
		r = selection_narrow(selection, model, err);
	if (r == 0)
		r = weigh_capture(model, shown, &spans, NULL, err);
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

int query_begin_weighed(struct query *query, const struct query_options *options,
	struct selected *ret_selected, struct strbuf *notes, struct errmsg *err)
{
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct shown_options shown = options->shown;
	struct selection selection = options->selection;
	int r = query_begin(query, options, err);

	if (r == 0)
		r = query_weigh(
			query->model, query->paths[0], &shown, &selection, &energy, notes, err);
	if (r < 0)
		return r;
	selection.weight = shown_weight(&shown);
	return selection_apply(&selection, query->model, ret_selected, err);
}
