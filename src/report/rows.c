/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rows.h"

#include <errno.h>
#include <stdlib.h>

static int add_views(struct trace_report *report, const struct model *model,
	const struct trace_view_options *options, uint64_t rank)
{
	report->views = calloc(model->traces.count + 1, sizeof(*report->views));
	report->results = calloc(1, sizeof(*report->results));
	if (!report->views || !report->results)
		return -ENOMEM;
	report->definitions = options->definitions ? options->definitions : &own_definitions;
	report->results->definitions = report->definitions;
	report->results->views = report->views;
	for (uint32_t i = 0; i < model->traces.count; i++) {
		const struct trace *trace = model->traces.items[i];
		uint32_t own = trace->rank == MODEL_NONE ? i : trace->rank;
		int r;

		if (rank != UINT64_MAX && rank != own)
			continue;
		r = report->definitions->view(&report->views[report->count], trace, i, options);
		if (r < 0)
			return r;
		report->results->count = ++report->count;
	}
	return 0;
}

int trace_report_init(struct trace_report *report, const struct model *model,
	const struct trace_view_options *options, uint64_t rank, struct errmsg *err)
{
	int r = add_views(report, model, options, rank);

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while looking at the rows");
	if (!report->count)
		return errmsg_set(err, -ENODATA,
			"there is no trace of rank %llu: leave out --rank to see which there are",
			(unsigned long long)rank);
	return 0;
}

void trace_report_done(struct trace_report *report)
{
	if (report->results)
		trace_results_done(report->results);
	free(report->results);
	for (size_t i = 0; i < report->count; i++)
		trace_view_done(&report->views[i]);
	free(report->views);
	*report = (struct trace_report){0};
}

bool trace_report_has_works(const struct trace_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->views[i].works.count)
			return true;
	}
	return false;
}
