/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work from the injected libraries' records to the capture: names its ids, and brings its
 * times to CLOCK_MONOTONIC. wire/device.h has the two shapes of records: one record for a launch
 * and its work (OpenCL's) is read here; launches and work apart, with records of the clock
 * (CUDA's), in paired.h, which puts work together with its launch where both are there. All else
 * the model puts together: stacks of launches go through the pipeline to
 * capture_writer_launch_stack().
 */
#pragma once

#include <stdint.h>

#include "capture/writer/writer.h"
#include "collect/windows/windows.h"
#include "wire/device.h"

struct device_collector;

struct device_account {
	uint64_t launches, works;
	uint64_t untimed; /* launches that no work will follow */
	uint64_t started_before_launch;
	uint64_t clock_error_ns; /* the widest half of an interval that an offset was taken from */
	uint64_t malformed;      /* records that were dropped */
	/* What the processes' tracing libraries say of themselves; these are not sonde's losses. */
	uint64_t dropped;           /* by the tracing library */
	uint64_t without_times;     /* work that ran, and whose driver gave no times */
	uint64_t unknown_nodes;     /* of graphs: work whose capture is not known */
	uint64_t graph_events_lost; /* by which captures become unknown */
	uint64_t buffers_refused;   /* the tracing library asked for more than there are */
	uint64_t repeated;          /* tries that a ring counts as lost, and that came later */
	uint64_t clock_jumps;
	uint64_t outside;      /* launches and work outside of all windows: left out */
	uint64_t after_window; /* work that began after the window of its launch: its launch is kept
				*/
};

/* What an injected library says, in a finished sentence. */
struct device_note {
	uint32_t note;  /* enum wire_device_note */
	uint32_t count; /* of times that it was reported */
	char *text;
};

int device_collector_new(struct device_collector **ret_collector, struct capture_writer *writer);
struct device_collector *device_collector_free(struct device_collector *collector);
/* Before the first record: only what lies in these, which outlive the collector, is written. */
void device_collector_set_windows(struct device_collector *collector, struct windows *windows);
/* A record of a process, whole by its length; whatever is in it. Returns 0 or a negative errno. */
int device_collector_add(
	struct device_collector *collector, uint32_t pid, const struct wire_record *record);
/*
 * After all rings were drained: writes the work that came. Some waits for a later call, for its
 * name, or for a launch that tells more of its clock; with UINT64_MAX none does. Returns 0 or a
 * negative errno.
 */
int device_collector_write(struct device_collector *collector, uint64_t now_ns);
/* The recording ends at this moment: work that begins later, of launches nobody saw, is left out.
 */
void device_collector_end(struct device_collector *collector, uint64_t end_ns);
const struct device_note *device_collector_notes(
	const struct device_collector *collector, size_t *ret_count);
const struct device_account *device_collector_account(const struct device_collector *collector);
