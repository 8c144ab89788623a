/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/windows/windows.h"

int windows_begin(struct windows *windows, uint64_t time_ns, enum capture_window_trigger trigger)
{
	const struct capture_window *last = windows_last(windows);
	uint64_t first_ns = MAX(windows->known_ns, last ? last->end_ns : 0);
	struct capture_window window = {
		.number = (uint32_t)windows->items.count + 1,
		.begin_ns = MAX(time_ns, first_ns),
		.first_step = 1,
		.opened_by = trigger,
	};
	int result;

	if (windows->items.count >= WINDOWS_MAX)
		return -E2BIG;
	result = array_append(&windows->items, window);
	if (result < 0)
		return result;
	windows->is_open = true;
	windows->planned_end_ns = 0;
	return 0;
}

/* A planned end was answered for before it came. */
void windows_end(struct windows *windows, uint64_t time_ns, enum capture_window_reason reason)
{
	struct capture_window *window = windows_last(windows);
	uint64_t planned_ns = windows->planned_end_ns;

	if (!windows->is_open)
		return;
	time_ns = MAX(time_ns, windows->known_ns);
	if (planned_ns)
		time_ns = MIN(time_ns, planned_ns);
	window->end_ns = MAX(time_ns, window->begin_ns);
	window->closed_by = reason;
	windows->is_open = false;
}

struct capture_window *windows_last(struct windows *windows)
{
	return windows->items.count ? &windows->items.items[windows->items.count - 1] : NULL;
}

/* False: the moment is still to come, by our clock, so that nothing can be of it. */
static bool is_known(struct windows *windows, uint64_t time_ns)
{
	if (time_ns >= windows->known_ns)
		windows->known_ns = MAX(windows->known_ns, windows->look(windows->context));
	return time_ns < windows->known_ns;
}

/* The first moment that the window has not. */
static uint64_t end_of(const struct windows *windows, const struct capture_window *window)
{
	if (window->end_ns)
		return window->end_ns;
	return windows->planned_end_ns ? windows->planned_end_ns : UINT64_MAX;
}

/* The last window that began at or before this moment. */
static const struct capture_window *begun_before(const struct windows *windows, uint64_t time_ns)
{
	size_t low = 0, high = windows->items.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (windows->items.items[middle].begin_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &windows->items.items[low - 1] : NULL;
}

const struct capture_window *windows_find(struct windows *windows, uint64_t time_ns)
{
	const struct capture_window *window;

	if (!is_known(windows, time_ns))
		return NULL;
	window = begun_before(windows, time_ns);
	return window && time_ns < end_of(windows, window) ? window : NULL;
}

bool windows_has(struct windows *windows, uint64_t time_ns)
{
	return windows->is_whole || windows_find(windows, time_ns);
}

bool windows_has_sample(struct windows *windows, uint64_t time_ns)
{
	if (!windows->is_whole)
		return windows_has(windows, time_ns);
	return time_ns >= windows->whole_begin_ns &&
	       (!windows->whole_end_ns || time_ns <= windows->whole_end_ns);
}

static bool cut_to_whole(const struct windows *windows, uint64_t *begin_ns, uint64_t *end_ns)
{
	*begin_ns = MAX(*begin_ns, windows->whole_begin_ns);
	if (windows->whole_end_ns)
		*end_ns = MIN(*end_ns, windows->whole_end_ns);
	return *begin_ns < *end_ns;
}

bool windows_cut(struct windows *windows, uint64_t *begin_ns, uint64_t *end_ns)
{
	const struct capture_window *window;
	uint64_t end;

	if (windows->is_whole)
		return cut_to_whole(windows, begin_ns, end_ns);
	if (!is_known(windows, *end_ns))
		return false;
	window = begun_before(windows, *end_ns);
	if (window && window->begin_ns == *end_ns)
		window = window == windows->items.items ? NULL : window - 1;
	if (!window)
		return false;
	end = end_of(windows, window);
	if (*begin_ns >= end)
		return false;
	*begin_ns = MAX(*begin_ns, window->begin_ns);
	*end_ns = MIN(*end_ns, end - 1); /* which is itself outside */
	return *begin_ns < *end_ns;
}

int windows_set_label(struct windows *windows, const char *label)
{
	struct capture_window *window = windows_last(windows);
	char *copy = strdup(label);

	if (!copy)
		return -ENOMEM;
	free((char *)window->label);
	window->label = copy;
	return 0;
}

void windows_done(struct windows *windows)
{
	array_foreach (&windows->items, window)
		free((char *)window->label);
	array_done(&windows->items);
}
