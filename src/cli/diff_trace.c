/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diff_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "analyses/device/trace_diff.h"
#include "cli/command.h"
#include "load/traces.h"
#include "report/trace/path_json.h"
#include "report/trace/trace.h"

#define DEFAULT_LIMIT 20

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

static void add_row(
	struct table *table, const struct trace_diff *diff, const struct trace_diff_row *row)
{
	report_trace_time(table, row->time_ns[1] - row->time_ns[0]);
	if (row->time_ns[0])
		table_cellf(table, "%+.1f %%",
			100.0 * (double)(row->time_ns[1] - row->time_ns[0]) /
				(double)row->time_ns[0]);
	else
		table_cell(table, "");
	report_trace_time(table, row->time_ns[0]);
	report_trace_time(table, row->time_ns[1]);
	table_count(table, row->count[0]);
	table_count(table, row->count[1]);
	table_cell(table, trace_diff_change_of(row) == TRACE_DIFF_UNCHANGED
				  ? ""
				  : trace_diff_change_name(trace_diff_change_of(row)));
	table_cell(table, trace_diff_kind_name(row->kind));
	table_cell(table, intern_get(&diff->names, row->name));
}

static bool is_unchanged(const struct trace_diff_row *row)
{
	return row->count[0] == row->count[1] && row->time_ns[0] == row->time_ns[1];
}

/* Runs of different lengths differ in everything. */
static void print_steps(const struct trace_diff *diff, const struct side *before,
	const struct side *after, bool hta_compatible, const struct report_view *page)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (hta_compatible)
		strbuf_add(&text, "The first profiler step of the first rank of each.");
	else
		strbuf_addf(&text,
			"Before: %zu rank(s), %" PRIu64 " profiler step(s). After: %zu rank(s), "
			"%" PRIu64 " step(s).%s",
			before->views.count, diff->steps[0], after->views.count, diff->steps[1],
			diff->steps[0] != diff->steps[1] ||
					before->views.count != after->views.count
				? " They are of different lengths: times are of all they have."
				: "");
	report_paragraph(page, strbuf_cstr(&text), 2);
}

static int print_diff(const struct trace_diff *diff, const struct diff_trace_arguments *arguments,
	const struct report_view *page)
{
	static const struct table_column columns[] = {
		{.title = "Change", .right = true},
		{.title = "", .right = true},
		{.title = "Before", .right = true},
		{.title = "After", .right = true},
		{.title = "Count", .right = true},
		{.title = "After", .right = true},
		{.title = ""},
		{.title = "Kind"},
		{.title = "Name", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t limit = arguments->limit ?: DEFAULT_LIMIT, shown = 0, rest = 0;
	const struct trace_report report = {.page = *page};
	int r;

	array_foreach (&diff->rows, row) {
		if (is_unchanged(row) && !arguments->all)
			continue;
		if (shown == limit) {
			rest++;
			continue;
		}
		add_row(&table, diff, row);
		shown++;
	}
	if (!shown)
		report_paragraph(page, "Nothing changed: equal counts and durations.", 0);
	r = table_print(&table, &page->terminal, page->out);
	report_trace_rest(&report, rest, "changes");
	return r;
}

static int write_diff(const struct trace_diff *diff, const struct diff_trace_arguments *arguments,
	const struct side *before, const struct side *after, struct strbuf *out)
{
	const struct report_view page = {.terminal = terminal_of(stdout), .out = out};
	int r;

	if (arguments->json)
		return trace_diff_json_write(diff, before->path, after->path,
			arguments->hta_compatible, arguments->limit, out);
	print_steps(diff, before, after, arguments->hta_compatible, &page);
	r = print_diff(diff, arguments, &page);
	return r ?: strbuf_status(out);
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
	r = r ?: write_diff(&diff, arguments, before, after, out);
	return r < 0 ? errmsg_set(err, r, "memory ran out while comparing") : 0;
}

int diff_traces(const struct diff_trace_arguments *arguments, const char *before, const char *after)
{
	_cleanup_(side_done) struct side first = {0};
	_cleanup_(side_done) struct side second = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r = side_load(&first, before, arguments->hta_compatible, &err);

	r = r ?: side_load(&second, after, arguments->hta_compatible, &err);
	r = r ?: compare(arguments, &first, &second, &out, &err);
	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}
