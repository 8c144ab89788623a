/* SPDX-License-Identifier: Apache-2.0 */
/* Why devices were idle, as the report shows it. */
#include <errno.h>

#include "analyses/device/device_idle.h"
#include "model/format.h"
#include "report/view.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* "Why the device was idle (1.2 s of 3.4 s)"; of several, each by its name. */
static void add_heading(const struct report_view *view, const struct device_idle_device *device)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (view->idle->devices.count == 1)
		strbuf_add(&text, "Why the device was idle (");
	else
		strbuf_addf(&text, "Why %s was idle (",
			*device->name ? device->name : "unknown device");
	format_duration(&text, device->idle_ns);
	strbuf_add(&text, " of ");
	format_duration(&text, device->span_ns);
	strbuf_add_char(&text, ')');
	report_heading(view, strbuf_cstr(&text));
}

/* What the figures rest on. */
static void add_basis(const struct report_view *view, const struct device_idle_device *device)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	format_count(&text, device->gaps);
	strbuf_add(&text, device->gaps == 1 ? " gap" : " gaps");
	strbuf_add(&text, " between its first and its last work, charged to the thread that "
			  "launched what came next, by ");
	format_count(&text, device->samples);
	strbuf_add(&text, device->samples == 1 ? " sample of it." : " samples of it.");
	if (device->samples < device->gaps)
		strbuf_add(&text, " Fewer samples than gaps: which line a short gap is charged to "
				  "is chance.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_place(
	struct table *table, const struct model *model, const struct device_idle_row *row)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	const struct model_frame *frame;

	if (row->frame == MODEL_NONE) {
		table_cell(table, row->cause == DEVICE_IDLE_UNKNOWN ? "" : "[no stack]");
		table_cell(table, "");
		return;
	}
	frame = &model->frames.items[row->frame];
	if (frame->line)
		table_cellf(table, "%s:%u", frame->source_file, frame->line);
	else
		table_cell(table, model_function_module(model, frame->function));
	model_frame_name(model, row->frame, &name);
	table_cell(table, strbuf_cstr(&name));
}

static void add_row(const struct report_view *view, struct table *table,
	const struct device_idle_row *row, uint64_t idle_ns)
{
	_cleanup_strbuf_ struct strbuf time = {0}, gaps = {0}, samples = {0};

	format_duration(&time, row->time_ns);
	format_count(&gaps, row->gaps);
	format_count(&samples, row->samples);
	table_cellf(table, "%.2f %%", percent(row->time_ns, idle_ns));
	table_cell(table, strbuf_cstr(&time));
	table_cell(table, strbuf_cstr(&gaps));
	table_cell(table, strbuf_cstr(&samples));
	table_cell(table, device_idle_cause_meaning(row->cause));
	add_place(table, view->model, row);
}

static int add_table(const struct report_view *view, uint32_t device, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Idle", .right = true},
		{.title = "Time", .right = true},
		{.title = "Gaps", .right = true},
		{.title = "Samples", .right = true},
		{.title = "Cause", .shrinks_to = 12},
		{.title = "Line", .is_path = true, .shrinks_to = 14},
		{.title = "Function", .shrinks_to = 10},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t shown = 0;

	array_foreach (&view->idle->rows, row) {
		if (row->device == device && shown++ < limit)
			add_row(view, &table, row, view->idle->devices.items[device].idle_ns);
	}
	return table_print(&table, &view->terminal, view->out);
}

int report_device_idle(const struct report_view *view, size_t limit)
{
	int r = 0;

	if (!view->idle)
		return 0;
	for (uint32_t i = 0; r == 0 && i < view->idle->devices.count; i++) {
		const struct device_idle_device *device = &view->idle->devices.items[i];

		if (!device->idle_ns)
			continue;
		add_heading(view, device);
		add_basis(view, device);
		r = add_table(view, i, limit ? limit : view->idle->rows.count);
	}
	return r;
}
