/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/hta/diff.h"

#include <errno.h>
#include <string.h>

struct first_step {
	const struct trace_view *view;
	uint64_t number;
	bool is_known;
	int64_t start_ns, end_ns;
};

static struct first_step find_first_step(const struct trace_view *view)
{
	struct first_step step = {.view = view};

	array_foreach (&view->trace->events, event) {
		uint64_t number;

		if (event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION ||
			!trace_step_number(trace_text(view->trace, event->name), &number) ||
			(step.is_known && number > step.number))
			continue;
		step.is_known = true;
		step.number = number;
		step.start_ns = trace_view_start_ns(view, event);
		step.end_ns = trace_view_end_ns(view, event);
	}
	return step;
}

static bool is_in_step(const struct first_step *step, const struct trace_event *event)
{
	const struct trace *trace = step->view->trace;
	const struct trace_work *work = trace_work(trace, event);
	int64_t start_ns;

	if (work && work->stream != TRACE_NO_NUMBER && work->stream != -1) {
		uint32_t launch = trace_launch(trace, event);

		if (work->stream < 1 || launch == MODEL_NONE)
			return false;
		event = &trace->events.items[launch];
	}
	start_ns = trace_view_start_ns(step->view, event);
	return start_ns >= step->start_ns && start_ns < step->end_ns;
}

/* HTA compares all steps' rows before it leaves out any. */
static int add_view(struct row_diff *diff, int side, const struct trace_view *view)
{
	const struct first_step step = find_first_step(view);
	struct row_diff_adding adding;
	int r;

	if (!step.is_known)
		return -ENODATA;
	r = row_diff_begin(&adding, diff, side, view);
	array_foreach (&view->trace->events, event) {
		if (r == 0 && event->duration_ns != TRACE_NO_DURATION &&
			strcmp(trace_text(view->trace, event->category_name), "Trace") != 0 &&
			is_in_step(&step, event))
			r = row_diff_add(&adding, event, ROW_DIFF_ANY);
	}
	row_diff_end(&adding);
	return r;
}

int hta_diff_init(struct row_diff *diff, const struct trace_view *const sides[2])
{
	int r = 0;

	*diff = (struct row_diff){0};
	for (int side = 0; r == 0 && side < 2; side++) {
		diff->sides[side].steps = sides[side]->steps;
		r = add_view(diff, side, sides[side]);
	}
	if (r == 0)
		r = row_diff_finish(diff);
	if (r < 0)
		row_diff_done(diff);
	return r;
}

const char *hta_diff_change_name(const struct row_diff_row *row)
{
	uint64_t before = row->sides[0].count, after = row->sides[1].count;

	if (!before || !after)
		return before ? "deleted" : "added";
	if (before == after)
		return "unchanged";
	return after > before ? "increased" : "decreased";
}
