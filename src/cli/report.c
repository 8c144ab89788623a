/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: a capture's answer in the terminal, or as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/load_options.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/report_html.h"
#include "cli/report_limits.h"
#include "cli/report_regress.h"
#include "cli/report_runs.h"
#include "load/load.h"
#include "query/child.h"
#include "query/query.h"
#include "report/document.h"
#include "report/runs/regress.h"
#include "report/runs/runs.h"
#include "report/section.h"

#define BY_RUN "run" /* of several recordings: no section */

static struct {
	struct query_options asked;
	struct option_strings baselines, limits;
	double threshold_percent;
	bool json, csv, schema, no_pager;
	const char *predict, *html;
} arguments = {
	.asked = QUERY_OPTIONS_DEFAULT,
	.threshold_percent = NAN,
};

static enum report_form wanted_form(void)
{
	return arguments.csv    ? REPORT_FORM_CSV
	       : arguments.json ? REPORT_FORM_JSON
				: REPORT_FORM_TERMINAL;
}

/* ---- --by ---- */

static size_t names_of_sections(struct report_name names[REPORT_NAMES_MAX])
{
	size_t count = report_section_names(names, REPORT_NAMES_MAX - 1);

	names[count++] = (struct report_name){BY_RUN, "several captures of inference side by side"};
	return count;
}

static const char *const *list_names(void)
{
	static const char *words[REPORT_NAMES_MAX + 1];
	struct report_name names[REPORT_NAMES_MAX];
	size_t count = names_of_sections(names);

	for (size_t i = 0; i < count; i++)
		words[i] = names[i].by;
	return words;
}

static void describe_names(struct strbuf *out)
{
	struct report_name names[REPORT_NAMES_MAX];
	size_t count = names_of_sections(names);

	for (size_t i = 0; i < count; i++)
		strbuf_addf(out, "%s%s: %s", i ? "; " : " ", names[i].by, names[i].summary);
	strbuf_add_char(out, '.');
}

/* ---- inference ---- */

static bool is_by_run(void)
{
	return arguments.asked.by && strcmp(arguments.asked.by, BY_RUN) == 0;
}

static int parse_options(struct errmsg *err)
{
	int r = query_options_parse(&arguments.asked, err);

	if (r == 0 && arguments.limits.count)
		r = report_limits_check(arguments.limits.values, arguments.limits.count, err);
	if (r == 0 && arguments.limits.count && (is_by_run() || arguments.baselines.count))
		r = errmsg_set(err, -EINVAL,
			"--fail-if is of one report: leave it out, or --by " BY_RUN
			" and --regress");
	if (r == 0 && arguments.predict && !is_by_run())
		r = errmsg_set(err, -EINVAL,
			"--predict is for several recordings: give --by " BY_RUN ", too");
	if (r == 0 && arguments.asked.slo_text && is_by_run())
		r = errmsg_set(
			err, -EINVAL, "--slo is of one recording: leave it out, or --by " BY_RUN);
	return r;
}

static int run_runs(int count, char **positional, struct errmsg *err)
{
	const struct report_runs_arguments runs = {
		.shown = &arguments.asked.shown,
		.selection = &arguments.asked.selection,
		.rates = arguments.asked.rates,
		.predict = arguments.predict,
		.form = wanted_form(),
	};

	if (selection_check(&arguments.asked.selection, SELECTION_RANGES, err) < 0)
		return fail_usage(err);
	if (arguments.baselines.count) {
		errmsg_set(
			err, -EINVAL, "--regress and --by " BY_RUN " exclude each other: give one");
		return fail_usage(err);
	}
	return report_runs(&runs, (const char *const *)positional, (size_t)count);
}

/* ---- several recordings ---- */

static int run_regress(int count, char **positional)
{
	const struct regress_arguments regress = {
		.baselines = arguments.baselines.values,
		.baseline_count = arguments.baselines.count,
		.threshold_percent = isnan(arguments.threshold_percent)
					     ? REGRESS_THRESHOLD_PERCENT
					     : arguments.threshold_percent,
		.limit = (size_t)arguments.asked.limit,
		.form = wanted_form(),
	};

	return report_regress(&regress, &arguments.asked.shown, &arguments.asked.selection,
		(const char *const *)positional, (size_t)count);
}

/* ---- one recording or trace ---- */

static int check_foreign(const char *path, struct errmsg *err)
{
	if (!arguments.baselines.count)
		return 0;
	return errmsg_set(err, -EINVAL,
		"--regress is for recordings, not for traces such as %s: leave it out", path);
}

static int check_recording(struct errmsg *err)
{
	if (!arguments.baselines.count && !isnan(arguments.threshold_percent))
		return errmsg_set(err, -EINVAL, "--threshold is for --regress BASELINE: give both");
	return 0;
}

/* ---- limits ---- */

#define FIGURES_MAX ((size_t)1 << 30) /* bytes */

/* Of the complete report, whatever of it is printed. */
static int ask_figures(void *context, struct strbuf *out, struct errmsg *err)
{
	struct query_options asked = arguments.asked;

	asked.by = NULL;
	asked.limit = 0;
	return query_report(context, &asked, REPORT_FORM_JSON, NULL, out, err);
}

static int write_report(struct query *query)
{
	const struct terminal terminal = terminal_of(stdout);
	_cleanup_strbuf_ struct strbuf out = {0};
	struct errmsg err;

	if (arguments.html)
		return report_html(query, &arguments.asked, arguments.html);
	if (query_report(query, &arguments.asked, wanted_form(), &terminal, &out, &err) < 0)
		return fail(&err);
	if (arguments.no_pager || wanted_form() != REPORT_FORM_TERMINAL)
		pager_turn_off();
	pager_print(&out);
	return EXIT_OK;
}

static int print_report(int count, char **positional)
{
	_cleanup_query_ struct query query = {0};
	_cleanup_strbuf_ struct strbuf figures = {0};
	struct errmsg err;
	int status, r;

	r = query_open(
		&query, (const char *const *)positional, (size_t)count, &arguments.asked, &err);
	if (r == 0 && arguments.limits.count)
		r = query_in_child(ask_figures, &query, FIGURES_MAX, &figures, &err);
	if (r < 0)
		return fail(&err);
	status = write_report(&query);
	if (status != EXIT_OK || !arguments.limits.count)
		return status;
	return report_limits(
		figures.data, figures.length, arguments.limits.values, arguments.limits.count);
}

static int run_model(int count, char **positional, bool is_foreign)
{
	struct errmsg err;
	int r;

	r = is_foreign ? check_foreign(positional[0], &err) : check_recording(&err);
	if (r == 0)
		r = query_options_check(&arguments.asked, positional[0], is_foreign, &err);
	if (r < 0)
		return fail_usage(&err);
	if (arguments.baselines.count)
		return run_regress(count, positional);
	return print_report(count, positional);
}

/* ---- the command ---- */

static int print_schema(void)
{
	if (is_by_run())
		return output_schema(runs_report_schema);
	return output_schema(
		arguments.baselines.count ? regress_report_schema : report_document_schema);
}

static int check_form(int count, struct errmsg *err)
{
	if (!count)
		return errmsg_set(err, -EINVAL,
			"there is no " DEFAULT_CAPTURE
			" here: name a capture or a trace, sonde report CAPTURE");
	if (arguments.html && (arguments.csv || arguments.json || arguments.asked.by ||
				      arguments.baselines.count))
		return errmsg_set(err, -EINVAL,
			"--html writes the whole report as a page: leave out --json, --csv, --by "
			"and --regress");
	if (!arguments.csv)
		return 0;
	if (arguments.json)
		return errmsg_set(err, -EINVAL, "--csv and --json exclude each other: give one");
	if (!arguments.asked.by && !arguments.baselines.count)
		return errmsg_set(err, -EINVAL,
			"--csv prints one table: name it with --by, as in --by function");
	return 0;
}

static int report_run(int count, char **positional)
{
	struct errmsg err;
	bool is_foreign;

	if (arguments.schema)
		return print_schema();
	if (check_form(count, &err) < 0)
		return fail_usage(&err);
	if (parse_options(&err) < 0)
		return fail_usage(&err);
	is_foreign = load_is_foreign((const char *const *)positional, (size_t)count) ||
		     query_wants_rows_only(&arguments.asked);
	return is_by_run() && !is_foreign ? run_runs(count, positional, &err)
					  : run_model(count, positional, is_foreign);
}

static const struct option report_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Print this section only.",
		.value = (void *)&arguments.asked.by,
		.list_choices = list_names,
		.describe_choices = describe_names},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Sort by self, the time in the function itself, or total, including "
			"everything it calls.",
		.value = (void *)&arguments.asked.sort,
		.choices = sort_choices},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Rows of each table. Default: 20 of the first table, 8 of others; with "
			"--json all, but 100 stacks.",
		.value = &arguments.asked.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead, with every table unless --by names one.",
		.value = &arguments.json},
	{.long_name = "csv",
		.type = OPTION_FLAG,
		.help = "With --by or --regress: print the rows of that table as comma-separated "
			"values (RFC 4180) instead.",
		.value = &arguments.csv},
	{.long_name = "html",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write the report and its flame graphs as a page: one file that a browser "
			"opens without a server. - is standard output.",
		.value = (void *)&arguments.html},
	{.long_name = "schema",
		.type = OPTION_FLAG,
		.help = "Print the JSON Schema of what --json prints, with --by run or --regress "
			"of that; no CAPTURE is needed.",
		.value = &arguments.schema},
	PAGER_OPTION(arguments.no_pager),
	COLOUR_OPTION,
	{.long_name = "regress",
		.type = OPTION_STRINGS,
		.argument = "BASELINE",
		.help = "Compare with this capture: durations of steps, of ranges and of device "
			"work by name, and CPU time. The exit status is 1 if something got slower. "
			"Several of both sides (--regress A1 --regress A2 B1 B2) show how much "
			"runs differ.",
		.value = &arguments.baselines,
		.group = "Regressions"},
	{.long_name = "threshold",
		.type = OPTION_DOUBLE,
		.argument = "PERCENT",
		.help = "With --regress: fail if a median grew by more than this, and beyond the "
			"spread of both runs. Default: 10.",
		.value = &arguments.threshold_percent,
		.minimum = 0,
		.maximum = 1e6,
		.group = "Regressions"},
	{.long_name = "fail-if",
		.type = OPTION_STRINGS,
		.argument = "CONDITION",
		.help = "Exit with status 1 when this holds of a figure of the report, named as in "
			"its JSON: temporal.idle_share>30%, "
			"kernel.kernels[name=gemm].sum_ns>=5ms. Of rows one is enough. Also when "
			"the figure is not there. May be given several times.",
		.value = &arguments.limits,
		.group = "Regressions"},
	{.long_name = "slo",
		.type = OPTION_STRING,
		.argument = "LIMITS",
		.help = "Report how many requests kept these limits, in total and per second "
			"(goodput): ttft=200ms,tpot=50ms; also ttst, e2e, queue, prefill, decode, "
			"or a limit of MLPerf Inference, such as mlperf:llama2-70b.",
		.value = (void *)&arguments.asked.slo_text,
		.group = "Inference"},
	{.long_name = "load-results",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "The result of vllm bench serve (--save-result --save-detailed) while this "
			"was recorded: adds the requests as the client saw them beside the "
			"server's times.",
		.value = (void *)&arguments.asked.load_results,
		.group = "Inference"},
	{.long_name = "price",
		.type = OPTION_STRING,
		.argument = "PRICE",
		.help = "The price of energy, such as 0.25/kWh: adds the cost of the measured "
			"energy.",
		.value = (void *)&arguments.asked.price,
		.group = "Inference"},
	{.long_name = "co2",
		.type = OPTION_STRING,
		.argument = "INTENSITY",
		.help = "The carbon intensity of energy, such as 400g/kWh: adds its carbon "
			"dioxide.",
		.value = (void *)&arguments.asked.co2,
		.group = "Inference"},
	{.long_name = "predict",
		.type = OPTION_STRING,
		.argument = "LABELS",
		.help = "With --by run: predict a run with these labels, from at least five runs: "
			"batch_size=16,context_length=2048.",
		.value = (void *)&arguments.predict,
		.group = "Inference"},
	{.long_name = "rank",
		.type = OPTION_U64,
		.argument = "N",
		.help = "Only the trace of this rank.",
		.value = &arguments.asked.rank,
		.maximum = 1e9,
		.group = "Traces"},
	{.long_name = "peak",
		.type = OPTION_STRING,
		.argument = "FIGURES",
		.help = "What the device can do at most, in 10^12 operations and bytes a second, "
			"where the table of devices does not have it, or in its place: "
			"tflops=312,tbps=2.0, or by type bf16=312,fp32=19.5,tbps=2.0.",
		.value = (void *)&arguments.asked.peak_text,
		.group = "Traces"},
	{.long_name = "comm-kernels",
		.type = OPTION_STRING,
		.argument = "REGEX",
		.help = "Kernels with this pattern in their names also count as communication: for "
			"libraries of collectives that sonde does not know.",
		.value = (void *)&arguments.asked.comm_kernels,
		.group = "Devices"},
	{.long_name = "hta-compatible",
		.type = OPTION_FLAG,
		.help = "The figures of Holistic Trace Analysis, including what it leaves out and "
			"gets wrong: whole microseconds, no last profiler step, one GPU.",
		.value = &arguments.asked.hta_compatible,
		.group = "Traces"},
	{.long_name = "include-last-step",
		.type = OPTION_FLAG,
		.help = "With --hta-compatible: keep the last profiler step.",
		.value = &arguments.asked.keep_last_step,
		.group = "Traces"},
	{.long_name = "drop-last-step",
		.type = OPTION_FLAG,
		.help = "Leave out the last profiler step and its work: it may be cut off.",
		.value = &arguments.asked.drop_last_step,
		.group = "Traces"},
	{.long_name = "annotation",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "With --by critical-path: the windows are annotations whose names begin "
			"with this; '' is the whole trace. Default: profiler steps.",
		.value = (void *)&arguments.asked.choice.annotation,
		.group = "Traces"},
	{.long_name = "instance",
		.type = OPTION_U64,
		.argument = "N",
		.help = "With --by critical-path: only the annotation of this number, from 0 on. "
			"Default: all; with --hta-compatible 0.",
		.value = &arguments.asked.choice.instance,
		.maximum = 1e9,
		.group = "Traces"},
	{.long_name = "operator",
		.type = OPTION_STRING,
		.argument = "TEXT",
		.help = "With --by sequences: operators and annotations whose names contain this. "
			"Default: all outermost operators.",
		.value = (void *)&arguments.asked.choice.op,
		.group = "Traces"},
	WEIGHT_OPTION(arguments.asked.shown),
	SHOWN_OPTIONS(arguments.asked.shown),
	FILTER_OPTIONS(arguments.asked.selection),
	{0},
};

const struct command report_command = {
	.name = "report",
	.summary = "show where the time went",
	.usage = "[options] [CAPTURE | TRACE\xe2\x80\xa6]",
	.description =
		"Shows what was recorded, how complete it is, and the functions, processes and "
		"threads that used the CPUs. Without an argument it reads " DEFAULT_CAPTURE
		".\n\n\"Self\" is time in a function itself, \"total\" "
		"is time in it and in what it calls; a function that calls itself counts once per "
		"sample. Inlined functions are functions. Time is samples times the sampling "
		"period. \"[no stack]\" stands for samples whose stack is unknown, \"[unknown] "
		"FILE+0xADDRESS\" for a function without a name that begins there.\n\nFor Python "
		"programs the first table charges each line of your own code with everything it "
		"calls in libraries; the interpreter's own functions are hidden. --by line shows "
		"the source beside the costs.\n\nThe report of a trace of PyTorch's profiler "
		"(Kineto: .json, .json.gz, .json.zst), of a folder with those of several ranks, or "
		"of a capture that they were imported into shows where the time of GPUs went, why "
		"they were idle, what would help, and the analyses of Holistic Trace "
		"Analysis.\n\nControl characters in names are shown as escapes.",
	.examples =
		"sonde report\n    Of " DEFAULT_CAPTURE
		": the hottest functions, processes and threads.\n"
		"sonde report --by stack --time 10..12 sonde.pftrace\n    What ran in these two "
		"seconds, as stacks.\n"
		"sonde report --json --process python sonde.pftrace\n    Every table of the Python "
		"processes, for programs.\n"
		"sonde report --by idle trace.json.gz\n    Why the GPU of a PyTorch trace was "
		"idle, stream by stream.\n"
		"sonde report --html run.html sonde.pftrace\n    The report and its flame graphs as "
		"a page, in one file.\n"
		"sonde report --fail-if 'temporal.idle_share>30%' trace.json.gz\n    In CI: fail when "
		"a GPU is idle for more than 30 % of the time.\n"
		"sonde report --by line --csv sonde.pftrace\n    Every line with its costs, for a "
		"spreadsheet.",
	.options = report_options,
	.maximum_arguments = -1,
	.default_argument = DEFAULT_CAPTURE,
	.run = report_run,
};
