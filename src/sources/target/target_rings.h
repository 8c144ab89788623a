/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session folder and what injected libraries say in it: makes the folder and its gate, finds
 * the ring files of processes, and hands over their records. The processes write these files, so
 * that nothing in them is believed: a record handed over is whole, its contents are not checked.
 *
 * As soon as a process has a file, the thread of ring_reader.h drains the rings; target_source.c,
 * the struct source, hands on what it has read.
 *
 * Call order: open → drain* → target_gate_drain → drain* → target_gate_close → drain → account →
 * free. One thread, or several that lock; the lock is theirs to take, and no call takes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/target/map_guard.h"
#include "sources/target/target_gate.h"
#include "wire/device.h"
#include "wire/ring.h"

struct target_rings;

struct target_rings_account {
	uint64_t processes;  /* that loaded the library and found the session */
	uint64_t records;    /* handed over */
	uint64_t lost;       /* a ring was full */
	uint64_t no_ring;    /* records of threads that got no ring */
	uint64_t no_context; /* launches that were not timed: too many in flight */
	uint64_t no_range;   /* calls for ranges that were not recorded */
	uint64_t damaged;    /* times that a ring held no record, and was skipped */
	uint64_t refused;    /* files that are no ring files of ours */
	uint64_t no_copy;    /* launches whose stack found no room in their ring */
};

/* A process that has made a ring file. */
struct target_process {
	uint32_t pid;
	uint64_t start_time_ns; /* of the file */
	/* Shared with it; NULL: it is done. The guard is to be entered around every use. */
	struct wire_launch_facts *facts;
	const struct wire_step_counter *steps; /* WIRE_STEP_NAMES; those of one that is done stay */
	struct map_guard *guard;
};

/*
 * `pid` is the process in our PID namespace, where it was found, else what it says of itself. The
 * record is 8-byte aligned and good during the call only.
 */
typedef void target_rings_record_function(
	void *context, uint32_t pid, const struct wire_record *record);

/* Steps of one name, of all processes, those that have ended, too. */
struct target_steps {
	char name[WIRE_STEP_NAME_BYTES];
	uint64_t count, most; /* together, and of one process */
	uint32_t processes;
	bool is_chosen; /* windows count them */
};

int target_rings_open(struct target_rings **ret_rings, const struct target_gate_options *options,
	struct errmsg *err);
/* Removes the folder. */
struct target_rings *target_rings_free(struct target_rings *rings);
/* Of the session: for $SONDE_SESSION. */
const char *target_rings_folder(const struct target_rings *rings);
struct target_gate *target_rings_gate(struct target_rings *rings);
void target_rings_lock(struct target_rings *rings);
void target_rings_unlock(struct target_rings *rings);
/* Readable when a process has made a file. */
int target_rings_descriptor(const struct target_rings *rings);
/* All that is waiting; returns 0 or a negative errno. Also tells the processes that we live. */
int target_rings_drain(
	struct target_rings *rings, target_rings_record_function *on_record, void *context);
bool target_rings_is_used(const struct target_rings *rings);
/*
 * Each process that has made a file, which may be waiting for target_gate_set_ready(): start with
 * *position = 0; false at the end.
 */
bool target_rings_next(
	const struct target_rings *rings, size_t *position, struct target_process *ret_process);
/* Somebody removed the folder: processes that begin later find no session. */
bool target_rings_is_removed(const struct target_rings *rings);
/* The fullest ring that the last drain met, of 1. */
double target_rings_fill(const struct target_rings *rings);
/* Living processes that have not written all that they held back. */
unsigned target_rings_holding(const struct target_rings *rings);
void target_rings_account(
	const struct target_rings *rings, struct target_rings_account *ret_account);
/* Fills up to `capacity`, and returns how many there are: in the order in which they were seen. */
size_t target_rings_steps(
	const struct target_rings *rings, struct target_steps *ret_steps, size_t capacity);

/*
 * One ring file's bytes, for the drain and for fuzzing: `file` has WIRE_RING_FILE_BYTES, and
 * `cursors` one for each ring. Returns how many records were handed over.
 */
uint64_t target_rings_read(struct wire_ring_file *file, uint32_t pid,
	struct wire_ring_cursor *cursors, target_rings_record_function *on_record, void *context,
	uint64_t *damaged);
