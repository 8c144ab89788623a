/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_trace.h"

#include <string.h>

extern const struct trace_section temporal_section;

const struct trace_section *const trace_sections[] = {
	&temporal_section,
	NULL,
};

const struct trace_section *trace_section_find(const char *name)
{
	for (const struct trace_section *const *section = trace_sections; *section; section++) {
		if (strcmp((*section)->name, name) == 0)
			return *section;
	}
	return NULL;
}

void report_trace_place(const struct trace_report *report, const struct trace_view *view,
	uint32_t device, struct strbuf *out)
{
	bool names_rank = report->count > 1 || view->options.hta_compatible;

	if (names_rank)
		strbuf_addf(out, "rank %u", view->rank);
	if (names_rank && view->devices.count < 2)
		return;
	if (names_rank)
		strbuf_add_char(out, ' ');
	trace_view_device_name(view, device, out);
}

void report_trace_cell(struct table *table, const struct trace_report *report,
	const struct trace_view *view, uint32_t device)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_trace_place(report, view, device, &text);
	table_cell(table, strbuf_cstr(&text));
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
