/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of a recording and the steps in them, as the report shows them. */
#include "analyses/inference/table_joules.h"
#include "analyses/program/rank_use.h"
#include "base/escape.h"
#include "model/format.h"
#include "report/inference/energy_cells.h"
#include "report/view.h"

#define SLOWEST_STEPS 5

static uint64_t length_ns(const struct model_window *window)
{
	return window->end_ns - window->begin_ns;
}

static void add_steps(struct strbuf *text, const struct model_window *window)
{
	if (window->last_step > window->first_step)
		strbuf_addf(text, "steps %llu to %llu", (unsigned long long)window->first_step,
			(unsigned long long)window->last_step);
	else if (window->last_step == window->first_step)
		strbuf_addf(text, "step %llu", (unsigned long long)window->first_step);
}

/* "Window 2, opened by steps, closed by schedule, steps 2 to 4". */
static void describe_one(
	struct strbuf *text, const struct model *model, const struct model_window *window)
{
	strbuf_addf(text, "Window %u", window->number);
	if (model->whole_window_count > 1)
		strbuf_addf(text, " of %u", model->whole_window_count);
	if (*window->label) {
		strbuf_add(text, " (");
		escape_plain(text, window->label);
		strbuf_add_char(text, ')');
	}
	strbuf_addf(text, ", opened by %s, closed by %s",
		capture_window_trigger_name(window->opened_by),
		capture_window_reason_name(window->closed_by));
	if (window->last_step >= window->first_step) {
		strbuf_add(text, ", ");
		add_steps(text, window);
	}
}

void report_windows_line(const struct report_view *view)
{
	const struct model *model = view->model;
	_cleanup_strbuf_ struct strbuf text = {0};
	size_t count = model->windows.count;

	if (!count)
		return;
	if (count == 1)
		describe_one(&text, model, model->windows.items);
	else if (count == model->whole_window_count)
		strbuf_addf(&text, "%zu windows", count);
	else
		strbuf_addf(&text, "%zu of %u windows", count, model->whole_window_count);
	strbuf_add(&text, ": ");
	format_duration(&text, model_duration_ns(model));
	strbuf_add(&text, " of the ");
	format_duration(&text, model_elapsed_ns(model));
	strbuf_add(&text, " that the recording took; times and shares below are of these.");
	report_paragraph(view, strbuf_cstr(&text), 2);
}

static void add_window(struct table *table, const struct model *model,
	const struct model_window *window, const struct window_row *row)
{
	_cleanup_strbuf_ struct strbuf steps = {0};
	uint64_t start_ns = model_start_ns(model);

	table_cellf(table, "%u", window->number);
	table_duration(table, window->begin_ns > start_ns ? window->begin_ns - start_ns : 0);
	table_duration(table, length_ns(window));
	add_steps(&steps, window);
	table_cell(table, strbuf_cstr(&steps));
	table_count(table, row->samples);
	if (model->device_works.count && length_ns(window))
		table_cellf(table, "%.1f %%",
			100.0 * (double)row->device_busy_ns / (double)length_ns(window));
	else
		table_cell(table, "");
	table_cell(table, capture_window_trigger_name(window->opened_by));
	table_cell(table, capture_window_reason_name(window->closed_by));
	table_cell(table, window->label);
}

static void say_left_out(const struct report_view *view, size_t shown, size_t all)
{
	if (shown < all)
		strbuf_addf(view->out, "%zu more; --limit %zu shows them all.\n", all - shown, all);
}

int report_windows(const struct report_view *view, size_t limit)
{
	static const struct table_column columns[] = {
		{.title = "Window", .right = true},
		{.title = "Begin", .right = true},
		{.title = "Duration", .right = true},
		{.title = "Steps"},
		{.title = "CPU samples", .right = true},
		{.title = "Device busy", .right = true},
		{.title = "Opened by"},
		{.title = "Closed by"},
		{.title = "Label", .is_text = true, .shrinks_to = 8},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};
	const struct window_use *use = view->windows;
	size_t shown = MIN(limit, view->model->windows.count);
	int r;

	if (!use || !use->rows.count)
		return 0;
	report_heading(view, "Windows");
	for (size_t i = 0; i < shown; i++)
		add_window(
			&table, view->model, &view->model->windows.items[i], &use->rows.items[i]);
	r = table_print(&table, &view->terminal, view->out);
	say_left_out(view, shown, view->model->windows.count);
	return r;
}

static void add_brief_row(struct table *table, const struct model *model,
	const struct step_row *row, const struct model_step *slowest, bool has_ranks)
{
	const struct model_process *process = &model->processes.items[row->process];

	table_count(table, row->count);
	if (row->count) {
		table_duration(table, row->p50_ns);
		table_duration(table, row->minimum_ns);
		table_duration(table, row->maximum_ns);
	} else {
		for (int i = 0; i < 3; i++)
			table_cell(table, "");
	}
	if (slowest)
		table_cellf(table, "%llu", (unsigned long long)slowest->number);
	else
		table_cell(table, "");
	if (has_ranks)
		report_add_rank(table, process);
	table_cellf(table, "%u %s", process->pid, process->name);
	table_cell(table, row->name);
}

/* The longest whole step of a row; NULL: it has none. */
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

int report_steps_briefly(const struct report_view *view, size_t limit)
{
	static const struct table_column head[] = {
		{.title = "Steps", .right = true},
		{.title = "Median", .right = true},
		{.title = "Min", .right = true},
		{.title = "Max", .right = true},
		{.title = "Slowest", .right = true},
	};
	static const struct table_column tail[] = {
		{.title = "Process", .is_text = true, .shrinks_to = 8},
		{.title = "Name", .is_text = true, .shrinks_to = 8},
	};
	struct table_column columns[ARRAY_SIZE(head) + 1 + ARRAY_SIZE(tail)];
	_cleanup_table_ struct table table = {.columns = columns};
	bool has_ranks = model_has_ranks(view->model);
	const struct step_use *use = view->steps;
	size_t shown;
	int r;

	if (!use || !use->rows.count)
		return 0;
	shown = limit ? MIN(limit, use->rows.count) : use->rows.count;
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		columns[table.column_count++] = head[i];
	if (has_ranks)
		columns[table.column_count++] =
			(struct table_column){.title = "Rank", .right = true};
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++)
		columns[table.column_count++] = tail[i];
	report_heading(view, "Steps");
	for (size_t i = 0; i < shown; i++)
		add_brief_row(&table, view->model, &use->rows.items[i],
			find_slowest(use, view->model, &use->rows.items[i]), has_ranks);
	r = table_print(&table, &view->terminal, view->out);
	if (shown < use->rows.count)
		strbuf_addf(
			view->out, "%zu more; --by step shows them.\n", use->rows.count - shown);
	return r;
}

static int add_step_energy(struct table *table, const struct report_view *view,
	const struct step_row *row, struct energy_reasons *reasons)
{
	struct joules joules;
	int r = joules_of_steps(view->span_energy, view->model, row, &joules);

	if (r < 0)
		return r;
	table_joules(table, &joules);
	table_joules_per(table, &joules, (double)row->count);
	energy_reasons_add(reasons, &joules);
	return 0;
}

static void add_step_row(struct table *table, const struct model *model, const struct step_row *row)
{
	const uint64_t times[] = {row->count ? row->total_ns / row->count : 0, row->minimum_ns,
		row->p50_ns, row->p95_ns, row->maximum_ns};

	table_count(table, row->count);
	table_count(table, row->cut_count);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (row->count)
			table_duration(table, times[i]);
		else
			table_cell(table, "");
	}
	table_duration(table, row->samples * model_sample_weight_ns(model));
	table_duration(table, row->device_busy_ns);
}

static void add_step_names(
	struct table *table, const struct model *model, const struct step_row *row)
{
	const struct model_process *process = &model->processes.items[row->process];

	if (process->rank != MODEL_NONE)
		table_cellf(table, "%u %s (rank %u)", process->pid, process->name, process->rank);
	else
		table_cellf(table, "%u %s", process->pid, process->name);
	table_cell(table, row->name);
}

static void add_slow_step(
	struct table *table, const struct model *model, const struct step_use *use, uint32_t index)
{
	const struct model_step *step = &model->steps.items[index];
	const struct model_process *process = &model->processes.items[step->process];

	table_cellf(table, "%llu", (unsigned long long)step->number);
	table_duration(table, step->end_ns - step->start_ns);
	table_duration(table, use->costs.items[index].samples * model_sample_weight_ns(model));
	table_duration(table, use->costs.items[index].device_busy_ns);
	if (step->window == MODEL_NONE)
		table_cell(table, "");
	else
		table_cellf(table, "%u", model->windows.items[step->window].number);
	if (process->rank != MODEL_NONE)
		table_cellf(table, "%u (rank %u)", process->pid, process->rank);
	else
		table_cellf(table, "%u", process->pid);
	table_cell(table, step->name);
}

static int report_slowest(const struct report_view *view, const struct step_use *use)
{
	static const struct table_column columns[] = {
		{.title = "Step", .right = true},
		{.title = "Duration", .right = true},
		{.title = "CPU time", .right = true},
		{.title = "Device", .right = true},
		{.title = "Window", .right = true},
		{.title = "Process", .right = true},
		{.title = "Name", .is_text = true, .shrinks_to = 8},
	};
	_cleanup_table_ struct table table = {
		.columns = columns, .column_count = ARRAY_SIZE(columns)};

	if (use->slowest.count < 2)
		return 0;
	report_heading(view, "Slowest steps");
	for (size_t i = 0; i < MIN(use->slowest.count, (size_t)SLOWEST_STEPS); i++)
		add_slow_step(&table, view->model, use, use->slowest.items[i]);
	return table_print(&table, &view->terminal, view->out);
}

int report_steps(const struct report_view *view, size_t limit)
{
	static const struct table_column all[] = {
		{.title = "Steps", .right = true},
		{.title = "Cut off", .right = true},
		{.title = "Mean", .right = true},
		{.title = "Min", .right = true},
		{.title = "p50", .right = true},
		{.title = "p95", .right = true},
		{.title = "Max", .right = true},
		{.title = "CPU time", .right = true},
		{.title = "Device", .right = true},
		{.title = "Energy", .right = true},
		{.title = "Per step", .right = true},
		{.title = "Process", .is_text = true, .shrinks_to = 8},
		{.title = "Name", .is_text = true, .shrinks_to = 8},
	};
	struct table_column columns[ARRAY_SIZE(all)];
	_cleanup_table_ struct table table = {.columns = columns};
	const struct step_use *use = view->steps;
	struct energy_reasons reasons = {0};
	bool has_energy = report_has_energy(view);
	size_t shown;
	int r = 0;

	if (!use || !use->rows.count)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (has_energy || (i != 9 && i != 10))
			columns[table.column_count++] = all[i];
	}
	shown = MIN(limit, use->rows.count);
	report_heading(view, "Steps");
	for (size_t i = 0; r == 0 && i < shown; i++) {
		const struct step_row *row = &use->rows.items[i];

		add_step_row(&table, view->model, row);
		if (has_energy)
			r = add_step_energy(&table, view, row, &reasons);
		add_step_names(&table, view->model, row);
	}
	r = r ?: table_print(&table, &view->terminal, view->out);
	say_left_out(view, shown, use->rows.count);
	if (has_energy)
		energy_reasons_print(&reasons, view);
	return r ?: report_slowest(view, use);
}
