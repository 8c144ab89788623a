/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `musl SECONDS`: two threads spin, each SECONDS of CPU time; with a second argument one sorts by
 * musl's qsort(). Built with musl-gcc by the test.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned long sink;
static char from[1 << 16], to[1 << 16];

static double thread_cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((noinline)) static void spin_here(double seconds)
{
	double end = thread_cpu_s() + seconds;

	while (thread_cpu_s() < end) {
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
		memcpy(to, from, sizeof(to));
	}
	__asm__ volatile("");
}

__attribute__((noinline)) static int compare(const void *left, const void *right)
{
	for (unsigned i = 0; i < 100; i++)
		sink += i;
	return *(const unsigned char *)left - *(const unsigned char *)right;
}

__attribute__((noinline)) static void sort_here(double seconds)
{
	double end = thread_cpu_s() + seconds;

	while (thread_cpu_s() < end) {
		for (unsigned i = 0; i < sizeof(from); i++)
			from[i] = (char)(i * 7919);
		qsort(from, sizeof(from), 1, compare);
	}
	__asm__ volatile("");
}

static void *thread(void *seconds)
{
	spin_here(*(double *)seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	pthread_t other;

	if (argc > 2) {
		sort_here(seconds);
		return 0;
	}
	if (pthread_create(&other, NULL, thread, &seconds))
		return 1;
	spin_here(seconds);
	pthread_join(other, NULL);
	return 0;
}
