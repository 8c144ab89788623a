/* SPDX-License-Identifier: Apache-2.0 */
/*
 * THREADS threads that each sleep RATE times a second for SECONDS: many context switches.
 *
 *   switches SECONDS THREADS RATE
 *
 * At the end it prints what they measured of themselves, all together: how often and for how many
 * seconds they slept, how many they waited for a CPU, and ran.
 *
 *   slept TIMES SECONDS runnable SECONDS ran SECONDS
 */
#include <pthread.h>

#include "workload.h"

static double seconds;
static long pause_ns;

struct sleeper {
	pthread_t id;
	unsigned long times;
	double slept_s, runnable_s, ran_s;
};

static void *sleep_often(void *argument)
{
	struct moment begin = moment_now(), last;
	struct timespec pause = {0, pause_ns};
	struct sleeper *sleeper = argument;
	double end = now_s() + seconds;

	for (; now_s() < end; sleeper->times++)
		nanosleep(&pause, NULL);
	last = moment_now();
	sleeper->slept_s = waited_s(&begin, &last);
	sleeper->runnable_s = last.runnable_s - begin.runnable_s;
	sleeper->ran_s = last.cpu_s - begin.cpu_s;
	return NULL;
}

int main(int count, char **arguments)
{
	int threads = count > 2 ? atoi(arguments[2]) : 1000;
	struct sleeper *sleepers = calloc((size_t)threads, sizeof(*sleepers)), all = {0};
	pthread_attr_t small;

	seconds = count > 1 ? atof(arguments[1]) : 1;
	pause_ns = (long)(1e9 / (count > 3 ? atof(arguments[3]) : 100));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (int i = 0; i < threads; i++)
		pthread_create(&sleepers[i].id, &small, sleep_often, &sleepers[i]);
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < threads; i++) {
		pthread_join(sleepers[i].id, NULL);
		all.times += sleepers[i].times;
		all.slept_s += sleepers[i].slept_s;
		all.runnable_s += sleepers[i].runnable_s;
		all.ran_s += sleepers[i].ran_s;
	}
	printf("slept %lu %.6f runnable %.6f ran %.6f\n", all.times, all.slept_s, all.runnable_s,
		all.ran_s);
	free(sleepers);
	return 0;
}
