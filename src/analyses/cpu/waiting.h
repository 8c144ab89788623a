/* SPDX-License-Identifier: Apache-2.0 */
/* Time that threads did not run: for what they waited, and which line of whose code led there. */
#pragma once

#include <stdbool.h>

#include "analyses/selection.h"
#include "base/array.h"
#include "model/model.h"

struct waiting_row {
	enum wire_wait reason;
	uint32_t frame; /* that it is charged to; MODEL_NONE: the stack is not known */
	/* Of reasons that say little, the function of the kernel's that the system call is in;
	 * MODEL_NONE: not known. See waiting_call_name(). */
	uint32_t call;
	uint64_t time_ns;
	uint64_t waits, open_waits; /* how many, where all are measured; those that had not ended */
	bool is_count;              /* waits whose stacks were not taken: short ones */
	bool is_background;         /* a pool's or a runtime's, not the program's own */
};

#define WAITING_NEAR_NS 150000000ULL

/* Who held Python's interpreter lock while another thread waited for it. */
struct waiting_holder {
	uint32_t waiter, holder; /* frames, as waiting_row.frame */
	bool has_holder;         /* false: no known thread held it when sampled */
	uint64_t time_ns;
};

/*
 * Each waiting sample is charged to the innermost frame of the user's own code, without one to the
 * innermost Python frame, else to the innermost frame of user space. Frames of one source line are
 * one row, without lines those of one function.
 */
struct waiting {
	uint64_t time_ns; /* of all threads together: may exceed the recording's duration */
	uint64_t by_reason[WIRE_WAIT_MAX];
	bool exact; /* every wait was measured, else they were sampled */
	/* Where exact: those whose stacks were not taken, how many in all, and how many were open.
	 */
	uint64_t counted_ns, counted, waits, open_waits;
	ARRAY_OF(struct waiting_row) rows; /* longest first */
	/*
	 * Of the rows that are background, and the threads that wait nowhere else. Where some row
	 * is the user's own code, all others with a stack are background; where none is, those in
	 * the C library, a driver or a framework's native code.
	 */
	uint64_t background_ns;
	uint32_t background_threads;
	/*
	 * Longest first. The holder's place is that of its own sample nearest in time, at most
	 * WAITING_NEAR_NS away; MODEL_NONE: it has none so near.
	 */
	ARRAY_OF(struct waiting_holder) holders;
};

/* `selection`: as for CPU samples. Returns 0, -ENOMEM, or -EINVAL as selection_apply(). */
int waiting_init(struct waiting *waiting, const struct model *model,
	const struct selection *selection, struct errmsg *err);
void waiting_done(struct waiting *waiting);
/* The row's system call, as "ioctl"; NULL: its reason says enough, or it is not known. */
const char *waiting_call_name(const struct model *model, const struct waiting_row *row);
#define _cleanup_waiting_ _cleanup_(waiting_done)
