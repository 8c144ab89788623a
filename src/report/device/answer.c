/* SPDX-License-Identifier: Apache-2.0 */
/* The answer: where the time of devices went, why they were idle, what would help. */
#include <errno.h>
#include <string.h>

#include "analyses/program/summary.h"
#include "analyses/program/trace_frames.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/columns.h"
#include "report/device/advice.h"
#include "report/sections.h"

#define TOP_KERNELS 3

static const struct report_column cause_columns[] = {
	{.key = "cause", .kind = REPORT_TEXT},
	{.key = "idle_ns", .kind = REPORT_NS},
};
static const struct report_shape cause_shape = REPORT_SHAPE(cause_columns);

static const struct report_column block_columns[] = {
	{.key = "rank", .kind = REPORT_INTEGER},
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "duration_ns", .kind = REPORT_NS},
	{.key = "idle_ns", .kind = REPORT_NS, .help = "that devices were idle meanwhile"},
	{.key = "operator", .kind = REPORT_TEXT, .help = "the innermost around it"},
	{.key = "python", .kind = REPORT_TEXT, .help = "the innermost of the user's own code"},
};
static const struct report_shape block_shape = REPORT_SHAPE(block_columns);

static const struct report_column columns[] = {
	{.key = "devices", .kind = REPORT_COUNT},
	{.key = "kernel_time_ns",
		.kind = REPORT_NS,
		.help = "of each from its first work to the end of its last"},
	{.key = "compute_ns", .kind = REPORT_NS},
	{.key = "communication_ns", .kind = REPORT_NS},
	{.key = "communication_beside_compute_ns", .kind = REPORT_NS},
	{.key = "only_communication_ns",
		.kind = REPORT_NS,
		.help = "nothing computed; copies may have run"},
	{.key = "only_memory_ns", .kind = REPORT_NS, .help = "only copies and fills"},
	{.key = "communication_kernels",
		.kind = REPORT_MAP,
		.shape = &columns_communication_shape,
		.help = "how many there are, by how they were recognised"},
	{.key = "idle_ns", .kind = REPORT_NS},
	{.key = "startup_idle_ns",
		.kind = REPORT_NS,
		.help = "before the first work of each, from the first row of a thread on: no part "
			"of kernel_time_ns and idle_ns"},
	{.key = "idle_by_cause_ns", .kind = REPORT_MAP, .shape = &cause_shape},
	{.key = "launches", .kind = REPORT_COUNT},
	{.key = "launches_shorter_than_call", .kind = REPORT_COUNT},
	{.key = "works_without_launch",
		.kind = REPORT_COUNT,
		.help = "in no figure of launches: their call is not known"},
	{.key = "longest_blocking_call",
		.kind = REPORT_OBJECT,
		.shape = &block_shape,
		.help = "null: none blocked"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- the figures ---- */

static void add_row_name(struct result *result, const struct trace *trace, uint32_t row)
{
	result_text(result,
		row == MODEL_NONE ? NULL : trace_text(trace, trace->events.items[row].name));
}

static void add_block_figures(struct result *result, const struct trace_report *report,
	const struct trace_summary_block *block)
{
	const struct trace *trace;

	if (block->view == MODEL_NONE) {
		result_null(result);
		return;
	}
	trace = report->views[block->view].trace;
	result_open(result);
	result_u64(result, report->views[block->view].rank);
	add_row_name(result, trace, block->row);
	result_i64(result, trace->events.items[block->row].duration_ns);
	result_i64(result, block->idle_ns);
	add_row_name(result, trace, block->op);
	add_row_name(result, trace, block->python);
	result_close(result);
}

static void add_figures(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	uint64_t without_launch = 0;

	for (size_t i = 0; i < report->count; i++)
		without_launch += report->views[i].works_without_launch;
	result_open(result);
	result_u64(result, summary->devices);
	result_i64(result, summary->span_ns);
	result_i64(result, summary->compute_ns);
	result_i64(result, summary->communication_ns);
	result_i64(result, summary->communication_beside_compute_ns);
	result_i64(result, summary->only_communication_ns);
	result_i64(result, summary->only_memory_ns);
	columns_add_communication(result, summary->communication_works);
	result_i64(result, summary->idle_ns);
	result_i64(result, summary->startup.idle_ns);
	result_open(result);
	for (int i = 0; i < DEVICE_IDLE_CAUSE_MAX; i++) {
		result_text(result, device_idle_cause_name((enum device_idle_cause)i));
		result_i64(result, summary->idle_by_cause_ns[i]);
	}
	result_close(result);
	result_u64(result, summary->launches);
	result_u64(result, summary->short_launches);
	result_u64(result, without_launch);
	add_block_figures(result, report, &summary->longest_block);
	result_close(result);
}

/* ---- where the time went ---- */

/* "Of 595 ms from its first work to the end of its last, GPU 0 computed for 22.1 %, …". */
static void add_time(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "Of ");
	format_duration(&text, (uint64_t)summary->span_ns / summary->devices);
	if (summary->devices == 1) {
		strbuf_add(&text, " from its first work to the end of its last, ");
		columns_name_device(report, &report->views[summary->most_idle.view],
			summary->most_idle.device, &text);
	} else {
		strbuf_addf(&text,
			" (mean of %u GPUs) from the first work of each to the end of its last, "
			"they",
			summary->devices);
	}
	strbuf_addf(&text, " computed for %.1f %%",
		report_percent(summary->compute_ns, summary->span_ns));
	if (summary->only_communication_ns)
		strbuf_addf(&text, ", only communicated for %.1f %%",
			report_percent(summary->only_communication_ns, summary->span_ns));
	if (summary->only_memory_ns)
		strbuf_addf(&text, ", only copied for %.1f %%",
			report_percent(summary->only_memory_ns, summary->span_ns));
	strbuf_addf(&text, " and %s idle for %.1f %%.", summary->devices == 1 ? "was" : "were",
		report_percent(summary->idle_ns, summary->span_ns));
	if (summary->communication_ns)
		strbuf_addf(&text, " Of the communication, %.1f %% ran beside computing.",
			report_percent(summary->communication_beside_compute_ns,
				summary->communication_ns));
	result_say(result, 2, &text);
	strbuf_clear(&text);
	strbuf_add(&text, "Communication kernels were recognised: ");
	communication_add_counts(&text, summary->communication_works);
	strbuf_add(&text, ". --comm-kernels adds names.");
	if (summary->communication_ns)
		result_say(result, 2, &text);
}

#define MIN_STARTUP_PERCENT 5 /* of the time until the last work */

/* "Before its first work it was idle for 28 s more, …: most of it in cudaMemcpy (20 s)". */
static void add_startup(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	const struct startup *startup = &summary->startup;
	bool is_one = summary->devices == 1;
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct trace *trace;

	if (report_percent(startup->idle_ns, trace_add_ns(startup->idle_ns, summary->span_ns)) <
		MIN_STARTUP_PERCENT)
		return;
	strbuf_addf(&text, "Before %s first work %s idle for ", is_one ? "its" : "their",
		is_one ? "it was" : "they were");
	format_duration(&text, (uint64_t)startup->idle_ns / summary->devices);
	strbuf_addf(&text,
		"%s more, from the first row of a thread on: no figure of idle time "
		"has that.",
		is_one ? "" : " (mean)");
	if (startup->view != MODEL_NONE) {
		trace = report->views[startup->view].trace;
		strbuf_add(&text, " The host was longest in ");
		shorten_name(&text, trace_text(trace, trace->events.items[startup->row].name),
			ADVICE_NAME_COLUMNS);
		strbuf_add(&text, " (");
		format_duration(&text, (uint64_t)startup->row_ns);
		strbuf_add(&text, ").");
	}
	result_say(result, 2, &text);
}

/* "Idle least: rank 3, 12.1 %; most: rank 0, 60.2 %." */
static void add_spread(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	const struct trace_summary_device *ends[] = {&summary->least_idle, &summary->most_idle};
	_cleanup_strbuf_ struct strbuf text = {0};

	if (summary->devices < 2)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		strbuf_add(&text, i ? "; most: " : "Idle least: ");
		columns_name_device(report, &report->views[ends[i]->view], ends[i]->device, &text);
		strbuf_addf(&text, ", %.1f %%", 100 * ends[i]->idle_share);
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

/* "Why idle: 71.2 % the host had not launched the next work yet (…); …". */
static void add_causes(struct result *result, const struct trace_summary *summary)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	for (int cause = 0; cause < DEVICE_IDLE_CAUSE_MAX; cause++) {
		double share = report_percent(summary->idle_by_cause_ns[cause], summary->idle_ns);

		if (share < 1)
			continue;
		strbuf_addf(&text, "%s%.1f %% %s", text.length ? "; " : "Why idle: ", share,
			device_idle_cause_meaning((enum device_idle_cause)cause));
	}
	if (!text.length && strbuf_status(&text) == 0)
		return;
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

/* "Of your Python functions it was in step (train.py:12) (62.0 %), …". */
static void add_pythons(struct result *result, const struct idle_rows *waits)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t shown = 0;

	for (size_t i = 0; shown < TOP_KERNELS && i < waits->pythons.count; i++) {
		const struct idle_python *python = &waits->pythons.items[i];
		int64_t time_ns = python->time_ns;
		bool is_known = false;

		for (size_t k = 0; k < waits->pythons.count; k++) {
			const struct idle_python *other = &waits->pythons.items[k];

			if (k == i || strcmp(other->name, python->name) != 0)
				continue;
			is_known |= k < i;
			time_ns += other->time_ns;
		}
		if (is_known)
			continue;
		strbuf_add(&text, shown++ ? ", " : "Of your Python functions it was in ");
		trace_frames_describe_python(python->name, &text);
		strbuf_addf(&text, " (%.1f %%)", report_percent(time_ns, waits->host_ns));
	}
	if (!shown)
		return;
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static int add_host(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	const struct idle_rows *waits;
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t shown = 0;

	if (device_idle_host_ns(summary->idle_by_cause_ns) +
			summary->idle_by_cause_ns[DEVICE_IDLE_BLOCKED] <
		summary->span_ns / 20)
		return 0;
	waits = trace_results_idle_rows(report->results);
	if (!waits)
		return -ENOMEM;
	for (size_t i = 0; shown < TOP_KERNELS && i < waits->rows.count; i++) {
		const struct idle_row *row = &waits->rows.items[i];

		if (!idle_row_is_host(row))
			continue;
		strbuf_add(&text, shown++ ? ", " : "Meanwhile the host was in ");
		if (row->name)
			shorten_name(&text, row->name, ADVICE_NAME_COLUMNS);
		else
			strbuf_add(&text, "code that is not in the trace");
		strbuf_addf(&text, " (%.1f %%)", report_percent(row->time_ns, waits->host_ns));
	}
	if (!shown)
		return 0;
	strbuf_add(&text, ": --by host has them all.");
	result_say(result, 2, &text);
	add_pythons(result, waits);
	return 0;
}

/* "The longest call that blocked: cudaMemcpyAsync, 463 ms, in aten::to, called by train.py(12)". */
static void add_block(struct result *result, const struct trace_report *report,
	const struct trace_summary *summary)
{
	const struct trace_summary_block *block = &summary->longest_block;
	_cleanup_strbuf_ struct strbuf text = {0};
	const struct trace *trace;
	const struct trace_event *call;

	if (summary->idle_by_cause_ns[DEVICE_IDLE_BLOCKED] < summary->span_ns / 100)
		return;
	trace = report->views[block->view].trace;
	call = &trace->events.items[block->row];
	strbuf_addf(&text, "The call that blocked longest: %s, ", trace_text(trace, call->name));
	format_duration(&text, (uint64_t)call->duration_ns);
	if (report->count > 1)
		strbuf_addf(&text, " on rank %u", report->views[block->view].rank);
	if (block->op != MODEL_NONE) {
		strbuf_add(&text, ", in ");
		shorten_name(&text, trace_text(trace, trace->events.items[block->op].name),
			ADVICE_NAME_COLUMNS);
	}
	if (block->python != MODEL_NONE)
		strbuf_addf(&text, ", from %s",
			trace_text(trace, trace->events.items[block->python].name));
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static int add_kernels(struct result *result, const struct trace_report *report)
{
	const struct kernels *ranks = trace_results_kernels(report->results);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < MIN(ranks->rows.count, (size_t)TOP_KERNELS); i++) {
		strbuf_add(&text, i ? ", " : "Most of the work: ");
		shorten_kernel(&text, ranks->rows.items[i].name, ADVICE_NAME_COLUMNS);
		strbuf_addf(&text, " (%.1f %%)",
			report_percent(ranks->rows.items[i].total_ns, ranks->total_ns));
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
	return 0;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct trace_report *report = input->trace;
	struct trace_summary summary;
	int r;

	/* Other tools have none, and other definitions. */
	if (!trace_report_is_own(report) || !columns_has_works(result, input))
		return 0;
	r = trace_summary_init(&summary, report->results);
	if (r < 0)
		return r;
	add_figures(result, report, &summary);
	result_heading(result, "Where the GPU time went");
	add_time(result, report, &summary);
	add_startup(result, report, &summary);
	add_spread(result, report, &summary);
	add_causes(result, &summary);
	r = add_host(result, report, &summary);
	if (r < 0)
		return r;
	add_block(result, report, &summary);
	r = add_kernels(result, report);
	return r < 0 ? r : report_add_device_advice(result, input, &summary);
}

const struct report_section answer_section = {
	.value = {.key = "summary",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "where the time of all devices went: sums over them"},
	.needs = REPORT_NEEDS_ROWS,
	.make = make,
};
