/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's queue length: a launch waits from its call's begin until its work begins. It knows the
 * calls by name, and sorts as numpy does, so that lengths may fall below 0.
 */
#pragma once

#include "analyses/device/queue.h"

/* Of a view with HTA's rows; for queue_done(). Returns 0 or -ENOMEM. */
int hta_queue_init(struct queue *queue, const struct trace_view *view);
