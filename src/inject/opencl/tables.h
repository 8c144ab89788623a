/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the OpenCL layer knows of the program's handles: fixed tables without locks, filled at
 * creation or at first use. A handle that is given again overwrites what was known of it.
 */
#pragma once

#include <stdbool.h>

#include "inject/opencl/abi.h"

#define OPENCL_MAX_PROPERTIES 16 /* words of a queue's properties list, its end included */

/* What the driver offers: the dispatch table below the layer. */
extern const cl_function *opencl_next;
#define NEXT(type, slot) ((type *)opencl_next[slot])

struct opencl_queue {
	uint32_t id, device;     /* 0: not known */
	bool is_timed;           /* it can tell times */
	bool is_timed_for_us;    /* the program did not ask for that */
	uint32_t property_count; /* words that the program gave; 0: no list */
	cl_ulong properties[OPENCL_MAX_PROPERTIES];
};

/* The queue's entry, looked at when it was not known before; NULL: no room, or no queue. */
const struct opencl_queue *opencl_queue(cl_handle queue);
/*
 * Tells the collector of the queue and its device, unless it was already. At a queue's first use
 * with an open gate, not at its creation: nothing is written while the gate is closed.
 */
void opencl_queue_define(const struct opencl_queue *queue);
/* At creation; `given` is the program's own list, NULL for none. */
void opencl_queue_created(cl_handle queue, bool is_timed_for_us, const cl_ulong *given);

/* The id of a name, defined in the ring when it is new; 0: no room. */
uint32_t opencl_name(const char *name);
/* The id of the kernel's name, defined in the ring when it is new; 0: unknown. */
uint32_t opencl_kernel_name(cl_handle kernel);
/* The handle stands for another kernel now. */
void opencl_kernel_created(cl_handle kernel);
