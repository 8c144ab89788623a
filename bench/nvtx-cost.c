/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx-cost alone|closed|recorded BURSTS: what a range costs, as JSON: the nanoseconds of one push
 * and pop. "alone": without a library in $NVTX_INJECTION64_PATH; "closed": with one, and a gate of
 * its own, which is closed, in the folder $SONDE_SESSION; "recorded": to be run by sonde. Calls go
 * through the double of NVTX's headers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/closed_gate.h"
#include "nvtx.h"

#define BURST      1000
#define MAX_BURSTS 20000
#define PAUSE_NS   2000000 /* the collector reads meanwhile */

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) double burst(void)
{
	double begin_ns = now_ns();

	for (int i = 0; i < BURST; i++) {
		nvtxRangePushA("step");
		nvtxRangePop();
	}
	return (now_ns() - begin_ns) / BURST;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

int main(int count, char **arguments)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	size_t bursts = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
	static double taken_ns[MAX_BURSTS];

	if (!bursts || bursts > MAX_BURSTS) {
		fprintf(stderr, "nvtx-cost: alone|closed|recorded BURSTS\n");
		return 2;
	}
	if (strcmp(arguments[1], "closed") == 0 && !make_closed_gate(getenv("SONDE_SESSION"))) {
		fprintf(stderr, "nvtx-cost: cannot make a gate in $SONDE_SESSION\n");
		return 2;
	}
	nvtxMarkA("begin"); /* the first call loads the library */
	for (size_t i = 0; i < bursts; i++) {
		taken_ns[i] = burst();
		if (strcmp(arguments[1], "recorded") == 0)
			nanosleep(&pause, NULL);
	}
	qsort(taken_ns, bursts, sizeof(*taken_ns), compare);
	printf("{\"ranges\": %zu, \"range_ns\": %.2f}\n", bursts * BURST, taken_ns[bursts / 2]);
	return 0;
}
