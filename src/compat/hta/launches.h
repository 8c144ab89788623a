/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's kernel launch statistics: a row for each piece of work, of four calls that it knows by
 * name. No graphs, no driver. Latencies of idle streams are not known.
 */
#pragma once

#include "analyses/device/launches.h"

/* Of a view with HTA's rows; for launches_done(). Returns 0 or -ENOMEM. */
int hta_launches_init(struct launches *launches, const struct trace_view *view);
