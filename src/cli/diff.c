/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: what changed from one capture to another, with a status for CI. */
#include "analyses/cpu/diff.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "analyses/device/device_diff.h"
#include "cli/diff_trace.h"
#include "cli/load_options.h"
#include "cli/output.h"
#include "exporters/flamegraph/flamegraph.h"
#include "load/capture.h"
#include "load/traces.h"
#include "report/diff/diff.h"
#include "report/render.h"

static struct {
	struct selection selection;
	struct shown_options shown;
	const char *by, *sort, *flamegraph;
	uint64_t limit;
	double fail_above;
	bool json, per_second, all;
	bool hta_compatible; /* of traces */
} arguments = {.by = "function", .sort = "self", .fail_above = NAN};

/* One of the two captures. */
struct side {
	const char *path;
	struct model *model;
	bool has_device_work;
	struct selected selected;
};

static void side_done(struct side *side)
{
	model_freep(&side->model);
	selected_done(&side->selected);
}

static int side_load(struct side *side, const char *path, struct errmsg *err)
{
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct selection weighed = arguments.selection;
	int r = load_capture(path, &arguments.shown, &arguments.selection, &side->model, err);

	side->path = path;
	r = r
		    ?: select_and_weigh(
			       side->model, &arguments.shown, &arguments.selection, &energy, err);
	weighed.weight = shown_weight(&arguments.shown);
	r = r ?: selection_apply(&weighed, side->model, &side->selected, err);
	side->has_device_work = r == 0 && side->model->device_works.count;
	if (r == 0 && !side->selected.count)
		return errmsg_set(err, -ENODATA, "%s has no samples%s: there is nothing to compare",
			path, side->model->samples.count ? " that the filters let through" : "");
	return r;
}

static int write_flamegraph(const struct side *before, const struct side *after, struct errmsg *err)
{
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_strbuf_ struct strbuf svg = {0};
	int r = call_tree_init(&tree);

	r = r ?: call_tree_add(&tree, 0, before->model, &before->selected, CALL_TREE_ROOTS_PROCESS);
	r = r ?: call_tree_add(&tree, 1, after->model, &after->selected, CALL_TREE_ROOTS_PROCESS);
	r = r ?: call_tree_finish(&tree);
	r = r ?: flamegraph_write_diff(&tree, NULL, before->path, after->path, &svg);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while drawing the flame graph");
	return output_write(arguments.flamegraph, svg.data, svg.length, err);
}

/* ---- device work ---- */

/* Why device work is not compared; NULL: it is, or there is none. */
static const char *why_no_device_work(const struct side *before, const struct side *after)
{
	if (!before->has_device_work && !after->has_device_work)
		return NULL;
	if (before->has_device_work != after->has_device_work)
		return after->has_device_work ? "A has none" : "B has none";
	return NULL;
}

/* `ret_compared`: the two have device work that the filters let through. */
static int compare_device(struct device_diff *diff, const struct side *before,
	const struct side *after, bool *ret_compared, struct errmsg *err)
{
	*ret_compared = before->has_device_work && !why_no_device_work(before, after);
	if (*ret_compared &&
		device_diff_init(diff, before->model, after->model, arguments.per_second) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing");
	return 0;
}

/* `device` is NULL where it is not compared. */
static int print(const struct diff *diff, const struct device_diff *device,
	const struct side *before, const struct side *after)
{
	const struct terminal terminal = terminal_of(stdout);
	const struct diff_report report = {
		.diff = diff,
		.device = device,
		.why_no_device = why_no_device_work(before, after),
		.before_path = before->path,
		.after_path = after->path,
		.limit = (size_t)arguments.limit,
		.is_json = arguments.json,
		.all = arguments.all,
	};
	_cleanup_result_ struct result result = {0};
	_cleanup_strbuf_ struct strbuf out = {0};
	int r = diff_report_make(&result, &report);

	if (r == 0)
		r = report_render(&result, arguments.json ? NULL : &terminal, &out);
	if (r == 0)
		fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return r;
}

static void say_row(const struct diff *diff, const struct diff_regression *found)
{
	bool by_function = diff->options.by == BREAKDOWN_FUNCTION;
	struct errmsg err;

	errmsg_set(&err, 0,
		"%.400s%s%.200s %s by %.2f %% of the %s of the run before (limit %g "
		"%%, "
		"q = %.2g)",
		found->row->name, by_function ? " in " : "", by_function ? found->row->module : "",
		diff->is_energy ? "took more" : "got slower", found->row_percent,
		diff->is_energy ? "energy" : "CPU time", arguments.fail_above, found->row->time_q);
	fail(&err);
}

static void say_total(const struct diff *diff, const struct diff_regression *found)
{
	struct errmsg err;

	errmsg_set(&err, 0,
		"the total %s grew by %.2f %% of that of the run before (limit %g %%, p = "
		"%.2g)",
		diff->is_energy ? "energy" : "CPU time", found->total_percent, arguments.fail_above,
		diff->total_time_p);
	fail(&err);
}

/* Says what got slower. Returns the exit status. */
static int check_gate(const struct diff *diff)
{
	struct diff_regression found;

	diff_find_regression(diff, arguments.fail_above, &found);
	if (found.row)
		say_row(diff, &found);
	if (found.total)
		say_total(diff, &found);
	return found.row || found.total ? EXIT_ERROR : EXIT_OK;
}

/* Says what device work got slower. Returns whether some did. */
static bool check_device(const struct device_diff *diff, double percent)
{
	struct device_diff_regression found;
	struct errmsg err;

	device_diff_find_regression(diff, percent, &found);
	if (found.row) {
		errmsg_set(&err, 0,
			"the %s %.400s got slower by %.2f %% of the device time of the run before "
			"(limit %g %%): %s",
			wire_device_kind_name(found.row->kind), found.row->name, found.row_percent,
			percent, diff_report_reason(found.row));
		fail(&err);
	}
	if (found.total) {
		errmsg_set(&err, 0,
			"the total device time grew by %.2f %% of that of the run before (limit %g "
			"%%)",
			found.total_percent, percent);
		fail(&err);
	}
	return found.row || found.total;
}

static int compare(struct diff *diff, struct side *before, struct side *after, char **paths,
	struct errmsg *err)
{
	struct diff_options options = {
		.by = breakdown_by_from_string(arguments.by),
		.sort = arguments.sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF,
		.per_second = arguments.per_second,
	};
	int r = side_load(before, paths[0], err);

	r = r ?: side_load(after, paths[1], err);
	if (r < 0)
		return r;
	if (diff_init(diff, &options, before->model, &before->selected, after->model,
		    &after->selected) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing");
	if (!isnan(arguments.fail_above) && !diff->has_time)
		return errmsg_set(err, -ENODATA,
			"--fail-above compares CPU time, but %s does not say how much time a "
			"sample stands for: compare captures that sonde recorded",
			diff->before.sample_weight > 0 ? paths[1] : paths[0]);
	if (arguments.flamegraph)
		return write_flamegraph(before, after, err);
	return 0;
}

/* ---- traces ---- */

/* The first option that was given and is of recordings alone; NULL: none. */
static const char *option_of_recordings(void)
{
	if (arguments.flamegraph || !isnan(arguments.fail_above))
		return arguments.flamegraph ? "--flamegraph" : "--fail-above";
	if (arguments.per_second || arguments.sort[0] != 's')
		return arguments.per_second ? "--per-second" : "--sort";
	if (arguments.by[0] != 'f')
		return "--by";
	return selection_first_filter(&arguments.selection);
}

static bool wants_traces(char **paths)
{
	return arguments.hta_compatible || trace_file_is_trace(trace_file_of(paths[0])) ||
	       trace_file_is_trace(trace_file_of(paths[1]));
}

static int run_traces(char **paths)
{
	const struct diff_trace_arguments traces = {
		.hta_compatible = arguments.hta_compatible,
		.json = arguments.json,
		.all = arguments.all,
		.limit = (size_t)arguments.limit,
	};
	struct errmsg err;

	if (!option_of_recordings())
		return diff_traces(&traces, paths[0], paths[1]);
	errmsg_set(&err, 0, "%s is for recordings, not for traces such as %s: leave it out",
		option_of_recordings(), paths[0]);
	return fail_usage(&err);
}

static int diff_run(int count, char **positional)
{
	_cleanup_(side_done) struct side before = {0};
	_cleanup_(side_done) struct side after = {0};
	_cleanup_diff_ struct diff diff = {0};
	_cleanup_device_diff_ struct device_diff device = {0};
	bool has_device = false;
	struct errmsg err;
	int r;

	if (wants_traces(positional))
		return run_traces(positional);
	r = compare(&diff, &before, &after, positional, &err);
	r = r ?: compare_device(&device, &before, &after, &has_device, &err);
	if (r < 0)
		return fail(&err);
	if (print(&diff, has_device ? &device : NULL, &before, &after) < 0) {
		errmsg_set(&err, -ENOMEM, "memory ran out while writing the comparison");
		return fail(&err);
	}
	if (isnan(arguments.fail_above))
		return EXIT_OK;
	r = check_gate(&diff);
	return has_device && check_device(&device, arguments.fail_above) ? EXIT_ERROR : r;
}

static const char *const by_choices[] = {"function", "module", NULL};
static const char *const sort_choices[] = {"self", "total", NULL};

static const char *const diff_weights[] = {"cpu", "energy", NULL};

static const struct option diff_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare functions or modules.",
		.value = (void *)&arguments.by,
		.choices = by_choices},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Compare and test self, the time in the function itself, or total, with "
			"all that it calls.",
		.value = (void *)&arguments.sort,
		.choices = sort_choices},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Rows to print. Default: 20; with --json all.",
		.value = &arguments.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "all",
		.type = OPTION_FLAG,
		.help = "Print changes that are not significant too.",
		.value = &arguments.all},
	{.long_name = "per-second",
		.type = OPTION_FLAG,
		.help = "Compare CPU time per second of recording: for recordings of different "
			"lengths.",
		.value = &arguments.per_second},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead.",
		.value = &arguments.json},
	{.long_name = "flamegraph",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Write a flame graph of the change too, an SVG: red grew, blue fell, by "
			"share of samples.",
		.value = (void *)&arguments.flamegraph},
	{.long_name = "fail-above",
		.type = OPTION_DOUBLE,
		.argument = "PERCENT",
		.help = "Exit with status 1 when a row or the total got significantly slower by "
			"more than this share of the CPU time, or device time, of A: 5, or 5%.",
		.value = &arguments.fail_above,
		.minimum = 0,
		.maximum = 1e6},
	{.long_name = "hta-compatible",
		.type = OPTION_FLAG,
		.help = "Of traces: compare what Holistic Trace Analysis compares, the first "
			"profiler step of the first rank, by name alone.",
		.value = &arguments.hta_compatible},
	{.long_name = "weight",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare CPU time, cpu; or energy, the joules of what ran on processors "
			"and "
			"of device work.",
		.value = (void *)&arguments.shown.weight,
		.choices = diff_weights},
	SHOWN_OPTIONS(arguments.shown),
	FILTER_OPTIONS(arguments.selection),
	{0},
};

const struct command diff_command = {
	.name = "diff",
	.summary = "show what changed between two captures",
	.usage = "[options] A B",
	.description =
		"Compares two recordings, A before and B after, by function name and module file "
		"name.\n\n"
		"\"Time\" is the change in CPU time, B - A; \"share\" is the change in the part of "
		"all samples, in percentage points. The number of samples decides what can be "
		"told: "
		"q is the false discovery rate at which the change in time would be called "
		"significant, over all rows (Benjamini and Hochberg), and * marks q <= 0.05, ** q "
		"<= 0.01, *** q <= 0.001. Only sampling noise is in q: that the same program takes "
		"different time from run to run is not. Record each twice to see how much.\n\n"
		"--fail-above PERCENT fails when, with T the CPU time of all selected samples of "
		"A, "
		"a row's time (self, or total with --sort total) grew by more than PERCENT of T "
		"and "
		"q <= 0.05, or the CPU time of all samples grew by more than PERCENT of T with p "
		"<= "
		"0.05. With --per-second, times are per second of recording. The sentence that "
		"names what got slower goes to standard error.\n\n"
		"Where both used devices, device work is compared by kernel, copy and the like: "
		"how often each ran, and for how long. Counts are exact. Durations of 20 pieces of "
		"work or more are tested, so that q <= 0.05 means that each got longer or shorter. "
		"--fail-above counts other counts, and durations that changed significantly, "
		"against the device time of A.\n\n"
		"Traces of PyTorch's profiler (Kineto), folders with those of several ranks, and "
		"captures that they were imported into are compared by operator, call and kernel: "
		"how often each ran, and for how long.",
	.examples =
		"sonde diff before.pftrace after.pftrace\n    What got slower, and faster.\n"
		"sonde diff --fail-above 5 --flamegraph change.svg main.pftrace branch.pftrace\n"
		"    In CI: fail on a slowdown of more than 5 %, and keep a picture.\n"
		"sonde diff monday.json.gz tuesday.json.gz\n    Which operators and kernels of two "
		"PyTorch traces ran more often, or longer.",
	.options = diff_options,
	.minimum_arguments = 2,
	.maximum_arguments = 2,
	.run = diff_run,
};
