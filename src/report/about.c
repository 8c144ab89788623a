/* SPDX-License-Identifier: Apache-2.0 */
/* What was recorded, how, and how much of it the report is about. */
#include <math.h>
#include <string.h>

#include "analyses/cpu/completeness.h"
#include "analyses/cpu/runtimes.h"
#include "model/format.h"
#include "report/sections.h"
#include "report/view.h"

#define SEPARATOR        " \xc2\xb7 "
#define STOPS_TO_EXPLAIN 0.01 /* share of stacks that stop early from which on advice is given */
#define UNNAMED_TO_SAY   0.02 /* share of samples without a name from which on it is worth a line */

static const struct report_column capture_columns[] = {
	{.key = "path", .kind = REPORT_TEXT},
	{.key = "bytes", .kind = REPORT_BYTES},
	{.key = "packets", .kind = REPORT_COUNT},
	{.key = "skipped_packets",
		.kind = REPORT_COUNT,
		.help = "they refer to data that the file lacks"},
	{.key = "truncated_at_byte", .kind = REPORT_BYTES, .help = "null: the file is complete"},
	{.key = "recordings", .kind = REPORT_COUNT, .help = "more than 1 in joined captures"},
	{.key = "recordings_cut_off", .kind = REPORT_COUNT, .help = "recordings without an end"},
	{.key = "cut_off_ns", .kind = REPORT_NS, .help = "the length of the shortest of them"},
};
static const struct report_shape capture_shape = REPORT_SHAPE(capture_columns);

static const struct report_column session_columns[] = {
	{.key = "command", .kind = REPORT_TEXT},
	{.key = "exit_status", .kind = REPORT_INTEGER},
	{.key = "host", .kind = REPORT_TEXT},
	{.key = "kernel_release", .kind = REPORT_TEXT},
	{.key = "architecture", .kind = REPORT_TEXT},
	{.key = "sonde_version", .kind = REPORT_TEXT},
	{.key = "unwind_mode", .kind = REPORT_TEXT, .help = "bpf or user"},
	{.key = "unwind_mode_reason", .kind = REPORT_TEXT},
	{.key = "start_unix_time_ns", .kind = REPORT_NS},
	{.key = "period_ns", .kind = REPORT_NS, .help = "between samples of a CPU"},
	{.key = "cpu_count", .kind = REPORT_COUNT},
};
static const struct report_shape session_shape = REPORT_SHAPE(session_columns);

static const struct report_column filter_columns[] = {
	{.key = "process", .kind = REPORT_TEXT},
	{.key = "thread", .kind = REPORT_TEXT},
	{.key = "symbol", .kind = REPORT_TEXT},
	{.key = "time", .kind = REPORT_TEXT},
	{.key = "step", .kind = REPORT_TEXT},
	{.key = "range", .kind = REPORT_TEXT},
	{.key = "window", .kind = REPORT_TEXT},
};
static const struct report_shape filter_shape = REPORT_SHAPE(filter_columns);

static const struct report_column left_out_columns[] = {{.kind = REPORT_TEXT}};
static const struct report_shape left_out_shape = REPORT_SHAPE(left_out_columns);

static const struct report_column total_columns[] = {
	{.key = "samples", .kind = REPORT_COUNT, .help = "selected by the filters"},
	{.key = "cpu_time_ns", .kind = REPORT_NS, .help = "samples times the period"},
	{.key = "samples_in_capture", .kind = REPORT_COUNT},
	{.key = "duration_ns",
		.kind = REPORT_NS,
		.help = "of what was recorded; with windows, of all windows together"},
	{.key = "processes_in_capture", .kind = REPORT_COUNT},
	{.key = "threads_in_capture", .kind = REPORT_COUNT},
};
static const struct report_shape total_shape = REPORT_SHAPE(total_columns);

static const struct report_column reason_columns[] = {
	{.key = "reason", .kind = REPORT_TEXT},
	{.key = "samples", .kind = REPORT_COUNT},
};
static const struct report_shape reason_shape = REPORT_SHAPE(reason_columns);

static const struct report_column completeness_columns[] = {
	{.key = "user_stacks",
		.kind = REPORT_COUNT,
		.help = "samples with frames of user space to unwind"},
	{.key = "complete_stacks",
		.kind = REPORT_COUNT,
		.help = "of them: that reach the thread's entry"},
	{.key = "complete_share", .kind = REPORT_SHARE},
	{.key = "samples_without_stack", .kind = REPORT_COUNT},
	{.key = "samples_by_stop",
		.kind = REPORT_MAP,
		.shape = &reason_shape,
		.help = "why stacks end"},
	{.key = "unnamed_leaf_samples",
		.kind = REPORT_COUNT,
		.help = "in functions without a name"},
	{.key = "python_stacks", .kind = REPORT_COUNT, .help = "samples in Python code"},
	{.key = "python_complete_stacks",
		.kind = REPORT_COUNT,
		.help = "of them: with all their Python frames"},
	{.key = "python_complete_share", .kind = REPORT_SHARE},
	{.key = "samples_by_python", .kind = REPORT_MAP, .shape = &reason_shape},
};
static const struct report_shape completeness_shape = REPORT_SHAPE(completeness_columns);

static const struct report_column columns[] = {
	{.key = "capture", .kind = REPORT_OBJECT, .shape = &capture_shape},
	{.key = "session",
		.kind = REPORT_OBJECT,
		.shape = &session_shape,
		.help = "how it was recorded; null in foreign traces"},
	{.key = "filters",
		.kind = REPORT_OBJECT,
		.shape = &filter_shape,
		.help = "as given; null: not given"},
	{.key = "left_out",
		.kind = REPORT_LIST,
		.shape = &left_out_shape,
		.help = "what the recording has and a filter does not apply to"},
	{.key = "totals", .kind = REPORT_OBJECT, .shape = &total_shape},
	{.key = "completeness",
		.kind = REPORT_OBJECT,
		.shape = &completeness_shape,
		.help = "of the stacks of the selected samples"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- members ---- */

static void add_capture(struct result *result, const struct model *model, const char *path)
{
	const struct capture_read_result *read = &model->completeness;

	result_open(result);
	result_text(result, path);
	result_u64(result, read->bytes);
	result_u64(result, read->packets);
	result_u64(result, read->skipped_packets);
	result_known(result, read->truncated, read->truncated_at);
	result_u64(result, model->recordings.count);
	result_u64(result, model->cut_off_count);
	result_known(result, model->cut_off_count != 0, model->cut_off_ns);
	result_close(result);
}

static void add_session(struct result *result, const struct model *model)
{
	const struct model_session *session = &model->session;
	const struct capture_stats *stats = &model->stats.values;
	bool has_status = model->stats.present && stats->exit_status >= 0;

	if (!session->present) {
		result_null(result);
		return;
	}
	result_open(result);
	result_text(result, session->command_line);
	result_known(result, has_status, has_status ? (uint64_t)stats->exit_status : 0);
	result_text(result, session->host);
	result_text(result, session->kernel_release);
	result_text(result, session->architecture);
	result_text(result, session->sonde_version);
	result_text(result, session->unwind_mode);
	result_text(result, session->unwind_mode_reason);
	result_known(result, session->start_realtime_ns != 0, session->start_realtime_ns);
	result_known(result, session->period_ns != 0, session->period_ns);
	result_known(result, session->cpu_count != 0, session->cpu_count);
	result_close(result);
}

static void add_filters(struct result *result, const struct selection *selection)
{
	result_open(result);
	result_text(result, selection->process);
	result_text(result, selection->thread);
	result_text(result, selection->symbol);
	result_text(result, selection->time);
	result_text(result, selection->step);
	result_text(result, selection->range);
	result_text(result, selection->window);
	result_close(result);
}

static void add_left_out(struct result *result, const struct model *model)
{
	result_open(result);
	for (int kind = 0; kind < SELECTION_KIND_MAX; kind++) {
		if (selection_left_out(model, (enum selection_kind)kind))
			result_text(result, selection_kind_name((enum selection_kind)kind));
	}
	result_close(result);
}

static void add_totals(
	struct result *result, const struct model *model, const struct completeness *completeness)
{
	result_open(result);
	result_u64(result, completeness->samples);
	result_known(result, model_has_time(model),
		completeness->samples * model_sample_weight_ns(model));
	result_u64(result, completeness->recorded);
	result_u64(result, model_duration_ns(model));
	result_u64(result, model->processes.count);
	result_u64(result, model->threads.count);
	result_close(result);
}

static void add_completeness(struct result *result, const struct completeness *completeness)
{
	result_open(result);
	result_u64(result, completeness->user_stacks);
	result_u64(result, completeness->complete_stacks);
	result_number(result, completeness_share(completeness));
	result_u64(result, completeness->no_stack);
	result_open(result);
	for (unsigned stop = 0; stop < WIRE_STOP_MAX; stop++) {
		result_text(result, wire_stop_name(stop));
		result_u64(result, completeness->by_stop[stop]);
	}
	result_close(result);
	result_u64(result, completeness->unnamed_leaves);
	result_u64(result, completeness->python_stacks);
	result_u64(result, completeness->python_complete);
	result_number(result, completeness_python_share(completeness));
	result_open(result);
	for (unsigned python = 0; python < WIRE_PYTHON_MAX; python++) {
		result_text(result, wire_python_name(python));
		result_u64(result, completeness->by_python[python]);
	}
	result_close(result);
	result_close(result);
}

/* ---- sentences ---- */

static void say_process(struct strbuf *text, const struct model_process *process)
{
	strbuf_addf(text, "process %u: ", process->pid);
	format_command(text, *process->command_line ? process->command_line : process->name);
}

/* What was recorded: the command; else the process, where there is only one. */
static void say_target(struct result *result, const struct model *model)
{
	const struct model_process *process = model->processes.items;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (*model->session.command_line)
		format_command(&text, model->session.command_line);
	else if (model->processes.count != 1)
		strbuf_add(&text, "all processes that were recorded");
	else
		say_process(&text, process);
	strbuf_inherit_status(&result->texts, &text);
	result_title(result, strbuf_cstr(&text));
}

/* "12.3 s recorded · 11.9 s of CPU time (0.97 CPUs busy) · 11,912 samples at 999 Hz". */
static void say_amounts(struct result *result, const struct model *model)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t duration = model_duration_ns(model);
	uint64_t samples = model_running_samples(model);
	uint64_t cpu_time = samples * model_sample_weight_ns(model);

	if (model_has_duration(model)) {
		format_duration(&text, duration);
		strbuf_add(&text, " recorded" SEPARATOR);
	}
	if (model_has_time(model)) {
		format_duration(&text, cpu_time);
		strbuf_addf(&text, " of %sCPU time", report_is_user_time(model) ? "user " : "");
		if (duration)
			strbuf_addf(
				&text, " (%.2f CPUs busy)", (double)cpu_time / (double)duration);
		strbuf_add(&text, SEPARATOR);
	}
	format_plural(&text, samples, "sample", "samples");
	if (model_has_time(model))
		strbuf_addf(&text, " at %.0f Hz", 1e9 / (double)model->session.period_ns);
	strbuf_add(&text, SEPARATOR);
	format_plural(&text, model->processes.count, "process", "processes");
	strbuf_add(&text, ", ");
	format_plural(&text, model->threads.count, "thread", "threads");
	result_say(result, 0, &text);
}

/* "host", or of a run "node0 and others (4 recordings)". */
static void describe_hosts(const struct model *model, struct strbuf *out)
{
	const char *host = model->session.host;
	bool has_others = false;

	strbuf_add(out, *host ? host : "unknown host");
	array_foreach (&model->recordings, recording)
		has_others |= strcmp(recording->host, host) != 0;
	if (has_others)
		strbuf_add(out, " and others");
	if (model->recordings.count > 1)
		strbuf_addf(out, " (%zu recordings)", model->recordings.count);
}

/* "host, Linux 6.8.0, 16 CPUs · stacks unwound in the kernel". */
static void say_place(struct result *result, const struct model *model)
{
	const struct model_session *session = &model->session;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!session->present || report_is_imported(model))
		return;
	describe_hosts(model, &text);
	strbuf_addf(&text, ", Linux %s, ",
		*session->kernel_release ? session->kernel_release : "of unknown release");
	format_plural(&text, session->cpu_count, "CPU", "CPUs");
	if (strcmp(session->unwind_mode, "bpf") == 0)
		strbuf_add(&text, SEPARATOR "stacks unwound in the kernel");
	else if (*session->unwind_mode)
		strbuf_add(&text, SEPARATOR "stacks copied and unwound in user space");
	result_account(result, true);
	result_say(result, 0, &text);
	if (*session->unwind_mode_reason)
		result_sentencef(result, 2, "Not in the kernel: %s.", session->unwind_mode_reason);
	result_account(result, false);
}

static void say_exit_status(struct result *result, const struct model *model)
{
	const struct model_stats *stats = &model->stats;

	if (stats->present && stats->values.exit_status > 0)
		result_sentencef(
			result, 0, "The command exited with status %d.", stats->values.exit_status);
}

static void say_windows(struct result *result, const struct model *model)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_describe_windows(model, &text);
	if (text.length)
		result_say(result, 2, &text);
}

static void say_filters(struct result *result, const struct report_view *view)
{
	const struct selection *filters = view->selection;
	const char *const pairs[][2] = {
		{"process", filters->process},
		{"thread", filters->thread},
		{"time", filters->time},
		{"step", filters->step},
		{"symbol", filters->symbol},
		{"range", filters->range},
	};
	_cleanup_strbuf_ struct strbuf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (pairs[i][1])
			strbuf_addf(&text, "%s--%s %s", text.length ? " " : "Filter: ", pairs[i][0],
				pairs[i][1]);
	}
	if (!text.length)
		return;
	strbuf_add(&text, " leaves ");
	format_count(&text, view->selected->count);
	strbuf_add(&text, " samples; shares below are of these");
	result_say(result, 2, &text);
}

/* "Stacks: 98.7 % reach the thread's entry; 1.3 % stop early, most at no_rule." */
static void say_stacks(struct result *result, const struct model *model,
	const struct completeness *completeness, const struct runtime_advice *runtime)
{
	enum wire_stop worst = completeness_worst_stop(completeness);
	bool is_bpf = strcmp(model->session.unwind_mode, "bpf") == 0;
	_cleanup_strbuf_ struct strbuf text = {0};
	double stopped; /* share, rounded so that less is never shown as "100 %" */

	if (!completeness->user_stacks)
		return;
	stopped = ceil(1000 * (1 - completeness_share(completeness))) / 1000;
	strbuf_addf(&text, "Stacks: %.1f %% reach the thread's entry", 100 * (1 - stopped));
	if (completeness->complete_stacks != completeness->user_stacks)
		strbuf_addf(&text, "; %.1f %% stop early, most at %s", 100 * stopped,
			wire_stop_name(worst));
	strbuf_add_char(&text, '.');
	result_account(result, stopped < STOPS_TO_EXPLAIN);
	result_say(result, 2, &text);
	result_account(result, false);
	if (stopped < STOPS_TO_EXPLAIN)
		return;
	strbuf_clear(&text);
	strbuf_addf(&text, "%s: %s.", wire_stop_name(worst),
		worst == WIRE_STOP_FRAME_POINTER ? runtime->frames
						 : completeness_advice(worst, is_bpf));
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = "incomplete_stacks",
			.saves_ns = REPORT_SAVES_UNKNOWN,
			.evidence = {{"share", stopped}}},
		strbuf_cstr(&text));
}

/* "Python: 99.8 % of the samples in Python code have all their Python frames." */
static void say_python(struct result *result, const struct completeness *completeness)
{
	enum wire_python worst = completeness_worst_python(completeness);
	_cleanup_strbuf_ struct strbuf text = {0};
	double missing; /* percent */

	if (!completeness->python_stacks)
		return;
	missing = ceil(1000 * (1 - completeness_python_share(completeness))) / 10;
	strbuf_addf(&text,
		"Python: %.1f %% of the samples in Python code have all their Python frames",
		100 - missing);
	if (completeness->python_complete != completeness->python_stacks)
		strbuf_addf(&text, "; %.1f %% lack some, most for %s: %s", missing,
			wire_python_name(worst), completeness_python_advice(worst));
	strbuf_add_char(&text, '.');
	result_account(result, missing < 100 * STOPS_TO_EXPLAIN);
	result_say(result, 2, &text);
	result_account(result, false);
}

/* What gives the code of a module its names. */
static const char *naming_advice(const char *module, const struct runtime_advice *runtime)
{
	if (strcmp(module, "[kernel]") == 0)
		return "record with CAP_SYSLOG, which root has outside of containers";
	if (strcmp(module, "[anon]") == 0)
		return runtime->names;
	return "install its debug symbols, or build it without stripping";
}

static void say_unnamed(struct result *result, const struct model *model,
	const struct completeness *completeness, const struct runtime_advice *runtime)
{
	double share = (double)completeness->unnamed_leaves / (double)completeness->samples;
	const char *module = model_module_name(model, completeness->worst_unnamed_module);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!completeness->samples || share < UNNAMED_TO_SAY)
		return;
	strbuf_addf(&text,
		"Names: %.1f %% of the samples are in functions without a name, most in %s: %s.",
		100 * share, module, naming_advice(module, runtime));
	strbuf_inherit_status(&result->texts, &text);
	result_advise(result,
		&(struct result_advice){.id = "unnamed_functions",
			.saves_ns = REPORT_SAVES_UNKNOWN,
			.evidence = {{"share", share}}},
		strbuf_cstr(&text));
}

/* ---- the sections ---- */

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct model *model = view->model;
	struct completeness completeness;
	struct runtime_advice runtime = {0};
	int r = completeness_init(&completeness, model, view->selected);

	if (r == 0)
		r = runtime_advice_init(&runtime, model, view->selected);
	if (r < 0)
		return r;
	result_open(result);
	add_capture(result, model, view->capture);
	add_session(result, model);
	add_filters(result, view->selection);
	add_left_out(result, model);
	add_totals(result, model, &completeness);
	add_completeness(result, &completeness);
	result_close(result);
	say_target(result, model);
	say_amounts(result, model);
	say_exit_status(result, model);
	say_place(result, model);
	say_windows(result, model);
	say_filters(result, view);
	say_stacks(result, model, &completeness, &runtime);
	say_python(result, &completeness);
	say_unnamed(result, model, &completeness, &runtime);
	return 0;
}

const struct report_section about_section = {
	.value = {.title = "about", .kind = REPORT_OBJECT, .shape = &shape},
	.needs = REPORT_NEEDS_RECORDING,
	.is_head = true,
	.make = make,
};

static int make_left_out(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	_cleanup_strbuf_ struct strbuf text = {0};

	selection_describe_left_out(view->selection, view->model, &text);
	if (text.length)
		result_say(result, 0, &text);
	return strbuf_status(&text);
}

/* At the end of what it is about. */
const struct report_section left_out_section = {
	.needs = REPORT_NEEDS_RECORDING,
	.make = make_left_out,
};
