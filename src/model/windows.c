/* SPDX-License-Identifier: Apache-2.0 */
#include "model/windows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/trace.h"

/* Reads a number from 1 on; NULL: there is none. */
static const char *parse_number(const char *text, uint32_t *ret_number)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)*text))
		return NULL;
	number = strtoul(text, &end, 10);
	if (number == 0 || number > UINT32_MAX)
		return NULL;
	*ret_number = (uint32_t)number;
	return end;
}

static const char *parse_range(const char *text, struct window_choice *choice)
{
	uint32_t first = 0, last = 0;
	const char *rest = parse_number(text, &first);

	last = first;
	if (rest && *rest == '-')
		rest = parse_number(rest + 1, &last);
	if (!rest || last < first || choice->count == WINDOW_CHOICE_RANGES)
		return NULL;
	choice->ranges[choice->count].first = first;
	choice->ranges[choice->count++].last = last;
	return rest;
}

int window_choice_parse(const char *text, struct window_choice *ret_choice, struct errmsg *err)
{
	struct window_choice choice = {0};
	const char *rest = parse_range(text, &choice);

	while (rest && *rest == ',')
		rest = parse_range(rest + 1, &choice);
	if (!rest || *rest)
		return errmsg_set(err, -EINVAL,
			"--window '%.100s' does not choose windows: give their numbers, which "
			"begin at 1, such as 2 or 1,3-5 (at most %d parts)",
			text, WINDOW_CHOICE_RANGES);
	*ret_choice = choice;
	return 0;
}

bool window_choice_has(const struct window_choice *choice, uint32_t number)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		if (number >= choice->ranges[i].first && number <= choice->ranges[i].last)
			return true;
	}
	return choice->count == 0;
}

/* The first window that ends after this moment; the count of windows: there is none. */
static size_t first_ending_after(const struct model_window *windows, size_t count, uint64_t time_ns)
{
	size_t first = 0, last = count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (windows[middle].end_ns <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

uint32_t windows_at(const struct model_window *windows, size_t count, uint64_t time_ns)
{
	size_t index = first_ending_after(windows, count, time_ns);

	return index < count && windows[index].begin_ns <= time_ns ? (uint32_t)index : MODEL_NONE;
}

uint32_t model_window_at(const struct model *model, uint64_t time_ns)
{
	return windows_at(model->windows.items, model->windows.count, time_ns);
}

void model_window_take_name(
	struct model_window *window, const struct json_text *key, const struct json_text *text)
{
	for (unsigned i = 0; i < CAPTURE_TRIGGER_MAX; i++) {
		if (json_text_equals(key, "opened_by") &&
			json_text_equals(text, capture_window_trigger_name(i)))
			window->opened_by = i;
	}
	for (unsigned i = 0; i < CAPTURE_REASON_MAX; i++) {
		if (json_text_equals(key, "closed_by") &&
			json_text_equals(text, capture_window_reason_name(i)))
			window->closed_by = i;
	}
}

static uint64_t recorded_before_ns(const struct model *model, uint64_t time_ns)
{
	size_t index = first_ending_after(model->windows.items, model->windows.count, time_ns);
	const struct model_window *window = &model->windows.items[index];

	if (index == model->windows.count)
		return window[-1].before_ns + window[-1].end_ns - window[-1].begin_ns;
	return window->before_ns + (time_ns > window->begin_ns ? time_ns - window->begin_ns : 0);
}

uint64_t model_recorded_ns(const struct model *model, uint64_t begin_ns, uint64_t end_ns)
{
	if (end_ns <= begin_ns)
		return 0;
	return model->windows.count
		       ? recorded_before_ns(model, end_ns) - recorded_before_ns(model, begin_ns)
		       : end_ns - begin_ns;
}

bool model_is_continuous(const struct model *model, uint64_t begin_ns, uint64_t end_ns)
{
	return !model->windows.count ||
	       model_recorded_ns(model, begin_ns, end_ns) >= end_ns - begin_ns;
}

int64_t trace_recorded_ns(const struct trace *trace, int64_t begin_ns, int64_t end_ns)
{
	if (!trace->recorded || !trace->recorded->windows.count)
		return end_ns - begin_ns;
	return (int64_t)model_recorded_ns(trace->recorded,
		trace->recorded_from_ns + (uint64_t)begin_ns,
		trace->recorded_from_ns + (uint64_t)end_ns);
}

bool trace_is_continuous(const struct trace *trace, int64_t begin_ns, int64_t end_ns)
{
	return trace_recorded_ns(trace, begin_ns, end_ns) >= end_ns - begin_ns;
}
