/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for known times: sleep, a lock, a pipe, a socket, poll; each SECONDS long,
 * ROUNDS times (1). At the end it prints how long each waited, as it measured itself: SECONDS, and
 * what a busy machine adds by starting and waking threads late.
 *
 *   waits SECONDS [ROUNDS]
 *   began FUNCTION SECONDS, by CLOCK_MONOTONIC
 *   waited FUNCTION SECONDS, without the time that it waited for a CPU, once for each thread and
 * round
 */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "workload.h"

static double seconds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int a_pipe[2], a_socket[2];

static NOINLINE void sleep_for(double time)
{
	struct timespec left = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};

	while (nanosleep(&left, &left) < 0)
		;
	KEEP_FRAME();
}

static NOINLINE void wait_in_sleep(void)
{
	/* In pieces, which are one wait to the report. */
	for (int i = 0; i < 10; i++)
		sleep_for(seconds / 10);
}

static NOINLINE void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	KEEP_FRAME();
}

static NOINLINE void wait_for_pipe(void)
{
	char byte;

	if (read(a_pipe[0], &byte, 1) != 1)
		die("read");
}

static NOINLINE void wait_for_socket(void)
{
	char byte;

	if (recv(a_socket[0], &byte, 1, 0) != 1)
		die("recv");
}

static NOINLINE void wait_in_poll(void)
{
	poll(NULL, 0, (int)(seconds * 1000));
	KEEP_FRAME();
}

/* In the order that they are printed in. */
static struct wait {
	const char *function;
	void (*wait)(void);
	double began_s, waited_s;
} waits[] = {
	{"sleep_for", wait_in_sleep},
	{"wait_for_lock", wait_for_lock},
	{"wait_for_pipe", wait_for_pipe},
	{"wait_for_socket", wait_for_socket},
	{"wait_in_poll", wait_in_poll},
};
enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static void *measure(void *argument)
{
	struct wait *wait = argument;
	struct moment begin = moment_now(), end;

	wait->wait();
	end = moment_now();
	wait->began_s = begin.wall_s;
	wait->waited_s = waited_s(&begin, &end);
	return NULL;
}

static int wait_once(void)
{
	struct moment begin, end;
	pthread_t threads[WAITS];

	pthread_mutex_lock(&lock);
	for (int i = 0; i < WAITS; i++)
		pthread_create(&threads[i], NULL, measure, &waits[i]);
	printf("ready %d\n", getpid());
	fflush(stdout);
	begin = moment_now();
	sleep_for(seconds);
	end = moment_now();
	pthread_mutex_unlock(&lock);
	if (write(a_pipe[1], "x", 1) != 1 || send(a_socket[1], "x", 1, 0) != 1)
		return 1;
	for (int i = 0; i < WAITS; i++)
		pthread_join(threads[i], NULL);
	printf("waited sleep_for %.6f\n", waited_s(&begin, &end));
	for (int i = 0; i < WAITS; i++)
		printf("began %s %.6f\nwaited %s %.6f\n", waits[i].function, waits[i].began_s,
			waits[i].function, waits[i].waited_s);
	return 0;
}

int main(int count, char **arguments)
{
	int rounds = count > 2 ? atoi(arguments[2]) : 1;

	seconds = count > 1 ? atof(arguments[1]) : 1;
	if (pipe(a_pipe) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, a_socket) < 0)
		return 1;
	for (int i = 0; i < rounds; i++) {
		if (wait_once())
			return 1;
	}
	return 0;
}
