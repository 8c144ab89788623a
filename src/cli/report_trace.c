/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "load/traces.h"
#include "report/document.h"
#include "report/timeline.h"

#define BY_PATH     "critical-path"
#define BY_SEQUENCE "sequences"

int report_traces_check(
	const struct report_trace_arguments *arguments, const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf sections = {0};

	for (const struct report_section *const *section = report_sections; *section; section++) {
		if ((*section)->by && ((*section)->needs & KINDS_OF_TRACE))
			strbuf_addf(&sections, "%s%s", sections.length ? ", " : "", (*section)->by);
	}
	if (arguments->by && !report_section_find(arguments->by, KINDS_OF_TRACE))
		return errmsg_set(err, -EINVAL,
			"--by %s is of recordings, and %s is a trace, which has: %s", arguments->by,
			path, strbuf_cstr(&sections));
	if (arguments->view.keep_last_step && arguments->view.drop_last_step)
		return errmsg_set(err, -EINVAL,
			"--include-last-step and --drop-last-step are opposites: give one");
	if ((arguments->choice.annotation || arguments->choice.instance != UINT64_MAX) &&
		!(arguments->by && strcmp(arguments->by, BY_PATH) == 0))
		return errmsg_set(err, -EINVAL,
			"--annotation and --instance choose windows of the critical path: give "
			"--by " BY_PATH ", too");
	if (arguments->choice.op && !(arguments->by && strcmp(arguments->by, BY_SEQUENCE) == 0))
		return errmsg_set(err, -EINVAL,
			"--operator chooses sequences of kernels: give --by " BY_SEQUENCE ", too");
	return 0;
}

/* Steps and ranges take time: they are made for what is asked for, and to compare ranks. */
static bool needs_programs(
	const struct report_trace_arguments *arguments, const struct report_timeline *timeline)
{
	if (arguments->by)
		return report_sections_need(arguments->by, KINDS_OF_TRACE) & REPORT_NEEDS_PROGRAMS;
	return timeline->views.count > 1;
}

static int write_report(const struct report_trace_arguments *arguments,
	struct report_timeline *timeline, struct strbuf *out, struct errmsg *err)
{
	const struct terminal terminal = terminal_of(stdout);
	const struct report_document document = {
		.input = {.trace = &timeline->report,
			.programs = &timeline->of_programs.view,
			.limit = (size_t)arguments->limit,
			.is_json = arguments->form != REPORT_FORM_TERMINAL},
		.by = arguments->by,
	};
	int r = needs_programs(arguments, timeline) ? report_timeline_programs(timeline) : 0;

	if (r < 0)
		return errmsg_set(err, r, "memory ran out while making the report");
	timeline->report.choice = arguments->choice;
	return report_document_write(&document, arguments->form, &terminal, out, err);
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
