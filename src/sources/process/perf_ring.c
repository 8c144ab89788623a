/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/process/perf_ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_power_of_two(size_t value)
{
	return value && (value & (value - 1)) == 0;
}

int perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *page, const void *data,
	size_t data_bytes)
{
	uint64_t *wrapped;

	if (!is_power_of_two(data_bytes) || data_bytes < sizeof(struct perf_event_header))
		return -EINVAL;
	wrapped = malloc(PERF_RECORD_MAX_BYTES);
	if (!wrapped)
		return -ENOMEM;
	*ring = (struct perf_ring){
		.fd = -1, .page = page, .data = data, .data_bytes = data_bytes, .wrapped = wrapped};
	ring->head = ring->tail = page->data_tail;
	return 0;
}

int perf_ring_map(struct perf_ring *ring, int take_fd, uint32_t cpu, size_t data_bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), mapped_bytes = page_bytes + data_bytes;
	/* Writable: the kernel then never overwrites what was not consumed. */
	void *base = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, take_fd, 0);
	int error;

	if (base == MAP_FAILED) {
		error = -errno;
		close(take_fd);
		return error;
	}
	error = perf_ring_init(ring, base, (uint8_t *)base + page_bytes, data_bytes);
	if (error < 0) {
		munmap(base, mapped_bytes);
		close(take_fd);
		return error;
	}
	ring->fd = take_fd;
	ring->cpu = cpu;
	ring->mapped_bytes = mapped_bytes;
	return 0;
}

void perf_ring_done(struct perf_ring *ring)
{
	if (!ring->page)
		return;
	if (ring->mapped_bytes) {
		munmap(ring->page, ring->mapped_bytes);
		close(ring->fd);
	}
	free(ring->wrapped);
	*ring = (struct perf_ring){.fd = -1};
}

void perf_ring_update(struct perf_ring *ring)
{
	uint64_t waiting;

	/* Pairs with the kernel's release of data_head: the records below it are written. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	waiting = ring->head - ring->tail;
	if (waiting <= ring->data_bytes && waiting > ring->fullest_bytes)
		ring->fullest_bytes = waiting;
}

static void perf_ring_advance(struct perf_ring *ring, uint64_t tail)
{
	ring->tail = tail;
	/* Our reads are done before the kernel sees the room. */
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static const struct perf_event_header *perf_ring_give_up(struct perf_ring *ring)
{
	ring->malformed++;
	perf_ring_advance(ring, ring->head);
	return NULL;
}

/* The header never wraps: records are multiples of 8 bytes, and so is the ring. */
static const struct perf_event_header *perf_ring_at_tail(const struct perf_ring *ring)
{
	const uint8_t *bytes = ring->data + (ring->tail & (ring->data_bytes - 1));

	return __builtin_assume_aligned(bytes, sizeof(struct perf_event_header));
}

const struct perf_event_header *perf_ring_peek(struct perf_ring *ring)
{
	uint64_t waiting = ring->head - ring->tail;
	size_t offset = ring->tail & (ring->data_bytes - 1), until_end = ring->data_bytes - offset;
	const struct perf_event_header *header;
	size_t size;

	if (!waiting)
		return NULL;
	if (waiting > ring->data_bytes || waiting < sizeof(*header) || ring->tail % 8)
		return perf_ring_give_up(ring);
	header = perf_ring_at_tail(ring);
	size = header->size;
	if (size < sizeof(*header) || size % 8 || size > waiting)
		return perf_ring_give_up(ring);
	if (size <= until_end)
		return header;
	memcpy(ring->wrapped, header, until_end);
	memcpy((uint8_t *)ring->wrapped + until_end, ring->data, size - until_end);
	return (const struct perf_event_header *)ring->wrapped;
}

void perf_ring_consume(struct perf_ring *ring)
{
	assert(ring->tail != ring->head);
	perf_ring_advance(ring, ring->tail + perf_ring_at_tail(ring)->size);
}

bool perf_record_id(const struct perf_event_header *header, struct perf_record_id *ret_id)
{
	if (header->size < sizeof(*header) + sizeof(*ret_id))
		return false;
	memcpy(ret_id, (const uint8_t *)header + header->size - sizeof(*ret_id), sizeof(*ret_id));
	return true;
}

const char *perf_record_text(const struct perf_event_header *header, size_t offset)
{
	const char *text = (const char *)header + offset;

	if (header->size < offset + sizeof(struct perf_record_id))
		return NULL;
	if (!memchr(text, '\0', header->size - offset - sizeof(struct perf_record_id)))
		return NULL;
	return text;
}
