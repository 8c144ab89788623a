/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was in use of devices' memory at each device's own peak, as what samples are weighed by:
 * --weight gpu-bytes. Of a recording here, of another tool's trace in program/trace_held.h.
 */
#pragma once

#include "analyses/memory/memory.h"
#include "analyses/weight_spans.h"

/* What stands in place of a stack that is not known. */
#define HELD_WITHOUT_STACK "[no stack recorded]"

/* The frame that stacks of the device's memory begin with: "[memory of GPU 0]". */
void held_device_frame(const struct trace_memory_device *device, char *frame, size_t size);

/*
 * Of the recording as it is narrowed, before it is weighed; the model gets devices' names. Returns
 * 0 or -ENOMEM.
 */
int held_spans_init(struct weight_spans *spans, struct model *model);
