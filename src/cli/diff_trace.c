/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diff_trace.h"

#include <errno.h>
#include <stdio.h>

#include "analyses/device/trace_diff.h"
#include "cli/command.h"
#include "load/traces.h"
#include "report/diff/traces.h"
#include "report/render.h"

/* One of the two runs: its ranks. */
struct side {
	const char *path;
	struct trace_list traces;
	ARRAY_OF(struct trace_view) views;
};

static void side_done(struct side *side)
{
	array_foreach (&side->views, view)
		trace_view_done(view);
	array_done(&side->views);
	trace_list_done(&side->traces);
}

static int side_load(struct side *side, const char *path, bool hta_compatible, struct errmsg *err)
{
	const struct trace_view_options options = {.hta_compatible = hta_compatible};
	int r = load_traces(&path, 1, NULL, &side->traces, err);

	side->path = path;
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < side->traces.items.count; i++) {
		struct trace_view view;

		r = trace_view_init(&view, side->traces.items.items[i], i, &options);
		if (r == 0 && (r = array_append(&side->views, view)) < 0)
			trace_view_done(&view);
	}
	return r < 0 ? errmsg_set(err, r, "memory ran out while looking at %s", path) : 0;
}

static int write_diff(const struct trace_diff *diff, const struct diff_trace_arguments *arguments,
	const struct side *before, const struct side *after, struct strbuf *out)
{
	const struct terminal terminal = terminal_of(stdout);
	const struct trace_diff_report report = {
		.diff = diff,
		.before_path = before->path,
		.after_path = after->path,
		.before_ranks = before->views.count,
		.after_ranks = after->views.count,
		.hta_compatible = arguments->hta_compatible,
		.limit = arguments->limit,
		.is_json = arguments->json,
		.all = arguments->all,
	};
	_cleanup_result_ struct result result = {0};
	int r = trace_diff_report_make(&result, &report);

	return r < 0 ? r : report_render(&result, arguments->json ? NULL : &terminal, out);
}

static int compare(const struct diff_trace_arguments *arguments, const struct side *before,
	const struct side *after, struct strbuf *out, struct errmsg *err)
{
	_cleanup_trace_diff_ struct trace_diff diff = {0};
	const struct trace_diff_side sides[] = {
		{before->views.items, before->views.count},
		{after->views.items, after->views.count},
	};
	int r = trace_diff_init(&diff, sides);

	if (r == -ENODATA)
		return errmsg_set(err, r,
			"%s or %s has no profiler step, and HTA compares the first ones: leave out "
			"--hta-compatible",
			before->path, after->path);
	if (r == 0)
		r = write_diff(&diff, arguments, before, after, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing") : 0;
}

int diff_traces(const struct diff_trace_arguments *arguments, const char *before, const char *after)
{
	_cleanup_(side_done) struct side first = {0};
	_cleanup_(side_done) struct side second = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = side_load(&first, before, arguments->hta_compatible, &err);

	if (r == 0)
		r = side_load(&second, after, arguments->hta_compatible, &err);
	if (r == 0)
		r = compare(arguments, &first, &second, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
