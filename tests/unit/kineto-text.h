/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a trace from text in memory, through windows of any size. */
#pragma once

#include <errno.h>
#include <inttypes.h>

#include "importers/kineto/parser.h"

/* A copy, so that looking beyond its end is found out; the caller's free(). */
static inline char *kineto_copy(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);

	return copy ? memcpy(copy, text, length) : NULL;
}

/*
 * As kineto_read() with a file: windows of at least `step` bytes more than what was not used, up to
 * `most` bytes. Returns what kineto_parser_finish() does.
 */
static inline int kineto_parse_text(struct trace **ret_trace, const char *text, size_t length,
	size_t step, size_t most, bool keep_arguments)
{
	struct text_window window = {.bytes = text};
	struct kineto_parser parser;
	size_t at = 0, used = 0;
	int r = kineto_parser_init(&parser, "text", keep_arguments);

	while (r == 0 && !window.is_last) {
		size_t wanted = MIN(window.length - used + step, most);
		size_t size = MIN(length - at, wanted);
		char *copy = kineto_copy(text + at, size);

		if (!copy) {
			r = -ENOMEM;
			break;
		}
		window = (struct text_window){.bytes = copy,
			.length = size,
			.is_last = at + size == length,
			.is_full = size == most};
		r = kineto_parse(&parser, &window, &used);
		free(copy);
		at += used;
	}
	if (r == 0)
		r = kineto_parser_finish(&parser, ret_trace);
	kineto_parser_done(&parser);
	return r;
}

/* As a thread of importers/kineto/parallel.c, and its merging: 1 where that could be done. */
static inline int kineto_merge_text(struct kineto_parser *parser, struct kineto_parser *part,
	struct kineto_known *known, const char *text, size_t length)
{
	char *copy = kineto_copy(text, length);
	int r = copy ? kineto_parse_part(part, copy, length) : -ENOMEM;

	free(copy);
	if (r > 0)
		return kineto_merge(parser, part, known) < 0 ? -ENOMEM : 1;
	kineto_parser_done(part);
	kineto_known_done(known);
	return r < 0 ? r : kineto_parser_init(part, "part", parser->keep_arguments);
}

/*
 * As kineto_parse_text(), in parts of about `step` bytes that are parsed by themselves where they
 * can be.
 */
static inline int kineto_parse_parts(
	struct trace **ret_trace, const char *text, size_t length, size_t step, bool keep_arguments)
{
	struct kineto_parser parser, part;
	struct kineto_known known = {0};
	size_t at = 0, parsed = 0, used;
	bool is_last = false;
	int r = kineto_parser_init(&parser, "text", keep_arguments);

	r = kineto_parser_init(&part, "part", keep_arguments) ?: r;
	while (r == 0 && !is_last) {
		size_t size = MIN(length - at, step), cut = size;
		int merged = 0;
		char *copy;

		is_last = at + size == length;
		if (!is_last)
			cut = kineto_last_event(text + at, size) ?: size;
		if (!is_last && parsed == at && kineto_is_between_events(&parser))
			merged = kineto_merge_text(&parser, &part, &known, text + at, cut);
		at += cut;
		if (merged > 0)
			parsed = at;
		if (merged != 0) {
			r = MIN(merged, 0);
			continue;
		}
		copy = kineto_copy(text + parsed, at - parsed);
		r = copy ? kineto_parse(&parser,
				   &(struct text_window){
					   .bytes = copy,
					   .length = at - parsed,
					   .is_last = is_last,
				   },
				   &used)
			 : -ENOMEM;
		free(copy);
		parsed += r == 0 ? used : 0;
	}
	if (r == 0)
		r = kineto_parser_finish(&parser, ret_trace);
	kineto_parser_done(&parser);
	kineto_parser_done(&part);
	kineto_known_done(&known);
	return r;
}

/* All that a trace says, for comparing two. */
static inline void kineto_describe(const struct trace *trace, struct strbuf *out)
{
	array_foreach (&trace->events, event) {
		const struct trace_op *op = trace_op(trace, event);
		const struct trace_work *work = trace_work(trace, event);

		strbuf_addf(out, "%u %s %s %u %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64,
			event->file_index, trace_text(trace, event->category_name),
			trace_text(trace, event->name), event->track, event->start_ns,
			event->duration_ns, event->correlation, event->external_id);
		if (op)
			strbuf_addf(out, " %" PRIu64 " %" PRId64 " %s %s", op->rf_id, op->sequence,
				trace_text(trace, op->input_dims), trace_text(trace, op->others));
		if (work)
			strbuf_addf(out, " %" PRId64 " %u,%u,%u %s", work->stream, work->grid[0],
				work->grid[1], work->grid[2], trace_text(trace, work->others));
		strbuf_add_char(out, '\n');
	}
	array_foreach (&trace->tracks, track)
		strbuf_addf(out, "track %" PRId64 "%s %" PRId64 "%s %s %s\n", track->pid,
			trace_text(trace, track->pid_text), track->tid,
			trace_text(trace, track->tid_text), trace_text(trace, track->process_name),
			trace_text(trace, track->thread_name));
	array_foreach (&trace->flows, flow)
		strbuf_addf(out, "flow %" PRIu64 " %" PRId64 "\n", flow->id, flow->time_ns);
	array_foreach (&trace->counters, counter)
		strbuf_addf(
			out, "counter %s %g\n", trace_text(trace, counter->series), counter->value);
	strbuf_addf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", trace->damage.skipped_events,
		trace->damage.mended_events, trace->damage.repaired_times,
		trace_text(trace, trace->header));
}
