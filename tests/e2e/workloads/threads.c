/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `threads SECONDS [COUNT]`: COUNT (4, at most 8) threads named worker-0 … that work 1 : 2 : 3 : …
 * of the time, while the main thread sleeps in pthread_join: worker N has (N + 1) / COUNT of
 * SECONDS of CPU time, and takes SECONDS at least.
 */
#include <pthread.h>

#include "workload.h"

#define THREADS_MAX 8

struct worker {
	pthread_t thread;
	unsigned number, count;
	double seconds;
};

SPIN_FUNCTION(thread_spin)

static double thread_cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static NOINLINE void *worker_main(void *argument)
{
	struct worker *worker = argument;
	double busy_s = 0.01 * (worker->number + 1) / worker->count;
	char name[16];

	snprintf(name, sizeof(name), "worker-%u", worker->number);
	pthread_setname_np(pthread_self(), name);
	for (double round = 0; round * 0.01 < worker->seconds; round++) {
		struct timespec pause = {.tv_nsec = (long)((0.01 - busy_s) * 1e9)};

		while (thread_cpu_s() < (round + 1) * busy_s)
			thread_spin(50);
		if (pause.tv_nsec > 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv);
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
	struct worker workers[THREADS_MAX];

	if (count < 1 || count > THREADS_MAX)
		return 2;
	for (unsigned number = 0; number < count; number++) {
		workers[number] =
			(struct worker){.number = number, .count = count, .seconds = seconds};
		if (pthread_create(&workers[number].thread, NULL, worker_main, &workers[number]))
			die("pthread_create");
	}
	ready();
	for (unsigned number = 0; number < count; number++)
		pthread_join(workers[number].thread, NULL);
	return 0;
}
