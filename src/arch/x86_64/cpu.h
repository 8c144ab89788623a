/* SPDX-License-Identifier: Apache-2.0 */
/* The time stamp counter, caches and make of an x86-64 processor; see arch/arch.h. */
#pragma once

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

/* The kernel's name for a clock that goes by the counter. */
#define ARCH_CLOCK_SOURCE "tsc\n"
/* Two looks around a clock_gettime() that took longer had something come in between. */
#define ARCH_MAX_TICKS_APART 2000

static inline uint64_t arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* One speed in all states of the processor: "invariant TSC". */
static inline bool arch_ticks_are_steady(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1U << 8;
}

static inline void arch_prefetch_to_write(const char *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*at));
}

struct arch_machine {
	bool is_amd;   /* whose energy counters differ */
	bool is_guest; /* a virtual machine */
};

static inline struct arch_machine arch_machine(void)
{
	struct arch_machine machine = {0};
	unsigned a, b, c, d;

	if (__get_cpuid(0, &a, &b, &c, &d)) /* "AuthenticAMD" or "HygonGenuine" */
		machine.is_amd = b == signature_AMD_ebx || b == 0x6f677948;
	if (__get_cpuid(1, &a, &b, &c, &d))
		machine.is_guest = c >> 31 & 1;
	return machine;
}
