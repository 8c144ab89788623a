/* SPDX-License-Identifier: Apache-2.0 */
/* A capture of two windows with steps, the second of which did not end, and what it reads as. */
#pragma once

#include "capture-device-example.h"

#define WINDOW_EXAMPLE_PID 500

static inline int text_window(void *context, const struct capture_window *window)
{
	struct strbuf *out = context;

	strbuf_addf(out, "window %u %" PRIu64 "..%" PRIu64 " %s..%s leader=%u", window->number,
		window->begin_ns, window->end_ns, capture_window_trigger_name(window->opened_by),
		capture_window_reason_name(window->closed_by), window->leader_pid);
	if (window->last_step >= window->first_step)
		strbuf_addf(
			out, " steps=%" PRIu64 "..%" PRIu64, window->first_step, window->last_step);
	text_string(out, "label", window->label);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline int text_step(void *context, const struct capture_step *step)
{
	struct strbuf *out = context;

	strbuf_addf(out, "step %" PRIu64 " time=%" PRIu64 " %u/%u", step->number, step->time_ns,
		step->pid, step->tid);
	text_string(out, "name", step->name);
	strbuf_add_char(out, '\n');
	return 0;
}

static inline struct capture_visitor window_text_visitor(void)
{
	struct capture_visitor visitor = device_text_visitor();

	visitor.window = text_window;
	visitor.step = text_step;
	return visitor;
}

/* Times are since the session's start. */
static inline int write_window_step(
	struct capture_writer *writer, uint64_t time_ns, uint32_t tid, uint64_t number)
{
	const struct capture_step step = {
		.time_ns = example_session.start_time_ns + time_ns,
		.pid = WINDOW_EXAMPLE_PID,
		.tid = tid,
		.number = number,
		.name = "step",
	};

	return capture_writer_step(writer, &step);
}

static inline int write_window_sample(struct capture_writer *writer, uint64_t time_ns)
{
	const struct capture_sample sample = {
		.time_ns = example_session.start_time_ns + time_ns,
		.pid = WINDOW_EXAMPLE_PID,
		.tid = WINDOW_EXAMPLE_PID,
		.mode = CAPTURE_MODE_USER,
	};

	return capture_writer_sample(writer, &sample);
}

static inline int write_window_range(
	struct capture_writer *writer, uint64_t time_ns, enum capture_range_kind kind)
{
	const struct capture_range_event event = {
		.time_ns = example_session.start_time_ns + time_ns,
		.pid = WINDOW_EXAMPLE_PID,
		.tid = WINDOW_EXAMPLE_PID,
		.kind = kind,
		.domain = "",
		.name = kind == CAPTURE_RANGE_END ? "" : "forward",
		.category = "",
	};

	return capture_writer_range(writer, &event);
}

static inline int write_window_example(struct capture_writer *writer)
{
	const uint64_t start_ns = example_session.start_time_ns;
	struct capture_window first = {
		.number = 1,
		.begin_ns = start_ns + 100,
		.first_step = 1,
		.opened_by = CAPTURE_TRIGGER_STEPS,
		.leader_pid = WINDOW_EXAMPLE_PID,
	};
	const struct capture_window second = {
		.number = 2,
		.begin_ns = start_ns + 900,
		.first_step = 1,
		.opened_by = CAPTURE_TRIGGER_FLAG,
		.label = "the second",
	};
	const struct capture_process process = {.pid = WINDOW_EXAMPLE_PID, .name = "train"};
	int result = capture_writer_session(writer, &example_session);

	result = result ?: capture_writer_process(writer, &process);
	result = result ?: capture_writer_window(writer, &first);
	result = result ?: write_window_step(writer, 100, WINDOW_EXAMPLE_PID, 3);
	result = result ?: write_window_range(writer, 110, CAPTURE_RANGE_BEGIN);
	result = result ?: write_window_sample(writer, 150);
	result = result ?: write_window_range(writer, 160, CAPTURE_RANGE_END);
	result = result ?: write_window_step(writer, 200, WINDOW_EXAMPLE_PID + 1, 4);
	first.end_ns = start_ns + 300;
	first.first_step = 3;
	first.last_step = 4;
	first.closed_by = CAPTURE_REASON_SCHEDULE;
	result = result ?: capture_writer_window(writer, &first);
	result = result ?: capture_writer_window(writer, &second);
	result = result ?: write_window_step(writer, 950, WINDOW_EXAMPLE_PID, 9);
	return result ?: write_window_sample(writer, 990);
}
