/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a recording's session share: session.c runs it, open.c brings it up, device.c
 * prepares device work and launches, limits.c reads quotas of CPUs, window*.c open and close its
 * windows, account.c says what it took and what it cost. Only they and tests include this.
 *
 * What the sources hand over goes through `sink`, which open.c fills in:
 *   record          pipeline_add_record()
 *   event           pipeline_add_event()
 *   target_record   session_on_target_record(), in device.c, by the record's type to
 *                     session_windows_step()   steps (wire/step.h)
 *                     launch_records_add()     stacks of launches (wire/launch.h)
 *                     range_collector_add()    ranges, marks, counters (wire/range.h)
 *                     device_collector_add()   all else: device work (wire/device.h)
 *   energy          capture_writer_energy_…()
 *
 * Each turn of the loop in session.c drains the sources into the sink, has session_collect_device()
 * write device work, and calls pipeline_process() for records and events that are old enough to be
 * put in order.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "capture/writer/writer.h"
#include "collect/device/device.h"
#include "collect/device/launch_records.h"
#include "collect/pipeline/files.h"
#include "collect/pipeline/pipeline.h"
#include "collect/pipeline/python.h"
#include "collect/pipeline/ranges.h"
#include "collect/pipeline/resolver.h"
#include "collect/session/session.h"
#include "collect/session/target.h"
#include "collect/session/window.h"
#include "sources/process/address_space.h"
#include "sources/process/cpu_limits.h"
#include "sources/source_set.h"

/* Between two looks at a thread that waits. */
#define SESSION_WAIT_PERIOD_NS (100 * NS_PER_MS)
/* Reading debug information at the end may take this long. */
#define SESSION_LINES_NS (5 * NS_PER_S)
/* And reading perf maps. */
#define LATE_NAMES_NS (2 * NS_PER_S)

/* Device work: device.c. */
#define SESSION_DOORS_MAX 8

/* Of a variable that names the injected library, where another tool was named in it. */
struct session_door_note {
	struct errmsg text;
	bool is_of_work; /* of interest only where device work was recorded */
};

struct session_device {
	struct target_rings *rings; /* as offered; NULL: there is no session folder */
	bool is_recorded;           /* device work and ranges of a command's programs are */
	bool is_read;               /* all that waited in the rings was handed over */
	struct device_collector *collector;
	struct launch_records *launch_records;
	struct range_collector *ranges;
	char *library;
	bool tried_launches, is_ready;
	struct target_gate_options gate;
	char *environment[12];     /* the command's variables; NULL-ended */
	struct errmsg note;        /* why it is not recorded */
	struct errmsg stacks_note; /* why launches have no stacks */
	struct session_door_note door_notes[SESSION_DOORS_MAX];
	struct errmsg hooks_note; /* why there are no Python hooks */
};

/* What keeps the recorded process from CPUs: limits.c. */
struct session_limits {
	uint32_t pid; /* 0: nobody's */
	struct cpu_limits_place place;
	struct cpu_limits first;
};

/* CPU time of this process, and of it that of the thread that makes tables and symbols. */
struct session_cpu {
	uint64_t all_ns, files_ns;
};

struct session {
	const struct session_options *options;
	struct session_result *result;
	struct source_settings settings;
	struct source_set sources;
	struct source_sink sink; /* whom they hand their records to */
	struct energy_sink energy_sink;
	struct session_device device;
	struct session_windows windows;
	struct session_limits limits;
	struct address_spaces *spaces;
	struct file_store *files;
	struct python_registry *python;
	struct resolver *resolver;
	struct pipeline *pipeline;
	struct capture_writer *writer;
	struct target target;
	ARRAY_OF(int) pid_fds;   /* of attached processes that still live */
	struct map_u64 followed; /* pids that the sources follow */
	struct target_surroundings surroundings;
	int signal_fd;
	unsigned interrupts,
		interrupts_at_end; /* signals to end, and those that ended the recording */
	bool target_running;       /* released and not reaped */
	bool sampling_ended;
	uint64_t start_ns, end_ns, last_flush_ns;
	uint64_t ordered_until_ns; /* the address spaces are as they were at this moment */
	uint64_t ranges_refused;   /* mappings that the kernel's maps had no room for */
	bool late_names_read;      /* the perf maps of all processes, at the end */
	struct session_cpu cpu_at_begin, cpu_at_end; /* of sampling */
	int failure;                                 /* the first error inside a callback */
};

/* ---- open.c ---- */

/* Callbacks cannot return an error: the loop ends at the first. */
void session_keep_failure(struct session *session, int result);

/*
 * Opens the sources, the capture and all parts, follows the targets, starts the sources and lets
 * the command run. Returns 0 or a negative errno with a sentence; what is open then is for the
 * caller to close.
 */
int session_start(struct session *session, struct errmsg *err);

/* Are threads sampled, running and waiting? */
bool session_samples(const struct session_options *options);

/* ---- device.c ---- */

/* Before the sources are opened: finds the library, and says what the folder is made with. */
void session_describe_device(struct session *session);
/* Before the command is started: recording goes on without what cannot be had, the notes say so.
 * Returns 0 or -ENOMEM. */
int session_prepare_device(struct session *session);
/* See pipeline_parts; the context is the session. */
void session_on_launch_stack(void *context, const struct wire_sample *sample,
	const uint64_t *frames, size_t frame_count);
/* See source_sink; the context is the session. */
void session_on_target_record(void *context, uint32_t pid, const struct wire_record *record);
void session_on_target_read(void *context);
/* After a drain of the sources: prepares launches, and writes what was handed over. */
int session_collect_device(struct session *session, bool everything);
/* What the Python processes reported about their hooks; once, at the end. */
int session_read_hooks(struct session *session);
void session_close_device(struct session *session);
void session_fill_device_stats(struct session *session, const struct source_account *account,
	struct capture_device_stats *ret_stats);
void session_fill_range_stats(struct session *session, const struct source_account *account,
	struct capture_range_stats *ret_stats);

/* ---- limits.c ---- */

/* Before the command runs, and while it may. */
void session_find_limits(struct session *session);
int session_write_limits(struct session *session);

/* ---- account.c ---- */

struct session_cpu session_cpu_now(struct session *session);
/* Brings session->result->stats up to date; the last one, with the notes, is `complete`. */
void session_fill_stats(struct session *session, bool complete);
/* Sentences on what is missing or partial and why. */
void session_add_end_notes(struct session *session, const struct line_account *lines);

/* ---- split.c ---- */

/*
 * Splits the closed capture by its windows, and removes it; one without windows stays as it is. On
 * an error the capture is there, and no part of it.
 */
int session_split(struct session *session, struct errmsg *err);

static inline const struct window_spec *session_window_spec(const struct session *session)
{
	return &session->options->window;
}
