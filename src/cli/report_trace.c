/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <errno.h>
#include <stdio.h>

#include "cli/command.h"
#include "load/traces.h"
#include "report/document.h"

/* ---- views ---- */

struct views {
	ARRAY_OF(struct trace_view) items;
};

static void views_done(struct views *views)
{
	array_foreach (&views->items, view)
		trace_view_done(view);
	array_done(&views->items);
}

static int add_view(struct views *views, const struct trace *trace, uint32_t index,
	const struct report_trace_arguments *arguments)
{
	uint32_t rank = trace->rank == MODEL_NONE ? index : trace->rank;
	struct trace_view view;
	int r;

	if (arguments->rank != UINT64_MAX && arguments->rank != rank)
		return 0;
	r = trace_view_init(&view, trace, index, &arguments->view);
	if (r < 0)
		return r;
	r = array_append(&views->items, view);
	if (r < 0)
		trace_view_done(&view);
	return r;
}

static int make_views(struct views *views, const struct trace_list *traces,
	const struct report_trace_arguments *arguments, struct errmsg *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < traces->items.count; i++)
		r = add_view(views, traces->items.items[i], i, arguments);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while looking at the traces");
	if (views->items.count)
		return 0;
	return errmsg_set(err, -ENODATA,
		"there is no trace of rank %llu: leave out --rank to see which there are",
		(unsigned long long)arguments->rank);
}

static int report_views(const struct report_trace_arguments *arguments, const struct views *views,
	struct strbuf *out, struct errmsg *err)
{
	const struct terminal terminal = terminal_of(stdout);
	_cleanup_trace_results_ struct trace_results results = {
		.views = views->items.items, .count = views->items.count};
	const struct trace_report report = {
		.views = views->items.items,
		.count = views->items.count,
		.results = &results,
		.choice = arguments->choice,
		.page = {.terminal = terminal, .out = out},
	};
	const struct report_document document = {
		.input = {.trace = &report,
			.limit = (size_t)arguments->limit,
			.is_json = arguments->json},
		.only = arguments->section,
	};
	int r = arguments->json ? report_document_json(&document, out)
				: report_document_print(&document, &terminal, out);

	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the report") : 0;
}

int report_traces(
	const struct report_trace_arguments *arguments, const char *const *paths, size_t count)
{
	_cleanup_(views_done) struct views views = {0};
	_cleanup_trace_list_ struct trace_list traces = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = load_traces(paths, count, NULL, &traces, &err);

	r = r ?: make_views(&views, &traces, arguments, &err);
	r = r ?: report_views(arguments, &views, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
