/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a capture: structs in, a growing Perfetto trace out. Packets gather in memory until
 * capture_writer_flush(); each flush leaves a file that is readable up to there. One thread at a
 * time. Texts are copied. Where Perfetto wants UTF-8 (names of processes, arguments, notes) other
 * bytes become U+FFFD; paths and function names are kept byte by byte.
 */
#pragma once

#include "base/errmsg.h"
#include "base/output_place.h"
#include "capture/capture.h"
#include "capture/reader/reader.h"

struct capture_writer_options {
	size_t size;           /* sizeof(struct capture_writer_options) */
	bool uncompressed;     /* plain packets instead of deflated compressed_packets */
	bool stack_sample;     /* StackSample packets (Perfetto >= 58) instead of PerfSample */
	bool device_slices;    /* device work and launches as slices with arrows, too */
	bool row_arguments;    /* arguments of a trace's rows in words, for viewers */
	bool unhurried;        /* nothing is recorded meanwhile: all is deflated, whatever comes */
	struct output_how how; /* who may read it */
	uint32_t sequence; /* what tells the capture's packets from those of others; 0: random */
};

struct capture_writer;

/*
 * Makes a new file, which takes its place in capture_writer_close(), so that a failure leaves the
 * file before: see base/output_place.h. The error names the path, the reason and what to try.
 */
int capture_writer_open(struct capture_writer **ret_writer, const char *path,
	const struct capture_writer_options *options, struct errmsg *err);
/* The file takes its place now, and grows there: a recording that is killed leaves what it has. */
int capture_writer_name(struct capture_writer *writer, struct errmsg *err);
/* Once it has its name, which may be another one than was asked for (output_how.keeps_others). */
const char *capture_writer_path(const struct capture_writer *writer);
/*
 * A writer without a file: everything written goes to the visitor at once, interned things once
 * each. Its flush does nothing.
 */
int capture_writer_open_live(struct capture_writer **ret_writer,
	const struct capture_visitor *visitor, void *context, struct errmsg *err);
/* Without flushing: for failure paths. */
struct capture_writer *capture_writer_free(struct capture_writer *writer);

/*
 * Written first: clock snapshot, session, extension descriptors, packet defaults. A capture without
 * a session (an imported one) takes its clock snapshot when the first thing is written.
 */
int capture_writer_session(struct capture_writer *writer, const struct capture_session *session);

/*
 * Interning. Equal content gives the same id; strings are copied. Return 0 or -ENOMEM.
 */
int capture_writer_mapping(
	struct capture_writer *writer, const struct capture_mapping *mapping, capture_id *ret_id);
int capture_writer_frame(
	struct capture_writer *writer, const struct capture_frame *frame, capture_id *ret_id);
/* `frames` outermost first; all of them interned before. Why the stack ends where it does, and why
 * its Python frames are as they are, is kept with it. */
int capture_writer_callstack(struct capture_writer *writer, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, capture_id *ret_id);

/* Said again when something changed (exec, rename): the last one counts. */
int capture_writer_process(struct capture_writer *writer, const struct capture_process *process);
int capture_writer_thread(struct capture_writer *writer, const struct capture_thread *thread);
/*
 * A running thread, or with `wait` a waiting one. The callstack is the one that was interned last,
 * or an earlier sample's: else Perfetto gets no symbols for its frames.
 */
int capture_writer_sample(struct capture_writer *writer, const struct capture_sample *sample);
/* Device work, its launch and the launch's stack, in any order. */
int capture_writer_device_work(
	struct capture_writer *writer, const struct capture_device_work *work);
int capture_writer_launch(struct capture_writer *writer, const struct capture_launch *launch);
int capture_writer_launch_stack(
	struct capture_writer *writer, const struct capture_launch_stack *stack);
int capture_writer_device_event(
	struct capture_writer *writer, const struct capture_device_event *event);
/*
 * A range begins or ends, or a mark: in the order in which they nest. Its track is made up of
 * process, thread, lane and domain.
 */
int capture_writer_range(struct capture_writer *writer, const struct capture_range_event *event);
int capture_writer_counter(struct capture_writer *writer, const struct capture_counter *counter);
/*
 * Rails that take energy, how much they took, in what state, and which kinds of sources there are
 * not: see wire/energy.h. A domain is written before its intervals, and again when what is known of
 * it changes: the last one counts. An interval may reach over the edge of a window: readers cut it.
 */
int capture_writer_energy_domain(
	struct capture_writer *writer, const struct wire_energy_domain *domain);
int capture_writer_energy_interval(
	struct capture_writer *writer, const struct wire_energy_interval *interval);
int capture_writer_energy_state(
	struct capture_writer *writer, const struct wire_energy_state *state);
int capture_writer_energy_absence(
	struct capture_writer *writer, const struct wire_energy_absence *absence);
/*
 * Written when a window opens, with end_ns 0, and again when it closes; one that was not written
 * before may be written at once. Viewers see windows on a track of their own, and the steps of each
 * process on one below the process. Steps of a window may be written until the next one opens.
 */
int capture_writer_window(struct capture_writer *writer, const struct capture_window *window);
/* In the order of each process's steps. */
int capture_writer_step(struct capture_writer *writer, const struct capture_step *step);
/*
 * Of a writer without a file: callstacks are written anew from now on, their ids beginning at 1, so
 * that a recording without end does not grow without end.
 */
void capture_writer_forget_callstacks(struct capture_writer *writer);
/* The same, but their ids go on: one that somebody still has is not another stack's. */
void capture_writer_renew_callstacks(struct capture_writer *writer);

/*
 * Names for a frame that was interned without one, or source lines and inlined functions for it: a
 * ModuleSymbols packet. `lines`: innermost inlined function first. Mapping 0 names addresses that
 * lie in no file. Symbols of one mapping in a row share a packet.
 */
int capture_writer_symbols(struct capture_writer *writer, capture_id mapping, uint64_t rel_pc,
	const struct capture_symbol_line *lines, size_t count);

int capture_writer_stats(struct capture_writer *writer, const struct capture_stats *stats);

/*
 * Hands everything so far to the kernel with write(2). On a full disk or a dead file system returns
 * the error with a sentence; the file stays readable up to the last good flush (a torn tail is cut
 * off by ftruncate). From then on nothing is kept or written, and each flush returns the same error
 * with an empty sentence.
 */
int capture_writer_flush(struct capture_writer *writer, struct errmsg *err);
/*
 * Another recording follows in the same file, with ids of its own: as files that are written one
 * behind the other. Its session comes next. Returns 0 or a negative errno.
 */
int capture_writer_next_recording(struct capture_writer *writer);
/* Bytes that wait for a flush, about, and bytes handed to the kernel so far. */
size_t capture_writer_waiting(const struct capture_writer *writer);
uint64_t capture_writer_bytes(const struct capture_writer *writer);
/* Flushes, closes and frees, in any case; returns the first error with its sentence. */
int capture_writer_close(struct capture_writer *writer, struct errmsg *err);
