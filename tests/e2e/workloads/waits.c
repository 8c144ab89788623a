/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for known times: sleep, a lock, a pipe, a socket, poll; each SECONDS long,
 * ROUNDS times (1).
 *
 *   waits SECONDS [ROUNDS]
 */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "workload.h"

static double seconds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int a_pipe[2], a_socket[2];

static void sleep_for(double time)
{
	struct timespec left = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};

	while (nanosleep(&left, &left) < 0)
		;
}

static void *wait_in_sleep(void *unused)
{
	/* In pieces, which are one wait to the report. */
	for (int i = 0; i < 10; i++)
		sleep_for(seconds / 10);
	return unused;
}

static void *wait_for_lock(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *wait_for_pipe(void *unused)
{
	char byte;

	return read(a_pipe[0], &byte, 1) == 1 ? unused : NULL;
}

static void *wait_for_socket(void *unused)
{
	char byte;

	return recv(a_socket[0], &byte, 1, 0) == 1 ? unused : NULL;
}

static void *wait_in_poll(void *unused)
{
	poll(NULL, 0, (int)(seconds * 1000));
	return unused;
}

static int wait_once(void)
{
	static void *(*const waits[])(void *) = {
		wait_in_sleep, wait_for_lock, wait_for_pipe, wait_for_socket, wait_in_poll};
	enum { WAITS = sizeof(waits) / sizeof(waits[0]) };
	pthread_t threads[WAITS];

	pthread_mutex_lock(&lock);
	for (int i = 0; i < WAITS; i++)
		pthread_create(&threads[i], NULL, waits[i], NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sleep_for(seconds);
	pthread_mutex_unlock(&lock);
	if (write(a_pipe[1], "x", 1) != 1 || send(a_socket[1], "x", 1, 0) != 1)
		return 1;
	for (int i = 0; i < WAITS; i++)
		pthread_join(threads[i], NULL);
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
