/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what the kernel left in a perf ring. The first byte says which fields the samples
 * have and where in the ring the records begin, so that some run over its end; samples become wire
 * records, the rest tells of threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "sources/cpu/perf_sample.h"
#include "sources/cpu/thread_names.h"
#include "sources/process/perf_ring.h"
#include "target.h"

#define MAXIMUM_RECORD_BYTES ((size_t)256 * 1024)

/* What the pipeline would not take is a mistake of the conversion. */
static void check_sample(const struct wire_sample *sample)
{
	uint64_t length = sizeof(*sample) + sample->kernel_frame_count * sizeof(uint64_t);

	if (sample->flags & WIRE_SAMPLE_STACK_COPY) {
		const struct wire_stack_copy *copy =
			(const void *)&sample->frames[sample->kernel_frame_count];

		length += sizeof(*copy) + copy->stack_bytes;
	}
	if (sample->kernel_frame_count > WIRE_MAX_KERNEL_FRAMES || sample->user_frame_count ||
		sample->stop >= WIRE_STOP_MAX || sample->record.length_bytes != length ||
		length > PERF_SAMPLE_MAX_BYTES)
		abort();
}

static void take_record(
	struct thread_names *names, const struct perf_event_header *header, bool with_chain)
{
	_cleanup_free_ struct wire_sample *sample = NULL;
	struct perf_record_id id;

	perf_record_id(header, &id);
	if (header->type != PERF_RECORD_SAMPLE) {
		if (thread_names_apply(names, header) < 0)
			abort();
		return;
	}
	sample = malloc(PERF_SAMPLE_MAX_BYTES);
	if (sample &&
		perf_sample_convert(header,
			PERF_SAMPLE_USER_STACK_TYPE | (with_chain ? PERF_SAMPLE_CALLCHAIN : 0),
			sample))
		check_sample(sample);
}

/* The bytes, from `offset` of a ring that just holds them. Returns the ring's size. */
static size_t fill_ring(uint8_t **ret_data, const uint8_t *bytes, size_t length, size_t offset)
{
	size_t size = 64, first;

	while (size < length)
		size *= 2;
	*ret_data = aligned_alloc(64, size);
	if (!*ret_data)
		return 0;
	memset(*ret_data, 0, size);
	offset &= size - 1;
	first = MIN(length, size - offset);
	memcpy(*ret_data + offset, bytes, first);
	memcpy(*ret_data, bytes + first, length - first);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct perf_event_mmap_page page = {0};
	struct thread_names names = {0};
	const struct perf_event_header *header;
	_cleanup_free_ uint8_t *data = NULL;
	struct perf_ring ring = {0};
	size_t size;

	if (length < 2 || length > MAXIMUM_RECORD_BYTES)
		return 0;
	page.data_tail = (uint64_t)(bytes[0] & 0x7f) * 8;
	page.data_head = page.data_tail + length - 1;
	size = fill_ring(&data, bytes + 1, length - 1, page.data_tail);
	if (!size || perf_ring_init(&ring, &page, data, size) < 0)
		return 0;
	perf_ring_update(&ring);
	while ((header = perf_ring_peek(&ring))) {
		take_record(&names, header, bytes[0] & 0x80);
		perf_ring_consume(&ring);
	}
	thread_names_done(&names);
	perf_ring_done(&ring);
	return 0;
}
