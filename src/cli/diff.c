/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: what changed from one run to another, with a status for CI. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/load_options.h"
#include "cli/output.h"
#include "exporters/flamegraph/flamegraph.h"
#include "model/weigh.h"
#include "query/diff.h"
#include "report/diff/diff.h"

static struct {
	struct query_diff_options asked;
	const char *flamegraph;
	double fail_above;
	bool json, csv, schema;
} arguments = {.asked.sort = "self", .fail_above = NAN};

static int write_flamegraph(const struct query_diff *diff, struct errmsg *err)
{
	const struct query_diff_side *sides = diff->sides;
	_cleanup_call_tree_ struct call_tree tree = {0};
	_cleanup_strbuf_ struct strbuf svg = {0};
	int r = call_tree_init(&tree);

	for (unsigned i = 0; r == 0 && i < 2; i++)
		r = call_tree_add(
			&tree, i, sides[i].model, &sides[i].selected, CALL_TREE_ROOTS_PROCESS);
	if (r == 0)
		r = call_tree_finish(&tree);
	if (r == 0)
		r = flamegraph_write_diff(&tree, shown_weight(&arguments.asked.shown),
			sides[0].path, sides[1].path, &svg);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while drawing the flame graph");
	return output_write(arguments.flamegraph, svg.data, svg.length, err);
}

/* Is there what --fail-above goes by? */
static int check_limit(const struct query_diff *diff, struct errmsg *err)
{
	const struct query_diff_side *sides = diff->sides;

	if (isnan(arguments.fail_above))
		return 0;
	if (diff->has_samples && !diff->samples.has_time)
		return errmsg_set(err, -ENODATA,
			"--fail-above compares time, but %s does not say how much time a "
			"sample stands for: compare captures that sonde recorded",
			sides[diff->samples.before.sample_weight > 0].path);
	if (!diff->has_samples && !diff->rows.sides[0].works)
		return errmsg_set(err, -ENODATA,
			"--fail-above compares device time, but %s has no device work",
			sides[0].path);
	return 0;
}

static int compare(struct query_diff *diff, struct errmsg *err)
{
	int r = query_diff_make(diff, &arguments.asked, err);

	if (r == 0)
		r = check_limit(diff, err);
	if (r == 0 && arguments.flamegraph)
		r = write_flamegraph(diff, err);
	return r;
}

/* ---- what is printed ---- */

static int print(const struct query_diff *diff)
{
	const struct terminal terminal = terminal_of(stdout);
	_cleanup_strbuf_ struct strbuf out = {0};
	enum report_form form = arguments.csv    ? REPORT_FORM_CSV
				: arguments.json ? REPORT_FORM_JSON
						 : REPORT_FORM_TERMINAL;
	int r = query_diff_write(diff, &arguments.asked, form, &terminal, &out);

	if (r == 0)
		fwrite(strbuf_cstr(&out), 1, out.length, stdout);
	return r;
}

static void say_row(const struct diff *diff, const struct diff_regression *found)
{
	bool by_module = diff->options.by == BREAKDOWN_MODULE;
	const char *place = *found->row->place ? found->row->place : found->row->module;
	struct errmsg err;

	errmsg_set(&err, 0,
		"%.400s%s%.200s %s by %.2f %% of the %s of the run before (limit %g %%, q = %.2g)",
		found->row->name, by_module ? "" : " in ", by_module ? "" : place,
		diff->options.weight == MODEL_WEIGHT_CPU ? "got slower" : "took more",
		found->row_percent, model_weight_noun(diff->options.weight), arguments.fail_above,
		found->row->time_q);
	fail(&err);
}

static void say_total(const struct diff *diff, const struct diff_regression *found)
{
	struct errmsg err;

	errmsg_set(&err, 0,
		"the total %s grew by %.2f %% of that of the run before (limit %g %%, p = %.2g)",
		model_weight_noun(diff->options.weight), found->total_percent, arguments.fail_above,
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

static int check_options(
	struct query_diff *diff, const char *before, const char *after, struct errmsg *err)
{
	int r = 0;

	if (arguments.csv && arguments.json)
		return errmsg_set(err, -EINVAL, "--csv and --json exclude each other: give one");
	r = query_diff_check(diff, before, after, &arguments.asked, err);
	if (r < 0)
		return r;
	if (arguments.flamegraph && (diff->sides[0].is_trace || diff->sides[1].is_trace))
		return errmsg_set(err, -EINVAL,
			"--flamegraph is for recordings, not for traces such as %s: leave it out",
			diff->sides[diff->sides[0].is_trace ? 0 : 1].path);
	if (arguments.flamegraph && !diff->has_samples)
		return errmsg_set(err, -EINVAL,
			"--flamegraph is for samples, not for --by work: leave it out");
	if (arguments.asked.hta_compatible && !isnan(arguments.fail_above))
		return errmsg_set(err, -EINVAL,
			"--fail-above goes by device time, which HTA does not compare: leave out "
			"--hta-compatible");
	return 0;
}

static int compare_and_print(struct query_diff *diff)
{
	int status = EXIT_OK;
	struct errmsg err;

	if (compare(diff, &err) < 0)
		return fail(&err);
	if (print(diff) < 0) {
		errmsg_set(&err, -ENOMEM, "memory ran out while writing the comparison");
		return fail(&err);
	}
	if (isnan(arguments.fail_above))
		return EXIT_OK;
	if (diff->has_samples)
		status = check_samples(&diff->samples);
	return check_device(&diff->rows) == EXIT_OK ? status : EXIT_ERROR;
}

static int diff_run(int count, char **positional)
{
	_cleanup_query_diff_ struct query_diff diff = {0};
	struct errmsg err;

	if (arguments.schema)
		return output_schema(diff_report_schema);
	if (count < 2) {
		errmsg_set(&err, -EINVAL,
			"sonde diff needs two captures or traces: sonde diff BEFORE AFTER");
		return fail_usage(&err);
	}
	if (check_options(&diff, positional[0], positional[1], &err) < 0)
		return fail_usage(&err);
	return compare_and_print(&diff);
}

static const char *const by_choices[] = {"function", "module", "line", "work", NULL};
static const char *const diff_weights[] = {
	"cpu", "wait", "wall", "gpu", "gpu-idle", "cpu+gpu", "energy", NULL};

static const struct option diff_options[] = {
	{.long_name = "by",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare functions, modules or lines, with what threads and devices did; "
			"or that alone: work. Default: function; of traces work.",
		.value = (void *)&arguments.asked.by,
		.choices = by_choices},
	{.long_name = "sort",
		.type = OPTION_CHOICE,
		.argument = "WHICH",
		.help = "Compare and test self, the time in the function itself, or total, "
			"including everything it calls.",
		.value = (void *)&arguments.asked.sort,
		.choices = sort_choices},
	{.short_name = 'n',
		.long_name = "limit",
		.type = OPTION_U64,
		.argument = "ROWS",
		.help = "Rows of each table. Default: 20; with --json and --csv all.",
		.value = &arguments.asked.limit,
		.minimum = 1,
		.maximum = 1e9},
	{.long_name = "all",
		.type = OPTION_FLAG,
		.help = "Print what did not change significantly, too.",
		.value = &arguments.asked.all},
	{.long_name = "per-second",
		.type = OPTION_FLAG,
		.help = "Compare times per second of recording: for recordings of different "
			"lengths.",
		.value = &arguments.asked.per_second},
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
			"more than this share of the time that --weight compares, or device time, "
			"of A: 5, or 5%.",
		.value = &arguments.fail_above,
		.minimum = 0,
		.maximum = 1e6},
	{.long_name = "hta-compatible",
		.type = OPTION_FLAG,
		.help = "Compare what Holistic Trace Analysis compares, the first profiler step of "
			"the first rank, by name alone.",
		.value = &arguments.asked.hta_compatible},
	{.long_name = "weight",
		.type = OPTION_CHOICE,
		.argument = "WHAT",
		.help = "Compare CPU time, cpu; what threads waited, wait, or both, wall; what "
			"devices worked, gpu, or were idle, gpu-idle; CPU and device time, cpu+gpu; "
			"or energy, the joules of what ran on processors and of device work.",
		.value = (void *)&arguments.asked.shown.weight,
		.choices = diff_weights},
	COLOUR_OPTION,
	SHOWN_OPTIONS(arguments.asked.shown),
	FILTER_OPTIONS(arguments.asked.selection),
	{0},
};

const struct command diff_command = {
	.name = "diff",
	.summary = "show what changed between two captures",
	.usage = "[options] A B",
	.description =
		"Compares two runs, A before and B after. Each is a recording, a trace of "
		"PyTorch's profiler (Kineto), a folder with those of several ranks, a capture "
		"that they were imported into, or astra-sim's log beside the trace that it was "
		"fed.\n\nSamples of two recordings are compared by "
		"function name and module file name; with --by line by file name and line, too, so "
		"that what an edit moved is two rows. \"Time\" is the change in CPU time, B - A; "
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
