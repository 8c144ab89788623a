/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/text.h"
#include "model/windows.h"

/* Signed and compared as such: the times of damaged files may wrap. */
static int64_t common_ns(const struct trace_view *view, int64_t ns)
{
	return (int64_t)((uint64_t)ns + view->trace->base_ns);
}

static uint64_t since_ns(const struct trace_view *view, int64_t ns, uint64_t first_ns)
{
	int64_t at_ns = common_ns(view, ns);

	return at_ns > (int64_t)first_ns ? (uint64_t)at_ns - first_ns : 0;
}

uint64_t trace_windows_first_ns(const struct trace_view *views, size_t count)
{
	int64_t first_ns = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct trace_view *view = &views[i];

		if (view->trace->is_narrowed)
			first_ns = MIN(first_ns, common_ns(view, view->trace->first_row_ns));
		array_foreach (&view->trace->events, event) {
			int64_t ns = common_ns(view, trace_view_start_ns(view, event));

			if (!event->is_capture)
				first_ns = MIN(first_ns, ns);
		}
	}
	return (uint64_t)first_ns;
}

/* ---- the rows ---- */

static bool is_recorded(const struct trace_view *view, const struct trace_event *event)
{
	return strcmp(trace_text(view->trace, event->category_name), TRACE_WINDOW_CATEGORY) == 0;
}

static bool is_profiler(const struct trace_view *view, const struct trace_event *event)
{
	return strcmp(trace_text(view->trace, event->category_name), TRACE_PROFILER_CATEGORY) ==
		       0 &&
	       begins_with(trace_text(view->trace, event->name), "PyTorch Profiler (");
}

struct members {
	struct model_window *window;
	const char *name; /* of the row */
};

static int take_member(void *userdata, const struct json_text *key, const struct json_text *value)
{
	const struct json_text text = json_text_inside(value);
	const struct members *members = userdata;
	struct model_window *window = members->window;
	uint64_t number = 0;

	if (json_text_equals(key, "label")) {
		window->label = members->name;
		return 0;
	}
	model_window_take_name(window, key, &text);
	if (json_text_u64(&text, &number) < 0)
		return 0;
	if (json_text_equals(key, "number"))
		window->number = (uint32_t)MIN(number, (uint64_t)UINT32_MAX);
	else if (json_text_equals(key, "leader_pid"))
		window->leader_pid = (uint32_t)MIN(number, (uint64_t)UINT32_MAX);
	else if (json_text_equals(key, "first_step"))
		window->first_step = number;
	else if (json_text_equals(key, "last_step"))
		window->last_step = number;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int read_members(
	struct model_window *window, const struct trace_view *view, const struct trace_event *event)
{
	const struct trace_op *op = trace_op(view->trace, event);
	struct members members = {window, trace_text(view->trace, event->name)};

	return op ? trace_others_each(view->trace, op->others, take_member, &members) : 0;
}

static int add_window(struct trace_windows *windows, const struct trace_view *view,
	const struct trace_event *event, uint64_t first_ns)
{
	struct model_window window = {
		.begin_ns = since_ns(view, trace_view_start_ns(view, event), first_ns),
		.end_ns = since_ns(view, trace_view_end_ns(view, event), first_ns),
		.first_step = 1,
		.label = windows->is_recorded ? "" : trace_text(view->trace, event->name),
	};
	int r = windows->is_recorded ? read_members(&window, view, event) : 0;

	return r < 0 ? r : array_append(&windows->windows, window);
}

static int compare(const void *left, const void *right)
{
	const struct model_window *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static void put_in_order(struct trace_windows *windows)
{
	size_t kept = 0;

	if (windows->windows.count)
		qsort(windows->windows.items, windows->windows.count,
			sizeof(*windows->windows.items), compare);
	array_foreach (&windows->windows, window) {
		if (window->end_ns < window->begin_ns ||
			(kept && window->begin_ns < windows->windows.items[kept - 1].end_ns))
			continue;
		windows->windows.items[kept++] = *window;
	}
	windows->windows.count = kept;
	for (size_t i = 0; i < kept; i++) {
		if (!windows->windows.items[i].number)
			windows->windows.items[i].number = (uint32_t)i + 1;
	}
}

/* Rows of one kind: a file that has sonde's has its profiler's as rows of the program. */
static int find_windows(
	struct trace_windows *windows, const struct trace_view *view, uint64_t first_ns)
{
	int r = 0;

	array_foreach (&view->trace->events, event) {
		if (r < 0 || event->category != TRACE_OTHER ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event))
			continue;
		if (windows->is_recorded ? is_recorded(view, event) : is_profiler(view, event))
			r = add_window(windows, view, event, first_ns);
	}
	put_in_order(windows);
	return r;
}

/* ---- what happened in them ---- */

static void add_step(struct trace_windows *windows, uint32_t index, uint64_t number)
{
	struct model_window *window = &windows->windows.items[index];
	bool is_first = !windows->use.rows.items[index].steps++;

	if (windows->is_recorded)
		return;
	window->first_step = is_first ? number : MIN(window->first_step, number);
	window->last_step = is_first ? number : MAX(window->last_step, number);
}

static void add_steps(
	struct trace_windows *windows, const struct trace_view *view, uint64_t first_ns)
{
	array_foreach (&view->trace->events, event) {
		uint64_t number;
		uint32_t index;

		if (event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event) ||
			!trace_step_number(trace_text(view->trace, event->name), &number))
			continue;
		index = windows_at(windows->windows.items, windows->windows.count,
			since_ns(view, trace_view_start_ns(view, event), first_ns));
		if (index != MODEL_NONE)
			add_step(windows, index, number);
	}
}

int trace_windows_init(
	struct trace_windows *windows, const struct trace_view *view, uint64_t first_ns)
{
	uint64_t busy_until_ns = 0;
	int r;

	*windows = (struct trace_windows){.is_recorded = true};
	r = find_windows(windows, view, first_ns);
	if (r == 0 && !windows->windows.count) {
		windows->is_recorded = false;
		r = find_windows(windows, view, first_ns);
	}
	for (size_t i = 0; r == 0 && i < windows->windows.count; i++)
		r = array_append(&windows->use.rows, (struct window_row){0});
	if (r < 0) {
		trace_windows_done(windows);
		return r;
	}
	add_steps(windows, view, first_ns);
	array_foreach (&view->works, work) {
		if (!work->is_wait)
			window_use_add_work(&windows->use, windows->windows.items,
				since_ns(view, work->start_ns, first_ns),
				since_ns(view, work->end_ns, first_ns), &busy_until_ns);
	}
	return 0;
}

void trace_windows_done(struct trace_windows *windows)
{
	array_done(&windows->windows);
	window_use_done(&windows->use);
}
