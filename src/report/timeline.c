/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline.h"

#include <errno.h>

#include "analyses/program/trace_programs.h"
#include "compat/hta/hta.h"
#include "model/trace_capture.h"

bool trace_report_has_works(const struct trace_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->views[i].works.count)
			return true;
	}
	return false;
}

static int add_view(struct report_timeline *timeline, const struct trace *trace, uint32_t index,
	uint64_t rank, const struct trace_view_options *options)
{
	uint32_t own = trace->rank == MODEL_NONE ? index : trace->rank;
	struct trace_view view;
	int r;

	if (rank != UINT64_MAX && rank != own)
		return 0;
	r = timeline->report.definitions->view(&view, trace, index, options);
	if (r < 0)
		return r;
	r = array_append(&timeline->views, view);
	if (r < 0)
		trace_view_done(&view);
	return r;
}

int report_timeline_init(struct report_timeline *timeline, struct trace *const *traces,
	size_t count, uint64_t rank, const struct trace_view_options *options, struct errmsg *err)
{
	int r = 0;

	timeline->report.definitions =
		options->hta_compatible ? &hta_definitions : &own_definitions;
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = add_view(timeline, traces[i], i, rank, options);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while looking at the traces");
	if (!timeline->views.count)
		return errmsg_set(err, -ENODATA,
			"there is no trace of rank %llu: leave out --rank to see which there are",
			(unsigned long long)rank);
	timeline->results.definitions = timeline->report.definitions;
	timeline->results.views = timeline->views.items;
	timeline->results.count = timeline->views.count;
	timeline->report.views = timeline->views.items;
	timeline->report.count = timeline->views.count;
	timeline->report.results = &timeline->results;
	return 0;
}

int report_timeline_of_recording(
	struct report_timeline *timeline, const struct model *model, struct errmsg *err)
{
	const struct trace_view_options options = {0};
	int r = trace_from_model(&timeline->recorded, model, err);

	if (r < 0)
		return r;
	return report_timeline_init(timeline, &timeline->recorded, 1, UINT64_MAX, &options, err);
}

int report_timeline_programs(struct report_timeline *timeline)
{
	static const struct selection everything = {0};
	int r = trace_programs_new(
		&timeline->programs, timeline->views.items, timeline->views.count);

	if (r < 0)
		return r;
	return report_recording_init(&timeline->of_programs, &(struct report_view){
								     .model = timeline->programs,
								     .selection = &everything,
								     .rates = ENERGY_RATES_NONE,
							     });
}

void report_timeline_done(struct report_timeline *timeline)
{
	report_recording_done(&timeline->of_programs);
	model_free(timeline->programs);
	trace_results_done(&timeline->results);
	array_foreach (&timeline->views, view)
		trace_view_done(view);
	array_done(&timeline->views);
	trace_free(timeline->recorded);
}
