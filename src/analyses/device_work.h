/* SPDX-License-Identifier: Apache-2.0 */
/* What devices did: how busy each was, which kernels took the time, and which lines launched them.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

struct device_use {
	const char *name; /* "" when unknown */
	uint64_t busy_ns; /* some work ran: overlapping work counts once */
	uint64_t work_ns; /* of all work together */
	uint64_t count;
};

/* All work of one name and kind on one device. */
struct device_kernel {
	const char *name;
	uint32_t device; /* index in devices */
	enum wire_device_kind kind;
	uint64_t count, total_ns, minimum_ns, maximum_ns;
	uint64_t bytes;
};

/* The line of code, or without lines the function, that launched work: see charged_frame(). */
struct device_line {
	uint32_t frame;                       /* in the model; MODEL_NONE: the stack is not known */
	enum model_unattributed unattributed; /* of MODEL_NONE */
	uint64_t count, total_ns;
};

struct device_work {
	uint64_t count, total_ns;
	uint64_t failed;
	uint64_t by_attribution[MODEL_UNATTRIBUTED_MAX];    /* works */
	uint64_t ns_by_attribution[MODEL_UNATTRIBUTED_MAX]; /* their time */
	uint64_t started_before_launch;
	ARRAY_OF(struct device_use) devices;    /* in order of their first work */
	ARRAY_OF(struct device_kernel) kernels; /* most time first */
	ARRAY_OF(struct device_line) lines;     /* most time first */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int device_work_init(struct device_work *work, const struct model *model);
void device_work_done(struct device_work *work);
#define _cleanup_device_work_ _cleanup_(device_work_done)
