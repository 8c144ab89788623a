/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults and migrations of CUDA's unified memory, by the allocation that the pages are of, and by
 * the kernel of the same process that ran on the GPU when they began. CUPTI does not say which
 * kernel, nor which stream, was the cause: of several that ran the one that began last stands.
 *
 * An allocation is known if its record lies in the recording: what was allocated before is one row.
 */
#pragma once

#include "analyses/trace_view.h"

struct unified_use {
	uint64_t address, bytes; /* of the allocation; 0: it is not known */
	const char *call;        /* that allocated; NULL: not known */
	uint32_t frame;          /* of your own code, that called it; MODEL_NONE: not known */
	const char *device;      /* "" where all of it happened on the host, of several GPUs */
	uint32_t work; /* index in device_works: a kernel of this name; MODEL_NONE: none ran */
	uint64_t migrations, to_device_bytes, to_host_bytes, between_bytes;
	uint64_t asked_bytes, evicted_bytes; /* of the bytes: prefetched by the program; evicted */
	uint64_t migration_ns, fault_ns;     /* sums: migrations and faults overlap */
	uint64_t host_faults, device_faults; /* of a device: groups of them */
	uint64_t thrashing, throttling, remote_maps;
};

struct unified_memory {
	ARRAY_OF(struct unified_use) rows; /* most time first */
	/* When pages moved unasked, or a GPU waited for them, each moment once for each process. */
	uint64_t unasked_ns;
	uint64_t unasked_bytes; /* that moved to GPUs */
	uint64_t work_ns;       /* from the first work of all GPUs to the end of the last */
	bool has_unknown;       /* pages of no known allocation */
};

/* Of a recording. Returns 0 or -ENOMEM. */
int unified_memory_init(struct unified_memory *unified, const struct model *model);
void unified_memory_done(struct unified_memory *unified);
#define _cleanup_unified_memory_ _cleanup_(unified_memory_done)
