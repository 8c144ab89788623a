/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THREADS threads that each sleep RATE times a second for SECONDS: many context switches.
 *
 *   switches SECONDS THREADS RATE
 */
#include <pthread.h>

#include "workload.h"

static double seconds;
static long pause_ns;

static void *sleep_often(void *unused)
{
	struct timespec pause = {0, pause_ns};
	double end = now_s() + seconds;

	while (now_s() < end)
		nanosleep(&pause, NULL);
	return unused;
}

int main(int count, char **arguments)
{
	int threads = count > 2 ? atoi(arguments[2]) : 1000;
	pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
	pthread_attr_t small;

	seconds = count > 1 ? atof(arguments[1]) : 1;
	pause_ns = (long)(1e9 / (count > 3 ? atof(arguments[3]) : 100));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], &small, sleep_often, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}
