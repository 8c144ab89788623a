/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share a mutex: the first one computes while it holds it, and the others want it all
 * the time; with "short", all compute first, and hold it for a sum.
 *
 *   locks SECONDS [short]
 */
#include <pthread.h>

#include "workload.h"

SPIN_FUNCTION(compute)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double end;
static bool is_short;
static uint64_t sum;

static NOINLINE void hold_long(void)
{
	pthread_mutex_lock(&lock);
	compute(50000);
	sum++;
	pthread_mutex_unlock(&lock);
}

static NOINLINE void hold_briefly(void)
{
	compute(20000);
	pthread_mutex_lock(&lock);
	sum++;
	pthread_mutex_unlock(&lock);
}

static NOINLINE void want(void)
{
	pthread_mutex_lock(&lock);
	sum++;
	pthread_mutex_unlock(&lock);
}

static void *run(void *is_holder)
{
	while (cpu_s() < end) {
		if (is_short)
			hold_briefly();
		else if (is_holder)
			hold_long();
		else
			want();
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[3];

	is_short = count > 2;
	end = cpu_s() + seconds_argument(count, arguments);
	for (int i = 0; i < 3; i++) {
		pthread_create(&threads[i], NULL, run, i == 0 ? &lock : NULL);
		pthread_setname_np(threads[i], i == 0 ? "holder" : "other");
	}
	ready();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return sum ? 0 : 1;
}
