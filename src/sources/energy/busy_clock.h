/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long processors were not idle, by /proc/stat: all together, and those of a socket where rails
 * are of one. Its clock ticks 100 times a second and reading it costs more the more processors
 * there are: it is read ten times a second, and moments in between are interpolated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUSY_POINTS 128
#define BUSY_GROUPS 17 /* all processors, and 16 sockets or dies */

struct cpu_set;

struct busy_clock {
	int fd; /* -1: not open */
	uint64_t ticks_per_s;
	unsigned group_count; /* the first one is of all processors */
	struct {
		char *cpus;
		struct cpu_set *set;
		unsigned since; /* the first point that knows the group */
	} groups[BUSY_GROUPS];
	char *text;     /* room for a line of each processor; NULL: only that of all is read */
	unsigned count; /* of points so far; the last BUSY_POINTS are kept */
	struct {
		uint64_t time_ns, busy_ns[BUSY_GROUPS];
	} points[BUSY_POINTS];
};

/* Without the file, nothing is known. */
void busy_clock_open(struct busy_clock *ret_clock, const char *path);
void busy_clock_close(struct busy_clock *clock);
/*
 * The group of these processors ("0-7,16-23"), whose time is known from the next reading on; 0,
 * that of all, for NULL and "". -ENOMEM; -E2BIG: there are too many groups.
 */
int busy_clock_group(struct busy_clock *clock, const char *cpus);
/* Reads it, if that is due; with `now` in any case. */
void busy_clock_read(struct busy_clock *clock, uint64_t now_ns, bool now);
/* Of a group in this time; UINT64_MAX: not known, as of a group that is negative. */
uint64_t busy_clock_between(
	const struct busy_clock *clock, int group, uint64_t start_ns, uint64_t end_ns);
/* The last moment that is known; UINT64_MAX where there is no clock to wait for. */
uint64_t busy_clock_until_ns(const struct busy_clock *clock);
