/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What samples stand for other than their number: time that threads ran or waited, time of devices,
 * their memory, or energy. Once per model, and only one of the four functions.
 */
#pragma once

#include "model/model.h"

/* What samples count in then (model_sample_weight_ns()), in place of sampling periods. */
#define MODEL_UNIT_NS 1

/* What its samples add up to: "CPU time", "device time". */
const char *model_weight_noun(enum model_weight weight);

#define MODEL_GPU_LEAF          "[gpu] "
#define MODEL_UNATTRIBUTED_LEAF "[unattributed: "

/*
 * With MODEL_WEIGHT_CPU nothing changes. With MODEL_WEIGHT_WAIT or WALL every sample stands for the
 * time that it ran or waited, and the stacks of waiting samples end in "[waiting: lock]".
 *
 * With MODEL_WEIGHT_GPU the samples are replaced: one for each piece of device work, with the stack
 * of its launch, which ends in "[gpu] kernel", below "[unattributed: …]" where there is none. Work
 * of a graph stands below "[graph replay]", in the stack of the call that was captured.
 *
 * With MODEL_WEIGHT_CPU_GPU both: the samples of running threads, and those of device work. What
 * ran at the same time counts twice, once on each side.
 *
 * Returns 0 or -ENOMEM.
 */
int model_weigh(struct model *model, enum model_weight weight);

/* Energy that is charged to nothing that ran: to its domain, with `leaf` as its stack. */
struct model_energy_rest {
	uint64_t time_ns, duration_ns; /* duration: of the intervals that it is from */
	uint32_t domain;
	uint16_t error; /* index in energy_errors */
	const char *leaf;
	double energy_j;
};

/*
 * With MODEL_WEIGHT_ENERGY: samples of running threads and of device work, as with
 * MODEL_WEIGHT_CPU_GPU, which count in microjoules that energy_use_init() charged them with, and
 * the rests, below their domain's name. All together are what was measured. Returns 0 or -ENOMEM.
 */
int model_weigh_energy(struct model *model, const struct model_energy_rest *rests, size_t count);

/* Time, the stack it is charged to (MODEL_NONE: none), and the frame that the stack ends in. */
struct model_span {
	uint64_t start_ns, end_ns;
	uint64_t launch_ns;      /* of device work; 0: none, or not known */
	uint32_t process, stack; /* indices */
	uint32_t thread;         /* MODEL_NONE: the process's first stands for it */
	const char *leaf;        /* the whole name: "[idle: sleep]" */
	/* Of memory: allocated at start_ns, on the device that is the stack's outermost frame. */
	const char *device; /* the whole name: "[memory of GPU 0]" */
	uint64_t bytes;
};

/*
 * For other weights: replaces the samples by these. `module` is that of the leaves. Returns 0 or
 * -ENOMEM.
 */
int model_weigh_spans(
	struct model *model, const char *module, const struct model_span *spans, size_t count);

/*
 * With MODEL_WEIGHT_GPU_BYTES: replaces the samples by these, which count in bytes. Stacks begin
 * with the device; `leaf` stands in place of the rest of the stack where that is not known, and is
 * else NULL. Together they are at most MODEL_MOST_BYTES: more is no memory, but a damaged file.
 * Returns 0 or -ENOMEM.
 */
#define MODEL_MOST_BYTES (UINT64_C(1) << 62)

int model_weigh_bytes(struct model *model, const struct model_span *spans, size_t count);
