/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far compute, copies and communication of a device ran at the same time: each moment between
 * the start of its first work and the end of its last counts once, for the set of what ran in it.
 */
#pragma once

#include "analyses/device/communication.h"
#include "base/array.h"
#include "model/model.h"

/* Bits of a set. */
enum device_activity {
	DEVICE_COMPUTE = 1 << 0,       /* kernels, and graphs timed as a whole */
	DEVICE_COPY = 1 << 1,          /* all that moves, fills or maps memory */
	DEVICE_COMMUNICATION = 1 << 2, /* kernels: see analyses/device/communication.h */
	DEVICE_ACTIVITY_SETS = 1 << 3,
};

/* All work of devices of one name: they are one, as in analyses/device/device_work.h. */
struct device_overlap_device {
	const char *name; /* "" when unknown */
	uint64_t span_ns; /* from the start of its first work to the end of the last */
	uint64_t by_set[DEVICE_ACTIVITY_SETS]; /* [0]: idle; they add up to span_ns */
	/* Kernels that communicate, by how that is known. */
	uint64_t communication_works[COMMUNICATION_EVIDENCE_MAX];
};

struct device_overlap {
	ARRAY_OF(struct device_overlap_device) devices; /* in order of their first work */
};

/* Time in which the activity ran, alone or not. */
uint64_t device_overlap_total_ns(
	const struct device_overlap_device *device, enum device_activity activity);
/* Of that, the time in which compute ran, too: it cost nothing. */
uint64_t device_overlap_hidden_ns(
	const struct device_overlap_device *device, enum device_activity activity);

/* Returns 0 or -ENOMEM. Strings are the model's. */
int device_overlap_init(struct device_overlap *overlap, const struct model *model);
void device_overlap_done(struct device_overlap *overlap);
#define _cleanup_device_overlap_ _cleanup_(device_overlap_done)
