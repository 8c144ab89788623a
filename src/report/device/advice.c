/* SPDX-License-Identifier: Apache-2.0 */
#include "report/device/advice.h"

#include <errno.h>
#include <string.h>

#include "analyses/device/launched_by.h"
#include "analyses/program/trace_frames.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/rows.h"
#include "report/view.h"

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
		"GPUs wait for the program. Look at what the host was doing: have it launch ahead, "
		"launch less (torch.compile), and avoid calls that wait for the device (.item(), "
		".cpu(), synchronize), after which nothing is launched ahead.",
		"GPUs wait for the program. Look at what the host was doing: put the step under "
		"one jax.jit, avoid reading results (float(), np.asarray, block_until_ready) in "
		"the loop, and compile once: shapes that change compile again."},
	{TRACE_ADVICE_SLOW_LAUNCHES,
		"GPUs wait for the calls that launch their work: launch fewer and larger kernels "
		"(torch.compile), or many at once as a CUDA graph. The first launch of a kernel "
		"loads its code: warm up before you record.",
		"GPUs wait for the calls that launch their work: put more of the program under one "
		"jax.jit, and have XLA launch kernels together "
		"(--xla_gpu_enable_command_buffer). The first launch of a kernel loads its code: "
		"warm up before you trace."},
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
		if (r == 0 && MAX(most.time_ns, most.python_ns) >
				      MAX(ret_most->time_ns, ret_most->python_ns)) {
			*ret_most = most;
			*ret_view = &report->views[i];
		}
	}
	return r;
}

/* " 62 % is in train_step (train.py:12)": a Python function of the user's own; NULL: none. */
static void add_python(struct strbuf *text, const char *name, const char *how, double share)
{
	if (!name)
		return;
	strbuf_addf(text, " %.0f %% is %s ", share, how);
	trace_frames_describe_python(name, text);
	strbuf_add_char(text, '.');
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
	if (most.time_ns) {
		strbuf_addf(text, " %.0f %% of its time is launched by ",
			report_percent(most.time_ns, most.all_ns));
		if (most.frame != MODEL_NONE)
			add_place(text, view->trace->recorded, most.frame);
		else
			shorten_name(text, most.name, ADVICE_NAME_COLUMNS);
		strbuf_add_char(text, '.');
	}
	add_python(text, most.python, "launched from", report_percent(most.python_ns, most.all_ns));
	return 0;
}

/* The Python function that launching threads were in most, of calls that block or of the rest. */
static void add_host_python(struct strbuf *text, const struct idle_rows *rows, bool is_blocked)
{
	int64_t all_ns = 0;

	array_foreach (&rows->rows, row) {
		if (idle_row_is_host(row) && (row->cause == DEVICE_IDLE_BLOCKED) == is_blocked)
			all_ns += row->time_ns;
	}
	array_foreach (&rows->pythons, python) {
		if (python->is_blocked != is_blocked)
			continue;
		add_python(text, python->name, "in", report_percent(python->time_ns, all_ns));
		break;
	}
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
			shorten_name(text, row->name, ADVICE_NAME_COLUMNS);
		strbuf_add_char(text, '.');
		break;
	}
	add_host_python(text, rows, is_blocked);
	return 0;
}

/* "70 % of the blocked time was waiting for stream 7."; nothing where it is under 1 %. */
static int add_target(
	struct strbuf *text, const struct report_input *input, enum device_idle_cause cause)
{
	const struct idle_rows *rows = trace_results_idle_rows(input->trace->results);
	const struct idle_row *most = NULL;
	int64_t all_ns = 0, time_ns = 0;

	if (!rows)
		return -ENOMEM;
	array_foreach (&rows->rows, row) {
		if (row->cause != cause)
			continue;
		all_ns += row->time_ns;
		most = most || !row->target ? most : row;
	}
	array_foreach (&rows->rows, row) {
		if (most && row->cause == cause && row->target == most->target)
			time_ns += row->time_ns;
	}
	if (most && report_percent(time_ns, all_ns) >= 1)
		strbuf_addf(text, " %.0f %% of %s was waiting for %s.",
			report_percent(time_ns, all_ns),
			cause == DEVICE_IDLE_BLOCKED ? "the blocked time" : "the time for events",
			most->target);
	return 0;
}

#define MIN_LOADING_PERCENT 10 /* of the time that devices wait for the program */

/* "40 % of it is loading data: …", where the rows say so. */
static int add_loading(
	struct strbuf *text, const struct report_input *input, const struct trace_summary *summary)
{
	const struct idle_rows *rows = trace_results_idle_rows(input->trace->results);
	double share;

	if (!rows)
		return -ENOMEM;
	share = report_percent(rows->loading_ns, device_idle_host_ns(summary->idle_by_cause_ns));
	if (share < MIN_LOADING_PERCENT)
		return 0;
	strbuf_addf(text, " In %.0f %% of the time it loaded data: ", share);
	strbuf_add(text,
		trace_is_xla(input->trace->views->trace)
			? "load ahead, in other threads or processes."
			: "load ahead, in more processes (DataLoader(num_workers=\xe2\x80\xa6)).");
	return 0;
}

/* "The longest: hipLaunchKernel, 5.82 ms, in aten::mm." */
static void add_longest_launch(struct strbuf *text, const struct trace_report *report,
	const struct trace_summary_block *block)
{
	const struct trace *trace;
	const struct trace_event *call;

	if (block->view == MODEL_NONE)
		return;
	trace = report->views[block->view].trace;
	call = &trace->events.items[block->row];
	strbuf_addf(text, " The longest: %s, ", trace_text(trace, call->name));
	format_duration(text, (uint64_t)call->duration_ns);
	if (block->op != MODEL_NONE) {
		strbuf_add(text, ", in ");
		shorten_name(text, trace_text(trace, trace->events.items[block->op].name),
			ADVICE_NAME_COLUMNS);
	}
	strbuf_add_char(text, '.');
}

static int add_culprit(struct strbuf *text, const struct report_input *input,
	enum trace_advice advice, const struct trace_summary *summary)
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
		return add_host_place(text, input, false) ?: add_loading(text, input, summary);
	case TRACE_ADVICE_SLOW_LAUNCHES:
		add_longest_launch(text, input->trace, &summary->longest_launch);
		return 0;
	case TRACE_ADVICE_BLOCKING:
		return add_host_place(text, input, true)
			       ?: add_target(text, input, DEVICE_IDLE_BLOCKED);
	case TRACE_ADVICE_DEPENDENCIES:
		return add_target(text, input, DEVICE_IDLE_EVENT);
	default:
		return 0;
	}
}

static const char *advice_text(const struct trace_report *report, size_t index)
{
	bool is_xla = report->count && trace_is_xla(report->views->trace);

	return is_xla && advices[index].of_xla ? advices[index].of_xla : advices[index].text;
}

int report_add_device_advice(struct result *result, const struct report_input *input,
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
		r = add_culprit(&text, input, advice, summary);
		if (saves_ns) {
			strbuf_add(&text, " This can save up to ");
			format_duration(&text, (uint64_t)saves_ns / summary->devices);
			strbuf_addf(&text, "%s, %.1f %% of the time.",
				summary->devices > 1 ? " on each device" : "",
				report_percent(saves_ns, summary->span_ns));
		}
		strbuf_inherit_status(&result->texts, &text);
		result_advise(result, &known, strbuf_cstr(&text));
	}
	return r;
}
