/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections: samples by one dimension, or in JSON by each, and processes. breakdown_init() counts,
 * with the samples as --weight weighs them; the columns and the rows of a dimension are in
 * dimensions.c.
 */
#include <errno.h>
#include <string.h>

#include "analyses/cpu/thread_names.h"
#include "model/format.h"
#include "report/cpu/dimensions.h"
#include "report/sections.h"
#include "report/view.h"

#define STACKS_LIMIT 100 /* of JSON, without --limit */

#define TABLE(dimension, name)                                                                     \
	[dimension] = {                                                                            \
		.key = (name),                                                                     \
		.kind = REPORT_OBJECT,                                                             \
		.shape = &report_table_shapes[dimension],                                          \
	}
static const struct report_column table_columns[BREAKDOWN_MAX] = {
	TABLE(BREAKDOWN_FUNCTION, "function"),
	TABLE(BREAKDOWN_MODULE, "module"),
	TABLE(BREAKDOWN_LINE, "line"),
	TABLE(BREAKDOWN_PROCESS, "process"),
	TABLE(BREAKDOWN_THREAD, "thread"),
	TABLE(BREAKDOWN_CPU, "cpu"),
	TABLE(BREAKDOWN_CGROUP, "cgroup"),
	TABLE(BREAKDOWN_STACK, "stack"),
	TABLE(BREAKDOWN_CLASS, "class"),
	TABLE(BREAKDOWN_GIL, "gil"),
	TABLE(BREAKDOWN_RANK, "rank"),
};
static const struct report_shape table_shape = REPORT_SHAPE(table_columns);

static const struct report_column columns[] = {
	{.key = "tables_weight", .kind = REPORT_TEXT, .help = "what tables are weighed by"},
	{.key = "tables",
		.kind = REPORT_OBJECT,
		.shape = &table_shape,
		.help = "samples by each dimension; with --by the others are null"},
	{.key = "process_groups",
		.kind = REPORT_OBJECT,
		.shape = &report_table_shapes[BREAKDOWN_PROCESS],
		.help = "processes, with one row for short ones of one name"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* ---- the terminal ---- */

static const struct {
	const char *heading, *noun;
} titles[BREAKDOWN_MAX] = {
	[BREAKDOWN_FUNCTION] = {"Hottest functions", "functions"},
	[BREAKDOWN_MODULE] = {"Modules", "modules"},
	[BREAKDOWN_LINE] = {"Hottest lines", "lines"},
	[BREAKDOWN_PROCESS] = {"Processes", "processes"},
	[BREAKDOWN_THREAD] = {"Threads", "threads"},
	[BREAKDOWN_CPU] = {"CPUs", "CPUs"},
	[BREAKDOWN_CGROUP] = {"Control groups", "control groups"},
	[BREAKDOWN_CLASS] = {"Whose code", "classes"},
	[BREAKDOWN_GIL] = {"Python's global interpreter lock", "states"},
	[BREAKDOWN_RANK] = {"Ranks", "ranks"},
};

/* What ± is, and why some of the rows shown have none. */
static void say_uncertainty(struct result *result, const struct model *model,
	const struct breakdown *breakdown, size_t shown)
{
	static const char *const sentences[ENERGY_DOUBT_MAX] = {
		[ENERGY_DOUBT_SHORT] = "too short for the sensor, or too few samples",
		[ENERGY_DOUBT_SHARED] = "work of a GPU that was split by time",
		[ENERGY_DOUBT_SENSOR] = "the sensor's error is not known",
	};
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t counts[ENERGY_DOUBT_MAX] = {0};

	if (!model->counts_energy)
		return;
	for (size_t i = 0; i < shown; i++)
		counts[breakdown_uncertainty(breakdown, model, &breakdown->rows.items[i], true)
				.doubt]++;
	strbuf_add(&text, "\xc2\xb1: what the sensor, sampling and the powers of kernels leave "
			  "open, one standard uncertainty.");
	for (unsigned i = 0; i < ENERGY_DOUBT_MAX; i++) {
		if (counts[i] && sentences[i])
			strbuf_addf(&text, " Not known in %zu %s: %s (%s).", counts[i],
				counts[i] == 1 ? "row" : "rows", sentences[i],
				energy_doubt_name((enum energy_doubt)i));
	}
	result_say(result, 0, &text);
}

static void show(struct result *result, const struct report_view *view,
	const struct breakdown *breakdown, uint32_t table, size_t shown)
{
	uint64_t samples = 0;
	size_t merged = 0;

	for (size_t i = shown; i < breakdown->rows.count; i++) {
		samples += breakdown->rows.items[i].self_samples;
		merged += breakdown->rows.items[i].merged;
	}
	report_weight_heading(result, view, titles[breakdown->by].heading);
	result_show(result, table,
		&(struct result_show){
			.limit = shown,
			.left_out = merged,
			.rest_share = (double)samples / (double)breakdown->samples,
			.noun = titles[breakdown->by].noun,
		});
	say_uncertainty(result, view->model, breakdown, shown);
}

/* Of the whole machine: what recording took, wherever its row is. */
static void say_sonde(
	struct result *result, const struct report_view *view, const struct breakdown *breakdown)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t samples = 0;

	if (!view->model->session.whole_machine)
		return;
	array_foreach (&breakdown->rows, row) {
		if (strcmp(view->model->processes.items[row->key].name, "sonde") == 0)
			samples += row->self_samples;
	}
	strbuf_addf(&text, "sonde itself: %.2f %%, ",
		100.0 * (double)samples / (double)breakdown->samples);
	format_weight(&text, view->model, samples);
	strbuf_add(&text, " of the above");
	result_say(result, 0, &text);
}

/* ---- tables ---- */

/* What a dimension has besides its rows. */
static int add_rest(struct result *result, const struct report_input *input,
	const struct breakdown *breakdown, size_t shown)
{
	const struct report_view *view = input->view;
	const char *missing;

	switch (breakdown->by) {
	case BREAKDOWN_LINE:
		return report_add_source(result, input, breakdown);
	case BREAKDOWN_STACK:
		return report_add_stacks(result, input, breakdown, shown);
	case BREAKDOWN_THREAD:
		missing = thread_names_missing(view->model);
		result_text(result, missing);
		if (missing)
			result_sentence(result, 0, missing);
		return 0;
	case BREAKDOWN_PROCESS:
		say_sonde(result, view, breakdown);
		return 0;
	default:
		return 0;
	}
}

/* How many rows to fill in. */
static size_t filled_rows(
	const struct report_input *input, const struct breakdown *breakdown, size_t shown)
{
	if (!input->is_json && breakdown->by == BREAKDOWN_STACK)
		return 0; /* stacks have their own table */
	if (!input->is_json)
		return MIN(report_rows_of_page(input, shown), breakdown->rows.count);
	if (breakdown->by == BREAKDOWN_STACK && !input->limit)
		return MIN((size_t)STACKS_LIMIT, breakdown->rows.count);
	return input->limit ? MIN(input->limit, breakdown->rows.count) : breakdown->rows.count;
}

static int add_breakdown(struct result *result, const struct report_input *input,
	const struct breakdown *breakdown, size_t limit)
{
	const struct report_view *view = input->view;
	size_t shown = MIN(limit, breakdown->rows.count);
	uint32_t table;
	int r;

	result_open(result);
	table = report_add_breakdown(
		result, view->model, breakdown, 0, filled_rows(input, breakdown, shown));
	if (!input->is_json && breakdown->by != BREAKDOWN_STACK)
		show(result, view, breakdown, table, shown);
	r = add_rest(result, input, breakdown, shown);
	if (r < 0)
		return r;
	result_close(result);
	return 0;
}

/* `merges`: short processes of one name are one row. */
static int add_table(struct result *result, const struct report_input *input, enum breakdown_by by,
	bool merges, size_t limit)
{
	const struct report_view *view = input->view;
	_cleanup_breakdown_ struct breakdown breakdown = {0};
	int r = breakdown_init(&breakdown, view->model, view->selected, by, view->sort);

	if (r == 0 && merges && by == BREAKDOWN_PROCESS)
		r = breakdown_merge_processes(&breakdown, view->model);
	return r < 0 ? r : add_breakdown(result, input, &breakdown, limit);
}

static int add_tables(struct result *result, const struct report_input *input)
{
	bool is_every = input->is_json && !input->is_alone;
	size_t limit = report_rows_shown(input, 20, 20);
	int r = 0;

	result_open(result);
	for (int by = 0; by < BREAKDOWN_MAX; by++) {
		if (is_every || input->view->by == (enum breakdown_by)by)
			r = add_table(result, input, (enum breakdown_by)by, !input->is_json, limit);
		else
			result_null(result);
		if (r < 0)
			return r;
	}
	result_close(result);
	return 0;
}

/* ---- the sections ---- */

static const char *why_no_samples(const struct report_view *view)
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

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	int r;

	if (!input->is_json && !view->selected->count) {
		result_sentence(result, 0, why_no_samples(view));
		return 0;
	}
	result_open(result);
	result_text(result, model_weight_to_string(view->weight));
	r = add_tables(result, input);
	if (r < 0)
		return r;
	if (input->is_json && (!input->is_alone || view->by == BREAKDOWN_PROCESS))
		r = add_table(result, input, BREAKDOWN_PROCESS, true, 0);
	else
		result_null(result);
	if (r < 0)
		return r;
	result_close(result);
	return 0;
}

static const struct report_name names[] = {
	{"module", "program files"},
	{"line", "lines, with their source"},
	{"process", "processes"},
	{"thread", "threads"},
	{"cpu", "CPUs", REPORT_NEEDS_RECORDING},
	{"cgroup", "control groups", REPORT_NEEDS_RECORDING},
	{"stack", "the hottest path and the hottest stacks"},
	{"class", "whose code it is"},
	{"gil", "Python's interpreter lock, and who held it", REPORT_NEEDS_RECORDING},
	{"rank", "the ranks of a job, and which is slowest", REPORT_NEEDS_RECORDING},
	{0},
};

const struct report_section tables_section = {
	.value = {.title = "tables", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "function",
	.also = names,
	.summary = "the hottest functions",
	.needs = REPORT_NEEDS_SAMPLES,
	.is_extra_of_foreign = true,
	.shows = SELECTION_SAMPLES,
	.is_weighed = true,
	.make = make,
};

/* JSON has these with the other tables. */
static const struct report_column program_columns[] = {
	{.kind = REPORT_OBJECT, .shape = &report_table_shapes[BREAKDOWN_PROCESS]},
	{.kind = REPORT_OBJECT, .shape = &report_table_shapes[BREAKDOWN_THREAD]},
};
static const struct report_shape program_shape = REPORT_SHAPE(program_columns);

static int make_programs(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	size_t limit = report_rows_shown(input, 8, 8);
	int r;

	if (input->is_json || !view->selected->count)
		return 0;
	result_open(result);
	r = add_table(result, input, BREAKDOWN_PROCESS, true, limit);
	if (r == 0 && view->model->threads.count > view->model->processes.count)
		r = add_table(result, input, BREAKDOWN_THREAD, true, limit);
	else
		result_null(result);
	if (r < 0)
		return r;
	result_close(result);
	return 0;
}

const struct report_section programs_section = {
	.value = {.title = "programs", .kind = REPORT_OBJECT, .shape = &program_shape},
	.needs = REPORT_NEEDS_RECORDING,
	.is_weighed = true,
	.make = make_programs,
};
