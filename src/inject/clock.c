/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS 1000000ULL
#define LOOKS     3
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

/* The real clock between two looks at the counter. */
struct look {
	uint64_t before, real_ns, after;
};

static void measure_from(struct inject_clock *clock, const struct look *look)
{
	clock->since_ticks = look->before;
	clock->since_ns = look->real_ns;
}

/*
 * From before a look at the real clock until after a later one, so that it is not too high. After a
 * suspended machine, or on another one, the old speed may be wrong: it is found anew.
 */
static void measure(struct inject_clock *clock, const struct look *look)
{
	uint64_t passed_ticks = look->after - clock->since_ticks;
	uint64_t passed_ns = look->real_ns - clock->since_ns;
	uint64_t speed, change;

	if (!clock->since_ns || look->after <= clock->since_ticks) {
		clock->speed = 0;
		measure_from(clock, look);
		return;
	}
	if (passed_ns < MEASURE_NS)
		return;
	if (passed_ns > MEASURE_MAX_NS) /* not for long enough to be sure of the product */
		measure_from(clock, look);
	if (passed_ns >> 31 || passed_ns > passed_ticks << 4)
		return;
	speed = (passed_ns << 32) / passed_ticks;
	change = speed > clock->speed ? speed - clock->speed : clock->speed - speed;
	if (clock->speed && change > clock->speed >> MAX_CHANGE_SHIFT) {
		clock->speed = 0;
		measure_from(clock, look);
		return;
	}
	clock->speed = speed;
}

/* The latest time that the clock can have shown. */
static uint64_t latest(const struct inject_clock *clock)
{
	return clock->base_ns + (clock->limit_ticks * clock->ns_per_tick >> 32);
}

/* Of some, the one that took least: in others something came in between. */
static struct look look_at_real(uint64_t *ret_now_ns)
{
	struct look narrowest = {.after = UINT64_MAX};

	for (unsigned i = 0; i < (is_steady ? LOOKS : 1); i++) {
		struct look look = {.before = arch_ticks()};

		look.real_ns = inject_now_ns();
		look.after = arch_ticks();
		if (look.after - look.before < narrowest.after - narrowest.before)
			narrowest = look;
		*ret_now_ns = look.real_ns;
	}
	return narrowest;
}

/*
 * The real clock's moment lies before the second look at the counter. A clock that is ahead of the
 * real one, whose speed has changed, goes slower for a millisecond, or stands, until it is not.
 */
uint64_t inject_clock_set(struct inject_clock *clock)
{
	uint64_t latest_ns = latest(clock), now_ns, ahead_ns, passed_ticks;
	struct look look = look_at_real(&now_ns);

	clock->limit_ticks = 0;
	clock->base_ns = now_ns > latest_ns ? now_ns : latest_ns;
	if (!is_steady || look.after - look.before >= ARCH_MAX_TICKS_APART)
		return clock->base_ns;
	measure(clock, &look);
	if (!clock->speed)
		return clock->base_ns;
	clock->base_ns = look.real_ns > latest_ns ? look.real_ns : latest_ns;
	clock->base_ticks = look.after;
	ahead_ns = clock->base_ns - look.real_ns;
	ahead_ns = ahead_ns < NS_PER_MS ? ahead_ns : NS_PER_MS;
	clock->limit_ticks = (NS_PER_MS << 32) / clock->speed;
	clock->ns_per_tick = clock->speed * (NS_PER_MS - ahead_ns) / NS_PER_MS;
	passed_ticks = arch_ticks() - look.after;
	passed_ticks = passed_ticks < clock->limit_ticks ? passed_ticks : clock->limit_ticks;
	return clock->base_ns + (passed_ticks * clock->ns_per_tick >> 32);
}
