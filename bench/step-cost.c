/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step-cost alone|closed BURSTS: what a call of sonde_step() adds to a loop whose body takes a
 * microsecond, as JSON: nanoseconds, the median of pairs of bursts with and without it; and what a
 * call of a function that does nothing adds. "alone": without a session; "closed": with one, and a
 * gate of its own, which is closed, in the folder $SONDE_SESSION.
 */
#include <sonde/sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/closed_gate.h"

#define BURST      1000
#define MAX_BURSTS 100000
#define BODY_NS    1000

static unsigned rounds = 100;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) void body(void)
{
	unsigned value = rounds;

	for (unsigned i = 0; i < rounds; i++)
		__asm__ volatile("imul %0, %0" : "+r"(value));
}

static __attribute__((noinline)) uint64_t do_nothing(const char *name)
{
	__asm__ volatile("" ::"r"(name));
	return 0;
}

static uint64_t (*volatile nothing)(const char *name) = do_nothing;

static double plain_ns(void)
{
	double begin_ns = now_ns();

	for (int i = 0; i < BURST; i++)
		body();
	return (now_ns() - begin_ns) / BURST;
}

static double step_ns(void)
{
	double begin_ns = now_ns();

	for (int i = 0; i < BURST; i++) {
		body();
		sonde_step("step");
	}
	return (now_ns() - begin_ns) / BURST;
}

static double nothing_ns(void)
{
	double begin_ns = now_ns();

	for (int i = 0; i < BURST; i++) {
		body();
		nothing("step");
	}
	return (now_ns() - begin_ns) / BURST;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static double median_more_ns(double (*burst_ns)(void), size_t bursts)
{
	static double more_ns[MAX_BURSTS];

	for (size_t i = 0; i < bursts; i++) {
		double taken_ns = burst_ns();

		more_ns[i] = taken_ns - plain_ns();
	}
	qsort(more_ns, bursts, sizeof(*more_ns), compare);
	return more_ns[bursts / 2];
}

int main(int count, char **arguments)
{
	size_t bursts = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
	double with_step_ns, with_nothing_ns;

	if (!bursts || bursts > MAX_BURSTS) {
		fprintf(stderr, "step-cost: alone|closed BURSTS\n");
		return 2;
	}
	if (strcmp(arguments[1], "closed") == 0 && !make_closed_gate(getenv("SONDE_SESSION"))) {
		fprintf(stderr, "step-cost: cannot make a gate in $SONDE_SESSION\n");
		return 2;
	}
	while (plain_ns() < BODY_NS)
		rounds += 1 + rounds / 20;
	with_step_ns = median_more_ns(step_ns, bursts);
	with_nothing_ns = median_more_ns(nothing_ns, bursts);
	printf("{\"step_ns\": %.2f, \"nothing_ns\": %.2f, \"steps\": %llu}\n", with_step_ns,
		with_nothing_ns, (unsigned long long)sonde_step("step"));
	return 0;
}
