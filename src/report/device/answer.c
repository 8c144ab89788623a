/* SPDX-License-Identifier: Apache-2.0 */
/* The answer: where the time of devices went, why they were idle, what would help. */
#include <errno.h>

#include "analyses/cpu/charge.h"
#include "analyses/device/launched_by.h"
#include "analyses/program/summary.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/columns.h"
#include "report/sections.h"

#define TOP_KERNELS  3
#define NAME_COLUMNS 48

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

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

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
	strbuf_addf(&text, " computed for %.1f %%", percent(summary->compute_ns, summary->span_ns));
	if (summary->only_communication_ns)
		strbuf_addf(&text, ", only communicated for %.1f %%",
			percent(summary->only_communication_ns, summary->span_ns));
	if (summary->only_memory_ns)
		strbuf_addf(&text, ", only copied for %.1f %%",
			percent(summary->only_memory_ns, summary->span_ns));
	strbuf_addf(&text, " and %s idle for %.1f %%.", summary->devices == 1 ? "was" : "were",
		percent(summary->idle_ns, summary->span_ns));
	if (summary->communication_ns)
		strbuf_addf(&text, " Of the communication, %.1f %% ran beside computing.",
			percent(summary->communication_beside_compute_ns,
				summary->communication_ns));
	result_say(result, 2, &text);
	strbuf_clear(&text);
	strbuf_add(&text, "Communication kernels were recognised: ");
	communication_add_counts(&text, summary->communication_works);
	strbuf_add(&text, ". --comm-kernels adds names.");
	if (summary->communication_ns)
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
		double share = percent(summary->idle_by_cause_ns[cause], summary->idle_ns);

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
			shorten_name(&text, row->name, NAME_COLUMNS);
		else
			strbuf_add(&text, "code that is not in the trace");
		strbuf_addf(&text, " (%.1f %%)", percent(row->time_ns, waits->host_ns));
	}
	if (!shown)
		return 0;
	strbuf_add(&text, ": --by host has them all.");
	result_say(result, 2, &text);
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
			NAME_COLUMNS);
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
		shorten_kernel(&text, ranks->rows.items[i].name, NAME_COLUMNS);
		strbuf_addf(&text, " (%.1f %%)",
			percent(ranks->rows.items[i].total_ns, ranks->total_ns));
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
	return 0;
}

/* ---- what would help ---- */

static const struct {
	enum trace_advice advice;
	const char *text;
	const char *of_xla; /* NULL: the same */
} advices[] = {
	{TRACE_ADVICE_LAUNCH_BOUND,
		"Launch-bound: most kernels take less than their launch, and GPUs idle for the "
		"next one. Fuse kernels (torch.compile), give each more work, or launch them "
		"together as a CUDA graph.",
		"Launch-bound: most kernels take less than their launch, and GPUs idle for the "
		"next one. Put more of the program under one jax.jit, give each call more work, or "
		"have XLA launch kernels together (--xla_gpu_enable_command_buffer)."},
	{TRACE_ADVICE_HOST_BOUND,
		"GPUs wait for the program. Look at what the host was doing: load data in other "
		"processes, avoid calls that wait for the device (.item(), .cpu(), synchronize), "
		"and launch ahead.",
		"GPUs wait for the program. Look at what the host was doing: load data in other "
		"processes, put the step under one jax.jit, avoid reading results "
		"(float(), np.asarray, block_until_ready) in the loop, and compile once: shapes "
		"that change compile again."},
	{TRACE_ADVICE_BLOCKING,
		"Calls that block keep the program from launching: copy from pinned memory with "
		"non_blocking=True, read results later or less often (.item(), .cpu(), print), "
		"avoid synchronize, allocate before the loop.",
		"Calls that block keep the program from launching: read results later or less "
		"often (float(), np.asarray, print, block_until_ready), and put data on the device "
		"ahead (jax.device_put)."},
	{TRACE_ADVICE_SHORT_GAPS,
		"The time goes into the gaps between launched kernels: use fewer and larger "
		"kernels (torch.compile), or a CUDA graph.",
		"The time goes into the gaps between launched kernels: put more under one "
		"jax.jit, and have XLA launch kernels together "
		"(--xla_gpu_enable_command_buffer)."},
	{TRACE_ADVICE_NO_LAUNCHES,
		"The trace does not show why GPUs were idle, because it lacks the calls that "
		"launched their work: record with ProfilerActivity.CPU, too.",
		"The trace does not show why GPUs were idle, because it lacks the calls that "
		"launched their work: trace with host_tracer_level=2 or more "
		"(jax.profiler.ProfileOptions)."},
	{TRACE_ADVICE_DEPENDENCIES,
		"GPUs are idle although work was launched: the work waits for events, or for other "
		"streams. See the critical path."},
	{TRACE_ADVICE_COMMUNICATION,
		"Communication does not overlap with computing: start it earlier and in larger "
		"pieces, and look for the rank that the others wait for."},
	{TRACE_ADVICE_COPIES,
		"Copies do not overlap with computing: copy less, from pinned memory "
		"(pin_memory, non_blocking), on a separate stream.",
		"Copies do not overlap with computing: put data on the device ahead "
		"(jax.device_put), and donate arguments (donate_argnums) in place of copying."},
	{TRACE_ADVICE_PAGEABLE,
		"Copies go through memory that is not pinned: the driver copies them twice, and "
		"the call waits. Use pinned memory (DataLoader(pin_memory=True), "
		"tensor.pin_memory(), cudaHostAlloc) and non_blocking=True.",
		"Copies go through memory that is not pinned: put data on the device ahead "
		"(jax.device_put), and donate arguments (donate_argnums) in place of copying."},
	{TRACE_ADVICE_KERNELS,
		"GPUs compute nearly all of the time: use faster kernels, lower precision, or less "
		"work."},
};

static void add_place(struct strbuf *text, const struct model *model, uint32_t index)
{
	const struct model_frame *frame = &model->frames.items[index];

	model_frame_name(model, index, text);
	if (frame->line)
		strbuf_addf(text, " (%s:%u)", frame->source_file, frame->line);
}

/* Of all ranks the one with most of it. */
static int find_launcher(const struct trace_report *report, const struct launched_work *wanted,
	struct launched_by *ret_most, const struct trace_view **ret_view)
{
	int r = 0;

	*ret_most = (struct launched_by){.frame = MODEL_NONE};
	for (size_t i = 0; r == 0 && i < report->count; i++) {
		struct launched_by most;

		r = launched_by_find(&most, &report->views[i], wanted);
		if (r == 0 && most.time_ns > ret_most->time_ns) {
			*ret_most = most;
			*ret_view = &report->views[i];
		}
	}
	return r;
}

/* "Most of it (71 %) is launched by train_step (train.py:12)." */
static int add_launcher(
	struct strbuf *text, const struct trace_report *report, const struct launched_work *wanted)
{
	const struct trace_view *view = NULL;
	struct launched_by most;
	int r = find_launcher(report, wanted, &most, &view);

	if (r < 0 || !view)
		return r;
	strbuf_addf(
		text, " %.0f %% of its time is launched by ", percent(most.time_ns, most.all_ns));
	if (most.frame != MODEL_NONE)
		add_place(text, view->trace->recorded, most.frame);
	else
		shorten_name(text, most.name, NAME_COLUMNS);
	strbuf_add_char(text, '.');
	return 0;
}

/* Where the launching threads were: the line that samples saw most, or the operator. */
static int add_host_place(struct strbuf *text, const struct report_input *input, bool is_blocked)
{
	const struct idle_rows *rows = trace_results_idle_rows(input->trace->results);

	if (!rows)
		return -ENOMEM;
	array_foreach (&rows->rows, row) {
		if (!idle_row_is_host(row) || (row->cause == DEVICE_IDLE_BLOCKED) != is_blocked ||
			(row->frame == MODEL_NONE && !row->name))
			continue;
		strbuf_add(text, " Most of it is in ");
		if (row->frame != MODEL_NONE)
			add_place(text, input->view->model, row->frame);
		else
			shorten_name(text, row->name, NAME_COLUMNS);
		strbuf_add_char(text, '.');
		break;
	}
	return 0;
}

static int add_culprit(
	struct strbuf *text, const struct report_input *input, enum trace_advice advice)
{
	switch (advice) {
	case TRACE_ADVICE_LAUNCH_BOUND:
		return add_launcher(text, input->trace,
			&(struct launched_work){.kinds = 1U << TRACE_COMPUTE, .short_only = true});
	case TRACE_ADVICE_KERNELS:
		return add_launcher(
			text, input->trace, &(struct launched_work){.kinds = 1U << TRACE_COMPUTE});
	case TRACE_ADVICE_COPIES:
	case TRACE_ADVICE_PAGEABLE:
		return add_launcher(
			text, input->trace, &(struct launched_work){.kinds = 1U << TRACE_MEMORY});
	case TRACE_ADVICE_COMMUNICATION:
		return add_launcher(text, input->trace,
			&(struct launched_work){.kinds = 1U << TRACE_COMMUNICATION});
	case TRACE_ADVICE_HOST_BOUND:
	case TRACE_ADVICE_BLOCKING:
		return add_host_place(text, input, advice == TRACE_ADVICE_BLOCKING);
	default:
		return 0;
	}
}

static const char *advice_text(const struct trace_report *report, size_t index)
{
	bool is_xla = report->count && trace_is_xla(report->views->trace);

	return is_xla && advices[index].of_xla ? advices[index].of_xla : advices[index].text;
}

static int add_advice(struct result *result, const struct report_input *input,
	const struct trace_summary *summary)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(advices); i++) {
		enum trace_advice advice = advices[i].advice;
		int64_t saves_ns = trace_summary_saves_ns(summary, advice);
		const struct result_advice known = {
			.id = trace_advice_name(advice),
			.saves_ns = saves_ns ? (uint64_t)saves_ns : REPORT_SAVES_UNKNOWN,
			.evidence = {{"kernel_time_ns", (double)summary->span_ns},
				{"idle_ns", (double)summary->idle_ns},
				{"launches", (double)summary->launches},
				{"launches_shorter_than_call", (double)summary->short_launches}},
		};
		_cleanup_strbuf_ struct strbuf text = {0};

		if (!(summary->advice & advice))
			continue;
		strbuf_add(&text, advice_text(input->trace, i));
		r = add_culprit(&text, input, advice);
		if (saves_ns) {
			strbuf_add(&text, " This can save up to ");
			format_duration(&text, (uint64_t)saves_ns / summary->devices);
			strbuf_addf(&text, "%s, %.1f %% of the time.",
				summary->devices > 1 ? " on each device" : "",
				percent(saves_ns, summary->span_ns));
		}
		strbuf_inherit_status(&result->texts, &text);
		result_advise(result, &known, strbuf_cstr(&text));
	}
	return r;
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
	add_spread(result, report, &summary);
	add_causes(result, &summary);
	r = add_host(result, report, &summary);
	if (r < 0)
		return r;
	add_block(result, report, &summary);
	r = add_kernels(result, report);
	return r < 0 ? r : add_advice(result, input, &summary);
}

const struct report_section answer_section = {
	.value = {.key = "summary",
		.kind = REPORT_OBJECT,
		.shape = &shape,
		.help = "where the time of all devices went: sums over them"},
	.needs = REPORT_NEEDS_ROWS,
	.make = make,
};
