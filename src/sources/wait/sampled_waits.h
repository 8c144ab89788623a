/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting source: looks at every thread of the recorded processes some times a second and says,
 * through the CPU sampler's ring, where those that do not run wait, for what, and how long. Cost is
 * bounded by the number of looks, whatever the rate of context switches.
 *
 * Call order: open → start → (resume → run* → pause)* → stop → run's records drained → account →
 * free. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "sources/cpu/bpf_sampler.h"

struct sampled_waits;

struct sampled_waits_account {
	uint64_t run_count, run_time_ns; /* of the BPF program; 0: not measured */
	uint64_t looked, unchanged, due, taken, raced;
};

/*
 * Shares the maps of an open BPF sampler, which outlives the source. `period_ns`: between two
 * looks. -ENOTSUP with a sentence where the kernel cannot (before Linux 5.18).
 */
int sampled_waits_open(struct sampled_waits **ret_source, const struct bpf_sampler_parts *parts,
	uint64_t period_ns, struct errmsg *err);
struct sampled_waits *sampled_waits_free(struct sampled_waits *source);
/* Attaches its programs, which takes long on a busy machine; waits count from resume() on. */
int sampled_waits_start(struct sampled_waits *source, struct errmsg *err);
/* Readable when a look is due. */
int sampled_waits_descriptor(const struct sampled_waits *source);
/* Looks, when it is due; looks that were missed are not made up for. Returns 0 or a negative errno.
 */
int sampled_waits_run(struct sampled_waits *source);
/*
 * A look that hands over all that is not reported yet, and none from then on, until it is resumed:
 * what was waited before `from_ns` is not counted. Returns 0 or a negative errno.
 */
void sampled_waits_pause(struct sampled_waits *source);
int sampled_waits_resume(struct sampled_waits *source, uint64_t from_ns);
/* A last look. */
void sampled_waits_stop(struct sampled_waits *source);
void sampled_waits_account(
	const struct sampled_waits *source, struct sampled_waits_account *ret_account);
