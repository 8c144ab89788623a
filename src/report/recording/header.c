/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyses/cpu/completeness.h"
#include "analyses/cpu/runtimes.h"
#include "analyses/cpu/timeline.h"
#include "base/escape.h"
#include "base/text.h"
#include "model/format.h"
#include "model/shorten.h"
#include "report/view.h"

#define SEPARATOR        " \xc2\xb7 "
#define TIMELINE_TEXT    40 /* columns of what stands beside the bars */
#define TIMELINE_BARS    48
#define STOPS_TO_EXPLAIN 1.0  /* percent */
#define UNNAMED_TO_SAY   0.02 /* share of samples without a name from which on it is worth a line */
#define FEW_SAMPLES      100

void report_heading(const struct report_view *view, const char *text)
{
	strbuf_addf(view->out, "\n%s%s%s\n", terminal_bold(&view->terminal), text,
		terminal_plain(&view->terminal));
}

void report_add_time(struct strbuf *out, const struct model *model, uint64_t samples)
{
	format_weight(out, model, samples);
}

void report_paragraph(const struct report_view *view, const char *text, size_t indent)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	escape_plain(&plain, text);
	text_wrap(view->out, strbuf_cstr(&plain), 0, indent, view->terminal.width);
}

/* What was recorded: the command; else the process, where there is only one. */
static void describe_target(struct strbuf *out, const struct model *model)
{
	const struct model_process *process = model->processes.items;

	if (*model->session.command_line)
		escape_plain(out, model->session.command_line);
	else if (model->processes.count != 1)
		strbuf_add(out, "all processes that were recorded");
	else {
		strbuf_addf(out, "process %u: ", process->pid);
		escape_plain(out, *process->command_line ? process->command_line : process->name);
	}
}

static void add_title(const struct report_view *view)
{
	_cleanup_strbuf_ struct strbuf plain = {0};

	describe_target(&plain, view->model);
	strbuf_add(view->out, terminal_bold(&view->terminal));
	shorten_text(view->out, strbuf_cstr(&plain), view->terminal.width);
	strbuf_addf(view->out, "%s\n", terminal_plain(&view->terminal));
}

static void add_plural(struct strbuf *out, uint64_t count, const char *one, const char *many)
{
	format_count(out, count);
	strbuf_addf(out, " %s", count == 1 ? one : many);
}

static void add_rate(struct strbuf *out, const struct model *model)
{
	if (model_has_time(model))
		strbuf_addf(out, " at %.0f Hz", 1e9 / (double)model->session.period_ns);
}

/* "12.3 s recorded · 11.9 s CPU time (0.97 CPUs) · 11,912 samples at 999 Hz". */
static void add_amounts(const struct report_view *view)
{
	const struct model *model = view->model;
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t duration = model_duration_ns(model);
	uint64_t samples = model_running_samples(model);
	uint64_t cpu_time = samples * model_sample_weight_ns(model);

	format_duration(&text, duration);
	strbuf_add(&text, " recorded" SEPARATOR);
	if (model_has_time(model)) {
		format_duration(&text, cpu_time);
		strbuf_add(&text, " of CPU time");
		if (duration)
			strbuf_addf(
				&text, " (%.2f CPUs busy)", (double)cpu_time / (double)duration);
		strbuf_add(&text, SEPARATOR);
	}
	add_plural(&text, samples, "sample", "samples");
	add_rate(&text, model);
	strbuf_add(&text, SEPARATOR);
	add_plural(&text, model->processes.count, "process", "processes");
	strbuf_add(&text, ", ");
	add_plural(&text, model->threads.count, "thread", "threads");
	report_paragraph(view, strbuf_cstr(&text), 0);
}

/* "host, Linux 6.8.0, 16 CPUs · stacks unwound in the kernel". */
static void add_place(const struct report_view *view)
{
	const struct model_session *session = &view->model->session;
	const struct model_stats *stats = &view->model->stats;
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!session->present || report_is_imported(view->model))
		return;
	strbuf_addf(&text, "%s, Linux %s, ", *session->host ? session->host : "unknown host",
		*session->kernel_release ? session->kernel_release : "of unknown release");
	add_plural(&text, session->cpu_count, "CPU", "CPUs");
	if (strcmp(session->unwind_mode, "bpf") == 0)
		strbuf_add(&text, SEPARATOR "stacks unwound in the kernel");
	else if (*session->unwind_mode)
		strbuf_add(&text, SEPARATOR "stacks copied and unwound in user space");
	if (stats->present && stats->values.exit_status > 0)
		strbuf_addf(&text, SEPARATOR "the command exited with status %d",
			stats->values.exit_status);
	report_paragraph(view, strbuf_cstr(&text), 0);
	if (*session->unwind_mode_reason) {
		strbuf_clear(&text);
		strbuf_addf(&text, "Not in the kernel: %s.", session->unwind_mode_reason);
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
}

static void add_filters(const struct report_view *view)
{
	const struct selection *filters = view->selection;
	const char *const pairs[][2] = {
		{"process", filters->process},
		{"thread", filters->thread},
		{"time", filters->time},
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
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* What would keep stacks whole. */
static const char *stop_advice(
	const struct report_view *view, enum wire_stop stop, const struct runtime_advice *runtime)
{
	bool is_bpf = strcmp(view->model->session.unwind_mode, "bpf") == 0;

	return stop == WIRE_STOP_FRAME_POINTER ? runtime->frames
					       : completeness_advice(stop, is_bpf);
}

/* "Stacks: 98.7 % reach the thread's entry. 1.1 % stop early (no_rule): …". */
static void add_completeness(const struct report_view *view,
	const struct completeness *completeness, const struct runtime_advice *runtime)
{
	enum wire_stop worst = completeness_worst_stop(completeness);
	_cleanup_strbuf_ struct strbuf text = {0};
	double stopped; /* percent */

	if (!completeness->user_stacks)
		return;
	/* Rounded so that "100 %" is never said of less. */
	stopped = ceil(1000 * (1 - completeness_share(completeness))) / 10;
	strbuf_addf(&text, "Stacks: %.1f %% reach the thread's entry", 100 - stopped);
	if (completeness->complete_stacks != completeness->user_stacks)
		strbuf_addf(
			&text, "; %.1f %% stop early, most at %s", stopped, wire_stop_name(worst));
	if (stopped >= STOPS_TO_EXPLAIN)
		strbuf_addf(&text, ": %s", stop_advice(view, worst, runtime));
	strbuf_add_char(&text, '.');
	report_paragraph(view, strbuf_cstr(&text), 2);
}

/* "Python: 99.8 % of the samples in Python code have all their Python frames." */
static void add_python(const struct report_view *view, const struct completeness *completeness)
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
	report_paragraph(view, strbuf_cstr(&text), 2);
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

static void add_unnamed(const struct report_view *view, const struct completeness *completeness,
	const struct runtime_advice *runtime)
{
	double share = (double)completeness->unnamed_leaves / (double)completeness->samples;
	const char *module = model_module_name(view->model, completeness->worst_unnamed_module);
	_cleanup_strbuf_ struct strbuf text = {0};

	if (!completeness->samples || share < UNNAMED_TO_SAY)
		return;
	strbuf_addf(&text,
		"Names: %.1f %% of the samples are in functions without a name, most in %s: %s.",
		100 * share, module, naming_advice(module, runtime));
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static const struct capture_loss *largest_loss(const struct capture_stats *stats)
{
	const struct capture_loss *largest = NULL;

	for (uint32_t i = 0; i < stats->loss_count; i++) {
		if (!largest || stats->losses[i].count > largest->count)
			largest = &stats->losses[i];
	}
	return largest;
}

/* What the loss at a place means, or what helps. */
static const char *loss_advice(const char *where)
{
	static const char *const advice[][2] = {
		{"sample_ring", "a lower frequency (sonde record -F) loses fewer"},
		{"sideband_ring", "so many mappings changed that events were missed; processes "
				  "were read again, code that was mapped for a moment has no name"},
		{"waiting_for_tables", "these stacks were written before their unwind tables were "
				       "ready; the next recording has them in its cache"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(advice); i++) {
		if (strcmp(advice[i][0], where) == 0)
			return advice[i][1];
	}
	return NULL;
}

static void add_worst_loss(struct strbuf *text, const struct capture_loss *worst)
{
	const char *advice = loss_advice(worst->where);

	strbuf_addf(text, "; most at %s", worst->where);
	if (strcmp(worst->where, "sample_ring") == 0)
		strbuf_addf(text, " of CPU %u", worst->cpu);
	strbuf_add(text, ", ");
	format_count(text, worst->count);
	if (advice)
		strbuf_addf(text, ": %s", advice);
}

static void add_losses(const struct report_view *view, const struct completeness *completeness)
{
	const struct capture_loss *worst = largest_loss(&view->model->stats.values);
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t taken = completeness->recorded + completeness->lost;

	if (report_is_imported(view->model))
		return;
	if (!completeness->losses_known) {
		report_paragraph(view,
			"Lost samples: unknown; the file has no account of them, because its end "
			"is missing or another recorder wrote it.",
			2);
		return;
	}
	strbuf_add(&text, "Lost samples: ");
	if (completeness->lost) {
		format_count(&text, completeness->lost);
		strbuf_addf(
			&text, " (%.2f %%)", 100.0 * (double)completeness->lost / (double)taken);
	} else {
		strbuf_add(&text, "none");
	}
	if (view->model->cut_off_count)
		strbuf_add(&text, " before it was cut off");
	if (worst && worst->count)
		add_worst_loss(&text, worst);
	strbuf_add_char(&text, '.');
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_cautions(const struct report_view *view)
{
	const struct model *model = view->model;
	_cleanup_strbuf_ struct strbuf text = {0};

	for (uint32_t i = 0; i < model->stats.values.note_count; i++) {
		strbuf_clear(&text);
		strbuf_addf(&text, "Note: %s", model->stats.values.notes[i]);
		report_paragraph(view, strbuf_cstr(&text), 2);
	}
	if (view->selected->count && view->selected->count < FEW_SAMPLES)
		report_paragraph(view,
			"Few samples: shares are rough; record longer, or at a higher frequency "
			"(sonde record -F).",
			2);
}

/* "CPU use ▁▃▇█▆▁ 0 to 3.9 CPUs". */
static int add_timeline(const struct report_view *view)
{
	static const char *const bars[] = {
		" ",
		"\xe2\x96\x81",
		"\xe2\x96\x82",
		"\xe2\x96\x83",
		"\xe2\x96\x84",
		"\xe2\x96\x85",
		"\xe2\x96\x86",
		"\xe2\x96\x87",
		"\xe2\x96\x88",
	};
	_cleanup_timeline_ struct timeline timeline = {0};
	size_t bars_wanted = MIN(view->terminal.width - TIMELINE_TEXT, (size_t)TIMELINE_BARS);
	uint64_t most = 0;

	if (!model_has_time(view->model) || view->selected->count < FEW_SAMPLES)
		return 0;
	if (timeline_init(&timeline, view->model, view->selected, bars_wanted) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < timeline.count; i++)
		most = MAX(most, timeline.samples[i]);
	strbuf_add(view->out, "CPU use over time: \xe2\x96\x95");
	for (size_t i = 0; i < timeline.count; i++) {
		size_t level =
			(size_t)(timeline.samples[i] * (ARRAY_SIZE(bars) - 1) + most - 1) / most;

		strbuf_add(view->out, bars[level]);
	}
	strbuf_addf(view->out, "\xe2\x96\x8f peak %.2f CPUs\n",
		(double)(most * model_sample_weight_ns(view->model)) /
			(double)timeline.interval_ns);
	return 0;
}

static void add_windows(const struct report_view *view)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	report_describe_windows(view->model, &text);
	if (text.length)
		report_paragraph(view, strbuf_cstr(&text), 2);
}

int report_header(const struct report_view *view)
{
	struct completeness completeness;
	struct runtime_advice runtime = {0};
	int r = completeness_init(&completeness, view->model, view->selected);

	if (r == 0)
		r = runtime_advice_init(&runtime, view->model, view->selected);
	if (r < 0)
		return r;
	add_title(view);
	add_amounts(view);
	add_place(view);
	add_windows(view);
	add_filters(view);
	add_completeness(view, &completeness, &runtime);
	add_python(view, &completeness);
	add_unnamed(view, &completeness, &runtime);
	add_losses(view, &completeness);
	add_cautions(view);
	return add_timeline(view);
}

/* ---- why there is nothing ---- */

/* It is recorded of programs that sonde starts: their launches are what libraries in them see. */
const char *report_why_no_device_work(const struct model *model)
{
	const struct model_session *session = &model->session;

	if (session->present && session->cpu_count && !*session->command_line)
		return "Device work was not recorded: sonde attached to what ran already, and "
		       "records device work of programs that it starts (sonde record -- COMMAND).";
	if (session->present && strcmp(session->launch_stacks, "off") == 0)
		return "Device work was not recorded: the recording was made with --cpu-only, or "
		       "no "
		       "process used CUDA or OpenCL.";
	return "Device work was not recorded: no process that was recorded used CUDA, or an OpenCL "
	       "loader with layers; set-user-ID programs do not let themselves be recorded.";
}

bool report_has_device_work(const struct model *model)
{
	return model->device_works.count || model->launches.launches;
}

bool report_has_waiting(const struct model *model)
{
	array_foreach (&model->samples, sample) {
		if (sample->wait != WIRE_WAIT_NONE)
			return true;
	}
	return false;
}

const char *report_why_no_samples(const struct report_view *view)
{
	const struct model *model = view->model;

	if ((view->weight == MODEL_WEIGHT_GPU || view->weight == MODEL_WEIGHT_GPU_IDLE) &&
		!model->device_works.count)
		return report_why_no_device_work(model);
	if (view->weight == MODEL_WEIGHT_WAIT && !report_has_waiting(model))
		return "Waiting was not recorded: record with --wait sample.";
	array_foreach (&model->samples, sample) {
		if (model_sample_counts(sample, MODEL_WEIGHT_CPU))
			return "No samples are left: widen the filters.";
	}
	return "There are no samples: nothing ran on a CPU while it was recorded, or the recording "
	       "was cut off before its first flush.";
}

int report_none(const struct report_view *view, const char *why)
{
	report_paragraph(view,
		view->model->is_narrowed ? "Nothing of this is left: widen the filters." : why, 0);
	return 0;
}
