/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual counter and caches of an aarch64 processor; see arch/arch.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The kernel's name for a clock that goes by the counter. */
#define ARCH_CLOCK_SOURCE "arch_sys_counter\n"
/* Two looks around a clock_gettime() that took longer had something come in between: 1 us at 1 GHz.
 */
#define ARCH_MAX_TICKS_APART 1000

static inline uint64_t arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

/* By the architecture. */
static inline bool arch_ticks_are_steady(void)
{
	return true;
}

static inline void arch_prefetch_to_write(const char *at)
{
	__builtin_prefetch(at, 1);
}

struct arch_machine {
	bool is_amd;   /* never */
	bool is_guest; /* not known */
};

static inline struct arch_machine arch_machine(void)
{
	return (struct arch_machine){0};
}
