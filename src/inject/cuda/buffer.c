/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers that CUPTI fills: slots of one mapping, so that a buffer is known by its address, and
 * nothing is allocated or locked where CUPTI asks, on the program's threads.
 */
#include <string.h>
#include <sys/mman.h>

#include "inject/cuda/cuda.h"

#define SLOT_BYTES ((size_t)1 << 20)
#define KEPT_SLOTS 8 /* whose memory is made beforehand and stays */
/*
 * In use at most; each launching thread has one from CUPTI 13 on. Before 12.9 CUPTI crashes when it
 * is refused a buffer: then as many as there are.
 */
#define USUAL_SLOTS 256
#define MAX_SLOTS   1024

enum slot_state {
	SLOT_FREE,
	SLOT_GIVEN,
	SLOT_COMPLETED,
};

struct slot {
	_Atomic uint32_t state; /* enum slot_state */
	uint32_t stream;
	size_t valid_bytes;
	cupti_handle context;
};

static struct slot slots[MAX_SLOTS];
static uint8_t *memory;
static uint32_t slot_count;         /* that have an address */
static _Atomic uint32_t used_slots; /* ever: from here on they were never given */

bool cuda_buffers_init(void)
{
	uint32_t most = cuda.cupti.version >= CUPTI_VERSION_12_9 ? USUAL_SLOTS : MAX_SLOTS;

	for (slot_count = most; slot_count >= KEPT_SLOTS; slot_count /= 2) {
		void *mapped = mmap(NULL, slot_count * SLOT_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (mapped != MAP_FAILED) {
			memory = mapped;
			return true;
		}
	}
	return false;
}

void cuda_buffers_prepare(void)
{
	/* Since Linux 5.14; else the pages come at first use. */
	madvise(memory, KEPT_SLOTS * SLOT_BYTES, MADV_POPULATE_WRITE);
}

static uint8_t *take_slot(void)
{
	for (uint32_t i = 0; i < slot_count; i++) {
		uint32_t state = SLOT_FREE;

		if (!atomic_compare_exchange_strong_explicit(&slots[i].state, &state, SLOT_GIVEN,
			    memory_order_acquire, memory_order_relaxed))
			continue;
		state = atomic_load_explicit(&used_slots, memory_order_relaxed);
		while (state <= i && !atomic_compare_exchange_weak_explicit(&used_slots, &state,
					     i + 1, memory_order_relaxed, memory_order_relaxed))
			;
		return memory + i * SLOT_BYTES;
	}
	return NULL;
}

static void on_request(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*max_records = 0;
	*bytes = SLOT_BYTES;
	*buffer = take_slot();
	atomic_fetch_add_explicit(&cuda.buffer_requests, 1, memory_order_relaxed);
	if (*buffer)
		return;
	*bytes = 0;
	atomic_fetch_add_explicit(&cuda.refused_buffers, 1, memory_order_relaxed);
}

static void on_complete(
	cupti_handle context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
	uint32_t i = (uint32_t)((size_t)(buffer - memory) / SLOT_BYTES);

	/* Asked for by another tool, before we took the activity back. */
	if (buffer < memory || i >= slot_count) {
		atomic_fetch_add_explicit(&cuda.foreign_buffers, 1, memory_order_relaxed);
		return;
	}
	/* Nobody reads it any more, but CUPTI may ask for others until the process has ended. */
	if (atomic_load_explicit(&cuda.dead, memory_order_relaxed)) {
		atomic_store_explicit(&slots[i].state, SLOT_FREE, memory_order_release);
		return;
	}
	slots[i].context = context;
	slots[i].stream = stream;
	slots[i].valid_bytes = valid_bytes < SLOT_BYTES ? valid_bytes : SLOT_BYTES;
	atomic_store_explicit(&slots[i].state, SLOT_COMPLETED, memory_order_release);
	inject_worker_wake(&cuda.writer);
}

static void on_request_v2(uint8_t **buffer, size_t *bytes, size_t *max_records, const void *info)
{
	on_request(buffer, bytes, max_records);
}

static void on_complete_v2(uint8_t *buffer, size_t bytes, size_t valid_bytes, const void *info)
{
	on_complete(NULL, 0, buffer, bytes, valid_bytes);
}

const struct cupti_buffer_callbacks cuda_buffer_callbacks = {
	.request = on_request,
	.complete = on_complete,
	.request_v2 = on_request_v2,
	.complete_v2 = on_complete_v2,
};

/* CUPTI was promised buffers of zeros. */
static void clear_slot(uint32_t i)
{
	if (i < KEPT_SLOTS || madvise(memory + i * SLOT_BYTES, SLOT_BYTES, MADV_DONTNEED) < 0)
		memset(memory + i * SLOT_BYTES, 0, SLOT_BYTES);
}

bool cuda_buffers_drain(cuda_take_buffer *take)
{
	uint32_t used = atomic_load_explicit(&used_slots, memory_order_relaxed);
	bool any = false;

	for (uint32_t i = 0; i < used; i++) {
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_COMPLETED)
			continue;
		take(memory + i * SLOT_BYTES, slots[i].valid_bytes, slots[i].context,
			slots[i].stream);
		clear_slot(i);
		atomic_store_explicit(&slots[i].state, SLOT_FREE, memory_order_release);
		any = true;
	}
	return any;
}
