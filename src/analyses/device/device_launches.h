/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How launches reach a device: how far ahead of it the program is (queue depth), how long a launch
 * takes to become work (latency), and whether the launches cost more than the work.
 *
 * A launch is one call, however much work it starts: the nodes of a graph were launched together,
 * and counting each would say that the program is far ahead. The definitions are HTA's but where
 * it says so.
 */
#pragma once

#include "base/array.h"
#include "model/model.h"

/* Of `count` times; the others are 0 without any. By nearest rank. */
struct device_distribution {
	uint64_t count, median_ns, p90_ns, p99_ns;
};

/* All work of devices of one name: they are one, as in analyses/device/device_work.h. */
struct device_launches_device {
	const char *name;     /* "" when unknown */
	uint64_t launches;    /* calls */
	uint64_t not_counted; /* pieces of work whose call is not known */

	/*
	 * Launches that wait for the device: +1 where the call returned, -1 where its first work
	 * began. (HTA adds at the call's begin, so that a program which is slower in launching
	 * than the device in working would seem ahead.) From the start of the first work to that
	 * of the last, which is `span_ns`.
	 */
	uint64_t span_ns;
	uint64_t empty_ns;   /* nothing waited */
	uint64_t depth_time; /* the sum of depth times nanoseconds */
	uint64_t depth_max;

	/* Of kernels and graphs. */
	uint64_t kernel_launches;
	uint64_t short_kernels;          /* whose work is shorter than their call */
	struct device_distribution call; /* how long the calls took */
	/*
	 * From the call's begin to the start of its first work, of those that found their queue
	 * without work. (HTA takes all, and so mostly measures how much was queued before them.)
	 */
	struct device_distribution latency;
};

static inline double device_launches_mean_depth(const struct device_launches_device *device)
{
	return device->span_ns ? (double)device->depth_time / (double)device->span_ns : 0;
}

struct device_launches {
	ARRAY_OF(struct device_launches_device) devices; /* in order of their first work */
};

/* Returns 0 or -ENOMEM. Strings are the model's. */
int device_launches_init(struct device_launches *launches, const struct model *model);
void device_launches_done(struct device_launches *launches);
#define _cleanup_device_launches_ _cleanup_(device_launches_done)
