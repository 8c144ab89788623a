/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layers of libsonde-inject.so share: the session's gate, this process's ring file, one
 * ring for each thread that has something to say, and the marker that launch stacks are taken at.
 *
 * All of this runs inside the profiled program: nothing here waits, prints or fails. Without a
 * session, after a fork, or with the gate closed, nothing is written.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "wire/device.h"
#include "wire/ring.h"

/* Linux 5.14, glibc 2.35: kernels before it answer EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The gate of this process: the session's, or a closed one. */
extern _Atomic(const struct wire_gate *) inject_gate;
/* Its state, for those outside who do not know the gate's layout. */
extern _Atomic(const _Atomic uint32_t *) inject_state;

static inline bool inject_is_open(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);

	return atomic_load_explicit(&gate->state, memory_order_relaxed) == WIRE_GATE_OPEN;
}

/* Are devices asked when work ran? */
static inline bool inject_is_timed(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);

	return !atomic_load_explicit(&gate->is_untimed, memory_order_relaxed);
}

/*
 * Opens the session that $SONDE_SESSION names and this process's file in it. False, and the gate
 * stays closed, when there is none. A second call does nothing.
 */
bool inject_open(void);
/*
 * The same for what launches nothing: it does not wait for the collector to be ready to take the
 * stacks of launches, which inject_open() does once.
 */
bool inject_open_at_once(void);
/*
 * The session in this folder, which must be the only one: another that was open is over. Not for
 * programs that launch device work, whose names the last session has. In a forked child, by
 * the thread that forked, before it makes others: the child writes from then on, to a file of its
 * own.
 */
bool inject_open_folder(const char *path);
/*
 * For a runtime that starts: in a forked child, whose parent had opened the session, the child
 * writes from now on, to a file of its own. True also where there is nothing to do.
 */
bool inject_open_in_child(void);
/*
 * This process's file, the session's gate and its path, once the session is open; of a forked child
 * the file is NULL.
 */
struct wire_ring_file *inject_file(void);
struct wire_gate *inject_session_gate(void);
const char *inject_gate_path(void);
/* Tells this file of the process from those of the programs that it was before, or becomes. */
uint32_t inject_image(void);
/* Called by a thread that ends and had a ring, which is still its own then. */
extern _Atomic(void (*)(void)) inject_on_thread_end;
/* Called when another session is opened, and nobody writes: what was sent has to be sent again. */
extern _Atomic(void (*)(void)) inject_on_reopen;
/* Called in a forked child, when it is closed to it. */
extern _Atomic(void (*)(void)) inject_on_fork;
/* The gate drains: nothing new is begun, but inject_write() still writes. */
static inline bool inject_is_draining(void)
{
	const struct wire_gate *gate = atomic_load_explicit(&inject_gate, memory_order_relaxed);

	return atomic_load_explicit(&gate->state, memory_order_relaxed) == WIRE_GATE_DRAINING;
}

static inline bool inject_is_writable(void)
{
	return inject_is_open() || inject_is_draining();
}

/* enum wire_graph_mode, as the session wants it. */
unsigned inject_graph_mode(void);
/* enum wire_tracer_mode, likewise. */
unsigned inject_tracer_mode(void);
/* enum wire_call_mode, likewise. */
unsigned inject_call_mode(void);
bool inject_also_records(enum wire_also what);
/* Tells the collector whether this process will have more to say when the gate drains. */
void inject_set_held(enum wire_held held);

/* A new correlation id, unique in this process; 0 when the thread has no ring. */
uint64_t inject_correlation(void);

/* Where a record goes, from inject_reserve() to inject_commit(), between which nothing is written.
 */
struct inject_place {
	struct wire_ring *ring;
	__u64 head;
};

/* What every record leaves free behind it: room for the one that inject_write_last() writes. */
#define INJECT_LAST_BYTES ((uint32_t)sizeof(struct wire_device_counts))

/*
 * Room in the calling thread's ring for a record of so many bytes, a multiple of 8, for who fills
 * it in there. NULL, and counted, where there is none.
 */
void *inject_reserve(uint32_t bytes, struct inject_place *ret_place);
static inline void inject_commit(const struct inject_place *place)
{
	wire_ring_commit(place->ring, place->head);
}
/* Puts a record into the calling thread's ring; false, and counted, where there is no room. */
bool inject_write(const struct wire_record *record);
/* The same for the thread's last record, which finds room where nobody has read the ring, too. */
bool inject_write_last(const struct wire_device_counts *counts);
/* Of the calling thread: the number of its ring, or -1; the bytes that are free in it. */
int inject_ring_number(void);
uint64_t inject_room(void);
/* What the collector tells this process; with an open gate. */
const struct wire_launch_facts *inject_facts(void);
/* Counts a launch whose stack could not be copied. */
void inject_count_no_copy(void);
/*
 * The calling thread's ring, for who writes to it with wire_ring_write() and calls
 * inject_ring_is_full() where that fails; NULL, and counted, when there is none. Good until
 * inject_on_thread_end.
 */
struct wire_ring *inject_ring(unsigned char **ret_data, uint32_t *ret_index);
void inject_ring_is_full(void);
/* Counts a launch that is not timed because too many are in flight. */
void inject_count_no_context(void);
/* Counts a call for a range that could not be recorded. */
void inject_count_no_range(void);
/* Writes a definition; its text is cut at WIRE_DEVICE_TEXT_BYTES. */
bool inject_define(uint16_t type, uint32_t id, uint32_t device, const char *text);

/* Of the calling thread; 0: not asked for yet. */
extern __thread uint32_t inject_known_tid
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
uint32_t inject_ask_tid(void);
static inline uint32_t inject_tid(void)
{
	return inject_known_tid ? inject_known_tid : inject_ask_tid();
}

static inline uint64_t inject_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}
