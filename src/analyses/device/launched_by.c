/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/launched_by.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/cpu/charge.h"

struct total {
	uint32_t frame, name; /* either may be unknown: MODEL_NONE, 0 */
	int64_t time_ns;
};

struct totals {
	const struct trace_view *view;
	const uint32_t *parents;
	struct intern keys;
	ARRAY_OF(struct total) items;
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
	return 0;
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

int launched_by_find(struct launched_by *ret_most, const struct trace_view *view,
	const struct launched_work *wanted)
{
	struct totals totals = {.view = view, .parents = trace_parents(view->trace, false)};
	int r = totals.parents ? 0 : -ENOMEM;

	*ret_most = (struct launched_by){.frame = MODEL_NONE};
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		if (is_wanted(view, &view->works.items[i], wanted))
			r = add_work(&totals, &view->works.items[i]);
	}
	if (r == 0)
		find_most(&totals, ret_most);
	intern_done(&totals.keys);
	array_done(&totals.items);
	return r;
}
