/* SPDX-License-Identifier: Apache-2.0 */
/* Section: what devices did, which lines launched it, and what CUDA reported beside it. */
#include "analyses/device/device_work.h"

#include <inttypes.h>
#include <string.h>

#include "model/format.h"
#include "model/trace_capture.h"
#include "report/columns.h"
#include "report/sections.h"

/* ---- columns ---- */

/* By enum model_unattributed. */
static const struct report_column attribution_columns[MODEL_UNATTRIBUTED_MAX] = {
	{.key = "matched", .kind = REPORT_COUNT},
	{.key = "no_stack", .kind = REPORT_COUNT, .help = "it did not come"},
	{.key = "stacks_off", .kind = REPORT_COUNT, .help = "recorded without"},
	{.key = "launched_on_device",
		.kind = REPORT_COUNT,
		.help = "by a graph of which no launch by the host is known"},
};
static const struct report_shape attribution_shape = REPORT_SHAPE(attribution_columns);

static const struct report_column untimed_columns[] = {
	{.key = "reason", .kind = REPORT_TEXT},
	{.key = "launches", .kind = REPORT_COUNT},
};
static const struct report_shape untimed_shape = REPORT_SHAPE(untimed_columns);

static const struct report_column launch_columns[] = {
	{.key = "count", .kind = REPORT_COUNT},
	{.key = "stacks", .kind = REPORT_COUNT, .help = "that came"},
	{.key = "complete_stacks", .kind = REPORT_COUNT, .help = "to the thread's entry"},
	{.key = "known_stacks", .kind = REPORT_COUNT, .help = "an earlier launch's"},
	{.key = "checked_stacks", .kind = REPORT_COUNT, .help = "known, and taken all the same"},
	{.key = "wrong_stacks", .kind = REPORT_COUNT, .help = "of them: that differed"},
	{.key = "without_work",
		.kind = REPORT_MAP,
		.shape = &untimed_shape,
		.help = "launches whose work has no times, by reason"},
};
static const struct report_shape launch_shape = REPORT_SHAPE(launch_columns);

static const struct report_column device_columns[] = {
	{.key = "name", .title = "GPU", .kind = REPORT_TEXT, .unknown = "unknown device"},
	{.title = "Busy", .kind = REPORT_SHARE},
	{.key = "busy_ns", .title = "Time", .kind = REPORT_NS, .help = "of overlapping work once"},
	{.key = "work_ns", .kind = REPORT_NS, .help = "of all work together"},
	{.key = "count", .title = "Kernels, copies \xe2\x80\xa6", .kind = REPORT_COUNT},
};
static const struct report_shape device_shape = REPORT_SHAPE(device_columns);

static const struct report_column line_columns[] = {
	{.title = "Time", .kind = REPORT_SHARE},
	{.key = "total_ns", .title = "Total", .kind = REPORT_NS},
	{.key = "count", .title = "Count", .kind = REPORT_COUNT},
	REPORT_FRAME_COLUMNS("Launched by"),
	{.key = "unattributed", .kind = REPORT_TEXT, .help = "why there is no frame"},
};
static const struct report_shape line_shape = REPORT_SHAPE(line_columns);

static const struct report_column tracer_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape tracer_shape = REPORT_SHAPE(tracer_columns);

static const struct report_column gpu_columns[] = {
	{.key = "name", .kind = REPORT_TEXT},
	{.key = "uuid", .kind = REPORT_TEXT},
	{.key = "pid", .kind = REPORT_INTEGER},
	{.key = "ordinal", .kind = REPORT_INTEGER},
	{.key = "memory_bytes", .kind = REPORT_BYTES},
	{.key = "capability_major", .kind = REPORT_INTEGER},
	{.key = "capability_minor", .kind = REPORT_INTEGER},
	{.key = "multiprocessors", .kind = REPORT_COUNT},
	{.key = "multiprocessor_warps", .kind = REPORT_COUNT},
	{.key = "multiprocessor_blocks", .kind = REPORT_COUNT},
	{.key = "multiprocessor_registers", .kind = REPORT_COUNT},
	{.key = "multiprocessor_shared_bytes", .kind = REPORT_BYTES},
	{.key = "core_clock_khz", .kind = REPORT_COUNT},
};
static const struct report_shape gpu_shape = REPORT_SHAPE(gpu_columns);

static const struct report_column count_columns[] = {
	{.key = "launches", .kind = REPORT_COUNT},
	{.key = "captured_launches", .kind = REPORT_COUNT},
	{.key = "activities", .kind = REPORT_COUNT},
	{.key = "without_times", .kind = REPORT_COUNT},
	{.key = "dropped", .kind = REPORT_COUNT, .help = "by the vendor's tracing library"},
	{.key = "unknown_nodes", .kind = REPORT_COUNT, .help = "work of graphs, not captured"},
	{.key = "graph_events_lost", .kind = REPORT_COUNT},
	{.key = "buffers_refused", .kind = REPORT_COUNT},
	{.key = "foreign_buffers", .kind = REPORT_COUNT},
};
static const struct report_shape count_shape = REPORT_SHAPE(count_columns);

static const struct report_column cuda_columns[] = {
	{.key = "tracers",
		.kind = REPORT_LIST,
		.shape = &tracer_shape,
		.help = "sentences: which libcupti or rocprofiler-sdk each process used, and how it times graphs"},
	{.key = "gpus", .kind = REPORT_ROWS, .shape = &gpu_shape, .help = "of each process"},
	{.key = "launch_calls", .kind = REPORT_COUNT, .help = "whose work is known"},
	{.key = "launch_call_ns", .kind = REPORT_NS, .help = "that threads were in them"},
	{.key = "replayed", .kind = REPORT_COUNT, .help = "work of graphs"},
	{.key = "replayed_without_capture",
		.kind = REPORT_COUNT,
		.help = "charged to the launch of its graph, since its capture has no stack"},
	{.key = "replayed_captured_before",
		.kind = REPORT_COUNT,
		.help = "without operators: its graph was made before the recording began"},
	{.key = "replayed_call_missing",
		.kind = REPORT_COUNT,
		.help = "without operators: the call that captured it was not recorded"},
	{.key = "whole_replays",
		.kind = REPORT_COUNT,
		.help = "timed as a whole: their kernels are in no table"},
	{.key = "overhead_count", .kind = REPORT_COUNT, .help = "of the driver and of CUPTI"},
	{.key = "overhead_ns", .kind = REPORT_NS},
	{.key = "counts",
		.kind = REPORT_OBJECT,
		.shape = &count_shape,
		.help = "of all processes, as they counted"},
};
static const struct report_shape cuda_shape = REPORT_SHAPE(cuda_columns);

static const struct report_column columns[] = {
	{.key = "count", .kind = REPORT_COUNT, .help = "kernels, copies and the like"},
	{.key = "total_ns", .kind = REPORT_NS},
	{.key = "attribution",
		.kind = REPORT_OBJECT,
		.shape = &attribution_shape,
		.help = "how many of them are joined to the stack that launched them"},
	{.key = "launches",
		.kind = REPORT_OBJECT,
		.shape = &launch_shape,
		.help = "null with filters, as are the next two: they were counted before"},
	{.key = "host_wait_count", .kind = REPORT_COUNT, .help = "calls that waited for a device"},
	{.key = "host_wait_ns", .kind = REPORT_NS},
	{.key = "started_before_launch", .kind = REPORT_COUNT, .help = "0 is right"},
	{.key = "clock_error_ns", .kind = REPORT_NS, .help = "of a device's times, at most"},
	{.key = "records_lost", .kind = REPORT_COUNT, .help = "by full rings"},
	{.key = "stacks_lost", .kind = REPORT_COUNT},
	{.key = "stack_run_count", .kind = REPORT_COUNT, .help = "null: not measured"},
	{.key = "stack_run_time_ns", .kind = REPORT_NS},
	{.key = "devices", .kind = REPORT_ROWS, .shape = &device_shape},
	{.key = "lines",
		.kind = REPORT_ROWS,
		.shape = &line_shape,
		.total = "lines_total",
		.help = "that launched it, most time first"},
	{.key = "cuda",
		.kind = REPORT_OBJECT,
		.shape = &cuda_shape,
		.help = "null where no process used CUDA or HIP"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- figures ---- */

static void add_launches(struct result *result, const struct model *model)
{
	const struct model_launches *launches = &model->launches;
	const uint64_t counts[] = {launches->launches, launches->stacks, launches->complete_stacks,
		launches->known_stacks, launches->checked_stacks, launches->wrong_stacks};

	if (model->is_narrowed) {
		result_null(result);
		return;
	}
	result_open(result);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_u64(result, counts[i]);
	result_open(result);
	for (unsigned i = 0; i < WIRE_DEVICE_UNTIMED_MAX; i++) {
		result_text(result, i == WIRE_DEVICE_TIMED ? "lost" : wire_device_untimed_name(i));
		result_u64(result, launches->without_work[i]);
	}
	result_close(result);
	result_close(result);
}

/* Of both: all of device work but its devices, its lines and what is CUDA's. */
static void add_sums(
	struct result *result, const struct model *model, const struct device_work *work)
{
	const struct capture_device_stats *stats = &model->stats.values.device;
	bool known = model->stats.present, measured = stats->stack_run_count != 0;

	result_u64(result, work->count);
	result_u64(result, work->total_ns);
	result_open(result);
	for (int i = 0; i < MODEL_UNATTRIBUTED_MAX; i++)
		result_u64(result, work->by_attribution[i]);
	result_close(result);
	add_launches(result, model);
	result_known(result, !model->is_narrowed, model->launches.wait_count);
	result_known(result, !model->is_narrowed, model->launches.wait_ns);
	result_u64(result, work->started_before_launch);
	result_known(result, known, stats->clock_error_ns);
	result_known(result, known,
		stats->records_lost + stats->records_without_ring + stats->records_damaged);
	result_known(result, known, stats->stacks_lost);
	result_known(result, measured, stats->stack_run_count);
	result_known(result, measured, stats->stack_run_time_ns);
}

static uint32_t add_devices(
	struct result *result, const struct model *model, const struct device_work *work)
{
	uint32_t table = result_open(result);

	array_foreach (&work->devices, device) {
		result_text(result, device->name);
		result_share(result, (double)device->busy_ns, (double)model_duration_ns(model));
		result_u64(result, device->busy_ns);
		result_u64(result, device->work_ns);
		result_u64(result, device->count);
	}
	result_close(result);
	return table;
}

static void add_line(struct result *result, const struct model *model,
	const struct device_work *work, const struct device_line *line)
{
	const char *why =
		line->frame == MODEL_NONE ? model_unattributed_to_string(line->unattributed) : NULL;
	_cleanup_strbuf_ struct strbuf place = {0};

	if (line->unattributed == MODEL_ATTRIBUTED)
		strbuf_add(&place, "[no frame of the program's in the stack]");
	else
		strbuf_addf(&place, "[unattributed: %s]", why ? why : "");
	strbuf_inherit_status(&result->texts, &place);
	result_share(result, (double)line->total_ns, (double)work->total_ns);
	result_u64(result, line->total_ns);
	result_u64(result, line->count);
	columns_add_frame(result, model, line->frame, strbuf_cstr(&place));
	result_text(result, why);
}

static uint32_t add_lines(struct result *result, const struct report_input *input,
	const struct model *model, const struct device_work *work)
{
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, work->lines.count);

	for (size_t i = 0; i < wanted; i++)
		add_line(result, model, work, &work->lines.items[i]);
	result_close(result);
	return table;
}

/* ---- CUDA ---- */

static bool has_cuda(const struct model *model)
{
	return model->gpus.count || model->device_notes.count;
}

static void add_gpu(struct result *result, const struct model *model, const struct model_gpu *gpu)
{
	const struct capture_gpu *facts = &gpu->facts;
	const uint64_t figures[] = {facts->number - 1, facts->memory_bytes, facts->capability_major,
		facts->capability_minor, facts->multiprocessors, facts->multiprocessor_warps,
		facts->multiprocessor_blocks, facts->multiprocessor_registers,
		facts->multiprocessor_shared_bytes, facts->core_clock_khz};

	result_text(result, gpu->label);
	result_text(result, gpu->uuid);
	result_u64(result, model->processes.items[gpu->process].pid);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		result_u64(result, figures[i]);
}

static void add_counts(struct result *result, const struct capture_device_counts *counts)
{
	const uint64_t figures[] = {counts->launches, counts->captured, counts->activities,
		counts->untimed, counts->dropped, counts->unknown_nodes, counts->lost_graph_events,
		counts->refused_buffers, counts->foreign_buffers};

	result_open(result);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		result_u64(result, figures[i]);
	result_close(result);
}

static void add_cuda(
	struct result *result, const struct model *model, const struct device_work *work)
{
	bool is_known = !selection_left_out(model, SELECTION_DEVICE_MEMORY);

	if (!has_cuda(model)) {
		result_null(result);
		return;
	}
	result_open(result);
	result_open(result);
	array_foreach (&model->device_notes, note) {
		if (note->note == WIRE_NOTE_TRACER)
			result_text(result, note->text);
	}
	result_close(result);
	result_open(result);
	array_foreach (&model->gpus, gpu)
		add_gpu(result, model, gpu);
	result_close(result);
	result_u64(result, work->launch_calls);
	result_u64(result, work->launch_call_ns);
	result_u64(result, work->replayed);
	result_u64(result, work->replayed_without_capture);
	result_u64(result, work->by_capture[MODEL_CAPTURE_UNSEEN]);
	result_u64(result, work->by_capture[MODEL_CAPTURE_NO_CALL]);
	result_u64(result, work->whole_replays);
	result_known(result, is_known, work->overhead.count);
	result_known(result, is_known, work->overhead.total_ns);
	add_counts(result, &model->device_counts);
	result_close(result);
}

/* ---- sentences ---- */

/* How much of it is joined to the code that launched it, and why the rest is not. */
static void say_stacks(
	struct result *result, const struct model *model, const struct device_work *work)
{
	static const char *const why[MODEL_UNATTRIBUTED_MAX] = {
		[MODEL_NO_STACK] = "have none: no stack came",
		[MODEL_STACKS_OFF] = "were recorded without launch stacks",
		[MODEL_LAUNCHED_ON_DEVICE] = "were launched on the device",
	};
	const struct model_launches *launches = &model->launches;
	_cleanup_strbuf_ struct strbuf text = {0};

	/* Where devices were not asked for times there are launches alone. */
	format_count(
		&text, work->count ? work->by_attribution[MODEL_ATTRIBUTED] : launches->stacks);
	strbuf_add(&text, " of ");
	format_count(&text, work->count ? work->count : launches->launches);
	strbuf_add(&text, work->count
				  ? " kernels, copies and the like have the stack of their launch"
				  : " launches have their stack");
	if (launches->stacks)
		strbuf_addf(&text, " (%.2f %% of these stacks reach the thread's entry)",
			100.0 * (double)launches->complete_stacks / (double)launches->stacks);
	for (int i = MODEL_ATTRIBUTED + 1; i < MODEL_UNATTRIBUTED_MAX; i++) {
		if (!work->by_attribution[i])
			continue;
		strbuf_add(&text, "; ");
		format_count(&text, work->by_attribution[i]);
		strbuf_addf(&text, " %s", why[i]);
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

/* Of stacks that were not taken, since an earlier launch came the same way: how right that was. */
static void say_known_stacks(struct result *result, const struct model_launches *launches)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!launches->known_stacks && !launches->checked_stacks)
		return;
	format_count(&text, launches->known_stacks);
	strbuf_add(&text, " of these stacks are known from an earlier launch on the same path; ");
	format_count(&text, launches->checked_stacks);
	strbuf_add(&text, " more were taken to check, and ");
	format_count(&text, launches->wrong_stacks);
	if (launches->checked_stacks)
		strbuf_addf(&text, " (%.2f %%)",
			100.0 * (double)launches->wrong_stacks / (double)launches->checked_stacks);
	strbuf_add(&text, " differed.");
	result_say(result, 2, &text);
}

/* "Launches without device time: 3 captured into graphs, 1 failed." */
static void say_untimed(struct result *result, const struct model_launches *launches)
{
	static const char *const reasons[WIRE_DEVICE_UNTIMED_MAX] = {
		[WIRE_DEVICE_TIMED] = "not ended, or lost",
		[WIRE_DEVICE_NO_PROFILING] = "in queues without times",
		[WIRE_DEVICE_NO_CONTEXT] = "with too many others in flight",
		[WIRE_DEVICE_FAILED] = "failed",
		[WIRE_DEVICE_NO_EVENT] = "whose end the runtime did not report",
		[WIRE_DEVICE_CAPTURED] = "captured into graphs",
		[WIRE_DEVICE_NO_TIMES] = "that the driver did not time",
		[WIRE_DEVICE_NOT_ASKED] = "recorded with --launch-only",
		[WIRE_DEVICE_AFTER_WINDOW] = "whose work began after the window",
	};
	_cleanup_strbuf_ struct strbuf text = {0};

	for (unsigned i = 0; i < WIRE_DEVICE_UNTIMED_MAX; i++) {
		if (!launches->without_work[i])
			continue;
		strbuf_add(&text, text.length ? ", " : "Launches without device time: ");
		format_count(&text, launches->without_work[i]);
		strbuf_addf(&text, " %s", reasons[i]);
	}
	if (!text.length && strbuf_status(&text) == 0)
		return;
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static void say_waits(struct result *result, const struct model_launches *launches)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!launches->wait_count)
		return;
	strbuf_add(&text, "Threads waited for devices ");
	format_duration(&text, launches->wait_ns);
	strbuf_add(&text, " in ");
	format_plural(&text, launches->wait_count, "call.", "calls.");
	result_say(result, 2, &text);
}

static void say_calls(struct result *result, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!work->launch_calls)
		return;
	strbuf_add(&text, "Calls that launched work took ");
	format_duration(&text, work->launch_call_ns);
	strbuf_add(&text, " in ");
	format_plural(&text, work->launch_calls, "call", "calls");
	if (work->overhead.count) {
		strbuf_add(&text, "; overhead of CUPTI and the driver, as CUPTI reports it: ");
		format_duration(&text, work->overhead.total_ns);
	}
	strbuf_add_char(&text, '.');
	result_say(result, 2, &text);
}

static void say_unknown_captures(struct result *result, uint64_t count, const char *why)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!count)
		return;
	format_count(&text, count);
	strbuf_addf(&text, " of them have no operators: %s", why);
	result_say(result, 2, &text);
}

static void say_graphs(struct result *result, const struct device_work *work)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!work->replayed)
		return;
	format_count(&text, work->replayed);
	strbuf_add(&text,
		" kernels, copies and the like ran in CUDA graphs, charged to where they were "
		"captured");
	if (work->replayed_without_capture) {
		strbuf_add(&text, ", but ");
		format_count(&text, work->replayed_without_capture);
		strbuf_add(&text, ", whose capture has no stack, to where they were launched");
	}
	strbuf_add(&text, ": sonde report --by graph.");
	result_say(result, 2, &text);
	if (work->whole_replays) {
		strbuf_clear(&text);
		format_count(&text, work->whole_replays);
		strbuf_add(&text,
			" of them are replays that were timed as a whole: their kernels are in no "
			"table.");
		result_say(result, 2, &text);
	}
	say_unknown_captures(result, work->by_capture[MODEL_CAPTURE_UNSEEN],
		"their graphs were made before the recording began. Start it earlier.");
	say_unknown_captures(result, work->by_capture[MODEL_CAPTURE_NO_CALL],
		"the calls that captured them were not recorded, since no window was open or "
		"records were lost.");
}

/* ---- the section ---- */

static void show(struct result *result, const struct report_input *input,
	const struct device_work *work, uint32_t devices, uint32_t lines)
{
	const struct model *model = input->view->model;

	result_heading(result, "Device work");
	result_show(result, devices, &(struct result_show){0});
	say_stacks(result, model, work);
	say_known_stacks(result, &model->launches);
	say_untimed(result, &model->launches);
	if (work->started_before_launch)
		result_sentencef(result, 2,
			"By the clocks as they were aligned %" PRIu64 " began before their launch.",
			work->started_before_launch);
	say_waits(result, &model->launches);
	if (has_cuda(model)) {
		say_calls(result, work);
		say_graphs(result, work);
	}
	if (!work->count)
		return;
	result_heading(result, "Lines that gave the device its work");
	result_show(result, lines,
		&(struct result_show){.limit = report_rows_shown(input, 20, 8), .noun = "lines"});
}

/* Traces have their threads first, and then their devices. */
static const char *why_none_in_traces(const struct model *model)
{
	array_foreach (&model->traces, trace) {
		if ((*trace)->damage.truncated)
			return "There is no device work in what is left of the trace: it is cut "
			       "off, and kernels, copies and fills may have stood behind.";
	}
	return "There is no device work: no kernel, copy or fill of a GPU is in the trace.";
}

const char *report_why_no_device_work(const struct model *model)
{
	const struct model_session *session = &model->session;

	if (model_is_foreign(model))
		return why_none_in_traces(model);
	if (model->launches.launches)
		return "There is no device time: launches alone were recorded (--launch-only), or "
		       "no times came.";
	if (session->present && session->cpu_count && !*session->command_line)
		return "Device work was not recorded: sonde attached to running processes, and it "
		       "records device work only of programs that it starts (sonde record -- "
		       "COMMAND).";
	if (session->present && strcmp(session->launch_stacks, "off") == 0)
		return "Device work was not recorded: the recording was made with --cpu-only, or "
		       "no process used CUDA, HIP or OpenCL.";
	return "Device work was not recorded: no process that was recorded used CUDA, or an OpenCL "
	       "loader with layers; set-user-ID programs cannot be recorded.";
}

/* Where there is nothing the table of kernels says why. */
static int make(struct result *result, const struct report_input *input)
{
	const struct model *model = input->view->model;
	bool has_work = model->device_works.count || model->launches.launches;
	_cleanup_device_work_ struct device_work work = {0};
	uint32_t devices, lines;
	int r;

	if (!has_work && !model->device_notes.count)
		return 0;
	r = device_work_init(&work, model);
	if (r < 0)
		return r;
	result_open(result);
	add_sums(result, model, &work);
	devices = add_devices(result, model, &work);
	lines = add_lines(result, input, model, &work);
	add_cuda(result, model, &work);
	result_close(result);
	if (has_work)
		show(result, input, &work, devices, lines);
	return 0;
}

const struct report_section device_work_section = {
	.value = {.key = "device_work", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "kernel",
	.comes_along = true,
	.needs = REPORT_NEEDS_RECORDING,
	.shows = SELECTION_DEVICE_WORK,
	.make = make,
};
