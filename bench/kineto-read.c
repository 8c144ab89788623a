/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto-read FILE [ROUNDS]: reads a Kineto trace into rows on one processor. Prints the number of
 * rows, then for each round the seconds of CPU it took, all threads together: those by the clock
 * where nothing else runs.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "importers/kineto/kineto.h"

static double cpu_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Threads that are started later stay here, too. */
static int use_one_processor(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

static int read_once(const char *path, double *ret_seconds, size_t *ret_rows)
{
	_cleanup_trace_ struct trace *trace = NULL;
	struct errmsg err = {0};
	double begin_s = cpu_s();

	if (kineto_read(&trace, path, NULL, &err) < 0) {
		fprintf(stderr, "kineto-read: %s\n", err.text);
		return -1;
	}
	*ret_seconds = cpu_s() - begin_s;
	*ret_rows = trace->events.count;
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;

	if (argc < 2 || use_one_processor() != 0) {
		fprintf(stderr, "usage: kineto-read FILE [ROUNDS]\n");
		return 2;
	}
	for (int round = 0; round < rounds; round++) {
		double seconds;
		size_t rows;

		if (read_once(argv[1], &seconds, &rows) < 0)
			return 1;
		if (round == 0)
			printf("%zu\n", rows);
		printf("%.6f\n", seconds);
	}
	return 0;
}
