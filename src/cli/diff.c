/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: what changed from one run to another, with a status for CI. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/load_options.h"
#include "cli/output.h"
#include "compat/hta/diff.h"
#include "compat/hta/hta.h"
#include "exporters/flamegraph/flamegraph.h"
#include "load/load.h"
#include "report/diff/diff.h"
#include "report/render.h"
#include "report/rows.h"

static struct {
	struct selection selection;
	struct shown_options shown;
	const char *by, *sort, *flamegraph;
	uint64_t limit;
	double fail_above;
	bool json, csv, schema, per_second, all;
	bool hta_compatible;
} arguments = {.sort = "self", .fail_above = NAN};

/* One of the two runs. */
struct side {
	const char *path;
	bool is_trace;
	struct model *model;
	struct selected selected; /* of a recording */
	struct trace_report rows;
};

static void side_done(struct side *side)
{
	trace_report_done(&side->rows);
	selected_done(&side->selected);
	model_freep(&side->model);
}

/* ---- loading ---- */

static int weigh(struct side *side, struct errmsg *err)
{
	_cleanup_energy_use_ struct energy_use energy = {0};
	struct selection weighed = arguments.selection;
	int r = select_and_weigh(side->model, &arguments.shown, &arguments.selection, &energy, err);

	if (r < 0)
		return r;
	weighed.weight = shown_weight(&arguments.shown);
	return selection_apply(&weighed, side->model, &side->selected, err);
}

static int load(struct side *side, struct errmsg *err)
{
	const struct trace_view_options view = {
		.definitions = arguments.hta_compatible ? &hta_definitions : &own_definitions};
	const struct load_options options = {
		.shown = &arguments.shown,
		.selection = &arguments.selection,
		.rows_only = side->is_trace,
	};
	int r = load_model(&side->model, &side->path, 1, &options, err);

	if (r == 0 && !side->is_trace)
		r = weigh(side, err);
	if (r < 0)
		return r;
	if (model_make_rows(side->model) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while making rows");
	return trace_report_init(&side->rows, side->model, &view, UINT64_MAX, err);
}

/* ---- comparing ---- */

/* Both sides, and what changed. */
struct comparison {
	struct side sides[2];
	bool has_samples;
	struct diff samples;
	struct row_diff rows;
};

static void comparison_done(struct comparison *comparison)
{
	row_diff_done(&comparison->rows);
	diff_done(&comparison->samples);
	side_done(&comparison->sides[0]);
	side_done(&comparison->sides[1]);
}

static int compare_samples(struct comparison *comparison, struct errmsg *err)
{
	const struct side *before = &comparison->sides[0], *after = &comparison->sides[1];
	const struct diff_options options = {
		.by = arguments.by ? breakdown_by_from_string(arguments.by) : BREAKDOWN_FUNCTION,
		.sort = arguments.sort[0] == 't' ? BREAKDOWN_SORT_TOTAL : BREAKDOWN_SORT_SELF,
		.per_second = arguments.per_second,
	};
	struct diff *diff = &comparison->samples;

	for (int i = 0; i < 2; i++) {
		const struct side *side = &comparison->sides[i];

		if (!side->selected.count)
			return errmsg_set(err, -ENODATA,
				"%s has no samples%s: there is nothing to compare; --by work "
				"compares device work and ranges",
				side->path,
				side->model->samples.count ? " that pass the filters" : "");
	}
	if (diff_init(diff, &options, before->model, &before->selected, after->model,
		    &after->selected) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while comparing");
	if (!isnan(arguments.fail_above) && !diff->has_time)
		return errmsg_set(err, -ENODATA,
			"--fail-above compares CPU time, but %s does not say how much time a "
			"sample stands for: compare captures that sonde recorded",
			diff->before.sample_weight > 0 ? after->path : before->path);
	return 0;
}

static int compare_rows(struct comparison *comparison, struct errmsg *err)
{
	const struct trace_view *first[2];
	struct row_diff_input inputs[2];
	int r;

	for (int i = 0; i < 2; i++) {
		const struct side *side = &comparison->sides[i];

		first[i] = side->rows.views;
		inputs[i] = (struct row_diff_input){
			.views = side->rows.views,
			.count = side->rows.count,
			.duration_ns = arguments.per_second ? model_duration_ns(side->model) : 0,
		};
	}
	r = arguments.hta_compatible ? hta_diff_init(&comparison->rows, first)
				     : row_diff_init(&comparison->rows, inputs);
	if (r == -ENODATA)
		return errmsg_set(err, r,
			"%s or %s has no profiler step, and HTA compares the first ones: leave out "
			"--hta-compatible",
			comparison->sides[0].path, comparison->sides[1].path);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while comparing");
	if (!isnan(arguments.fail_above) && !comparison->has_samples &&
		!comparison->rows.sides[0].works)
		return errmsg_set(err, -ENODATA,
			"--fail-above compares device time, but %s has no device work",
			comparison->sides[0].path);
	return 0;
}

static int write_flamegraph(const struct side *before, const struct side *after, struct errmsg *err)
{
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_strbuf_ struct strbuf svg = {0};
	int r = call_tree_init(&tree);

	if (r == 0)
		r = call_tree_add(
			&tree, 0, before->model, &before->selected, CALL_TREE_ROOTS_PROCESS);
	if (r == 0)
		r = call_tree_add(
			&tree, 1, after->model, &after->selected, CALL_TREE_ROOTS_PROCESS);
	if (r == 0)
		r = call_tree_finish(&tree);
	if (r == 0)
		r = flamegraph_write_diff(&tree, NULL, before->path, after->path, &svg);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while drawing the flame graph");
	return output_write(arguments.flamegraph, svg.data, svg.length, err);
}

static int compare(struct comparison *comparison, struct errmsg *err)
{
	struct side *sides = comparison->sides;
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++)
		r = load(&sides[i], err);
	if (r == 0 && comparison->has_samples)
		r = compare_samples(comparison, err);
	if (r == 0)
		r = compare_rows(comparison, err);
	if (r == 0 && arguments.flamegraph)
		r = write_flamegraph(&sides[0], &sides[1], err);
	return r;
}

/* ---- what is printed ---- */

static int print(const struct comparison *comparison)
{
	const struct side *sides = comparison->sides;
	enum report_form form = arguments.csv    ? REPORT_FORM_CSV
				: arguments.json ? REPORT_FORM_JSON
						 : REPORT_FORM_TERMINAL;
	const struct diff_report report = {
		.paths = {sides[0].path, sides[1].path},
		.ranks = {sides[0].rows.count, sides[1].rows.count},
		.samples = comparison->has_samples ? &comparison->samples : NULL,
		.rows = &comparison->rows,
		.per_second = arguments.per_second,
		.hta_compatible = arguments.hta_compatible,
		.limit = (size_t)arguments.limit,
		.is_json = form != REPORT_FORM_TERMINAL,
		.all = arguments.all,
	};
	_cleanup_result_ struct result result = {0};
	int r = diff_report_make(&result, &report);

	return r < 0 ? r : output_result(&result, form);
}

static void say_row(const struct diff *diff, const struct diff_regression *found)
{
	bool by_function = diff->options.by == BREAKDOWN_FUNCTION;
	struct errmsg err;

	errmsg_set(&err, 0,
		"%.400s%s%.200s %s by %.2f %% of the %s of the run before (limit %g %%, q = %.2g)",
		found->row->name, by_function ? " in " : "", by_function ? found->row->module : "",
		diff->is_energy ? "took more" : "got slower", found->row_percent,
		diff->is_energy ? "energy" : "CPU time", arguments.fail_above, found->row->time_q);
	fail(&err);
}

static void say_total(const struct diff *diff, const struct diff_regression *found)
{
	struct errmsg err;

	errmsg_set(&err, 0,
		"the total %s grew by %.2f %% of that of the run before (limit %g %%, p = %.2g)",
		diff->is_energy ? "energy" : "CPU time", found->total_percent, arguments.fail_above,
		diff->total_time_p);
	fail(&err);
}

/* Says what got slower. Returns the exit status. */
static int check_samples(const struct diff *diff)
{
	struct diff_regression found;

	diff_find_regression(diff, arguments.fail_above, &found);
	if (found.row)
		say_row(diff, &found);
	if (found.total)
		say_total(diff, &found);
	return found.row || found.total ? EXIT_ERROR : EXIT_OK;
}

/* The same of device work. */
static int check_device(const struct row_diff *diff)
{
	struct row_diff_regression found;
	struct errmsg err;

	row_diff_find_regression(diff, arguments.fail_above, &found);
	if (found.row) {
		errmsg_set(&err, 0,
			"the %s %.400s got slower by %.2f %% of the device time of the run before "
			"(limit %g %%): %s",
			row_diff_kind_name(found.row->kind), found.row->name, found.row_percent,
			arguments.fail_above, row_diff_change_name(row_diff_change_of(found.row)));
		fail(&err);
	}
	if (found.total) {
		errmsg_set(&err, 0,
			"the total device time grew by %.2f %% of that of the run before (limit %g "
			"%%)",
			found.total_percent, arguments.fail_above);
		fail(&err);
	}
	return found.row || found.total ? EXIT_ERROR : EXIT_OK;
}

/* ---- the command ---- */

/* The first option that was given and is of samples; NULL: none. */
static const char *option_of_samples(void)
{
	if (arguments.flamegraph)
		return "--flamegraph";
	return arguments.sort[0] != 's' ? "--sort" : NULL;
}

/* The same of recordings. */
static const char *option_of_recordings(void)
{
	if (option_of_samples())
		return option_of_samples();
	if (arguments.per_second)
		return "--per-second";
	if (arguments.by && arguments.by[0] != 'w')
		return "--by";
	return selection_first_filter(&arguments.selection);
}

static int check_options(const struct comparison *comparison, struct errmsg *err)
{
	const struct side *sides = comparison->sides;

	if (arguments.csv && arguments.json)
		return errmsg_set(err, -EINVAL, "--csv and --json exclude each other: give one");
	if ((sides[0].is_trace || sides[1].is_trace) && option_of_recordings())
		return errmsg_set(err, -EINVAL,
			"%s is for recordings, not for traces such as %s: leave it out",
			option_of_recordings(), sides[sides[0].is_trace ? 0 : 1].path);
	if (!comparison->has_samples && option_of_samples())
		return errmsg_set(err, -EINVAL,
			"%s is for samples, not for --by work: leave it out", option_of_samples());
	if (arguments.hta_compatible && !isnan(arguments.fail_above))
		return errmsg_set(err, -EINVAL,
			"--fail-above goes by device time, which HTA does not compare: leave out "
			"--hta-compatible");
	return 0;
}

static int compare_and_print(struct comparison *comparison)
{
	int status = EXIT_OK;
	struct errmsg err;

	if (compare(comparison, &err) < 0)
		return fail(&err);
	if (print(comparison) < 0) {
		errmsg_set(&err, -ENOMEM, "memory ran out while writing the comparison");
		return fail(&err);
	}
	if (isnan(arguments.fail_above))
		return EXIT_OK;
	if (comparison->has_samples)
		status = check_samples(&comparison->samples);
	return check_device(&comparison->rows) == EXIT_OK ? status : EXIT_ERROR;
}

static int diff_run(int count, char **positional)
{
	_cleanup_(comparison_done) struct comparison comparison = {0};
	struct side *sides = comparison.sides;
	struct errmsg err;

	if (arguments.schema)
		return output_schema(diff_report_schema);
	if (count < 2) {
		errmsg_set(&err, -EINVAL,
			"sonde diff needs two captures or traces: sonde diff BEFORE AFTER");
		return fail_usage(&err);
	}
	for (int i = 0; i < 2; i++) {
		sides[i].path = positional[i];
		sides[i].is_trace = arguments.hta_compatible ||
				    trace_file_is_trace(trace_file_of(positional[i]));
	}
	comparison.has_samples = !sides[0].is_trace && !sides[1].is_trace &&
				 !(arguments.by && arguments.by[0] == 'w');
	if (check_options(&comparison, &err) < 0)
		return fail_usage(&err);
	return compare_and_print(&comparison);
}

static const char *const by_choices[] = {"function", "module", "work", NULL};
static const char *const diff_weights[] = {"cpu", "energy", NULL};

static const struct option diff_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare functions or modules, with what threads and devices did; or that "
			"alone: work. Default: function; of traces work.",
		.value = (void *)&arguments.by,
		.choices = by_choices},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Compare and test self, the time in the function itself, or total, "
			"including everything it calls.",
		.value = (void *)&arguments.sort,
		.choices = sort_choices},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Rows of each table. Default: 20; with --json and --csv all.",
		.value = &arguments.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "all",
		.type = OPTION_FLAG,
		.help = "Print what did not change significantly, too.",
		.value = &arguments.all},
	{.long_name = "per-second",
		.type = OPTION_FLAG,
		.help = "Compare times per second of recording: for recordings of different "
			"lengths.",
		.value = &arguments.per_second},
	{.long_name = "json",
		.type = OPTION_FLAG,
		.help = "Print one JSON document instead.",
		.value = &arguments.json},
	{.long_name = "csv",
		.type = OPTION_FLAG,
		.help = "Print the rows of the first table as comma-separated values (RFC 4180) "
			"instead.",
		.value = &arguments.csv},
	{.long_name = "schema",
		.type = OPTION_FLAG,
		.help = "Print the JSON Schema of what --json prints; A and B are not needed.",
		.value = &arguments.schema},
	{.long_name = "flamegraph",
		.type = OPTION_STRING,
		.argument = "FILE",
		.help = "Also write a flame graph of the change, an SVG: red grew, blue fell, by "
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
		.help = "Compare what Holistic Trace Analysis compares, the first profiler step of "
			"the first rank, by name alone.",
		.value = &arguments.hta_compatible},
	{.long_name = "weight",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare CPU time, cpu; or energy, the joules of what ran on processors "
			"and of device work.",
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
		"Compares two runs, A before and B after. Each is a recording, a trace of "
		"PyTorch's profiler (Kineto), a folder with those of several ranks, or a capture "
		"that they were imported into.\n\nSamples of two recordings are compared by "
		"function name and module file name. \"Time\" is the change in CPU time, B - A; "
		"\"share\" is the change in the part of all samples, in percentage points. The "
		"number of samples decides how small a change can be detected: q is the false "
		"discovery rate at which the change in time would be called significant, over all "
		"rows (Benjamini and Hochberg), and * marks q <= 0.05, ** q <= 0.01, *** q <= "
		"0.001. q only accounts for sampling noise, not for differences between runs of "
		"the same program. Record each twice to see how large these are.\n\n--fail-above "
		"PERCENT fails if, with T the CPU time of all selected samples of A, a row's time "
		"(self, or total with --sort total) grew by more than PERCENT of T and q <= 0.05, "
		"or the CPU time of all samples grew by more than PERCENT of T with p <= 0.05. "
		"With --per-second, times are per second of recording. The sentence that names "
		"what got slower goes to standard error.\n\nWhat threads and devices did is "
		"compared by name: operators, calls, steps, ranges, kernels, copies. How often "
		"each ran, and for how long with all that lies in it. Counts are exact. Durations "
		"of 20 rows or more are tested, so that \"longer\" and \"shorter\" mean that each "
		"got longer or shorter with q <= 0.05. --fail-above counts other counts, and "
		"durations that changed significantly, of device work against the device time of "
		"A.",
	.examples =
		"sonde diff before.pftrace after.pftrace\n    What got slower, and faster.\n"
		"sonde diff --fail-above 5 --flamegraph change.svg main.pftrace branch.pftrace\n"
		"    In CI: fail on a slowdown of more than 5 %, and keep a picture.\n"
		"sonde diff monday.json.gz tuesday.json.gz\n    Which operators and kernels of two "
		"PyTorch traces ran more often, or longer.",
	.options = diff_options,
	.maximum_arguments = 2,
	.run = diff_run,
};
