/* SPDX-License-Identifier: Apache-2.0 */
/* Of link.c and times.c: the trace as Chakra's linker sees it. */
#pragma once

#include "chakra/link/state.h"

/* An operator, in its order: by start, then as in the file. */
struct compat_operator {
	int64_t start_ns, end_ns, exclusive_ns;
	uint64_t rf_id, external_id; /* TRACE_NO_ID: none */
	uint32_t row, thread;
	uint32_t host; /* node that was matched with it last; MODEL_NONE: none so far */
	uint32_t dep;  /* operator that it waits for; MODEL_NONE: none */
};

/* Work, by the External id of the operator that it was given to. */
struct compat_work {
	uint64_t external_id;
	uint32_t row;
};

struct compat_host {
	uint64_t id;
	uint32_t index;
};

struct compat {
	struct link *link;
	ARRAY_OF(struct compat_operator) operators;
	struct map_u64 threads; /* tid → thread, numbered by the first operator */
	uint32_t thread_count;
	struct map_u64 by_rf_id; /* → operator */
	struct map_u64 launches; /* correlation → row of a launch that the linker knows */
	ARRAY_OF(struct compat_work) works;
	uint32_t *deps; /* node as read → node that it waits for; MODEL_NONE: none */
};

int compat_exclusive_times(struct compat *compat);
int compat_thread_deps(struct compat *compat);
