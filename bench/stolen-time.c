/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stolen-time CPU SETTLE_S SECONDS: the time that is taken from a thread that only spins, as JSON.
 * The thread stays on this CPU, 40 calls deep, and reads the processor's counter without a pause.
 * Between two reads lie some nanoseconds; a gap of more than 0.3 us is an interrupt, a sample,
 * another thread, or the host of a virtual machine. Their sum is the time that was stolen. Gaps of
 * up to 100 us are counted apart: those of interrupts and samples, but not those in which other
 * programs have the CPU. Before that the thread spins for SETTLE_S seconds that do not count, in
 * which a profiler starts. CPU -1: the last one that the thread may use.
 *
 * The counter's speed is measured against CLOCK_MONOTONIC_RAW: before the reads, for the limit of
 * 0.3 us, and over all of them.
 */
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arch/arch.h"
#include ARCH_HEADER(cpu)

#define DEPTH        40
#define GAP_NS       300.0
#define SHORT_GAP_NS 100000.0
#define CALIBRATE_NS 20000000ULL
#define LOOKS        100
#define NS_PER_S     1000000000ULL
#define MAX_SECONDS  3600.0

struct spin {
	uint64_t duration_ticks; /* of all reads together */
	uint64_t gap_ticks;      /* longer gaps are counted */
	uint64_t short_gap_ticks;
	uint64_t passed_ticks, stolen_ticks, short_ticks, longest_ticks, gaps, short_gaps, reads;
};

/* The same moment by both clocks. */
struct moment {
	uint64_t ticks, raw_ns;
};

static uint64_t raw_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Of some looks the shortest: in others something came in between. */
static struct moment now(void)
{
	struct moment moment = {0};
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = arch_ticks(), raw_ns = raw_now_ns(), took = arch_ticks() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		moment = (struct moment){.ticks = before + took / 2, .raw_ns = raw_ns};
	}
	return moment;
}

static double ticks_per_ns(struct moment begin, struct moment end)
{
	return (double)(end.ticks - begin.ticks) / (double)(end.raw_ns - begin.raw_ns);
}

static double calibrate(void)
{
	struct moment begin = now(), end;

	do {
		end = now();
	} while (end.raw_ns - begin.raw_ns < CALIBRATE_NS);
	return ticks_per_ns(begin, end);
}

static void count_gap(struct spin *spin, uint64_t ticks)
{
	spin->stolen_ticks += ticks;
	spin->gaps++;
	if (ticks > spin->longest_ticks)
		spin->longest_ticks = ticks;
	if (ticks > spin->short_gap_ticks)
		return;
	spin->short_ticks += ticks;
	spin->short_gaps++;
}

static __attribute__((noinline)) void read_counter(struct spin *spin)
{
	uint64_t begin = arch_ticks(), last = begin, reads = 0;

	while (last - begin < spin->duration_ticks) {
		uint64_t ticks = arch_ticks();

		if (__builtin_expect(ticks - last > spin->gap_ticks, 0))
			count_gap(spin, ticks - last);
		last = ticks;
		reads++;
	}
	spin->passed_ticks = last - begin;
	spin->reads = reads;
}

/* What comes after the call keeps it from being a jump. */
// NOLINTNEXTLINE(misc-no-recursion)
static __attribute__((noinline)) void descend(struct spin *spin, unsigned depth)
{
	if (depth)
		descend(spin, depth - 1);
	else
		read_counter(spin);
	__asm__ volatile("" ::: "memory");
}

static struct spin spin_for(double seconds, double per_ns)
{
	struct spin spin = {
		.duration_ticks = (uint64_t)(seconds * NS_PER_S * per_ns),
		.gap_ticks = (uint64_t)(GAP_NS * per_ns),
		.short_gap_ticks = (uint64_t)(SHORT_GAP_NS * per_ns),
	};

	descend(&spin, DEPTH);
	return spin;
}

static bool stay_on(long cpu)
{
	cpu_set_t may, one;

	if (sched_getaffinity(0, sizeof(may), &may) != 0)
		return false;
	for (int i = CPU_SETSIZE - 1; cpu < 0 && i >= 0; i--) {
		if (CPU_ISSET(i, &may))
			cpu = i;
	}
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void measure(double settle_s, double seconds)
{
	double per_ns = calibrate(), per_s;
	struct moment begin;
	struct spin spin;

	spin_for(settle_s, per_ns);
	begin = now();
	spin = spin_for(seconds, per_ns);
	per_s = ticks_per_ns(begin, now()) * NS_PER_S;
	printf("{\"seconds\": %.6f, \"stolen_s\": %.9f, \"short_gaps_s\": %.9f, ",
		(double)spin.passed_ticks / per_s, (double)spin.stolen_ticks / per_s,
		(double)spin.short_ticks / per_s);
	printf("\"gaps\": %llu, \"short_gaps\": %llu, \"longest_gap_us\": %.1f, "
	       "\"read_ns\": %.2f}\n",
		(unsigned long long)spin.gaps, (unsigned long long)spin.short_gaps,
		(double)spin.longest_ticks / per_s * 1e6,
		(double)(spin.passed_ticks - spin.stolen_ticks) / per_s * 1e9 / (double)spin.reads);
}

static bool is_duration(double seconds)
{
	return isfinite(seconds) && seconds >= 0 && seconds <= MAX_SECONDS;
}

int main(int count, char **arguments)
{
	double settle_s = count == 4 ? strtod(arguments[2], NULL) : -1;
	double seconds = count == 4 ? strtod(arguments[3], NULL) : -1;

	if (!is_duration(settle_s) || !is_duration(seconds) || seconds == 0) {
		fprintf(stderr, "usage: stolen-time CPU SETTLE_S SECONDS\n");
		return 2;
	}
	if (!stay_on(strtol(arguments[1], NULL, 10))) {
		fprintf(stderr, "stolen-time: cannot stay on CPU %s\n", arguments[1]);
		return 1;
	}
	if (!arch_ticks_are_steady()) {
		fprintf(stderr, "stolen-time: this processor's counter changes its speed\n");
		return 1;
	}
	measure(settle_s, seconds);
	return 0;
}
