/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api-cost alone|closed|recorded BURSTS: what sonde's C API costs, as JSON: the nanoseconds of a
 * push and a pop, of a step, and of a counter. "alone": without a session; "closed": with one, and
 * a gate of its own, which is closed, in the folder $SONDE_SESSION; "recorded": to be run by sonde.
 */
#include <sonde/sonde.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/closed_gate.h"

#define BURST      1000
#define MAX_BURSTS 20000
#define PAUSE_NS   2000000 /* the collector reads meanwhile */

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void ranges(void)
{
	for (int i = 0; i < BURST; i++) {
		sonde_range_push("step");
		sonde_range_pop();
	}
}

static void steps(void)
{
	for (int i = 0; i < BURST; i++)
		sonde_step("step");
}

static void counters(void)
{
	for (int i = 0; i < BURST; i++)
		sonde_counter("loss", i);
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static double median_ns(void (*burst)(void), size_t bursts, bool pauses)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	static double taken_ns[MAX_BURSTS];

	for (size_t i = 0; i < bursts; i++) {
		double begin_ns = now_ns();

		burst();
		taken_ns[i] = (now_ns() - begin_ns) / BURST;
		if (pauses)
			nanosleep(&pause, NULL);
	}
	qsort(taken_ns, bursts, sizeof(*taken_ns), compare);
	return taken_ns[bursts / 2];
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*burst)(void);
	} kinds[] = {{"range", ranges}, {"step", steps}, {"counter", counters}};
	size_t bursts = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
	bool pauses;

	if (!bursts || bursts > MAX_BURSTS) {
		fprintf(stderr, "api-cost: alone|closed|recorded BURSTS\n");
		return 2;
	}
	if (strcmp(arguments[1], "closed") == 0 && !make_closed_gate(getenv("SONDE_SESSION"))) {
		fprintf(stderr, "api-cost: cannot make a gate in $SONDE_SESSION\n");
		return 2;
	}
	pauses = strcmp(arguments[1], "recorded") == 0;
	sonde_mark("begin"); /* the first call loads the library */
	printf("{\"is_open\": %s", sonde_is_open() ? "true" : "false");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		printf(", \"%s_ns\": %.2f", kinds[i].name,
			median_ns(kinds[i].burst, bursts, pauses));
	printf("}\n");
	return 0;
}
