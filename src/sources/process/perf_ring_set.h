/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf ring per online CPU and the events that write into them. The rings belong to idle events
 * of our own process, so they outlive whatever is followed; every other event is redirected to its
 * CPU's ring.
 */
#pragma once

#include <sys/types.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "sources/process/perf_ring.h"

/* The part of every event's sample_type that the readers rely on. Events that take samples add IP,
 * and what they like. */
#define PERF_RING_SET_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

struct perf_ring_event {
	int fd;
	uint32_t ring; /* index in rings */
};

struct perf_ring_set {
	struct perf_ring *rings;
	uint32_t count;
	ARRAY_OF(struct perf_ring_event) events;
	uint32_t *heap; /* of perf_ring_set_drain: ring indices, the oldest waiting record first */
	uint64_t *next_time_ns;
	uint64_t malformed; /* records too short for their kind */
};

/* One record in time order; `id` is filled for samples too. */
struct perf_set_record {
	const struct perf_event_header *header;
	struct perf_record_id id;
	uint32_t ring; /* index in rings */
};

typedef void perf_record_function(void *context, const struct perf_set_record *record);

/*
 * Maps rings of the same size on all CPUs: the largest power of two from `max_bytes` down to
 * `min_bytes` (powers of two) that the limit for locked memory lets through. Zero-initialised
 * `set`; call perf_ring_set_done() in any case.
 */
int perf_ring_set_open(
	struct perf_ring_set *set, size_t max_bytes, size_t min_bytes, struct errmsg *err);
/*
 * Opens `attr` on each CPU for one thread (`tid`) or for all (-1), writing into the rings.
 * sample_id_all, CLOCK_MONOTONIC and, where the kernel knows it, PERF_FORMAT_LOST are added.
 * Returns 0 or a negative errno, and then nothing stays open: -ESRCH when the thread is gone.
 */
int perf_ring_set_attach(struct perf_ring_set *set, const struct perf_event_attr *attr, pid_t tid);
/*
 * The same for every thread that the process has now. A thread made meanwhile, by one whose turn
 * had not come, is missed.
 */
int perf_ring_set_attach_process(
	struct perf_ring_set *set, const struct perf_event_attr *attr, pid_t pid);
/* PERF_EVENT_IOC_ENABLE or _DISABLE on all attached events. */
int perf_ring_set_control(struct perf_ring_set *set, unsigned long request);
/*
 * Hands over, in time order over all CPUs, every record written before the call. Later ones stay
 * for the next call: only so is an effect on one CPU never handed over before its cause on another.
 */
void perf_ring_set_drain(struct perf_ring_set *set, perf_record_function *on_record, void *context);
/* The records lost on this ring's CPU as counted by the kernel; 0 before Linux 6.0. */
uint64_t perf_ring_set_lost(const struct perf_ring_set *set, uint32_t ring);
size_t perf_ring_set_descriptors(const struct perf_ring_set *set, int *ret_fds, size_t capacity);
void perf_ring_set_done(struct perf_ring_set *set);

/* perf_event_open(2) with PERF_FLAG_FD_CLOEXEC; a descriptor or a negative errno. */
int perf_event_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);
/* kernel.perf_event_paranoid; 2, the kernel's default, when it cannot be read. */
int perf_event_paranoid(void);
/*
 * Turns a perf_event_open() error into a sentence that begins with `what` and says what would help;
 * `paranoid_needed` is the highest kernel.perf_event_paranoid under which it works without
 * privileges. Returns `error`.
 */
int perf_event_explain(struct errmsg *err, int error, const char *what, int paranoid_needed);
