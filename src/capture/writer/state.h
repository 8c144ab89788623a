/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer of a capture remembers between packets, shared by the writer's files. */
#pragma once

#include "base/map.h"
#include "capture/writer/interning.h"
#include "capture/writer/output.h"
#include "capture/writer/sampled.h"
#include "capture/writer/symbol_batch.h"
#include "capture/writer/writer.h"

/* Interned data and symbols wait for company, but not beyond this. */
#define PENDING_BYTES ((size_t)64 * 1024)

struct capture_writer {
	struct output output;
	struct interning interning;
	struct map_u64 queues; /* pid << 32 | queue → iid of its device << 32 | iid of its name */
	struct sampled sampled;
	struct symbol_batch symbols;           /* of frames that samples have */
	struct symbol_batch other_symbols;     /* of those that only waits and launches have */
	const struct capture_visitor *visitor; /* in place of a file; NULL: there is a file */
	void *visitor_context;
	uint32_t callstack_base; /* of a writer without a file: what ids follow on */
	bool stack_sample;
	bool started; /* the packets that open the sequence are written */
	uint32_t sequence_id;
	uint64_t period_ns;
	uint64_t last_time_ns; /* of the sequence's incremental clock */
	struct map_u64 tracks; /* of ranges, windows and steps: their uuids, once described */
	uint32_t open_window;  /* its number; 0: none */
	uint64_t window_begin_ns, window_end_ns; /* of the last that was closed */
	struct map_u64 open_steps;     /* tracks of processes in a step → when it began */
	uint64_t device_works;         /* so far, from which their event ids follow */
	uint64_t end_time_ns;          /* of the recording, as far as it is known */
	bool row_arguments;            /* see capture_writer_options */
	bool device_slices;            /* device work and launches as slices, too */
	struct map_u64 lanes;          /* their tracks: until when they are taken */
	uint64_t recent_launches[256]; /* that have their slice */
	/* Of imported traces: how many, their sequences, and the last one's clock when it began. */
	uint64_t trace_count;
	uint32_t trace_sequences;
	uint64_t trace_clock_ns;
};

/* ---- writer.c ---- */

/* The message that the next packet goes to. */
struct strbuf *writer_begin_packet(struct capture_writer *writer);
int writer_end_packet(struct capture_writer *writer);
/* A packet that is one message and depends on no state. */
int writer_put_message(struct capture_writer *writer, uint32_t field, const struct strbuf *message);
/* Writes the packets that open a sequence, when no session did. */
int writer_start(struct capture_writer *writer);
/* A packet of its own time: the sequence's clock is left alone. */
struct strbuf *writer_begin_timed_packet(struct capture_writer *writer, uint64_t time_ns);
int writer_end_timed_packet(struct capture_writer *writer);
/* Tracks are distinguished by numbers that must differ between captures that are merged later. */
uint64_t writer_track_uuid(const struct capture_writer *writer, uint32_t id, bool is_thread);
/* 1 once for each uuid, when it has to be described; then 0. */
int writer_is_new_track(struct capture_writer *writer, uint64_t uuid);

/* Is this the id of a callstack that was interned? Of a writer without a file it may be older. */
static inline bool writer_knows_callstack(const struct capture_writer *writer, capture_id id)
{
	return id <= writer->callstack_base + writer->interning.callstacks.entries.count;
}

/* ---- interned.c ---- */

/* Puts what was interned since the last packet into this one, or into one of its own. */
void writer_put_interned(struct capture_writer *writer, struct strbuf *packet);
int writer_put_interned_packet(struct capture_writer *writer);
/* Mappings have to be in the file before their symbols, and frames before theirs. */
int writer_put_symbols(struct capture_writer *writer);

/* ---- windows.c ---- */

/* The uuid of a track that is distinguished from others by this name and number. */
uint64_t writer_named_track(const struct capture_writer *writer, const char *name, uint32_t number);
/* A track of slices that say what other packets say, too; parent 0: none. */
int writer_describe_track(
	struct capture_writer *writer, uint64_t uuid, uint64_t parent, const char *name);
/* Ends the slices of steps whose window has ended. */
int writer_end_steps(struct capture_writer *writer);

/* ---- ranges.c ---- */

/* The thread's own track, which others lie below. */
int writer_describe_thread(struct capture_writer *writer, uint32_t pid, uint32_t tid);
int writer_describe_process(struct capture_writer *writer, uint32_t pid);

/* ---- device.c ---- */

/* "GPU, pid 1, stream 7". */
void writer_name_queue(const struct capture_device_work *work, struct strbuf *out);

/* ---- slices.c ---- */

/* The work, and its launch where it is known, as slices with an arrow from one to the other. */
int writer_put_work_slices(struct capture_writer *writer, const struct capture_device_work *work);
/* A launch, or a wait, that is written apart from its work. */
int writer_put_launch_slice(struct capture_writer *writer, const struct capture_launch *launch);
