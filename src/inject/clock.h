/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLOCK_MONOTONIC by the processor's counter: a third of the time that clock_gettime() takes. Each
 * thread has a clock of its own, which it sets by the real one at least each millisecond, and which
 * never goes back. It is behind the real one, by no more than a look at that takes: what a thread
 * does after it looked at this clock is not earlier by the real one. Where the kernel itself does
 * not keep time by the counter, and until its speed is known, which needs a millisecond, it is
 * clock_gettime().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include ARCH_HEADER(cpu)
#include "inject/inject.h"

/* All zero: not set yet. */
struct inject_clock {
	uint64_t base_ticks, base_ns;
	uint64_t limit_ticks;           /* it is good for so many after the base */
	uint64_t ns_per_tick;           /* until then, in 2^-32 */
	uint64_t speed;                 /* the same as measured; 0: not known */
	uint64_t since_ticks, since_ns; /* what the speed is measured from */
};

/* Once, before the first inject_clock_now(): does the kernel keep time by the counter? */
void inject_clock_open(void);
/* Sets the clock by the real one. Returns the time. */
uint64_t inject_clock_set(struct inject_clock *clock);

/* Nanoseconds of CLOCK_MONOTONIC, never less than at the thread's last call. */
static inline uint64_t inject_clock_now(struct inject_clock *clock)
{
	uint64_t passed = arch_ticks() - clock->base_ticks;

	if (__builtin_expect(passed >= clock->limit_ticks, 0))
		return inject_clock_set(clock);
	return clock->base_ns + (passed * clock->ns_per_tick >> 32);
}
