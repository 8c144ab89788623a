/* SPDX-License-Identifier: Apache-2.0 */
/* How long the steps of programs took. */
#include <math.h>

#include "analyses/inference/table_joules.h"
#include "model/format.h"
#include "report/columns.h"
#include "report/energy/joules.h"
#include "report/join.h"
#include "report/sections.h"

#define SLOWEST_STEPS       100
#define SLOWEST_STEPS_SHOWN 5
#define MEDIAN_OF_TIMES     2 /* in the order of the columns */

/* Tables: a short one in the whole report, and all there is. */
enum { SHORT, LONG };
#define ONLY_SHORT (1U << SHORT)
#define ONLY_LONG  (1U << LONG)
#define BOTH       (ONLY_SHORT | ONLY_LONG)

static const struct report_column row_columns[] = {
	{.key = "count",
		.title = "Steps",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_MEAN,
		.views = BOTH},
	{.key = "cut_count",
		.title = "Cut off",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.views = ONLY_LONG,
		.help = "steps whose end was not seen: not in count"},
	{.key = "total_ns", .kind = REPORT_NS, .help = "of the count, as are the next five"},
	{.key = "mean_ns",
		.title = "Mean",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.views = ONLY_LONG},
	{.key = "minimum_ns",
		.title = "Min",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_LEAST,
		.views = BOTH},
	{.key = "p50_ns",
		.title = "Median",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true,
		.views = BOTH},
	REPORT_RANK_SPREAD(BOTH),
	{.key = "p95_ns",
		.title = "p95",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.views = ONLY_LONG},
	{.key = "maximum_ns",
		.title = "Max",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MOST,
		.views = BOTH},
	{.key = "steady_p50_ns",
		.title = "Steady",
		.kind = REPORT_NS,
		.views = ONLY_LONG,
		.hide = REPORT_HIDE_UNKNOWN,
		.join = REPORT_JOIN_MEAN,
		.help = "the median after warm-up; null: fewer than four steps ended"},
	{.key = "warm_up_count",
		.title = "Warm-up",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_MOST,
		.views = BOTH,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "odd_count",
		.title = "Odd",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.views = BOTH,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "samples", .kind = REPORT_COUNT, .help = "in all steps, as are the next three"},
	{.key = "cpu_time_ns",
		.title = "CPU time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.views = ONLY_LONG,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "device_busy_ns",
		.title = "Device",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.views = ONLY_LONG,
		.help = "of work that was launched in them"},
	REPORT_JOULES_COLUMNS("Per step", ONLY_LONG),
	{.title = "Slowest",
		.kind = REPORT_INTEGER,
		.join = REPORT_JOIN_OF_MOST,
		.views = ONLY_SHORT},
	{.key = "rank",
		.title = "Rank",
		.kind = REPORT_INTEGER,
		.join = REPORT_JOIN_RANK,
		.views = BOTH,
		.hide = REPORT_HIDE_SAME},
	{.key = "pid",
		.title = "PID",
		.kind = REPORT_INTEGER,
		.views = BOTH,
		.hide = REPORT_HIDE_UNKNOWN},
	{.key = "process",
		.title = "Process",
		.kind = REPORT_TEXT,
		.views = BOTH,
		.hide = REPORT_HIDE_EMPTY,
		.shrinks_to = 8},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.views = BOTH,
		.shrinks_to = 8},
};
static const struct report_shape row_shape = REPORT_SHAPE(row_columns);

static const struct report_column slow_columns[] = {
	{.key = "number", .title = "Step", .kind = REPORT_INTEGER},
	{.key = "begin_ns", .kind = REPORT_NS, .help = "since the recording began"},
	{.key = "duration_ns", .title = "Duration", .kind = REPORT_NS},
	{.key = "samples", .kind = REPORT_COUNT},
	{.title = "CPU time", .kind = REPORT_NS, .hide = REPORT_HIDE_EMPTY},
	{.key = "device_busy_ns", .title = "Device", .kind = REPORT_NS},
	REPORT_JOULES_MEMBER,
	{.key = "window",
		.title = "Window",
		.kind = REPORT_INTEGER,
		.hide = REPORT_HIDE_EMPTY,
		.help = "null: there are none"},
	{.key = "rank", .title = "Rank", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "pid", .title = "PID", .kind = REPORT_INTEGER},
	{.key = "name", .title = "Name", .kind = REPORT_TEXT, .shrinks_to = 8},
};
static const struct report_shape slow_shape = REPORT_SHAPE(slow_columns);

static const struct report_column list_columns[] = {
	{.key = "number", .title = "Step", .kind = REPORT_INTEGER, .join = REPORT_JOIN_KEY},
	{.key = "begin_ns",
		.title = "Begin",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_LEAST,
		.help = "since the recording began"},
	{.key = "duration_ns",
		.title = "Duration",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.is_lead = true},
	REPORT_RANK_SPREAD(0),
	{.key = "of_steady",
		.title = "Of median",
		.kind = REPORT_SHARE,
		.join = REPORT_JOIN_MEAN,
		.decimals = 1,
		.hide = REPORT_HIDE_UNKNOWN,
		.help = "its duration over the median of the steps after warm-up; null: fewer than "
			"four steps ended"},
	{.key = "samples", .kind = REPORT_COUNT},
	{.key = "cpu_time_ns",
		.title = "CPU time",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "device_busy_ns",
		.title = "Device",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_EMPTY,
		.help = "of work that was launched in it"},
	{.key = "rest_ns",
		.title = "Rest",
		.kind = REPORT_NS,
		.join = REPORT_JOIN_MEAN,
		.hide = REPORT_HIDE_EMPTY,
		.help = "the duration without device_busy_ns; null: there is no device work"},
	{.key = "works",
		.title = "Work",
		.kind = REPORT_COUNT,
		.join = REPORT_JOIN_SUM,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "is_cut", .kind = REPORT_FLAG},
	{.key = "mark",
		.title = "Mark",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_OF_MOST,
		.hide = REPORT_HIDE_EMPTY,
		.help = "warm-up, slow or fast; null: as usual"},
	{.title = "Where",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_OF_MOST,
		.hide = REPORT_HIDE_EMPTY},
	{.key = "more_device_ns",
		.kind = REPORT_NS,
		.help = "than the median of the steps after warm-up, as is the next"},
	{.key = "more_rest_ns", .kind = REPORT_NS},
	{.key = "rank",
		.title = "Rank",
		.kind = REPORT_INTEGER,
		.join = REPORT_JOIN_RANK,
		.hide = REPORT_HIDE_SAME},
	{.key = "pid", .title = "PID", .kind = REPORT_INTEGER, .hide = REPORT_HIDE_SAME},
	{.key = "name",
		.title = "Name",
		.kind = REPORT_TEXT,
		.join = REPORT_JOIN_KEY,
		.shrinks_to = 8,
		.hide = REPORT_HIDE_SAME},
};
static const struct report_shape list_shape = REPORT_SHAPE(list_columns);

static const struct report_column columns[] = {
	{.key = "rows",
		.kind = REPORT_ROWS,
		.shape = &row_shape,
		.help = "of each process and name of steps"},
	{.key = "slowest",
		.total = "slowest_total",
		.kind = REPORT_ROWS,
		.shape = &slow_shape,
		.help = "the steps that took longest"},
	{.key = "list",
		.total = "list_total",
		.kind = REPORT_ROWS,
		.shape = &list_shape,
		.help = "all steps, by process and name, then by time"},
};
static const struct report_shape shape = REPORT_SHAPE(columns);

/* The longest step of a row; NULL: it has none that ended. */
static const struct model_step *find_slowest(
	const struct step_use *use, const struct model *model, const struct step_row *row)
{
	array_foreach (&use->slowest, index) {
		const struct model_step *step = &model->steps.items[*index];

		if (step->process == row->process && step->name == row->name)
			return step;
	}
	return NULL;
}

static int add_row(struct result *result, const struct report_view *view,
	const struct step_row *row, struct energy_reasons *reasons)
{
	const struct model_process *process = &view->model->processes.items[row->process];
	const struct model_step *slowest = find_slowest(view->steps, view->model, row);
	const uint64_t times[] = {row->count ? row->total_ns / row->count : 0, row->minimum_ns,
		row->p50_ns, row->p95_ns, row->maximum_ns};
	struct joules joules;
	int r;

	if (view->span_energy) {
		r = joules_of_steps(view->span_energy, view->model, row, &joules);
		if (r < 0)
			return r;
		energy_reasons_add(reasons, &joules);
	}
	result_u64(result, row->count);
	result_u64(result, row->cut_count);
	result_u64(result, row->total_ns);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		result_known(result, row->count != 0, times[i]);
		if (i == MEDIAN_OF_TIMES)
			report_add_rank_spread(result);
	}
	result_known(result, row->steady_p50_ns != 0, row->steady_p50_ns);
	result_u64(result, row->warm_up_count);
	result_u64(result, row->odd_count);
	columns_add_samples(result, view->model, row->samples);
	columns_add_cpu_time(result, view->model, row->samples);
	result_u64(result, row->device_busy_ns);
	report_add_joules(result, view, view->span_energy ? &joules : NULL, (double)row->count);
	result_known(result, slowest != NULL, slowest ? slowest->number : 0);
	columns_add_rank(result, process);
	result_known(result, process->pid != 0, process->pid);
	result_text(result, process->name);
	result_text(result, row->name);
	return 0;
}

static void add_slow_step(struct result *result, const struct report_view *view, uint32_t index)
{
	const struct model *model = view->model;
	const struct model_step *step = &model->steps.items[index];
	const struct step_cost *cost = &view->steps->costs.items[index];
	const struct model_process *process = &model->processes.items[step->process];
	bool has_window = step->window != MODEL_NONE;
	struct joules joules;

	if (view->span_energy)
		joules = joules_of_step(view->span_energy, step);
	result_u64(result, step->number);
	result_u64(result, model_since_start_ns(model, step->start_ns));
	result_u64(result, step->end_ns - step->start_ns);
	columns_add_samples(result, model, cost->samples);
	columns_add_cpu_time(result, model, cost->samples);
	result_u64(result, cost->device_busy_ns);
	report_add_joules_member(result, view, view->span_energy ? &joules : NULL);
	result_known(
		result, has_window, has_window ? model->windows.items[step->window].number : 0);
	columns_add_rank(result, process);
	result_known(result, process->pid != 0, process->pid);
	result_text(result, step->name);
}

/* "device +3.10 ms", of a step that is marked: the larger change in its direction. */
static void add_where(struct result *result, const struct step_cost *cost, bool has_works)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	bool is_fast = cost->mark == STEP_FAST;
	double busy_ns = is_fast ? -cost->more_busy_ns : cost->more_busy_ns;
	double rest_ns = is_fast ? -cost->more_rest_ns : cost->more_rest_ns;

	if (!cost->mark || !has_works || fmax(busy_ns, rest_ns) <= 0) {
		result_null(result);
		return;
	}
	strbuf_addf(&text, "%s %s", busy_ns > rest_ns ? "device" : "rest", is_fast ? "-" : "+");
	format_duration(&text, (uint64_t)fmax(busy_ns, rest_ns));
	strbuf_inherit_status(&result->texts, &text);
	result_text(result, strbuf_cstr(&text));
}

static void add_listed_step(struct result *result, const struct report_view *view, uint32_t index)
{
	const struct model *model = view->model;
	const struct model_step *step = &model->steps.items[index];
	const struct step_cost *cost = &view->steps->costs.items[index];
	const struct model_process *process = &model->processes.items[step->process];
	uint64_t duration_ns = step->end_ns - step->start_ns;
	bool has_works = model_launched_count(model) != 0, is_compared = !isnan(cost->of_steady);

	result_u64(result, step->number);
	result_u64(result, model_since_start_ns(model, step->start_ns));
	result_u64(result, duration_ns);
	report_add_rank_spread(result);
	result_number(result, cost->of_steady);
	columns_add_samples(result, model, cost->samples);
	columns_add_cpu_time(result, model, cost->samples);
	result_u64(result, cost->device_busy_ns);
	result_known(result, has_works, duration_ns - MIN(duration_ns, cost->device_busy_ns));
	result_u64(result, cost->works);
	result_flag(result, step->is_cut);
	result_text(result, step_mark_name(cost->mark));
	add_where(result, cost, has_works);
	result_number(result, is_compared ? cost->more_busy_ns : (double)NAN);
	result_number(result, is_compared ? cost->more_rest_ns : (double)NAN);
	columns_add_rank(result, process);
	result_known(result, process->pid != 0, process->pid);
	result_text(result, step->name);
}

static uint32_t add_list(struct result *result, const struct report_input *input)
{
	size_t count = input->view->model->steps.count;
	uint32_t table = result_open(result);
	size_t wanted = report_rows_wanted(result, input, count);

	for (uint32_t i = 0; i < wanted; i++)
		add_listed_step(result, input->view, i);
	result_close(result);
	return table;
}

static int make(struct result *result, const struct report_input *input)
{
	const struct report_view *view = input->view;
	const struct step_use *use = view->steps;
	size_t slowest = MIN(use->slowest.count, input->limit ? input->limit : SLOWEST_STEPS);
	struct energy_reasons reasons = {0};
	uint32_t rows, slow, list;
	int r = 0;

	if (!input->is_alone && !report_is_own(input))
		return 0;
	if (!use->rows.count)
		return report_nothing(result, input,
			report_is_foreign(input)
				? "There are no steps: the trace has no annotations "
				  "ProfilerStep#N, which PyTorch's profiler makes when its step() "
				  "is called."
				: "There are no steps: no process that was recorded reported any; "
				  "sonde.step() and sonde_step() do.");
	result_open(result);
	rows = result_open(result);
	for (size_t i = 0; r == 0 && i < use->rows.count; i++)
		r = add_row(result, view, &use->rows.items[i], &reasons);
	if (r < 0)
		return r;
	result_close(result);
	slow = result_open(result);
	result_leave_out(result, use->slowest.count - slowest);
	for (size_t i = 0; i < slowest; i++)
		add_slow_step(result, view, use->slowest.items[i]);
	result_close(result);
	list = add_list(result, input);
	result_close(result);
	result_heading(result, "Steps");
	result_show(result, report_join_ranks(result, input, rows),
		&(struct result_show){.limit = report_rows_shown(input, 20, 8),
			.noun = "kinds of steps",
			.view = input->is_alone ? LONG : SHORT});
	if (!input->is_alone)
		return 0;
	energy_reasons_say(&reasons, view, result);
	if (slowest < 2)
		return 0;
	result_heading(result, "Slowest steps");
	result_show(result, slow, &(struct result_show){.limit = SLOWEST_STEPS_SHOWN});
	result_heading(result, "All steps");
	result_show(result, report_join_ranks(result, input, list),
		&(struct result_show){.limit = report_rows_shown(input, 50, 50), .noun = "steps"});
	return 0;
}

const struct report_section steps_section = {
	.value = {.key = "steps", .kind = REPORT_OBJECT, .shape = &shape},
	.by = "step",
	.summary = "how long the program's steps took",
	.needs = REPORT_NEEDS_PROGRAMS,
	.shows = SELECTION_STEPS,
	.make = make,
};
