/* SPDX-License-Identifier: Apache-2.0 */
/* What the report says of CUDA beside the device work itself: its cost, its memory, occupancy. */
#include <errno.h>

#include "analyses/device/device_work.h"
#include "model/format.h"
#include "report/view.h"

static void add_launch_calls(const struct report_view *view, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Calls that launched it took ");
	format_duration(&text, work->launch_call_ns);
	strbuf_add(&text, " in ");
	format_count(&text, work->launch_calls);
	strbuf_add(&text, work->launch_calls == 1 ? " call" : " calls");
	if (work->overhead.count) {
		strbuf_add(&text, "; CUPTI's and the driver's overhead, as CUPTI tells it: ");
		format_duration(&text, work->overhead.total_ns);
	}
	strbuf_add_char(&text, '.');
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_allocations(const struct report_view *view, const struct device_work *work)
{
	const struct device_allocations *allocations = &work->allocations;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!allocations->allocations && !allocations->releases)
		return;
	strbuf_add(&text, "Device memory: at most ");
	format_bytes(&text, allocations->peak_bytes);
	strbuf_add(&text, " at once in ");
	format_count(&text, allocations->allocations);
	strbuf_add(&text, allocations->allocations == 1 ? " allocation that was seen; "
							: " allocations that were seen; ");
	format_bytes(&text, allocations->left_bytes);
	strbuf_add(&text, " at the end.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_graphs(const struct report_view *view, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!work->replayed)
		return;
	format_count(&text, work->replayed);
	strbuf_add(&text, " of it ran in CUDA graphs, charged to where they were captured");
	if (work->replayed_without_capture) {
		strbuf_add(&text, ", but ");
		format_count(&text, work->replayed_without_capture);
		strbuf_add(&text, ", whose capture has no stack, to where they were launched");
	}
	strbuf_add(&text, ": sonde report --by graph.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

void report_cuda(const struct report_view *view, const struct device_work *work)
{
	if (!view->model->gpus.count && !view->model->device_notes.count)
		return;
	if (work->launch_calls)
		add_launch_calls(view, work);
	add_allocations(view, work);
	add_graphs(view, work);
}

static void add_occupancy(
	struct table *table, const struct device_work *work, const struct device_kernel *row)
{
	const struct device_configuration *configuration = &row->configuration;

	table_cellf(table, "%.2f %%",
		work->total_ns ? 100.0 * (double)row->total_ns / (double)work->total_ns : 0);
	table_cellf(table, "%u\xc3\x97%u\xc3\x97%u", configuration->block_size[0],
		configuration->block_size[1], configuration->block_size[2]);
	table_cellf(table, "%u", configuration->registers);
	table_bytes(table,
		(uint64_t)configuration->static_shared_bytes + configuration->dynamic_shared_bytes);
	if (row->occupancy_known) {
		table_cellf(table, "%.0f %%", 100 * row->occupancy.share);
		table_cell(table,
			row->occupancy.share < 1 ? occupancy_limit_name(row->occupancy.limit) : "");
	} else {
		table_cell(table, "");
		table_cell(table, "");
	}
	table_cell(table, row->name);
}

int report_occupancy(const struct report_view *view, const struct device_work *work, size_t limit)
{
	struct table_column columns[] = {
		{.title = "Time", .right = true},
		{.title = "Block", .right = true},
		{.title = "Registers", .right = true},
		{.title = "Shared", .right = true},
		{.title = "Occupancy", .right = true},
		{.title = "Limited by"},
		{.title = "Kernel", .shrinks_to = 16},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	size_t shown = 0;

	array_foreach (&work->kernels, row) {
		if (!row->has_configuration || shown >= limit)
			continue;
		if (!shown++)
			report_heading(
				view, "Theoretical occupancy of kernels, in their longest run");
		add_occupancy(&table, work, row);
	}
	return shown ? table_print(&table, &view->terminal, view->out) : 0;
}
