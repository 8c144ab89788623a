/* SPDX-License-Identifier: Apache-2.0 */
/* What would help a device most, where its figures say so clearly. */
#pragma once

#include "analyses/device/device_launches.h"
#include "analyses/device/device_overlap.h"
#include "analyses/device/trace_idle.h"

enum device_advice {
	DEVICE_ADVICE_NONE,
	DEVICE_ADVICE_LAUNCH_BOUND,  /* kernels are shorter than their launches */
	DEVICE_ADVICE_HOST_BOUND,    /* it waits for the program */
	DEVICE_ADVICE_QUEUED,        /* it is idle although work waits for it */
	DEVICE_ADVICE_BLOCKING,      /* calls that block keep the program from launching */
	DEVICE_ADVICE_COPIES,        /* it only copies */
	DEVICE_ADVICE_COMMUNICATION, /* it only communicates */
	DEVICE_ADVICE_MAX,
};

/* The stable name, for JSON: "launch_bound" …; NULL for none. */
const char *device_advice_name(enum device_advice advice);

/*
 * About what costs most of the time in which the device does not compute, if that is a fifth of
 * all. All are of the same device; `idle` may be NULL. None of a device with few launches, unless
 * it is idle for IDLE_ADVICE_PERCENT.
 */
enum device_advice device_advice(const struct device_overlap_device *overlap,
	const struct device_launches_device *launches, const struct trace_idle_place *idle);
