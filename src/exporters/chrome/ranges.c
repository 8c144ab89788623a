/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices have to nest within a line of the trace, and ranges nest with neither samples nor the
 * ranges of other domains: each thread and domain has a line of its own, "NAME: DOMAIN". Ranges of
 * processes overlap one another, and are asynchronous events.
 */
#include "exporters/chrome/ranges.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "exporters/exporters.h"
#include "model/trace.h"

/* Above every tid (2^22). */
#define FIRST_LINE (1u << 30)

/* Strings are interned: equal domains are equal pointers. */
struct line_key {
	const char *domain;
	uint64_t thread;
};

struct ranges {
	struct strbuf *out;
	const struct model *model;
	const struct chrome_clock *clock;
	const uint64_t *process_numbers;
	struct intern lines;
};

static bool is_in_domain(const struct model_range *range)
{
	return *range->domain && strcmp(range->domain, "sonde") != 0;
}

/* What the program gave with the range, and what says that it is one: its category is its own. */
static void write_arguments(
	struct json_writer *json, const struct model *model, const struct model_range *range)
{
	json_key(json, "args");
	json_begin_object(json);
	if (is_in_domain(range))
		json_member_text(json, TRACE_RANGE_DOMAIN, range->domain);
	if (*range->category)
		json_member_text(json, "category", range->category);
	if (range->is_open)
		json_member_text(json, "end", "not known");
	export_range_fields(json, model, range);
	json_end_object(json);
}

static void add_place(struct ranges *ranges, const struct model_range *range, uint32_t line)
{
	strbuf_addf(ranges->out, ",\"pid\":%llu,\"tid\":%u}",
		(unsigned long long)ranges->process_numbers[range->process], line);
}

static void end_event(
	struct ranges *ranges, const struct model_range *range, uint64_t time_ns, uint32_t line)
{
	chrome_add_time(ranges->out, ranges->clock, time_ns);
	add_place(ranges, range, line);
}

/* Of ranges that a program did not put into a domain it is what tools for the PyTorch profiler's
 * traces look for. */
static const char *category(const struct model_range *range)
{
	return is_in_domain(range) ? range->domain : TRACE_ANNOTATION_CATEGORY;
}

static void begin_event(struct ranges *ranges, struct json_writer *json, const char *phase,
	const struct model_range *range)
{
	strbuf_add_bytes(ranges->out, ",\n", 2);
	json_begin_object(json);
	json_member_text(json, "ph", phase);
	json_member_text(json, "name", *range->name ? range->name : "[no name]");
	json_member_text(json, "cat", category(range));
}

static void name_line(struct ranges *ranges, const struct model_range *range, uint32_t line)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	struct json_writer json = {.out = ranges->out};

	strbuf_addf(&name, "%s: %s", ranges->model->threads.items[range->thread].name,
		*range->domain ? range->domain : "ranges");
	strbuf_add_bytes(ranges->out, ",\n", 2);
	json_begin_object(&json);
	json_member_text(&json, "ph", "M");
	json_member_text(&json, "name", "thread_name");
	json_member_u64(&json, "pid", ranges->process_numbers[range->process]);
	json_member_u64(&json, "tid", line);
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_text(&json, "name", strbuf_cstr(&name));
	json_end_object(&json);
	json_end_object(&json);
}

static int write_of_thread(struct ranges *ranges, const struct model_range *range)
{
	const struct line_key key = {.domain = range->domain, .thread = range->thread};
	struct json_writer json = {.out = ranges->out};
	uint32_t line;
	int r = intern_add(&ranges->lines, &key, sizeof(key), &line);

	if (r < 0)
		return r;
	line += FIRST_LINE;
	if (r > 0)
		name_line(ranges, range, line);
	begin_event(ranges, &json, range->is_mark ? "i" : "X", range);
	if (range->is_mark)
		json_member_text(&json, "s", "t");
	write_arguments(&json, ranges->model, range);
	if (range->is_mark) {
		end_event(ranges, range, range->start_ns, line);
		return 0;
	}
	chrome_add_span(ranges->out, ranges->clock, range->start_ns, range->end_ns);
	add_place(ranges, range, line);
	return 0;
}

static void write_of_process(struct ranges *ranges, const struct model_range *range, size_t number)
{
	for (int end = 0; end < 2; end++) {
		struct json_writer json = {.out = ranges->out};

		begin_event(ranges, &json, end ? "e" : "b", range);
		json_member_u64(&json, "id", number);
		if (!end)
			write_arguments(&json, ranges->model, range);
		end_event(ranges, range, end ? range->end_ns : range->start_ns, 0);
	}
}

int chrome_add_ranges(struct strbuf *out, const struct model *model,
	const struct chrome_clock *clock, const uint64_t *process_numbers)
{
	struct ranges ranges = {
		.out = out,
		.model = model,
		.clock = clock,
		.process_numbers = process_numbers,
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++) {
		const struct model_range *range = &model->ranges.items[i];

		if (range->thread != MODEL_NONE)
			r = write_of_thread(&ranges, range);
		else
			write_of_process(&ranges, range, i);
	}
	intern_done(&ranges.lines);
	return r;
}
