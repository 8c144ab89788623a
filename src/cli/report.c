/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: a capture's answer in the terminal, or as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyses/device/communication.h"
#include "analyses/device/device_idle.h"
#include "base/file.h"
#include "cli/load_options.h"
#include "cli/report_regress.h"
#include "cli/report_runs.h"
#include "cli/report_trace.h"
#include "load/capture.h"
#include "load/traces.h"
#include "model/shown.h"
#include "report/document.h"
#include "report/recording/recording.h"
#include "report/timeline.h"
#include "report/view.h"

/* What sections can be made of. */
#define KINDS_OF_RECORDING (REPORT_NEEDS_RECORDING | REPORT_NEEDS_TIMELINE)
#define KINDS_OF_TRACE     (REPORT_NEEDS_TRACE | REPORT_NEEDS_TIMELINE)

#define DEFAULT_LIMIT      20
#define BY_WAIT            "wait" /* no dimension of samples that ran */
#define BY_KERNEL          "kernel"
#define BY_RANGE           "range"
#define BY_GRAPH           "graph"
#define BY_WINDOW          "window"
#define BY_COUNTER         "counter"
#define BY_TOKEN           "token"
#define BY_STEP            "step"
#define BY_REQUEST         "request"
#define BY_EXPERT          "expert"
#define BY_LAYER           "layer"
#define BY_PHASE           "phase"
#define BY_RUN             "run"
#define FIRST_BY_OF_TRACES "temporal"
#define BY_PATH            "critical-path"
#define BY_SEQUENCE        "sequences"

static struct {
	struct selection selection;
	struct shown_options shown;
	const char *by, *sort;
	uint64_t limit;
	struct option_strings baselines;
	double threshold_percent;
	bool json;
	const char *comm_kernels, *slo_text, *price, *co2, *predict;
	struct inference_slo slo;
	struct energy_rates rates;
	struct trace_view_options view; /* of traces, as are the next ones */
	struct trace_choice choice;
	uint64_t rank;
} arguments = {
	.threshold_percent = NAN,
	.sort = "self",
	.shown.weight = "cpu",
	.choice.instance = UINT64_MAX,
	.rank = UINT64_MAX,
	.rates = ENERGY_RATES_NONE,
};

/* What --by takes: tables of recordings, then what only traces have. */
static const char *const by_choices[] = {"function", "module", "line", "process", "thread", "cpu",
	"cgroup", "stack", "class", "gil", "rank", BY_COUNTER, BY_EXPERT, BY_KERNEL, BY_GRAPH,
	BY_LAYER, BY_PHASE, BY_RANGE, BY_REQUEST, BY_RUN, BY_STEP, BY_TOKEN, BY_WAIT, BY_WINDOW,
	FIRST_BY_OF_TRACES, "idle", "host", "overlap", "bandwidth", "launches", "queue",
	"operators", "cpu-operators", "annotations", "stragglers", "memory", BY_PATH, BY_SEQUENCE,
	NULL};

static enum breakdown_sort wanted_sort(void)
{
	return arguments.sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF;
}

static size_t wanted_limit(size_t otherwise)
{
	return arguments.limit ? (size_t)arguments.limit : otherwise;
}

/* What is found in all of the model, before filters leave something out. */
struct before_narrowing {
	struct device_idle idle;
	struct energy_use energy;
};

static void before_narrowing_done(struct before_narrowing *before)
{
	device_idle_done(&before->idle);
	energy_use_done(&before->energy);
}

/* For the tables: everything before them is about what ran. */
static int weigh(struct model *model, const struct before_narrowing *before,
	struct selected *selected, struct errmsg *err)
{
	int r = weigh_capture(model, &arguments.shown, &before->idle, &before->energy, err);

	if (r < 0 || shown_weight(&arguments.shown) == MODEL_WEIGHT_CPU)
		return r;
	selected_done(selected);
	arguments.selection.weight = shown_weight(&arguments.shown);
	return selection_apply(&arguments.selection, model, selected, err);
}

/* The report of one recording, while it is made. */
struct making {
	struct model *model;
	struct before_narrowing before;
	struct selected selected;
	struct report_recording recording;
	struct report_timeline timeline;
	struct errmsg *err;
};

static void making_done(struct making *making)
{
	report_timeline_done(&making->timeline);
	report_recording_done(&making->recording);
	selected_done(&making->selected);
	before_narrowing_done(&making->before);
	model_free(making->model);
}

static int weigh_making(void *context)
{
	struct making *making = context;

	return weigh(making->model, &making->before, &making->selected, making->err);
}

static const struct report_section *wanted_section(unsigned kind)
{
	return arguments.by ? report_section_find(arguments.by, kind) : NULL;
}

/* Rows are made where there is device work, or where a section of rows is asked for. */
static bool needs_timeline(const struct model *model)
{
	const struct report_section *section = wanted_section(KINDS_OF_RECORDING);

	return section ? (section->needs & REPORT_NEEDS_TIMELINE)
		       : arguments.json || model->device_works.count;
}

static int write_report(struct making *making, const char *path, struct strbuf *out)
{
	const struct terminal terminal = terminal_of(stdout);
	const struct report_view view = {
		.model = making->model,
		.selection = &arguments.selection,
		.selected = &making->selected,
		.idle = making->model->is_narrowed ? NULL : &making->before.idle,
		.energy = &making->before.energy,
		.slo = arguments.slo_text ? &arguments.slo : NULL,
		.rates = arguments.rates,
		.capture = path,
		.by = arguments.by && breakdown_by_from_string(arguments.by) >= 0
			      ? breakdown_by_from_string(arguments.by)
			      : BREAKDOWN_FUNCTION,
		.sort = wanted_sort(),
		.weight = shown_weight(&arguments.shown),
		.folds_libraries = arguments.shown.fold_libraries != NULL,
		.terminal = terminal,
		.out = out,
	};
	const struct report_document document = {
		.input = {.recording = &making->recording.view,
			.trace = making->timeline.views.count ? &making->timeline.report : NULL,
			.limit = (size_t)arguments.limit,
			.is_json = arguments.json},
		.by = arguments.by,
		.weigh = weigh_making,
		.context = making,
	};
	int r = report_recording_init(&making->recording, &view);

	making->timeline.report.page = view;
	if (r < 0)
		return r;
	return arguments.json ? report_document_json(&document, out)
			      : report_document_print(&document, &terminal, out);
}

static int report(const char *path, struct strbuf *out, struct errmsg *err)
{
	_cleanup_(making_done) struct making making = {.err = err};
	int r = load_capture(path, &arguments.shown, &arguments.selection, &making.model, err);

	if (r == 0)
		r = selection_apply(&arguments.selection, making.model, &making.selected, err);
	if (r < 0)
		return r;
	/* Before events are left out. */
	if (device_idle_init(&making.before.idle, making.model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking at idle devices");
	r = charge_energy(making.model, &arguments.selection, &making.before.energy, err);
	if (r == 0)
		r = selection_narrow(&arguments.selection, making.model, err);
	if (r < 0)
		return r;
	if (needs_timeline(making.model))
		r = report_timeline_of_recording(&making.timeline, making.model, err);
	if (r < 0)
		return r;
	r = write_report(&making, path, out);
	if (r == -ENODATA)
		return r;
	return r < 0 ? errmsg_set(err, r, "memory ran out while writing the report") : 0;
}

/* ---- inference ---- */

/* The first that was given; NULL: none. */
static const char *first_inference_option(void)
{
	const struct {
		const char *value, *name;
	} options[] = {{arguments.slo_text, "--slo"}, {arguments.price, "--price"},
		{arguments.co2, "--co2"}, {arguments.predict, "--predict"}};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].value)
			return options[i].name;
	}
	return NULL;
}

static bool is_by_run(void)
{
	return arguments.by && strcmp(arguments.by, BY_RUN) == 0;
}

static int parse_inference_options(struct errmsg *err)
{
	int r = 0;

	if (arguments.slo_text)
		r = inference_slo_parse(&arguments.slo, arguments.slo_text, err);
	if (r == 0 && arguments.price)
		r = energy_rates_parse_price(&arguments.rates, arguments.price, err);
	if (r == 0 && arguments.co2)
		r = energy_rates_parse_co2(&arguments.rates, arguments.co2, err);
	if (r == 0 && arguments.predict && !is_by_run())
		r = errmsg_set(err, -EINVAL,
			"--predict is for several recordings: give --by " BY_RUN ", too");
	if (r == 0 && arguments.slo_text && is_by_run())
		r = errmsg_set(
			err, -EINVAL, "--slo is of one recording: leave it out, or --by " BY_RUN);
	return r;
}

static int run_runs(int count, char **positional, struct errmsg *err)
{
	const struct report_runs_arguments runs = {
		.shown = &arguments.shown,
		.selection = &arguments.selection,
		.rates = arguments.rates,
		.predict = arguments.predict,
		.json = arguments.json,
	};

	if (selection_check(&arguments.selection, SELECTION_RANGES, err) < 0)
		return fail_usage(err);
	if (arguments.baselines.count) {
		errmsg_set(err, -EINVAL, "--regress and --by " BY_RUN " are two reports: give one");
		return fail_usage(err);
	}
	return report_runs(&runs, (const char *const *)positional, (size_t)count);
}

/* ---- traces ---- */

/* The first option that was given and is of recordings alone; NULL: none. */
static const char *option_of_recordings(void)
{
	const char *filter = selection_first_filter(&arguments.selection);

	if (arguments.baselines.count)
		return "--regress";
	if (first_inference_option())
		return first_inference_option();
	if (filter)
		return filter;
	if (arguments.shown.stacks)
		return "--stacks";
	if (arguments.shown.fold_libraries || arguments.shown.interpreter)
		return arguments.shown.interpreter ? "--show-interpreter" : "--fold-libraries";
	if (arguments.sort[0] != 's' || shown_weight(&arguments.shown) != MODEL_WEIGHT_CPU)
		return arguments.sort[0] != 's' ? "--sort" : "--weight";
	return NULL;
}

static bool has_option_of_traces(void)
{
	return arguments.rank != UINT64_MAX || arguments.view.hta_compatible ||
	       arguments.view.keep_last_step || arguments.view.drop_last_step ||
	       arguments.choice.annotation || arguments.choice.op ||
	       arguments.choice.instance != UINT64_MAX;
}

/* A recording has device work, too: it is a trace where one of their tables is asked for. */
static bool wants_traces(const char *path)
{
	return trace_file_is_trace(trace_file_of(path)) || has_option_of_traces() ||
	       (arguments.by && !report_section_find(arguments.by, KINDS_OF_RECORDING) &&
		       report_section_find(arguments.by, KINDS_OF_TRACE));
}

static int check_trace_options(const char *path, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf sections = {0};

	for (const struct report_section *const *section = report_sections; *section; section++) {
		if ((*section)->by && ((*section)->needs & KINDS_OF_TRACE))
			strbuf_addf(&sections, "%s%s", sections.length ? ", " : "", (*section)->by);
	}
	if (arguments.by && !report_section_find(arguments.by, KINDS_OF_TRACE))
		return errmsg_set(err, -EINVAL,
			"--by %s is of recordings, and %s is a trace, which has: %s", arguments.by,
			path, strbuf_cstr(&sections));
	if (option_of_recordings())
		return errmsg_set(err, -EINVAL,
			"%s is for recordings, not for traces such as %s: leave it out",
			option_of_recordings(), path);
	if (arguments.view.keep_last_step && arguments.view.drop_last_step)
		return errmsg_set(err, -EINVAL,
			"--include-last-step and --drop-last-step are opposites: give one");
	if ((arguments.choice.annotation || arguments.choice.instance != UINT64_MAX) &&
		!(arguments.by && strcmp(arguments.by, BY_PATH) == 0))
		return errmsg_set(err, -EINVAL,
			"--annotation and --instance choose windows of the critical path: give "
			"--by " BY_PATH ", too");
	if (arguments.choice.op && !(arguments.by && strcmp(arguments.by, BY_SEQUENCE) == 0))
		return errmsg_set(err, -EINVAL,
			"--operator chooses sequences of kernels: give --by " BY_SEQUENCE ", too");
	return 0;
}

static int run_traces(int count, char **positional)
{
	const struct report_trace_arguments traces = {
		.view = arguments.view,
		.by = arguments.by,
		.choice = arguments.choice,
		.rank = arguments.rank,
		.limit = arguments.limit,
		.json = arguments.json,
	};
	struct errmsg err;

	if (check_trace_options(positional[0], &err) < 0)
		return fail_usage(&err);
	return report_traces(&traces, (const char *const *)positional, (size_t)count);
}

static int report_run(int count, char **positional)
{
	const struct regress_arguments regress = {
		.baselines = arguments.baselines.values,
		.baseline_count = arguments.baselines.count,
		.threshold_percent = isnan(arguments.threshold_percent)
					     ? REGRESS_THRESHOLD_PERCENT
					     : arguments.threshold_percent,
		.limit = wanted_limit(0),
		.json = arguments.json,
	};
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;
	int r;

	if (arguments.comm_kernels && communication_add_names(arguments.comm_kernels, &err) < 0)
		return fail_usage(&err);
	if (parse_inference_options(&err) < 0)
		return fail_usage(&err);
	if (wants_traces(positional[0]))
		return run_traces(count, positional);
	if (is_by_run())
		return run_runs(count, positional, &err);
	if (count > 1 && !arguments.baselines.count) {
		errmsg_set(&err, 0,
			"%s is a recording, and report takes one of them: several files are for "
			"the ranks of a trace, --regress, or --by " BY_RUN,
			positional[0]);
		return fail_usage(&err);
	}
	if (!arguments.baselines.count && !isnan(arguments.threshold_percent)) {
		errmsg_set(&err, 0, "--threshold is for --regress BASELINE: give both");
		return fail_usage(&err);
	}
	if (wanted_section(KINDS_OF_RECORDING) &&
		selection_check(
			&arguments.selection, wanted_section(KINDS_OF_RECORDING)->shows, &err) < 0)
		return fail_usage(&err);
	if (arguments.baselines.count)
		return report_regress(&regress, &arguments.shown, &arguments.selection,
			(const char *const *)positional, (size_t)count);
	r = report(positional[0], &out, &err);

	if (r < 0)
		return fail(&err);
	fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return EXIT_OK;
}

static const char *const sort_choices[] = {"self", "total", NULL};

static const struct option report_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Print this table alone; stack: the hottest path and the hottest stacks; "
			"kernel: what devices did, and which lines launched it; "
			"expert: which experts a model chose; "
			"range: what happened in the program's NVTX ranges; "
			"request: how long requests to models took; "
			"token: how fast their tokens came; "
			"phase: prefill and decode; "
			"layer: layers and components of models; "
			"run: several captures of inference side by side; "
			"graph: captures and replays of CUDA graphs, and their nodes; "
			"step: how long the program's steps took; "
			"rank: the ranks of a distributed job, and which is slowest; "
			"wait: what threads waited for, and who held what they waited for; "
			"window: the windows of the recording. Of traces: step, range, rank, "
			"temporal, "
			"idle, host, "
			"overlap, kernel, bandwidth, launches, queue, operators, annotations, "
			"stragglers, "
			"memory, critical-path, sequences.",
		.value = (void *)&arguments.by,
		.choices = by_choices},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Sort by self, the time in the function itself, or total, with all that "
			"it calls.",
		.value = (void *)&arguments.sort,
		.choices = sort_choices},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Rows of each table. Default: 20 of the first table, 8 of others; with "
			"--json all, but 100 stacks.",
		.value = &arguments.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead, with every table unless --by names one.",
		.value = &arguments.json},
	{.long_name = "regress",
		.type = OPTION_STRINGS,
		.argument = "BASELINE",
		.help = "Compare with this capture: durations of steps, of ranges and of device "
			"work by name, and CPU time. The exit status is 1 when something got "
			"slower. Several of both sides (--regress A1 --regress A2 B1 B2) say how "
			"much runs differ.",
		.value = &arguments.baselines,
		.group = "Regressions"},
	{.long_name = "threshold",
		.type = OPTION_DOUBLE,
		.argument = "PERCENT",
		.help = "With --regress: a median must have grown by more than this, and to "
			"outside of the spread of both runs. Default: 10.",
		.value = &arguments.threshold_percent,
		.minimum = 0,
		.maximum = 1e6,
		.group = "Regressions"},
	{.long_name = "slo",
		.type = OPTION_STRING,
		.argument = "LIMITS",
		.help = "How many requests kept these limits, and how many a second (goodput): "
			"ttft=200ms,tpot=50ms; also ttst, e2e, queue, prefill, decode, or a limit "
			"of MLPerf Inference, such as mlperf:llama2-70b.",
		.value = (void *)&arguments.slo_text,
		.group = "Inference"},
	{.long_name = "price",
		.type = OPTION_STRING,
		.argument = "PRICE",
		.help = "Of energy, such as 0.25/kWh: what was measured gets a cost.",
		.value = (void *)&arguments.price,
		.group = "Inference"},
	{.long_name = "co2",
		.type = OPTION_STRING,
		.argument = "INTENSITY",
		.help = "Carbon dioxide of energy, such as 400g/kWh.",
		.value = (void *)&arguments.co2,
		.group = "Inference"},
	{.long_name = "predict",
		.type = OPTION_STRING,
		.argument = "LABELS",
		.help = "With --by run: what a run with these would take, from at least five runs: "
			"batch_size=16,context_length=2048.",
		.value = (void *)&arguments.predict,
		.group = "Inference"},
	{.long_name = "rank",
		.type = OPTION_U64,
		.argument = "N",
		.help = "Only the trace of this rank.",
		.value = &arguments.rank,
		.maximum = 1e9,
		.group = "Traces"},
	{.long_name = "comm-kernels",
		.type = OPTION_STRING,
		.argument = "REGEX",
		.help = "Kernels with this pattern in their names communicate, too: for libraries "
			"of collectives that are not known by their names.",
		.value = (void *)&arguments.comm_kernels,
		.group = "Devices"},
	{.long_name = "hta-compatible",
		.type = OPTION_FLAG,
		.help = "The figures of Holistic Trace Analysis, with what it leaves out and gets "
			"wrong: whole microseconds, no last profiler step, one GPU.",
		.value = &arguments.view.hta_compatible,
		.group = "Traces"},
	{.long_name = "include-last-step",
		.type = OPTION_FLAG,
		.help = "With --hta-compatible: keep the last profiler step.",
		.value = &arguments.view.keep_last_step,
		.group = "Traces"},
	{.long_name = "drop-last-step",
		.type = OPTION_FLAG,
		.help = "Leave the last profiler step out, and what it launched: it may be cut "
			"off.",
		.value = &arguments.view.drop_last_step,
		.group = "Traces"},
	{.long_name = "annotation",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "With --by critical-path: the windows are annotations whose names begin "
			"with this; '' is the whole trace. Default: profiler steps.",
		.value = (void *)&arguments.choice.annotation,
		.group = "Traces"},
	{.long_name = "instance",
		.type = OPTION_U64,
		.argument = "N",
		.help = "With --by critical-path: the annotation of this number alone, from 0 on. "
			"Default: all; with --hta-compatible 0.",
		.value = &arguments.choice.instance,
		.maximum = 1e9,
		.group = "Traces"},
	{.long_name = "operator",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "With --by sequences: operators and annotations whose names have this. "
			"Default: all operators that lie in no other.",
		.value = (void *)&arguments.choice.op,
		.group = "Traces"},
	WEIGHT_OPTION(arguments.shown),
	SHOWN_OPTIONS(arguments.shown),
	FILTER_OPTIONS(arguments.selection),
	{0},
};

const struct command report_command = {
	.name = "report",
	.summary = "show where the time went",
	.usage = "[options] CAPTURE | TRACE\xe2\x80\xa6",
	.description =
		"Shows what was recorded, how complete it is, and the functions, processes and "
		"threads that used the CPUs.\n\n"
		"\"Self\" is time in a function itself, \"total\" is time in it and in what it "
		"calls; a function that calls itself counts once a sample. Inlined functions are "
		"functions. Time is samples times the sampling period. \"[no stack]\" stands for "
		"samples whose stack is unknown, \"[unknown] FILE+0xADDRESS\" for a function "
		"without a name that begins there.\n\n"
		"In Python programs the first table charges each line of your own code with what "
		"it calls in libraries; the interpreter's own functions are hidden. --by line "
		"shows the source beside the costs.\n\n"
		"A trace of PyTorch's profiler (Kineto: .json, .json.gz, .json.zst), a folder with "
		"those of several ranks, or a capture that they were imported into gets a report "
		"of its own: where the time of GPUs went, why they were idle, what would help, "
		"and the analyses of Holistic Trace Analysis.\n\n"
		"Control characters in names are shown as escapes.",
	.examples =
		"sonde report sonde.pftrace\n    The hottest functions, processes and threads.\n"
		"sonde report --by stack --time 10..12 sonde.pftrace\n    What ran in these two "
		"seconds, as stacks.\n"
		"sonde report --json --process python sonde.pftrace\n    Every table of the "
		"Python processes, for programs.\n"
		"sonde report --by idle trace.json.gz\n    Why the GPU of a PyTorch trace was "
		"idle, stream by stream.",
	.options = report_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = report_run,
};
