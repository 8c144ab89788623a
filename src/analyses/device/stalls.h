/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What warps stood at while a device was sampled (sonde record --pc-sampling), and why: samples of
 * instructions by kernel and reason, by source line, by instruction. Shares are of samples that
 * have an instruction: those that the device dropped are in none.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

enum stall_by {
	STALL_BY_REASON, /* and kernel */
	STALL_BY_LINE,   /* of a kernel; what has none is left out */
	STALL_BY_PC,     /* of a kernel */
};

/* Samples that have all of that in common. */
struct stall_group {
	const struct model_pc *first; /* one of them */
	uint64_t samples, not_issued;
	uint64_t kernel_samples; /* of its kernel, of all groups */
	const char *reason;      /* that most of them have */
	uint64_t reason_samples;
};

struct stall_groups {
	/* Most samples first; by reason the kernels with most first, then most samples first. */
	ARRAY_OF(struct stall_group) items;
	uint64_t samples, not_issued; /* of all groups */
};

/* Returns 0 or -ENOMEM. */
int stall_groups_init(struct stall_groups *groups, const struct model *model, enum stall_by by);
void stall_groups_done(struct stall_groups *groups);
#define _cleanup_stall_groups_ _cleanup_(stall_groups_done)

/* "long_scoreboard" of "smsp__pcsamp_warps_issue_stalled_long_scoreboard"; others as they are. */
const char *stall_reason_name(const char *reason);
