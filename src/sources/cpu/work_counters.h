/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of each CPU that say what it does: cycles and instructions. The sampler's BPF
 * program reads them at every tick of the sampling clock. Virtual machines mostly have none.
 */
#pragma once

#include "base/errmsg.h"
#include "base/macros.h"

struct work_counters;

/*
 * Opens and starts both counters of every CPU that is online.
 * SONDE_COUNTERS=TYPE:CONFIG,TYPE:CONFIG in the environment are other events of perf_event_open()
 * in their places: tests have the kernel's own. A negative errno with a sentence where there are
 * none.
 */
int work_counters_open(
	struct work_counters **ret_counters, int cpu_count, struct errmsg *ret_reason);
/* Puts them into the arrays of events that a program reads. Returns 0 or a negative errno. */
int work_counters_insert(const struct work_counters *counters, int cycles_fd, int instructions_fd);
struct work_counters *work_counters_free(struct work_counters *counters);
void work_counters_freep(struct work_counters **counters);
#define _cleanup_work_counters_ _cleanup_(work_counters_freep)
