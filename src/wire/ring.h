/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a profiled process to the collector: one file per process in the session folder, mapped by
 * both, with rings of one producer and one consumer each. A thread of the process owns a ring until
 * it ends. The process never waits: what does not fit is counted in its ring.
 *
 * Records are wire_record, multiples of 8 bytes, and never wrap: where one does not fit before the
 * end of the usable part of a ring, a WIRE_RECORD_PADDING takes the rest. Only that part is backed
 * by memory; a consumer that falls behind makes it larger. The consumer trusts nothing that it
 * reads here.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "wire/gate.h"
#include "wire/launch.h"
#include "wire/record.h"
#include "wire/step.h"

#define WIRE_RING_MAGIC    0x676e6972646e6f73ULL /* "sondring" */
#define WIRE_RING_COUNT    128
#define WIRE_RING_BYTES    (8 << 20) /* of records at most; a power of two */
#define WIRE_RING_AT_FIRST (1 << 20) /* in use until the consumer finds that it is late */
#define WIRE_RING_TID_NONE 0

/* Names in the session folder; a ring file's is this, its pid, a dot and its start time. */
#define WIRE_RING_PREFIX "ring."
/*
 * The first process of a session waits at most so long for the collector to get ready, and longer
 * while the probe for its launches is being loaded, which takes its time on a busy machine.
 */
#define WIRE_READY_NS 1000000000ULL
#define WIRE_PROBE_NS 10000000000ULL

/* Who has the vendor's tracing library when a profiler in the program asks for it. */
enum wire_tracer_mode {
	WIRE_TRACER_OWN = 0,   /* sonde has it, and takes it back */
	WIRE_TRACER_SHARE = 1, /* the profiler while it runs, then sonde */
	WIRE_TRACER_YIELD = 2, /* the profiler from its first start on */
};

/* In which detail launches of graphs are timed. */
enum wire_graph_mode {
	WIRE_GRAPH_AUTO = 0,
	WIRE_GRAPH_NODE = 1,  /* each node */
	WIRE_GRAPH_WHOLE = 2, /* each launch of a graph */
};

/* Which calls of a runtime are recorded. */
enum wire_call_mode {
	WIRE_CALLS_LAUNCHES = 0, /* launches, waits, and what graphs and waits are joined by */
	WIRE_CALLS_ALL = 1,      /* also allocations, queries, loading of code and the like */
};

/* What a process holds back that it will tell when the gate drains. */
enum wire_held {
	WIRE_HELD_NOTHING = 0,
	WIRE_HELD_SOME = 1, /* the tracing library may have records */
	WIRE_HELD_SENT = 2, /* all was sent since the gate drains */
};

/* Two cache lines: what the producer writes, and what the consumer writes. */
struct wire_ring {
	_Atomic __u32 tid; /* the owner; WIRE_RING_TID_NONE: free */
	__u32 reserved;
	_Atomic __u64 head; /* bytes ever written */
	_Atomic __u64 lost; /* records that found no room */
	__u64 launches;     /* ever made by its owners */
	__u64 producer[4];
	_Atomic __u64 tail;   /* bytes ever read */
	_Atomic __u32 usable; /* bytes from the start that records may take; 0: as at first */
	__u32 reserved_usable;
	__u64 consumer[6];
};

_Static_assert(sizeof(struct wire_ring) == 128, "wire_ring is part of the wire format");

struct wire_ring_file {
	_Atomic __u64 magic; /* WIRE_RING_MAGIC, written last */
	__u32 version;
	__u32 pid;           /* as the process itself sees it */
	__u64 start_time_ns; /* when the file was made, CLOCK_MONOTONIC */
	__u32 ring_count;
	__u32 ring_bytes;
	_Atomic __u64 no_ring;    /* records of threads that got none */
	_Atomic __u64 no_context; /* launches that are not timed: too many at once */
	_Atomic __u64 no_copy;    /* launches whose stack found no room in the ring */
	_Atomic __u64 no_range;   /* calls for ranges that could not be recorded */
	_Atomic __u32 held;       /* enum wire_held */
	__u32 reserved_held;
	__u64 pid_namespace;   /* that `pid` is of: its inode; 0: not known */
	_Atomic __u64 no_step; /* steps of more names than are kept */
	__u64 reserved[5];
	struct wire_ring rings[WIRE_RING_COUNT];
	struct wire_step_counter steps[WIRE_STEP_NAMES];
	struct wire_launch_facts facts;
};

_Static_assert(sizeof(struct wire_ring_file) ==
		       128 + WIRE_RING_COUNT * 128 +
			       WIRE_STEP_NAMES * sizeof(struct wire_step_counter) +
			       sizeof(struct wire_launch_facts),
	"wire_ring_file is part of the wire format");

/* Where the records of the first ring begin; those of the others follow. */
#define WIRE_RING_DATA_OFFSET ((sizeof(struct wire_ring_file) + 4095) / 4096 * 4096)
#define WIRE_RING_FILE_BYTES  (WIRE_RING_DATA_OFFSET + (size_t)WIRE_RING_COUNT * WIRE_RING_BYTES)

static inline unsigned char *wire_ring_data(struct wire_ring_file *file, __u32 ring)
{
	return (unsigned char *)file + WIRE_RING_DATA_OFFSET + (size_t)ring * WIRE_RING_BYTES;
}

static inline __u64 wire_ring_usable(const struct wire_ring *ring)
{
	__u64 usable = atomic_load_explicit(&ring->usable, memory_order_relaxed);

	if (usable < WIRE_RING_AT_FIRST)
		return WIRE_RING_AT_FIRST;
	return usable < WIRE_RING_BYTES ? usable : WIRE_RING_BYTES;
}

/* Bytes between two places, without what is skipped at the end of the usable part. */
static inline __u64 wire_ring_between(const struct wire_ring *ring, __u64 tail, __u64 head)
{
	__u64 skipped = WIRE_RING_BYTES - wire_ring_usable(ring), bytes = head - tail;

	if ((head ^ tail) < WIRE_RING_BYTES)
		return bytes;
	return bytes > skipped ? bytes - skipped : 0;
}

/*
 * Room for a record of so many bytes, a multiple of 8, far below the ring's; by the ring's owner
 * only. It is read from wire_ring_commit() on. NULL when there is none, which is counted.
 */
static inline void *wire_ring_reserve(
	struct wire_ring *ring, unsigned char *data, __u32 bytes, __u64 *ret_head)
{
	__u64 head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	__u64 tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	__u64 at = head & (WIRE_RING_BYTES - 1), to_end = WIRE_RING_BYTES - at;
	/* There is always room for the padding's own record. */
	bool is_turning = at + bytes + sizeof(struct wire_record) > wire_ring_usable(ring);
	__u64 needed = is_turning ? bytes + to_end : bytes;

	if (needed > WIRE_RING_BYTES - (head - tail)) {
		atomic_store_explicit(&ring->lost,
			atomic_load_explicit(&ring->lost, memory_order_relaxed) + 1,
			memory_order_relaxed);
		return NULL;
	}
	if (is_turning) {
		struct wire_record padding = {
			.type = WIRE_RECORD_PADDING, .length_bytes = (__u32)to_end};

		memcpy(data + at, &padding, sizeof(padding));
		at = 0;
	}
	*ret_head = head + needed;
	return data + at;
}

static inline void wire_ring_commit(struct wire_ring *ring, __u64 head)
{
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

/* Both at once; false when the record does not fit. */
static inline bool wire_ring_write(
	struct wire_ring *ring, unsigned char *data, const struct wire_record *record)
{
	__u64 head;
	void *to = wire_ring_reserve(ring, data, record->length_bytes, &head);

	if (!to)
		return false;
	memcpy(to, record, record->length_bytes);
	wire_ring_commit(ring, head);
	return true;
}

/* A consumer's place in a ring: its own, since the shared one may be written by anybody. */
struct wire_ring_cursor {
	__u64 tail;
};

enum wire_ring_got {
	WIRE_RING_NOTHING,
	WIRE_RING_RECORD,
	WIRE_RING_DAMAGED, /* what was there is no record: all of it was skipped */
};

/*
 * Copies the next record to `to`, of at most `capacity` bytes, whose length is then right. Longer
 * ones are damage.
 */
static inline enum wire_ring_got wire_ring_read(struct wire_ring *ring, const unsigned char *data,
	struct wire_ring_cursor *cursor, void *to, __u32 capacity)
{
	__u64 head = atomic_load_explicit(&ring->head, memory_order_acquire);
	__u64 waiting = head - cursor->tail;
	enum wire_ring_got got = WIRE_RING_NOTHING;
	struct wire_record record = {0};

	if (waiting > WIRE_RING_BYTES || waiting % 8) {
		got = WIRE_RING_DAMAGED;
		cursor->tail = head & ~7ULL;
	}
	while (got == WIRE_RING_NOTHING && cursor->tail != head) {
		__u64 at = cursor->tail & (WIRE_RING_BYTES - 1);
		__u64 limit = head - cursor->tail;

		if (limit > WIRE_RING_BYTES - at)
			limit = WIRE_RING_BYTES - at;
		memcpy(&record, data + at, sizeof(record));
		got = WIRE_RING_DAMAGED;
		if (record.length_bytes >= sizeof(record) && record.length_bytes % 8 == 0 &&
			record.length_bytes <= limit) {
			cursor->tail += record.length_bytes;
			if (record.type == WIRE_RECORD_PADDING) {
				got = WIRE_RING_NOTHING;
			} else if (record.length_bytes <= capacity) {
				memcpy(to, data + at, record.length_bytes);
				memcpy(to, &record, sizeof(record));
				got = WIRE_RING_RECORD;
			}
		} else {
			cursor->tail = head;
		}
	}
	atomic_store_explicit(&ring->tail, cursor->tail, memory_order_release);
	return got;
}
