/* SPDX-License-Identifier: Apache-2.0 */
/* Section: faults and migrations of CUDA's unified memory. */
#include "analyses/memory/unified.h"

#include "model/format.h"
#include "report/columns.h"
#include "report/join.h"
#include "report/sections.h"

/* Less of the time of the GPUs' work is not worth a sentence. */
#define WORTH_A_SHARE 0.05

static const struct report_column columns[] = {
	{.key = "migration_ns",
		.title = "Migrating",
		.kind = REPORT_NS,
		.is_lead = true,
		.help = "sum of all: they may overlap"},
	{.key = "fault_ns",
		.title = "Faulting",
		.kind = REPORT_NS,
		.help = "from when the driver sees faults of a GPU until it lets it go on, and "
			"throttling: sum of all"},
	{.key = "to_device_bytes", .title = "To device", .kind = REPORT_BYTES},
	{.key = "to_host_bytes", .title = "To host", .kind = REPORT_BYTES},
	{.key = "between_devices_bytes",
		.title = "Between devices",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "asked_bytes",
		.title = "Prefetched",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of these bytes: the program called for it (cudaMemPrefetchAsync)"},
	{.key = "evicted_bytes",
		.title = "Evicted",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of these bytes: to make room on a GPU that was full"},
	{.key = "migrations", .title = "Migrations", .kind = REPORT_COUNT},
	{.key = "device_faults",
		.title = "GPU faults",
		.kind = REPORT_COUNT,
		.help = "groups of faults for the same page"},
	{.key = "host_faults", .title = "CPU faults", .kind = REPORT_COUNT},
	{.key = "thrashing",
		.title = "Thrashing",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY,
		.help = "times that the driver saw pages go to and fro"},
	{.key = "throttling",
		.title = "Throttled",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "remote_maps",
		.title = "Remote maps",
		.kind = REPORT_COUNT,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "device",
		.title = "Device",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_SAME,
		.unknown = "[host]",
		.shrinks_to = 12},
	{.key = "address",
		.title = "Allocation",
		.kind = REPORT_TEXT,
		.unknown = "[not known]",
		.help = "null: it was not allocated while recording"},
	{.key = "allocated_bytes",
		.title = "Size",
		.kind = REPORT_BYTES,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "call",
		.title = "Allocated by",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "the call; null: not known"},
	{.title = "At",
		.kind = REPORT_TEXT,
		.hide = REPORT_HIDE_UNKNOWN,
		.is_path = true,
		.shrinks_to = 14},
	{.key = "source_file",
		.kind = REPORT_TEXT,
		.help = "of the line that allocated; null: not known"},
	{.key = "line", .kind = REPORT_INTEGER},
	{.key = "kernel",
		.title = "While",
		.kind = REPORT_TEXT,
		.unknown = "[no kernel]",
		.is_name = true,
		.shrinks_to = 16,
		.help = "the kernel of the process that had begun last and ran on the GPU; null: "
			"none did"},
	{.key = "stream", .kind = REPORT_INTEGER, .help = "of the first such kernel"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

static void add_line(struct result *result, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = index == MODEL_NONE ? NULL : &model->frames.items[index];

	columns_add_line(result, model, index);
	result_text(result, frame ? frame->source_file : NULL);
	result_known(result, frame && frame->line, frame ? frame->line : 0);
}

static void add_row(struct result *result, const struct model *model, const struct unified_use *use)
{
	const struct model_device_work *work =
		use->work == MODEL_NONE ? NULL : &model->device_works.items[use->work];

	result_u64(result, use->migration_ns);
	result_u64(result, use->fault_ns);
	result_u64(result, use->to_device_bytes);
	result_u64(result, use->to_host_bytes);
	result_u64(result, use->between_bytes);
	result_u64(result, use->asked_bytes);
	result_u64(result, use->evicted_bytes);
	result_u64(result, use->migrations);
	result_u64(result, use->device_faults);
	result_u64(result, use->host_faults);
	result_u64(result, use->thrashing);
	result_u64(result, use->throttling);
	result_u64(result, use->remote_maps);
	result_text(result, *use->device ? use->device : NULL);
	if (use->bytes)
		result_textf(result, "0x%llx", (unsigned long long)use->address);
	else
		result_null(result);
	result_known(result, use->bytes, use->bytes);
	result_text(result, use->call);
	add_line(result, model, use->frame);
	result_text(result, work ? work->name : NULL);
	result_known(result, work, work ? work->stream : 0);
}

static double share(const struct unified_memory *unified)
{
	return unified->work_ns ? (double)unified->unasked_ns / (double)unified->work_ns : 0;
}

/* Pages that move because they are accessed have GPUs wait: fault by fault. */
static void add_advice(struct result *result, const struct unified_memory *unified)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t faults = 0, thrashing = 0, evicted_bytes = 0;

	array_foreach (&unified->rows, use) {
		faults += use->device_faults;
		thrashing += use->thrashing;
		evicted_bytes += use->evicted_bytes;
	}
	if (share(unified) < WORTH_A_SHARE)
		return;
	strbuf_add(&text,
		"Pages of unified memory move when they are accessed: that and faults took ");
	format_duration(&text, unified->unasked_ns);
	strbuf_addf(&text, ", as long as %.1f %% of the time of the GPUs' work, for ",
		100 * share(unified));
	format_bytes(&text, unified->unasked_bytes);
	strbuf_add(&text, " to GPUs. Prefetch them before the kernels that use them "
			  "(cudaMemPrefetchAsync), or copy from pinned memory.");
	if (evicted_bytes)
		strbuf_add(&text, " The GPU was full, and pages were evicted: use less of its "
				  "memory at a time.");
	if (thrashing)
		strbuf_add(&text, " Pages go to and fro: keep the host from them while the GPU "
				  "works, or advise where they stay (cudaMemAdvise).");
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = "unified_memory",
			.saves_ns = REPORT_SAVES_UNKNOWN,
			.docs = "docs/gpu.md",
			.evidence = {{"unasked_ns", (double)unified->unasked_ns},
				{"work_ns", (double)unified->work_ns},
				{"unasked_bytes", (double)unified->unasked_bytes},
				{"device_faults", (double)faults}}},
		strbuf_cstr(&text));
}

static void say_what_is_unknown(struct result *result, const struct report_input *input,
	const struct unified_memory *unified)
{
	if (input->is_alone && unified->has_unknown)
		result_sentence(result, 2,
			"Allocations that are not known were made before the recording, or are "
			"memory of the system, which GPUs may use, too.");
}

static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	_cleanup_unified_memory_ struct unified_memory unified = {0};
	uint32_t table = result_open(result);
	size_t wanted;
	int r = unified_memory_init(&unified, model);

	if (r < 0)
		return r;
	wanted = report_rows_wanted(result, input, unified.rows.count);
	for (size_t i = 0; i < wanted; i++)
		add_row(result, model, &unified.rows.items[i]);
	result_close(result);
	if (!unified.rows.count)
		return report_nothing(result, input,
			"No faults and migrations of unified memory were recorded: sonde record "
			"--unified-memory asks CUPTI for them, and programs that use "
			"cudaMallocManaged have them.");
	result_heading(result, "Unified memory");
	result_show(result, table,
		&(struct result_show){.limit = report_rows_shown(input, 20, 10), .noun = "rows"});
	say_what_is_unknown(result, input, &unified);
	add_advice(result, &unified);
	return 0;
}

const struct report_section unified_section = {
	.value = {.key = "unified_memory",
		.total = "unified_memory_total",
		.kind = REPORT_ROWS,
		.shape = &shape,
		.help = "faults and migrations by allocation and the kernel that ran meanwhile, "
			"most time first"},
	.by = "unified-memory",
	.summary = "faults and migrations of CUDA's unified memory",
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
