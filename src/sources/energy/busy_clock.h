/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long all processors together were not idle, by /proc/stat. Its clock ticks 100 times a second
 * and reading it costs more the more processors there are: it is read ten times a second, and
 * moments in between are interpolated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUSY_POINTS 128

struct busy_clock {
	int fd; /* -1: not open */
	uint64_t ticks_per_s;
	unsigned count; /* of points so far; the last BUSY_POINTS are kept */
	struct {
		uint64_t time_ns, busy_ns;
	} points[BUSY_POINTS];
};

/* Without the file, nothing is known. */
void busy_clock_open(struct busy_clock *ret_clock, const char *path);
void busy_clock_close(struct busy_clock *clock);
/* Reads it, if that is due; with `now` in any case. */
void busy_clock_read(struct busy_clock *clock, uint64_t now_ns, bool now);
/* Of all processors in this time; UINT64_MAX: not known. */
uint64_t busy_clock_between(const struct busy_clock *clock, uint64_t start_ns, uint64_t end_ns);
/* The last moment that is known; UINT64_MAX where there is no clock to wait for. */
uint64_t busy_clock_until_ns(const struct busy_clock *clock);
