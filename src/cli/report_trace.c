/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <errno.h>
#include <stdio.h>

#include "cli/command.h"
#include "load/traces.h"
#include "report/document.h"
#include "report/timeline.h"

static int write_report(const struct report_trace_arguments *arguments,
	struct report_timeline *timeline, struct strbuf *out, struct errmsg *err)
{
	const struct terminal terminal = terminal_of(stdout);
	const struct report_document document = {
		.input = {.trace = &timeline->report,
			.programs = &timeline->of_programs.view,
			.limit = (size_t)arguments->limit,
			.is_json = arguments->json},
		.by = arguments->by,
	};
	const struct report_section *section =
		arguments->by ? report_section_find(arguments->by, REPORT_NEEDS_TRACE) : NULL;
	int r = section && section->is_extra_of_traces ? report_timeline_programs(timeline) : 0;

	timeline->report.choice = arguments->choice;
	timeline->report.page = (struct report_view){.terminal = terminal, .out = out};
	if (r == 0)
		r = arguments->json ? report_document_json(&document, out)
				    : report_document_print(&document, &terminal, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the report") : 0;
}

int report_traces(
	const struct report_trace_arguments *arguments, const char *const *paths, size_t count)
{
	_cleanup_trace_list_ struct trace_list traces = {0};
	_cleanup_report_timeline_ struct report_timeline timeline = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = load_traces(paths, count, NULL, &traces, &err);

	if (r == 0)
		r = report_timeline_init(&timeline, traces.items.items, traces.items.count,
			arguments->rank, &arguments->view, &err);
	if (r == 0)
		r = write_report(arguments, &timeline, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
