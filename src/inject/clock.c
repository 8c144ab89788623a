/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS 1000000ULL
/* The speed is measured over this at least, and anew after the longer one. */
#define MEASURE_NS     NS_PER_MS
#define MEASURE_MAX_NS (1000 * NS_PER_MS)
/* Of the speed, in 2^-n: NTP changes it by less; what changes more was no steady counter. */
#define MAX_CHANGE_SHIFT 10
#define CLOCK_SOURCE     "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static bool is_steady;

/* The kernel watches the counters of all processors, and leaves them when they come apart. */
static bool is_clock_source(void)
{
	char name[sizeof(ARCH_CLOCK_SOURCE) + 1] = {0};
	int fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);
	bool is_counter =
		fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && !strcmp(name, ARCH_CLOCK_SOURCE);

	if (fd >= 0)
		close(fd);
	return is_counter;
}

void inject_clock_open(void)
{
	int saved_errno = errno;

	is_steady = arch_ticks_are_steady() && is_clock_source();
	errno = saved_errno;
}

static void measure_from(struct inject_clock *clock, uint64_t ticks, uint64_t ns)
{
	clock->since_ticks = ticks;
	clock->since_ns = ns;
}

/* After a suspended machine, or on another one, the old speed may be wrong: it is found anew. */
static void measure(struct inject_clock *clock, uint64_t ticks, uint64_t ns)
{
	uint64_t passed_ticks = ticks - clock->since_ticks, passed_ns = ns - clock->since_ns;
	uint64_t speed, change;

	if (!clock->since_ns || ticks <= clock->since_ticks) {
		clock->speed = 0;
		measure_from(clock, ticks, ns);
		return;
	}
	if (passed_ns < MEASURE_NS)
		return;
	if (passed_ns > MEASURE_MAX_NS) /* not for long enough to be sure of the product */
		measure_from(clock, ticks, ns);
	if (passed_ns >> 31 || passed_ns > passed_ticks << 4)
		return;
	speed = (passed_ns << 32) / passed_ticks;
	change = speed > clock->speed ? speed - clock->speed : clock->speed - speed;
	if (clock->speed && change > clock->speed >> MAX_CHANGE_SHIFT) {
		clock->speed = 0;
		measure_from(clock, ticks, ns);
		return;
	}
	clock->speed = speed;
}

/* The latest time that the clock can have shown. */
static uint64_t latest(const struct inject_clock *clock)
{
	return clock->base_ns + (clock->limit_ticks * clock->ns_per_tick >> 32);
}

/*
 * What a call between the looks costs lies half before and half after the real clock's moment. A
 * clock that is ahead of the real one goes slower for a millisecond, or stands, until it is not.
 */
uint64_t inject_clock_set(struct inject_clock *clock)
{
	uint64_t before = arch_ticks(), real_ns = inject_now_ns();
	uint64_t apart = arch_ticks() - before, latest_ns = latest(clock), ahead_ns;

	clock->limit_ticks = 0;
	clock->base_ns = real_ns > latest_ns ? real_ns : latest_ns;
	if (!is_steady || apart >= ARCH_MAX_TICKS_APART)
		return clock->base_ns;
	clock->base_ticks = before + apart / 2;
	measure(clock, clock->base_ticks, real_ns);
	if (clock->speed) {
		ahead_ns =
			clock->base_ns - real_ns < NS_PER_MS ? clock->base_ns - real_ns : NS_PER_MS;
		clock->limit_ticks = (NS_PER_MS << 32) / clock->speed;
		clock->ns_per_tick = clock->speed * (NS_PER_MS - ahead_ns) / NS_PER_MS;
	}
	return clock->base_ns;
}
