/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf event ring: the kernel writes records, we read them in place. Under the side-band and
 * the perf sampler, which reach it through perf_ring_set.h.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest record: perf_event_header.size has 16 bits. */
#define PERF_RECORD_MAX_BYTES (64 * 1024)

/*
 * What PERF_SAMPLE_ID_ALL puts behind every record that is no sample, for events whose sample_type
 * has exactly TID, TIME and CPU of the fields that concern it.
 */
struct perf_record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
};

struct perf_ring {
	int fd; /* of the event that owns the ring; poll it */
	uint32_t cpu;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t data_bytes;    /* a power of two */
	size_t mapped_bytes;  /* 0: the memory is the caller's */
	uint64_t head, tail;  /* what perf_ring_update() saw, and how far we are */
	uint64_t *wrapped;    /* a record that runs over the ring's end is put together here */
	uint64_t malformed;   /* records, or rests of a ring, that made no sense and were skipped */
	size_t fullest_bytes; /* the most that was ever waiting */
};

/*
 * Maps the ring of `take_fd`, an event on `cpu`; the descriptor is the ring's from now on, and
 * closed on failure too. Returns 0 or a negative errno: -EPERM when the memory would pass the limit
 * for locked memory.
 */
int perf_ring_map(struct perf_ring *ring, int take_fd, uint32_t cpu, size_t data_bytes);
/* Reads from memory instead, for tests and fuzzing: `page` and `data_bytes` bytes of data, which
 * must outlive the ring. */
int perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *page, const void *data,
	size_t data_bytes);
/* Accepts a zeroed ring. */
void perf_ring_done(struct perf_ring *ring);

/* Takes notice of what the kernel wrote up to now; records that come later stay for the next
 * update. */
void perf_ring_update(struct perf_ring *ring);
/*
 * The oldest record, whole and aligned to 8 bytes; NULL when none is waiting. It is valid until
 * perf_ring_consume(). A ring whose contents make no sense is emptied and counted in `malformed`.
 */
const struct perf_event_header *perf_ring_peek(struct perf_ring *ring);
/* Gives the peeked record's room back to the kernel. */
void perf_ring_consume(struct perf_ring *ring);

/* Reads the trailing fields; false when the record is too short for them. Not for
 * PERF_RECORD_SAMPLE. */
bool perf_record_id(const struct perf_event_header *header, struct perf_record_id *ret_id);
/*
 * The NUL-terminated text that starts `offset` bytes into the record and ends before the trailing
 * fields; NULL when there is none.
 */
const char *perf_record_text(const struct perf_event_header *header, size_t offset);
