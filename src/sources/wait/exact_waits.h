/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact waiting source: measures every wait of the recorded processes from its begin to its
 * end, and says through the CPU sampler's ring where the long ones were, and for what. Cost grows
 * with the rate of context switches.
 *
 * Call order: open → start → (resume → stop)* → its records drained → account → free. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/cpu/bpf_sampler.h"

struct exact_waits;

struct exact_waits_account {
	uint64_t run_count, run_time_ns; /* of the BPF programs; 0: not measured */
	uint64_t unmeasured;             /* begins or ends of waits that the kernel did not keep */
	uint64_t crowded;                /* long waits that were counted: much was in the ring */
	uint64_t lost, lost_ns;          /* waits that found no room in the ring */
};

/* True where stacks are taken when the wait is over: the kernel has sched_exit_tp, as 6.18. */
bool exact_waits_see_the_end(void);
/*
 * Shares the maps of an open BPF sampler, which outlives the source. `minimum_ns`: the stacks of
 * shorter waits are not taken. -ENOTSUP with a sentence where the kernel cannot.
 */
int exact_waits_open(struct exact_waits **ret_source, const struct bpf_sampler_parts *parts,
	uint64_t minimum_ns, struct errmsg *err);
struct exact_waits *exact_waits_free(struct exact_waits *source);
/* Attaches its programs, which takes long on a busy machine: waits are followed from here on, and
 * counted from resume() on. */
int exact_waits_start(struct exact_waits *source, struct errmsg *err);
/* Hands over the waits that have not ended, and all that was counted and not reported. */
void exact_waits_stop(struct exact_waits *source);
/* Waits count from this moment on. Returns 0 or a negative errno. */
int exact_waits_resume(struct exact_waits *source, uint64_t from_ns);
void exact_waits_account(const struct exact_waits *source, struct exact_waits_account *ret_account);
