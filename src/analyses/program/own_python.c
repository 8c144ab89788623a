/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/own_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/trace_frames.h"

struct adding {
	struct own_pythons *pythons;
	const struct trace_view *view;
	const uint32_t *parents;
	uint32_t *known; /* by name: in pythons->items, + 2; 1: not the user's own; 0: not known yet
			  */
};

/* Returns the function's index + 2, 1 where it is not the user's own, or -ENOMEM. */
static int64_t find(struct adding *adding, const struct trace_event *event)
{
	uint32_t *known = &adding->known[event->name];
	const char *name = trace_text(adding->view->trace, event->name);
	uint32_t index;
	int r;

	if (event->category != TRACE_PYTHON_FUNCTION)
		return 1;
	if (*known)
		return *known;
	*known = 1;
	if (!trace_frames_is_own_python(name))
		return 1;
	r = intern_add(&adding->pythons->names, name, strlen(name), &index);
	if (r > 0)
		r = array_append(&adding->pythons->items, (struct own_python){.name = name});
	if (r < 0)
		return r;
	*known = index + 2;
	return *known;
}

static void add_time(struct adding *adding, int64_t known, int64_t time_ns)
{
	struct own_python *python = &adding->pythons->items.items[known - 2];

	python->time_ns = trace_add_ns(python->time_ns, time_ns);
}

/* The row's time is its function's, and no longer that of the one which called it. */
static int64_t add_row(struct adding *adding, uint32_t row)
{
	const struct trace_event *events = adding->view->trace->events.items;
	int64_t known = find(adding, &events[row]), duration_ns = MAX(events[row].duration_ns, 0);

	if (known < 2)
		return known;
	add_time(adding, known, duration_ns);
	for (uint32_t up = adding->parents[row]; up != MODEL_NONE; up = adding->parents[up]) {
		int64_t around = find(adding, &events[up]);

		if (around < 0)
			return around;
		if (around < 2)
			continue;
		add_time(adding, around, -duration_ns);
		break;
	}
	return known;
}

static int add_thread(struct adding *adding, const struct trace_track *track)
{
	const struct trace *trace = adding->view->trace;
	int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t row = trace->rows.items[track->first + i];
		const struct trace_event *event = &trace->events.items[row];
		int64_t known;

		if (!trace_view_is_of_thread(adding->view, event))
			continue;
		known = add_row(adding, row);
		if (known < 0)
			return -ENOMEM;
		if (known < 2)
			continue;
		start_ns = MIN(start_ns, event->start_ns);
		end_ns = MAX(end_ns, trace_end_ns(event));
	}
	if (end_ns > start_ns)
		adding->pythons->thread_ns = trace_add_ns(
			adding->pythons->thread_ns, trace_difference_ns(end_ns, start_ns));
	return 0;
}

int own_pythons_add(struct own_pythons *pythons, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *known =
		calloc(view->trace->strings.entries.count + 1, sizeof(*known));
	struct adding adding = {
		.pythons = pythons,
		.view = view,
		.parents = trace_parents(view->trace, true),
		.known = known,
	};
	int r = known && adding.parents ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < view->trace->tracks.count; i++)
		r = add_thread(&adding, &view->trace->tracks.items[i]);
	return r;
}

static int compare(const void *left, const void *right)
{
	const struct own_python *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

void own_pythons_finish(struct own_pythons *pythons)
{
	if (pythons->items.count)
		qsort(pythons->items.items, pythons->items.count, sizeof(*pythons->items.items),
			compare);
}

void own_pythons_done(struct own_pythons *pythons)
{
	array_done(&pythons->items);
	intern_done(&pythons->names);
}
