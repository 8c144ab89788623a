/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section for tests alone. It was added by the steps of report/section.h: this file, its
 * declaration in toy-section.h, and a line in the table of test-sections.c.
 */
#include "toy-section.h"

#include <errno.h>

#include "report/columns.h"
#include "toy-analysis.h"

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "track", .title = "Track", .kind = REPORT_TEXT, .help = "a thread, or a stream"},
	{.key = "spans", .title = "Spans", .kind = REPORT_COUNT},
	{.key = "longest_ns", .title = "Longest", .kind = REPORT_NS},
	{.key = "longest_share",
		.title = "Of its time",
		.kind = REPORT_SHARE,
		.help = "of the time from the track's first start to its last end"},
	{.key = "name", .title = "Span", .kind = REPORT_TEXT, .is_name = true, .shrinks_to = 8},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_track(struct result *result, const struct trace *trace, uint32_t index)
{
	const struct trace_track *track = &trace->tracks.items[index];

	if (track->thread_name)
		result_text(result, trace_text(trace, track->thread_name));
	else
		result_textf(result, "%s %lld", track->is_device ? "stream" : "thread",
			(long long)track->tid);
}

static const char *span_name(const struct trace *trace, const struct toy_longest_row *row)
{
	return trace_text(trace, trace->events.items[row->event].name);
}

static void add_row(
	struct result *result, const struct trace_view *view, const struct toy_longest_row *row)
{
	result_u64(result, view->rank);
	add_track(result, view->trace, row->track);
	result_u64(result, row->spans);
	result_i64(result, row->longest_ns);
	result_share(result, (double)row->longest_ns, (double)row->whole_ns);
	result_text(result, span_name(view->trace, row));
}

/* Over all ranks. */
struct most {
	const char *name;
	int64_t longest_ns, whole_ns;
};

static int add_rank(struct result *result, const struct trace_view *view, struct most *most)
{
	_cleanup_toy_longest_ struct toy_longest longest = {0};
	int r = toy_longest_init(&longest, view);

	if (r < 0)
		return r;
	array_foreach (&longest.rows, row) {
		add_row(result, view, row);
		if (row->longest_ns > most->longest_ns)
			*most = (struct most){
				span_name(view->trace, row), row->longest_ns, row->whole_ns};
	}
	return 0;
}

static bool has_spans(const struct trace_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		array_foreach (&report->views[i].trace->events, event) {
			if (toy_is_span(&report->views[i], event))
				return true;
		}
	}
	return false;
}

static void advise(struct result *result, const struct most *most)
{
	if (2 * most->longest_ns <= most->whole_ns)
		return;
	result_advise(result,
		&(struct result_advice){
			.id = "long_span",
			.saves_ns = REPORT_SAVES_UNKNOWN,
			.evidence = {{"longest_ns", (double)most->longest_ns},
				{"whole_ns", (double)most->whole_ns}},
		},
		"One span takes more than half of its track's time: look into it first.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *report = input->trace;
	struct most most = {0};
	uint32_t table;
	int r = 0;

	if (!has_spans(report))
		return report_nothing(result, input, "No thread and no stream has a span.");
	table = result_open(result);
	for (size_t i = 0; r == 0 && i < report->count; i++)
		r = add_rank(result, &report->views[i], &most);
	result_close(result);
	result_heading(result, "Longest spans");
	result_sentencef(result, 0, "Of all spans %s takes longest.", most.name);
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 4), .noun = "tracks"});
	advise(result, &most);
	return r;
}

const struct report_section toy_section = {
	.value = {.key = "longest_spans",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "of each thread and stream"},
	.by = "longest",
	.summary = "the longest span of each thread and stream",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
