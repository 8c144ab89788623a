/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's execution traces (ExecutionTraceObserver), of every schema: what a node has is seen
 * from the fields that are there. Reads linked traces, too: those of chakra/link/linked_json.h and
 * those of Chakra's own linker, whose further fields are in docs/chakra.md.
 *
 * Files as they are: plain, gzip or zstd; cut off, with commas missing, with names that are not
 * escaped. Reading goes on at the next node, and what was left out is counted in the trace.
 */
#pragma once

#include "model/execution_trace.h"

struct pytorch_et_options {
	size_t size;
	uint64_t max_bytes; /* of the unpacked text; 0: half of the machine's memory */
};

/*
 * `options` may be NULL. The nodes are in the file's order and the trace is indexed; what the file
 * does not say has the values that model/execution_trace.h names for it. Returns 0; -ENODATA when
 * no node was understood, -EFBIG beyond max_bytes, or another negative errno, with a sentence.
 */
int pytorch_et_read(struct execution_trace **ret_trace, const char *path,
	const struct pytorch_et_options *options, struct errmsg *err);
/* The same of text in memory: trace->bytes and length, which the caller has set. */
int pytorch_et_parse(struct execution_trace *trace, struct errmsg *err);
