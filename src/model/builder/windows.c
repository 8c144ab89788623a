/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and steps: of a window written twice the last counts, and steps end where others begin.
 */
#include <stdlib.h>
#include <string.h>

#include "model/builder/internal.h"

void builder_windows_done(struct model_builder *builder)
{
	array_done(&builder->windows);
	array_done(&builder->steps);
}

/* Windows of one number that begin at other times are of other recordings. */
static bool is_same_window(const struct model_window *a, const struct capture_window *b)
{
	return a->number == b->number && a->begin_ns == b->begin_ns;
}

int builder_visit_window(void *context, const struct capture_window *window)
{
	struct model_builder *builder = context;
	struct model_window kept = {
		.number = window->number,
		.begin_ns = window->begin_ns,
		.end_ns = window->end_ns,
		.first_step = window->first_step,
		.last_step = window->last_step,
		.opened_by = (enum capture_window_trigger)window->opened_by,
		.closed_by = (enum capture_window_reason)window->closed_by,
		.leader_pid = window->leader_pid,
	};
	int r = builder_keep(builder, window->label, &kept.label);

	array_foreach (&builder->windows, earlier) {
		if (is_same_window(earlier, window)) {
			*earlier = kept;
			return r;
		}
	}
	return r ?: array_append(&builder->windows, kept);
}

int builder_visit_step(void *context, const struct capture_step *step)
{
	struct model_builder *builder = context;
	struct raw_step raw = {.step = {.start_ns = step->time_ns, .number = step->number},
		.pid = step->pid,
		.tid = step->tid};
	int r = builder_keep(builder, step->name, &raw.step.name);

	return r ?: array_append(&builder->steps, raw);
}

/* The last moment that anything is known of: where what did not end is cut. */
static uint64_t last_time_ns(const struct model_builder *builder)
{
	uint64_t last_ns = builder->model->stats.values.end_time_ns;

	array_foreach (&builder->samples, sample)
		last_ns = MAX(last_ns, sample->time_ns);
	array_foreach (&builder->device_works, work)
		last_ns = MAX(last_ns, work->end_ns);
	array_foreach (&builder->steps, raw)
		last_ns = MAX(last_ns, raw->step.start_ns);
	array_foreach (&builder->ranges, raw)
		last_ns = MAX(last_ns, raw->range.end_ns);
	return last_ns;
}

static int compare_windows(const void *left, const void *right)
{
	const struct model_window *a = left, *b = right;

	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

/* The same window as the last one, as another recording of the run has it. */
static bool is_of_other_rank(const struct model *model, const struct model_window *window)
{
	const struct model_window *last =
		model->windows.count ? &model->windows.items[model->windows.count - 1] : NULL;

	return last && model->recordings.count > 1 && window->number == last->number &&
	       window->begin_ns < last->end_ns;
}

/*
 * All windows, in order and disjoint: what is recorded twice, as where captures of one time were
 * joined, counts as time of the first.
 */
static int order_windows(struct model_builder *builder, uint64_t last_ns)
{
	struct model *model = builder->model;
	uint64_t end_ns = 0;
	int r = array_reserve(&model->windows, builder->windows.count);

	if (builder->windows.count)
		qsort(builder->windows.items, builder->windows.count,
			sizeof(*builder->windows.items), compare_windows);
	array_foreach (&builder->windows, raw) {
		struct model_window window = *raw;

		if (!window.end_ns) {
			window.end_ns = MAX(last_ns, window.begin_ns) + 1; /* that is in it */
			window.closed_by = CAPTURE_REASON_COLLECTOR_GONE;
		}
		if (is_of_other_rank(model, &window)) {
			struct model_window *known =
				&model->windows.items[model->windows.count - 1];

			known->end_ns = end_ns = MAX(known->end_ns, window.end_ns);
			continue;
		}
		window.begin_ns = MAX(window.begin_ns, end_ns);
		window.end_ns = end_ns = MAX(window.end_ns, window.begin_ns);
		r = r ?: array_append(&model->windows, window);
	}
	return r;
}

/* Keeps those that were chosen. */
static void choose_windows(struct model_builder *builder)
{
	struct model *model = builder->model;
	uint64_t before_ns = 0;
	size_t kept = 0;

	model->whole_window_count = (uint32_t)model->windows.count;
	model->windows_end_ns =
		model->windows.count ? model->windows.items[model->windows.count - 1].end_ns : 0;
	array_foreach (&model->windows, window) {
		if (!window_choice_has(&builder->window_choice, window->number))
			continue;
		window->before_ns = before_ns;
		before_ns += window->end_ns - window->begin_ns;
		model->windows.items[kept++] = *window;
	}
	model->windows.count = kept;
}

bool builder_is_chosen(const struct model_builder *builder, uint64_t time_ns)
{
	return !builder->window_choice.count ||
	       model_window_at(builder->model, time_ns) != MODEL_NONE;
}

static int compare_steps(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->name != b->name)
		return strcmp(a->name, b->name);
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Where it is not known whose steps open a window: whose step began with it. */
static void find_leaders(struct model_builder *builder)
{
	array_foreach (&builder->steps, raw) {
		uint32_t index = model_window_at(builder->model, raw->step.start_ns);
		struct model_window *window;

		if (index == MODEL_NONE)
			continue;
		window = &builder->model->windows.items[index];
		if (!window->leader_pid && raw->step.start_ns == window->begin_ns &&
			raw->step.number == window->first_step)
			window->leader_pid = raw->pid;
	}
}

/* Was the window closed by the end of a step of this process? */
static bool ends_with_step(
	const struct model *model, const struct model_window *window, const struct model_step *step)
{
	return (window->closed_by == CAPTURE_REASON_SCHEDULE ||
		       window->closed_by == CAPTURE_REASON_MAX_STEPS) &&
	       model->processes.items[step->process].pid == window->leader_pid;
}

/* `next_ns`: when the process's next step began; UINT64_MAX: there was none. */
static void end_step(
	const struct model *model, struct model_step *step, uint64_t next_ns, uint64_t last_ns)
{
	const struct model_window *window;

	step->window = model_window_at(model, step->start_ns);
	if (step->window == MODEL_NONE) {
		step->is_cut = next_ns == UINT64_MAX;
		step->end_ns = step->is_cut ? MAX(last_ns, step->start_ns) : next_ns;
		return;
	}
	window = &model->windows.items[step->window];
	step->is_cut = next_ns > window->end_ns && !ends_with_step(model, window, step);
	step->end_ns = MIN(next_ns, window->end_ns);
}

static void end_steps(struct model *model, uint64_t last_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->steps.count; i++) {
		struct model_step step = model->steps.items[i];
		const struct model_step *next =
			i + 1 < model->steps.count ? &model->steps.items[i + 1] : NULL;
		bool follows = next && next->process == step.process && next->name == step.name;

		end_step(model, &step, follows ? next->start_ns : UINT64_MAX, last_ns);
		if (step.window != MODEL_NONE || !model->whole_window_count)
			model->steps.items[kept++] = step;
	}
	model->steps.count = kept;
}

static int resolve_steps(struct model_builder *builder, uint64_t last_ns)
{
	struct model *model = builder->model;
	int r = array_reserve(&model->steps, builder->steps.count);

	for (size_t i = 0; r == 0 && i < builder->steps.count; i++) {
		const struct raw_step *raw = &builder->steps.items[i];
		struct model_step step = raw->step;

		r = builder_process_at(builder, raw->pid, step.start_ns, &step.process);
		r = r ?: builder_thread(builder, step.process, raw->tid, &step.thread);
		r = r ?: array_append(&model->steps, step);
	}
	if (r < 0 || !model->steps.count)
		return r;
	qsort(model->steps.items, model->steps.count, sizeof(*model->steps.items), compare_steps);
	end_steps(model, last_ns);
	return 0;
}

int builder_resolve_windows(struct model_builder *builder)
{
	uint64_t last_ns = last_time_ns(builder);
	int r = order_windows(builder, last_ns);

	if (r < 0)
		return r;
	choose_windows(builder);
	find_leaders(builder);
	return resolve_steps(builder, last_ns);
}
