/* SPDX-License-Identifier: Apache-2.0 */
/* Section: what streams and the host waited for on devices, and where in the program. */
#include <errno.h>

#include "analyses/device/idle_rows.h"
#include "analyses/device/sync_rows.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

static const struct report_column columns[] = {
	REPORT_RANK_COLUMN,
	{.key = "waited_ns",
		.title = "Waited",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.is_lead = true,
		.help = "the host: in its calls; a stream: with work to do, for the event"},
	REPORT_RANK_SPREAD(0),
	{.key = "count", .title = "Waits", .kind = REPORT_COUNT, .join = REPORT_JOIN_SUM},
	{.key = "unknown",
		.title = "Not timed",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of count: how long a stream waited is not known, because what it waited "
			"for is not"},
	{.key = "longest_ns", .title = "Longest", .kind = REPORT_NS, .join = REPORT_JOIN_MOST},
	{.title = "What waits", .kind = REPORT_TEXT, .join = REPORT_JOIN_KEY},
	{.key = "kind",
		.kind = REPORT_TEXT,
		.help = "stream_wait_event, host_function: a stream waits; the others are the host's: event, "
			"stream, device; copy: a call that copies or fills, and blocks; call: what it "
			"waits for is not known"},
	{.key = "waited_for",
		.title = "For",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 12,
		.help = "a stream, an event's stream, a device; of a copy the work, of a call its "
			"name"},
	{.key = "in_kind", .kind = REPORT_TEXT, .help = "operator, annotation or python: of `in`"},
	{.key = "in",
		.title = "In",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.hide = REPORT_HIDE_EMPTY,
		.is_name = true,
		.shrinks_to = 16,
		.help = "the innermost row around the call; null: there is none"},
	{.title = "Line",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.hide = REPORT_HIDE_EMPTY,
		.is_path = true,
		.shrinks_to = 14},
	{.title = "Function",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.hide = REPORT_HIDE_EMPTY,
		.is_name = true,
		.shrinks_to = 10},
	{.key = "function", .kind = REPORT_TEXT},
	{.key = "module", .kind = REPORT_TEXT},
	{.key = "source_file", .kind = REPORT_TEXT},
	{.key = "line",
		.kind = REPORT_INTEGER,
		.help = "of the host the line that called, where the call's stack was recorded "
			"(--cuda-api all), or else a line that a sample saw in the call; of a "
			"stream the one that launched the work that waited"},
	{.key = "stack",
		.kind = REPORT_TEXT,
		.help = "of the longest of these waits, from the outermost frame on, with "
			"semicolons between; null: not known"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static const char *kind_of_place(const struct sync_row *row)
{
	return idle_row_kind(&(const struct idle_row){.category = row->category});
}

static void add_row(
	struct result *result, const struct trace_view *view, const struct sync_row *row)
{
	const struct model *model = view->trace->recorded;

	result_u64(result, view->rank);
	result_known(result, row->unknown < row->count, (uint64_t)row->time_ns);
	report_add_rank_spread(result);
	result_u64(result, row->count);
	result_u64(result, row->unknown);
	result_known(result, row->unknown < row->count, (uint64_t)row->most_ns);
	result_text(result, device_sync_kind_title(row->kind));
	result_text(result, device_sync_kind_name(row->kind));
	result_text(result, row->target);
	result_text(result, row->name ? kind_of_place(row) : NULL);
	result_text(result, row->name);
	if (model) {
		columns_add_frame(result, model, row->frame, NULL);
		columns_add_stack(result, model, row->stack);
		return;
	}
	for (int i = 0; i < 7; i++)
		result_null(result);
}

static int make(struct result *result, const struct report_input *input)
{
	uint32_t table;

	/* Another tool's rows may come in another order. */
	if (!report_is_own(input))
		return report_nothing(result, input, "HTA has no table of waits for devices.");
	table = result_open(result);
	for (size_t i = 0; i < input->trace->count; i++) {
		const struct trace_view *view = &input->trace->views[i];
		_cleanup_sync_rows_ struct sync_rows rows = {0};
		int r = sync_rows_init(&rows, view);
		size_t wanted;

		if (r < 0)
			return r;
		wanted = report_rows_wanted(result, input, rows.rows.count);
		for (size_t k = 0; k < wanted; k++)
			add_row(result, view, &rows.rows.items[k]);
	}
	result_close(result);
	if (!result_count(result, table))
		return report_nothing(result, input,
			"No waits for devices are known: recordings have those of CUDA, HIP and "
			"OpenCL, PyTorch's profiler with enable_cuda_sync_events.");
	table = report_join_ranks(result, input, table);
	result_heading(result, "Waits for devices");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "waits"});
	return 0;
}

const struct report_section syncs_section = {
	.value = {.key = "device_waits",
		.total = "device_waits_total",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "waits for devices, their streams and events, by rank, then most time "
			"first"},
	.by = "device-waits",
	.summary = "what streams and the host waited for on devices",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
