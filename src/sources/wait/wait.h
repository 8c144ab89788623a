/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting source: looks at every thread of the recorded processes some times a second and says,
 * through the CPU sampler's ring, where those that do not run wait, for what, and how long. Cost is
 * bounded by the number of looks, whatever the rate of context switches.
 *
 * Call order: open → start → (run | pause → resume)* → stop → run's records drained → account →
 * free. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/cpu/bpf_sampler.h"

struct wait_source;

struct wait_account {
	uint64_t run_count, run_time_ns; /* of the BPF program; 0: not measured */
	uint64_t looked, unchanged, due, taken, raced;
};

/*
 * Shares the maps of an open BPF sampler, which outlives the source. `period_ns`: between two
 * looks. -ENOTSUP with a sentence where the kernel cannot (before Linux 5.18).
 */
int wait_source_open(struct wait_source **ret_source, const struct bpf_sampler_parts *parts,
	uint64_t period_ns, struct errmsg *err);
struct wait_source *wait_source_free(struct wait_source *source);
int wait_source_start(struct wait_source *source, struct errmsg *err);
/* Readable when a look is due. */
int wait_source_descriptor(const struct wait_source *source);
/* Looks, when it is due; looks that were missed are not made up for. Returns 0 or a negative errno.
 */
int wait_source_run(struct wait_source *source);
/*
 * A look that hands over all that is not reported yet, and none from then on, until it is resumed:
 * what was waited before `from_ns` is not counted. Returns 0 or a negative errno.
 */
void wait_source_pause(struct wait_source *source);
int wait_source_resume(struct wait_source *source, uint64_t from_ns);
/* A last look. */
void wait_source_stop(struct wait_source *source);
void wait_source_account(const struct wait_source *source, struct wait_account *ret_account);
