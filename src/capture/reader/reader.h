/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a capture: one pass over the file's packets, typed callbacks out. Also reads what other
 * recorders put in the same messages; a file that is cut off reads up to the cut.
 */
#pragma once

#include "base/errmsg.h"
#include "capture/capture.h"
#include "capture/trace_rows.h"

/*
 * Called in file order; interned things before they are referred to, with the ids of this read
 * (dense over all sequences and concatenated files, counted up from 1). Equal mappings of several
 * sequences are written once; frames and callstacks are written for each. NULL callbacks are
 * skipped. A negative return stops the reading and is returned. Strings and arrays are valid during
 * the call only.
 */
struct capture_visitor {
	int (*session)(void *context, const struct capture_session *session);
	int (*mapping)(void *context, capture_id id, const struct capture_mapping *mapping);
	int (*frame)(void *context, capture_id id, const struct capture_frame *frame);
	int (*callstack)(void *context, capture_id id, const capture_id *frames, size_t count,
		enum wire_stop stop, enum wire_python python);
	int (*process)(void *context, const struct capture_process *process);
	int (*thread)(void *context, const struct capture_thread *thread);
	int (*sample)(void *context, const struct capture_sample *sample);
	int (*device_work)(void *context, const struct capture_device_work *work);
	int (*launch)(void *context, const struct capture_launch *launch);
	int (*launch_stack)(void *context, const struct capture_launch_stack *stack);
	/* Also those of other recorders, on the tracks of threads and processes. */
	int (*range)(void *context, const struct capture_range_event *event);
	/* What names its counter in the event itself, as ours do. */
	int (*counter)(void *context, const struct capture_counter *counter);
	/* Ids of domains are of this read, like those of mappings; the parent was written before.
	 */
	int (*energy_domain)(void *context, const struct wire_energy_domain *domain);
	int (*energy_interval)(void *context, const struct wire_energy_interval *interval);
	int (*energy_state)(void *context, const struct wire_energy_state *state);
	int (*energy_absence)(void *context, const struct wire_energy_absence *absence);
	int (*device_event)(void *context, const struct capture_device_event *event);
	int (*window)(void *context, const struct capture_window *window);
	int (*step)(void *context, const struct capture_step *step);
	int (*symbols)(void *context, capture_id mapping, uint64_t rel_pc,
		const struct capture_symbol_line *lines, size_t count);
	int (*stats)(void *context, const struct capture_stats *stats);
	/* Of imported traces; what follows a trace belongs to it, rows also to their track. */
	int (*trace)(void *context, const struct capture_trace *trace);
	int (*trace_track)(void *context, const struct capture_trace_track *track);
	int (*trace_row)(void *context, const struct capture_trace_row *row);
	int (*trace_flow)(void *context, const struct capture_trace_flow *flow);
	int (*trace_counter)(void *context, const struct capture_trace_counter *counter);
	int (*trace_group)(void *context, const struct capture_trace_group *group);
	/* Bytes of the file read so far: for progress bars, a few hundred calls at most. */
	int (*progress)(void *context, uint64_t bytes, uint64_t total_bytes);
};

struct capture_read_result {
	uint64_t bytes, packets;
	bool truncated;           /* the last packet is cut off: what came before was read */
	uint64_t truncated_at;    /* its offset */
	uint64_t skipped_packets; /* packets that refer to interned data the file does not have */
	uint64_t other_packets;   /* of other recorders' data sources, which are not read */
};

/*
 * Reads a capture, also a gzip'ed one. Returns 0, or a negative errno with one sentence that names
 * the offset and the cause: not a capture, corrupt at offset N … A truncated tail is no error (see
 * result); `ret_result` may be NULL and is filled in either case. Times are CLOCK_MONOTONIC
 * wherever the file's clock snapshots tell it. The file may grow or shrink meanwhile.
 */
int capture_read(const char *path, const struct capture_visitor *visitor, void *context,
	struct capture_read_result *ret_result, struct errmsg *err);
/* The same over bytes in memory, for fuzzing and tests. */
int capture_read_memory(const void *bytes, size_t length, const char *name_for_messages,
	const struct capture_visitor *visitor, void *context,
	struct capture_read_result *ret_result, struct errmsg *err);

/*
 * A capture that is read while it grows: its bytes in their order, in pieces of any size, give the
 * visitor the same as reading all of them at once. Not a gzip'ed one.
 */
struct capture_stream;
/* The visitor and its context outlive it. Returns 0 or -ENOMEM. */
int capture_stream_open(struct capture_stream **ret_stream, const char *name_for_messages,
	const struct capture_visitor *visitor, void *context);
struct capture_stream *capture_stream_close(struct capture_stream *stream);
/*
 * Visits what is in the packets that are complete by now. Returns as capture_read(); after an error
 * every call returns it again.
 */
int capture_stream_take(
	struct capture_stream *stream, const void *bytes, size_t length, struct errmsg *err);
