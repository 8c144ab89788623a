/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/launched_by.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/cpu/charge.h"
#include "analyses/program/trace_frames.h"

struct total {
	uint32_t frame, name; /* either may be unknown: MODEL_NONE, 0 */
	int64_t time_ns;
};

struct totals {
	const struct trace_view *view;
	const uint32_t *parents;
	struct intern keys;
	ARRAY_OF(struct total) items;
	struct map_u64 pythons;    /* by name: time */
	struct map_u64 own_python; /* by name: is it the user's own? */
};

static bool is_wanted(const struct trace_view *view, const struct trace_view_work *work,
	const struct launched_work *wanted)
{
	const struct trace_event *call;

	if (!(wanted->kinds & 1U << work->kind))
		return false;
	if (!wanted->short_only)
		return true;
	if (work->launch == MODEL_NONE)
		return false;
	call = &view->trace->events.items[work->launch];
	return work->end_ns - work->start_ns < call->duration_ns;
}

static uint32_t frame_of(const struct trace_view *view, const struct trace_view_work *work)
{
	const struct model *model = view->trace->recorded;
	const struct trace_work *detail =
		trace_work(view->trace, &view->trace->events.items[work->row]);

	if (!model || !detail || !detail->recorded)
		return MODEL_NONE;
	return charge_frame(model, model->device_works.items[detail->recorded - 1].stack);
}

static uint32_t operator_of(const struct totals *totals, const struct trace_view_work *work)
{
	uint32_t row = work->launch;

	while (row != MODEL_NONE) {
		const struct trace_event *event = &totals->view->trace->events.items[row];

		if (event->category == TRACE_CPU_OP || event->category == TRACE_USER_ANNOTATION)
			return event->name;
		row = totals->parents[row];
	}
	return 0;
}

static int is_own_python(struct totals *totals, uint32_t name, uint64_t *ret_is)
{
	if (map_u64_get(&totals->own_python, name, ret_is))
		return 0;
	*ret_is = trace_frames_is_own_python(trace_text(totals->view->trace, name));
	return map_u64_set(&totals->own_python, name, *ret_is);
}

/* The innermost function of the user's own around the launch. */
static int add_python(struct totals *totals, const struct trace_view_work *work, int64_t time_ns)
{
	const struct trace_event *events = totals->view->trace->events.items;
	uint64_t is_own = 0, sum_ns = 0;
	int r = 0;

	for (uint32_t row = work->launch; row != MODEL_NONE; row = totals->parents[row]) {
		if (events[row].category != TRACE_PYTHON_FUNCTION)
			continue;
		r = is_own_python(totals, events[row].name, &is_own);
		if (r < 0)
			return r;
		if (!is_own)
			continue;
		map_u64_get(&totals->pythons, events[row].name, &sum_ns);
		return map_u64_set(&totals->pythons, events[row].name, sum_ns + (uint64_t)time_ns);
	}
	return 0;
}

static int add_work(struct totals *totals, const struct trace_view_work *work)
{
	struct total total = {.frame = frame_of(totals->view, work)};
	const struct model *model = totals->view->trace->recorded;
	struct charge_key key = {0};
	uint32_t id;
	int r;

	if (total.frame != MODEL_NONE)
		key = charge_key(model, total.frame, 0);
	else
		total.name = operator_of(totals, work);
	if (total.frame == MODEL_NONE)
		key.reason = 1 + (uint64_t)total.name;
	r = intern_add(&totals->keys, &key, sizeof(key), &id);
	if (r > 0)
		r = array_append(&totals->items, total);
	if (r < 0)
		return r;
	totals->items.items[id].time_ns += work->end_ns - work->start_ns;
	return add_python(totals, work, trace_view_work_ns(work));
}

static void find_most(const struct totals *totals, struct launched_by *most)
{
	array_foreach (&totals->items, total) {
		most->all_ns += total->time_ns;
		if (total->time_ns <= most->time_ns || (total->frame == MODEL_NONE && !total->name))
			continue;
		most->time_ns = total->time_ns;
		most->frame = total->frame;
		most->name = total->name ? trace_text(totals->view->trace, total->name) : NULL;
	}
}

static void find_most_python(const struct totals *totals, struct launched_by *most)
{
	uint64_t name, time_ns;
	size_t position = 0;

	while (map_u64_next(&totals->pythons, &position, &name, &time_ns)) {
		const char *text = trace_text(totals->view->trace, (uint32_t)name);

		if ((int64_t)time_ns < most->python_ns ||
			((int64_t)time_ns == most->python_ns && most->python &&
				strcmp(text, most->python) > 0))
			continue;
		most->python = text;
		most->python_ns = (int64_t)time_ns;
	}
}

int launched_by_find(struct launched_by *ret_most, const struct trace_view *view,
	const struct launched_work *wanted)
{
	struct totals totals = {.view = view, .parents = trace_parents(view->trace, true)};
	int r = totals.parents ? 0 : -ENOMEM;

	*ret_most = (struct launched_by){.frame = MODEL_NONE};
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		if (is_wanted(view, &view->works.items[i], wanted))
			r = add_work(&totals, &view->works.items[i]);
	}
	if (r == 0) {
		find_most(&totals, ret_most);
		find_most_python(&totals, ret_most);
	}
	intern_done(&totals.keys);
	array_done(&totals.items);
	map_u64_done(&totals.pythons);
	map_u64_done(&totals.own_python);
	return r;
}
