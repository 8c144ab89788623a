/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading Kineto's traces, and others in Chrome's JSON format, into rows. Files may be compressed,
 * larger than memory, cut off and damaged: what could be read is in the trace, what could not is
 * counted in trace.damage.
 */
#pragma once

#include "model/trace.h"

struct trace_read_options {
	/* Everything in the file is kept, as text where analyses have no use for it. */
	bool keep_arguments;
	/* Stops with a sentence when the rows need more; 0: three quarters of the machine's memory.
	 */
	uint64_t max_bytes;
	/* That parse it, beside the one that reads ahead; 0: as many as there are processors. */
	unsigned threads;
	/* Told now and then how much of the file was read; total is 0 where that is not known. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

/*
 * Reads and finishes (see trace_finish()) the trace. `options` may be NULL. Returns 0 or a negative
 * errno with a sentence: -ENODATA when the file is no trace of this kind.
 */
int kineto_read(struct trace **ret_trace, const char *path,
	const struct trace_read_options *options, struct errmsg *err);

/*
 * The rank that the trace says it is of ("distributedInfo"), without reading its events. False when
 * it says none, or cannot be read.
 */
bool kineto_rank(const char *path, uint32_t *ret_rank);
