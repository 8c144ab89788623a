/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices have to nest within a line of the trace, and ranges nest with neither samples nor the
 * ranges of other domains: each thread and domain has a line of its own, "NAME: DOMAIN". Ranges of
 * processes overlap one another: each process and domain has as many lines as ranges at once.
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
	uint32_t process, thread; /* thread MODEL_NONE: of the process */
	uint64_t place;           /* of ranges of a process that overlap */
};

struct ranges {
	struct strbuf *out;
	const struct model *model;
	const struct chrome_clock *clock;
	const uint64_t *process_numbers;
	struct intern lines;
	ARRAY_OF(uint64_t) busy_until_ns; /* of each line */
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

/* Of ranges that a program did not put into a domain it is what tools for the PyTorch profiler's
 * traces look for. */
static const char *category(const struct model_range *range)
{
	return is_in_domain(range) ? range->domain : TRACE_ANNOTATION_CATEGORY;
}

static void name_line(
	struct ranges *ranges, const struct model_range *range, uint64_t place, uint32_t line)
{
	bool has_thread = range->thread != MODEL_NONE;
	const struct model *model = ranges->model;
	_cleanup_strbuf_ struct strbuf name = {0};
	struct json_writer json = {.out = ranges->out};

	strbuf_addf(&name, "%s: %s",
		has_thread ? model->threads.items[range->thread].name
			   : model->processes.items[range->process].name,
		*range->domain ? range->domain : "ranges");
	if (place)
		strbuf_addf(&name, ", %llu", (unsigned long long)place + 1);
	strbuf_add_bytes(ranges->out, ",\n", 2);
	json_begin_object(&json);
	json_member_text(&json, "ph", "M");
	json_member_text(&json, "name", "thread_name");
	json_member_u64(&json, "pid", ranges->process_numbers[range->process]);
	json_member_u64(&json, "tid", line);
	json_key(&json, "args");
	json_begin_object(&json);
	json_member_text(&json, "name", strbuf_cstr(&name));
	json_key(&json, TRACE_OWNER);
	json_i64(&json,
		has_thread ? (int64_t)model->threads.items[range->thread].tid : TRACE_OF_PROCESS);
	json_end_object(&json);
	json_end_object(&json);
}

/* The first line of the range's owner and domain that is free; ranges come in order of start. */
static int find_line(struct ranges *ranges, const struct model_range *range, uint32_t *ret_line)
{
	struct line_key key = {
		.domain = range->domain, .process = range->process, .thread = range->thread};
	int r;

	for (;; key.place++) {
		r = intern_add(&ranges->lines, &key, sizeof(key), ret_line);
		if (r != 0 || range->thread != MODEL_NONE ||
			ranges->busy_until_ns.items[*ret_line] <= range->start_ns)
			break;
	}
	if (r > 0) {
		name_line(ranges, range, key.place, FIRST_LINE + *ret_line);
		r = array_append(&ranges->busy_until_ns, 0);
	}
	if (r == 0)
		ranges->busy_until_ns.items[*ret_line] = range->end_ns;
	return r;
}

static int write_range(struct ranges *ranges, const struct model_range *range)
{
	struct json_writer json = {.out = ranges->out};
	uint32_t line;
	int r = find_line(ranges, range, &line);

	if (r < 0)
		return r;
	strbuf_add_bytes(ranges->out, ",\n", 2);
	json_begin_object(&json);
	json_member_text(&json, "ph", range->is_mark ? "i" : "X");
	json_member_text(&json, "name", *range->name ? range->name : "[no name]");
	json_member_text(&json, "cat", category(range));
	if (range->is_mark)
		json_member_text(&json, "s", "t");
	write_arguments(&json, ranges->model, range);
	if (range->is_mark)
		chrome_add_time(ranges->out, ranges->clock, range->start_ns);
	else
		chrome_add_span(ranges->out, ranges->clock, range->start_ns, range->end_ns);
	strbuf_addf(ranges->out, ",\"pid\":%llu,\"tid\":%u}",
		(unsigned long long)ranges->process_numbers[range->process], FIRST_LINE + line);
	return 0;
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

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++)
		r = write_range(&ranges, &model->ranges.items[i]);
	intern_done(&ranges.lines);
	array_done(&ranges.busy_until_ns);
	return r;
}
