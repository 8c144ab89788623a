/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time, for each device: what PyTorch's allocators gave out and took back, in a trace
 * recorded with profile_memory=True; in a recording what was allocated of CUDA.
 */
#pragma once

#include "base/array.h"
#include "model/trace.h"

struct trace_memory_point {
	int64_t time_ns;
	int64_t allocated; /* bytes in use: by the allocator, else as far as was seen */
	int64_t reserved;  /* bytes; TRACE_NO_NUMBER: not known */
};

/* Who asked for memory. */
struct trace_memory_op {
	uint32_t name;        /* string; 0: outside of operators */
	uint64_t allocations; /* given out */
	uint64_t bytes;       /* given out */
	int64_t kept;         /* what its calls allocated and did not release; may be negative */
	uint64_t at_peak;     /* bytes that it had been given and were in use at the peak */
};

/* The same of a stack: who called whom to get it. */
struct trace_memory_stack {
	uint32_t stack; /* in trace_memory_use.stacks; 0: none is known */
	uint64_t allocations, bytes, at_peak;
	uint64_t unreleased_bytes;
	uint32_t recorded; /* of a recording: one of its stacks with this text, its index + 1 in
			      trace.recorded; 0: none */
};

/* What was in use at the peak: allocated in this row. */
struct trace_memory_block {
	uint64_t bytes;
	uint32_t row, stack;
	bool is_given; /* the file has the stack: it is not of the rows around */
};

struct trace_memory_device {
	int64_t type, id; /* PyTorch's: type 0 is the CPU, 1 is CUDA; TRACE_NO_NUMBER: not known */
	uint64_t allocations, releases;
	uint64_t allocated_bytes, released_bytes;
	int64_t peak_ns;       /* when most was allocated */
	int64_t peak;          /* bytes */
	int64_t peak_reserved; /* TRACE_NO_NUMBER: not known */
	/* Reserved by the allocator and in use by nobody: at the peak, and at the time when it was
	 * most. TRACE_NO_NUMBER: not known. */
	int64_t unused_at_peak, most_unused, most_unused_ns;
	uint64_t peak_unseen; /* of the peak: allocated before the trace, by whom is not known */
	uint64_t unreleased;  /* addresses given out and not taken back in the trace */
	uint64_t unreleased_bytes;
	ARRAY_OF(struct trace_memory_point) points; /* by time */
	ARRAY_OF(struct trace_memory_op) ops;       /* most bytes first */
	ARRAY_OF(struct trace_memory_stack) stacks; /* most at the peak first, then most bytes */
	/* At the peak. With peak_unseen they are the peak, but where releases are missing in the
	 * trace: then they are more. */
	ARRAY_OF(struct trace_memory_block) blocks;
};

struct trace_memory_use {
	ARRAY_OF(struct trace_memory_device) devices; /* by type and number */
	struct intern stacks;                         /* texts, as TRACE_STACK has them; 0 is "" */
};

/* Returns 0 or -ENOMEM. */
int trace_memory_init(struct trace_memory_use *use, const struct trace *trace);
void trace_memory_done(struct trace_memory_use *use);
#define _cleanup_trace_memory_ _cleanup_(trace_memory_done)

/* Memory of the host, not of a device. */
bool trace_memory_is_host(int64_t device_type);
/* "CPU", "GPU 0" */
void trace_memory_device_name(const struct trace_memory_device *device, char *name, size_t size);
