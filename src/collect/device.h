/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work from the injected libraries' records to the capture: names its ids, and brings its
 * times to CLOCK_MONOTONIC. Launches, work and stacks are written as they come; the model puts them
 * together.
 */
#pragma once

#include <stdint.h>

#include "capture/writer.h"
#include "wire/device.h"

struct device_collector;

struct device_account {
	uint64_t launches, works;
	uint64_t untimed; /* launches that no work will follow */
	uint64_t started_before_launch;
	uint64_t clock_error_ns; /* the widest half of an interval that an offset was taken from */
	uint64_t malformed;      /* records that were dropped */
};

int device_collector_new(struct device_collector **ret_collector, struct capture_writer *writer);
struct device_collector *device_collector_free(struct device_collector *collector);
/* A record of a process, whole by its length; whatever is in it. Returns 0 or a negative errno. */
int device_collector_add(
	struct device_collector *collector, uint32_t pid, const struct wire_record *record);
/*
 * After all rings were drained: writes the work that came. Some waits for a later call, for its
 * name, or for a launch that tells more of its clock; with UINT64_MAX none does. Returns 0 or a
 * negative errno.
 */
int device_collector_write(struct device_collector *collector, uint64_t now_ns);
const struct device_account *device_collector_account(const struct device_collector *collector);
