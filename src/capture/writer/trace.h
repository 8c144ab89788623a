/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing another tool's trace into a capture: see trace_rows.h. After capture_writer_session(),
 * whose start lies before all rows by a microsecond for each track of all traces and one more.
 */
#pragma once

#include "capture/trace_rows.h"
#include "capture/writer/writer.h"

struct capture_trace_writer;

/*
 * Begins a trace, whose texts are those of `strings`: they must not be moved while it is written.
 * Returns 0 or a negative errno.
 */
int capture_trace_begin(struct capture_trace_writer **ret_trace, struct capture_writer *writer,
	const struct capture_trace *about, const struct intern *strings);
struct capture_trace_writer *capture_trace_free(struct capture_trace_writer *trace);

/* How many rows a track needs for a sequence of its own to be shorter. */
#define CAPTURE_TRACE_LONG_TRACK 64

/*
 * Begins a track, described for a viewer too. The rows that follow are its own, in the order of
 * time; of a track that is not `is_long` in any order. Tracks that are long come after all others.
 * Returns 0 or a negative errno, as the next ones do.
 */
int capture_trace_track(
	struct capture_trace_writer *trace, const struct capture_trace_track *track, bool is_long);
int capture_trace_row(struct capture_trace_writer *trace, const struct capture_trace_row *row);
/* Of arrows that no row tells. */
int capture_trace_flow(struct capture_trace_writer *trace, const struct capture_trace_flow *flow);
int capture_trace_counter(
	struct capture_trace_writer *trace, const struct capture_trace_counter *counter);
int capture_trace_group(
	struct capture_trace_writer *trace, const struct capture_trace_group *group);
