/* SPDX-License-Identifier: Apache-2.0 */
/* What the report of traces says first: which traces, how complete, without devices where the time
 * of the CPUs went. */
#include <errno.h>
#include <string.h>

#include "base/escape.h"
#include "model/format.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

/* ---- which traces ---- */

static int64_t duration_ns(const struct trace *trace)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	array_foreach (&trace->events, event) {
		first_ns = MIN(first_ns, event->start_ns);
		last_ns = MAX(last_ns, trace_end_ns(event));
	}
	return trace->events.count ? last_ns - first_ns : 0;
}

/* Files of one process need not say a rank. */
static void add_rank(const struct trace_report *report, struct strbuf *text)
{
	const struct trace *first = report->views->trace;
	bool is_known = report->count > 1 || first->rank != MODEL_NONE;

	if (report->count > 1)
		strbuf_addf(text, "the first of %zu ranks", report->count);
	else if (is_known)
		strbuf_addf(text, "rank %u", report->views->rank);
	else if (first->world_size)
		strbuf_add(text, "one rank");
	if (first->world_size)
		strbuf_addf(text, " of %u", first->world_size);
	if (is_known || first->world_size)
		strbuf_add(text, " \xc2\xb7 ");
}

static void add_title(const struct trace_report *report)
{
	const struct report_view *page = &report->page;
	const struct trace *first = report->views->trace;
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t rows = 0;
	int64_t longest_ns = 0;

	for (size_t i = 0; i < report->count; i++) {
		rows += report->views[i].trace->events.count;
		longest_ns = MAX(longest_ns, duration_ns(report->views[i].trace));
	}
	strbuf_addf(&text, "%s \xc2\xb7 ", first->path);
	add_rank(report, &text);
	format_count(&text, rows);
	strbuf_add(&text, " rows \xc2\xb7 ");
	format_duration(&text, (uint64_t)longest_ns);
	strbuf_add(page->out, terminal_bold(&page->terminal));
	escape_plain(page->out, strbuf_cstr(&text));
	strbuf_addf(page->out, "%s\n", terminal_plain(&page->terminal));
}

/* ---- how complete ---- */

struct losses {
	uint64_t skipped, mended, times, without_launch, works, dropped;
	bool truncated;
};

static struct losses sum_losses(const struct trace_report *report)
{
	struct losses losses = {0};

	for (size_t i = 0; i < report->count; i++) {
		const struct trace_view *view = &report->views[i];
		const struct trace_damage *damage = &view->trace->damage;

		losses.skipped += damage->skipped_events;
		losses.mended += damage->mended_events;
		losses.times += damage->repaired_times + view->negative_durations;
		losses.truncated |= damage->truncated;
		losses.without_launch += view->works_without_launch;
		losses.works += view->works.count;
		losses.dropped += view->dropped_works;
	}
	return losses;
}

static void add_loss(const struct trace_report *report, uint64_t count, const char *what)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!count)
		return;
	format_count(&text, count);
	strbuf_addf(&text, " %s", what);
	report_paragraph(&report->page, strbuf_cstr(&text), 2);
}

static void add_losses(const struct trace_report *report)
{
	struct losses losses = sum_losses(report);
	_cleanup_strbuf_ struct strbuf without = {0};

	if (losses.truncated)
		report_paragraph(&report->page,
			"The file was cut off: what came before is here, the rest is not.", 2);
	add_loss(report, losses.skipped, "events were not understood, and are not counted.");
	add_loss(report, losses.mended, "events were damaged, and could be read all the same.");
	add_loss(report, losses.times, "durations were negative or wrapped, and count as none.");
	strbuf_add(&without, "of ");
	format_count(&without, losses.works);
	strbuf_add(&without, " kernels, copies and fills have no launch in the trace.");
	add_loss(report, losses.without_launch, strbuf_cstr(&without));
	add_loss(report, losses.dropped,
		"kernels, copies and fills are left out: of the last profiler step, or launched "
		"outside of the others.");
}

static int print_about(const struct trace_report *report)
{
	/* HTA has none, and other definitions. */
	bool is_hta = report->views->options.hta_compatible;

	add_title(report);
	add_losses(report);
	if (report->alone)
		return 0;
	if (!report_trace_has_works(report)) {
		report_paragraph(&report->page,
			"There is no device work: no kernel, copy or fill of a GPU is in the "
			"trace.",
			0);
		return is_hta ? 0 : report_trace_cpu_answer(report);
	}
	return 0;
}

static int write_about(const struct trace_report *report, struct json_writer *json)
{
	int r = 0;

	json_key(json, "hta_compatible");
	json_bool(json, report->views->options.hta_compatible);
	json_key(json, "traces");
	json_begin_array(json);
	for (size_t i = 0; i < report->count; i++)
		trace_json_trace(json, &report->views[i]);
	json_end_array(json);
	if (!report->alone) {
		r = trace_json_cpu_summary(json, report->results);
	}
	return r;
}

const struct report_section trace_about_section = {
	.needs = REPORT_NEEDS_TRACE,
	.is_head = true,
	.print_trace = print_about,
	.write_trace = write_about,
};
