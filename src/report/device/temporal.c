/* SPDX-License-Identifier: Apache-2.0 */
/* What devices did over time, and what of it ran at the same time. */
#include <errno.h>

#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* Tables of the same rows. */
enum { VIEW_TIMES, VIEW_OVERLAP };

#define IN_TIMES   (1U << VIEW_TIMES)
#define IN_OVERLAP (1U << VIEW_OVERLAP)

static const struct report_column columns[] = {
	REPORT_DEVICE_COLUMNS,
	{.key = "kernel_time_ns",
		.title = "Kernel time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.help = "from the start of its first work to the end of its last"},
	{.key = "idle_ns",
		.title = "Idle",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true},
	{.key = "idle_share", .title = "", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	REPORT_RANK_SPREAD(IN_TIMES),
	{.key = "compute_ns", .title = "Compute", .kind = REPORT_NS, .join = REPORT_JOIN_MEAN},
	{.key = "compute_share", .title = "", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	{.key = "non_compute_ns",
		.title = "Non-compute",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.help = "busy, and nothing computes"},
	{.key = "non_compute_share", .title = "", .kind = REPORT_SHARE, .join = REPORT_JOIN_MEAN},
	{.key = "memory_ns",
		.title = "Copies",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY,
		.help = "copies and fills"},
	{.key = "memory_beside_compute_ns", .kind = REPORT_NS},
	{.key = "memory_overlap_share",
		.title = "Beside compute",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of memory_ns"},
	{.key = "memory_only_ns", .kind = REPORT_NS},
	{.key = "communication_ns",
		.title = "Communication",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "communication_beside_compute_ns",
		.title = "Beside compute",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "overlap_share",
		.title = "",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of communication_ns"},
	{.key = "communication_only_ns", .kind = REPORT_NS},
	{.title = "Exposed, of kernel time",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.views = IN_OVERLAP,
		.hide = REPORT_HIDE_EMPTY},
	REPORT_RANK_SPREAD(IN_OVERLAP),
	{.key = "compute_only_ns", .kind = REPORT_NS},
	{.key = "communication_kernels",
		.kind = REPORT_MAP,
		.shape = &columns_communication_shape,
		.help = "how many there are, by how they were recognised"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_part(struct result *result, int64_t part_ns, int64_t span_ns)
{
	result_i64(result, part_ns);
	result_share(result, (double)part_ns, (double)span_ns);
}

static void add_communication(struct result *result, const struct trace_view *view, uint32_t device)
{
	uint64_t counts[COMMUNICATION_EVIDENCE_MAX] = {0};

	array_foreach (&view->works, work) {
		if (view->streams.items[work->stream].device == device)
			counts[work->communication]++;
	}
	columns_add_communication(result, counts);
}

static void add_device(
	struct result *result, const struct trace_view *view, const struct temporal_device *device)
{
	const unsigned compute = 1 << TRACE_COMPUTE, memory = 1 << TRACE_MEMORY,
		       communication = 1 << TRACE_COMMUNICATION;
	int64_t span_ns = temporal_span_ns(device);
	int64_t memory_ns = device->by_kind_ns[TRACE_MEMORY];
	int64_t communication_ns = device->by_kind_ns[TRACE_COMMUNICATION];
	int64_t hidden_ns = device->communication_beside_compute_ns;
	int64_t copies_beside_ns = temporal_ns(device, memory | compute);

	result_i64(result, span_ns);
	add_part(result, device->idle_ns, span_ns);
	report_add_rank_spread(result);
	add_part(result, device->by_kind_ns[TRACE_COMPUTE], span_ns);
	add_part(result, temporal_non_compute_ns(device), span_ns);
	result_i64(result, memory_ns);
	add_part(result, copies_beside_ns, memory_ns);
	result_i64(result, device->by_set_ns[memory]);
	result_i64(result, communication_ns);
	add_part(result, hidden_ns, communication_ns);
	result_i64(result, device->by_set_ns[communication]);
	result_share(result, (double)(communication_ns - hidden_ns), (double)span_ns);
	report_add_rank_spread(result);
	result_i64(result, device->by_set_ns[compute]);
}

static bool does_more_than_compute(const struct temporal *temporal)
{
	array_foreach (&temporal->devices, device) {
		if (device->by_kind_ns[TRACE_MEMORY] || device->by_kind_ns[TRACE_COMMUNICATION])
			return true;
	}
	return false;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *report = input->trace;
	bool has_overlap = false;
	uint32_t table;

	if (!columns_has_works(result, input))
		return 0;
	table = result_open(result);
	for (size_t i = 0; i < report->count; i++) {
		const struct trace_view *view = &report->views[i];
		const struct temporal *temporal = trace_results_temporal(report->results, i);

		if (!temporal)
			return -ENOMEM;
		for (uint32_t device = 0; device < temporal->devices.count; device++) {
			columns_add_device(result, report, view, device);
			add_device(result, view, &temporal->devices.items[device]);
			add_communication(result, view, device);
		}
		has_overlap |= does_more_than_compute(temporal);
	}
	result_close(result);
	table = report_join_ranks(result, input, table);
	result_heading(result,
		"Temporal breakdown (kernel time: from the first work to the end of the last)");
	result_show(result, table, &(struct result_show){.view = VIEW_TIMES});
	if (!has_overlap)
		return 0;
	result_heading(result, "Copies and communication beside computing");
	result_show(result, table, &(struct result_show){.view = VIEW_OVERLAP});
	return 0;
}

static const struct report_name names[] = {
	{"overlap", "how far communication and copies ran beside computing"},
	{0},
};

const struct report_section temporal_section = {
	.value = {.key = "temporal",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "what devices did, and what of it ran at the same time"},
	.by = "temporal",
	.also = names,
	.summary = "computing, other work and idle time of devices, and what ran at the same time",
	.needs = REPORT_NEEDS_ROWS,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
