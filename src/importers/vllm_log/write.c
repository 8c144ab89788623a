/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a log as ranges, marks and counters of a capture. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "importers/vllm_log/state.h"

#define DOMAIN     "vllm"
#define FIELDS_MAX 8

struct log_range {
	struct capture_range_event event;
	struct capture_range_field fields[FIELDS_MAX];
};

static void add_count(struct log_range *range, const char *name, uint64_t value)
{
	range->fields[range->event.field_count++] =
		(struct capture_range_field){.name = name, .type = WIRE_RANGE_U64, .value = value};
}

static void add_double(struct log_range *range, const char *name, double value)
{
	struct capture_range_field field = {.name = name, .type = WIRE_RANGE_DOUBLE};

	if (isnan(value))
		return;
	memcpy(&field.value, &value, sizeof(value));
	range->fields[range->event.field_count++] = field;
}

static void add_text(struct log_range *range, const char *name, const char *text)
{
	range->fields[range->event.field_count++] =
		(struct capture_range_field){.name = name, .type = WIRE_RANGE_TEXT, .text = text};
}

static const char *iteration_name(const struct vllm_log_iteration *iteration)
{
	if (iteration->context_requests)
		return iteration->generation_requests ? "iteration: mixed" : "iteration: prefill";
	return iteration->generation_requests ? "iteration: decode" : "iteration: idle";
}

static void fill_iteration(struct log_range *range, const struct log_iteration *iteration)
{
	range->event.pid = range->event.tid = iteration->pid;
	range->event.name = iteration_name(&iteration->what);
	add_count(range, "iteration", iteration->what.number);
	add_count(range, "context_requests", iteration->what.context_requests);
	add_count(range, "context_tokens", iteration->what.context_tokens);
	add_count(range, "generation_requests", iteration->what.generation_requests);
	add_count(range, "generation_tokens", iteration->what.generation_tokens);
}

static void fill_metrics(struct log_range *range, const struct log_metrics *metrics)
{
	range->event.pid = range->event.tid = metrics->pid;
	range->event.name = "metrics";
	add_double(range, "prompt_tokens_per_s", metrics->what.prompt_tokens_per_s);
	add_double(range, "generation_tokens_per_s", metrics->what.generation_tokens_per_s);
	add_double(range, "running_requests", metrics->what.running_requests);
	add_double(range, "waiting_requests", metrics->what.waiting_requests);
	add_double(range, "preemptions", metrics->what.preemptions);
	add_double(range, "kv_cache_percent", metrics->what.kv_cache_percent);
	add_double(range, "prefix_cache_hit_percent", metrics->what.prefix_cache_hit_percent);
}

static void fill_request(
	const struct log_import *import, struct log_range *range, const struct log_request *request)
{
	range->event.pid = range->event.tid = request->pid;
	range->event.lane = request->lane;
	range->event.name = request->end_ns ? "request" : "request without an end";
	add_text(range, "request", intern_get(&import->ids, request->id));
	if (request->outcome)
		add_text(range, "outcome", request->outcome);
}

static void fill_event(
	const struct log_import *import, const struct log_event *event, struct log_range *range)
{
	static const enum capture_range_kind kinds[] = {
		[EVENT_ITERATION_BEGIN] = CAPTURE_RANGE_BEGIN,
		[EVENT_ITERATION_END] = CAPTURE_RANGE_END,
		[EVENT_METRICS] = CAPTURE_RANGE_MARK,
		[EVENT_REQUEST_BEGIN] = CAPTURE_RANGE_BEGIN,
		[EVENT_QUEUED_BEGIN] = CAPTURE_RANGE_BEGIN,
		[EVENT_QUEUED_END] = CAPTURE_RANGE_END,
		[EVENT_REQUEST_END] = CAPTURE_RANGE_END,
		[EVENT_REQUEST_MARK] = CAPTURE_RANGE_MARK,
	};

	*range = (struct log_range){.event = {
					    .time_ns = event->time_ns,
					    .kind = kinds[event->kind],
					    .domain = DOMAIN,
					    .name = "",
					    .category = "",
				    }};
	if (event->kind == EVENT_METRICS)
		fill_metrics(range, &import->metrics.items[event->index]);
	else if (event->kind <= EVENT_ITERATION_END)
		fill_iteration(range, &import->iterations.items[event->index]);
	else
		fill_request(import, range, &import->requests.items[event->index]);
	if (event->kind == EVENT_QUEUED_BEGIN)
		range->event.name = "queued";
	if (range->event.kind == CAPTURE_RANGE_END) {
		range->event.name = "";
		range->event.field_count = 0;
	}
	range->event.fields = range->fields;
}

/* What the engine says of itself, as tracks, too: a viewer draws them. */
static int write_counters(
	struct log_import *import, const struct log_metrics *metrics, uint64_t time_ns)
{
	const struct {
		const char *name;
		double value;
	} counters[] = {
		{"prompt tokens/s", metrics->what.prompt_tokens_per_s},
		{"generation tokens/s", metrics->what.generation_tokens_per_s},
		{"running requests", metrics->what.running_requests},
		{"waiting requests", metrics->what.waiting_requests},
		{"KV cache %", metrics->what.kv_cache_percent},
	};
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counters) && result == 0; i++) {
		struct capture_counter counter = {
			.time_ns = time_ns,
			.pid = metrics->pid,
			.name = counters[i].name,
			.value = counters[i].value,
		};

		if (!isnan(counter.value))
			result = capture_writer_counter(import->writer, &counter);
	}
	return result;
}

static int by_time(const void *left, const void *right)
{
	const struct log_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

int vllm_log_write_events(struct log_import *import)
{
	int result = 0;

	qsort(import->events.items, import->events.count, sizeof(*import->events.items), by_time);
	import->result->begin_ns = import->events.items[0].time_ns;
	import->result->end_ns = import->events.items[import->events.count - 1].time_ns;
	for (size_t i = 0; i < import->events.count && result == 0; i++) {
		struct log_range range;

		fill_event(import, &import->events.items[i], &range);
		import->result->ranges += range.event.kind == CAPTURE_RANGE_BEGIN;
		import->result->marks += range.event.kind == CAPTURE_RANGE_MARK;
		result = capture_writer_range(import->writer, &range.event);
		if (result == 0 && import->events.items[i].kind == EVENT_METRICS)
			result = write_counters(import,
				&import->metrics.items[import->events.items[i].index],
				range.event.time_ns);
	}
	return result;
}
