/* SPDX-License-Identifier: Apache-2.0 */
/* What sections of the report of traces have in common. */
#include <errno.h>
#include <math.h>

#include "model/format.h"
#include "report/trace/report_json.h"
#include "report/trace/trace.h"

void report_trace_place(const struct trace_report *report, const struct trace_view *view,
	uint32_t device, struct strbuf *out)
{
	bool is_known = report->count > 1 || view->trace->rank != MODEL_NONE;

	if (report->count > 1 || (view->options.hta_compatible && is_known)) {
		strbuf_addf(out, "rank %u", view->rank);
		if (view->devices.count < 2)
			return;
		strbuf_add_char(out, ' ');
	}
	trace_view_device_name(view, device, out);
}

void report_trace_cell(struct table *table, const struct trace_report *report,
	const struct trace_view *view, uint32_t device)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_trace_place(report, view, device, &text);
	table_cell(table, strbuf_cstr(&text));
}

void report_trace_stream_cells(struct table *table, const struct trace_report *report,
	const struct trace_view *view, uint32_t stream)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_trace_cell(table, report, view, view->streams.items[stream].device);
	trace_view_stream_name(view, stream, &text);
	table_cell(table, strbuf_cstr(&text));
}

void report_trace_share(struct table *table, int64_t part_ns, int64_t whole_ns)
{
	if (whole_ns)
		table_cellf(table, "%.2f %%", 100.0 * (double)part_ns / (double)whole_ns);
	else
		table_cell(table, "");
}

void report_trace_part(struct table *table, int64_t part_ns, int64_t whole_ns)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (part_ns < 0)
		strbuf_add_char(&text, '-');
	format_duration(&text, part_ns < 0 ? 0 - (uint64_t)part_ns : (uint64_t)part_ns);
	if (whole_ns)
		strbuf_addf(&text, "  %6.2f %%", 100.0 * (double)part_ns / (double)whole_ns);
	table_cell(table, strbuf_cstr(&text));
}

void report_trace_time(struct table *table, int64_t ns)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (ns < 0)
		strbuf_add_char(&text, '-');
	format_duration(&text, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
	table_cell(table, strbuf_cstr(&text));
}

void report_trace_figure(struct table *table, double ns)
{
	if (isnan(ns))
		table_cell(table, "");
	else
		report_trace_time(table, llround(ns));
}

void report_trace_rest(const struct trace_report *report, size_t rest, const char *what)
{
	const struct report_view *page = &report->page;

	if (!rest)
		return;
	strbuf_addf(page->out, "%s\xe2\x80\xa6 ", terminal_dim(&page->terminal));
	format_count(page->out, rest);
	strbuf_addf(page->out, " more %s (--limit shows more)%s\n", what,
		terminal_plain(&page->terminal));
}

void report_trace_advice(const struct trace_report *report, const char *text)
{
	const struct report_view *page = &report->page;

	strbuf_addf(page->out, "%s\xe2\x86\x92%s ", terminal_bold(&page->terminal),
		terminal_plain(&page->terminal));
	report_paragraph(page, text, 2);
}

bool report_trace_has_works(const struct trace_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->views[i].works.count)
			return true;
	}
	if (report->alone)
		report_paragraph(&report->page,
			"There is no device work: no kernel, copy or fill of a GPU is in the "
			"trace.",
			0);
	return false;
}
