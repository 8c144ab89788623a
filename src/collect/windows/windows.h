/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a recording: when each began and ended, and so whether a moment is recorded. It
 * knows of no processes and files; where the leader of a session may have opened or closed a window
 * that nobody has read of yet, it asks.
 *
 * Moments are answered for once and for all: an edge that comes too late for that is moved to the
 * first moment of which nothing was known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "capture/capture.h"

/* A program that opens more gets no more: its windows are too short to look at. */
#define WINDOWS_MAX 10000

struct windows {
	bool is_whole; /* everything is recorded: there are no windows */
	/* Of is_whole: when the recording began and ended; 0: it has not yet. */
	uint64_t whole_begin_ns, whole_end_ns;
	bool is_open;            /* the last one is */
	uint64_t planned_end_ns; /* of the open one: no moment from here on is in it; 0: none */
	ARRAY_OF(struct capture_window) items;
	uint64_t known_ns; /* edges before this moment are all known */
	/* Reads what is new, by windows_begin() and _end(), up to the moment that it returns. */
	uint64_t (*look)(void *context);
	void *context;
};

/* Opens one, behind the last, which is closed; returns 0, -E2BIG when there were too many, or
 * -ENOMEM. */
int windows_begin(struct windows *windows, uint64_t time_ns, enum capture_window_trigger trigger);
/* Closes the open one: from this moment on nothing is recorded. */
void windows_end(struct windows *windows, uint64_t time_ns, enum capture_window_reason reason);
/* The last one; NULL: none yet. */
struct capture_window *windows_last(struct windows *windows);
/* The window that this moment lies in; NULL: it is not recorded. Not for is_whole. */
const struct capture_window *windows_find(struct windows *windows, uint64_t time_ns);
/* Is the moment recorded? With is_whole every moment is. */
bool windows_has(struct windows *windows, uint64_t time_ns);
/* The same of what has its time from the kernel: not before and not after a recording of
 * everything. */
bool windows_has_sample(struct windows *windows, uint64_t time_ns);
/*
 * Cuts the time from *begin_ns to *end_ns to the part of it that is recorded, which ends inside the
 * last window that it meets. False: there is none. Without windows it is cut to the recording.
 */
bool windows_cut(struct windows *windows, uint64_t *begin_ns, uint64_t *end_ns);
/* Of the last one; a copy is kept. */
int windows_set_label(struct windows *windows, const char *label);
void windows_done(struct windows *windows);
