/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/inject.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By their place in the table. */
static bool was_entered[RUNTIMES_MAX], is_running[RUNTIMES_MAX];
static const struct runtime *started[RUNTIMES_MAX]; /* in the order of their starts */
static size_t started_count;
static pid_t started_in;

/* Another thread of the parent's may have held the lock. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; runtimes[i]; i++) {
		if (was_entered[i] && runtimes[i]->fork_child)
			runtimes[i]->fork_child();
	}
	started_count = 0;
}

/* Each start registers one call, so that a runtime stops before what it stands on has ended. */
static void stop_latest(void)
{
	int saved_errno = errno;

	if (getpid() == started_in && started_count)
		started[--started_count]->stop();
	errno = saved_errno;
}

/* No destructor: the driver's may run before it. */
static bool start(size_t index)
{
	if (!started_in && pthread_atfork(NULL, NULL, in_child) != 0)
		return false;
	started_in = getpid();
	if (!runtimes[index]->start())
		return false;
	started[started_count++] = runtimes[index];
	atexit(stop_latest);
	return true;
}

bool runtime_enter(const struct runtime *runtime)
{
	bool is_ours = false;
	int saved_errno = errno;
	size_t index = 0;

	while (runtimes[index] && runtimes[index] != runtime)
		index++;
	if (runtimes[index] && index < RUNTIMES_MAX && inject_open()) {
		pthread_mutex_lock(&lock);
		if (!was_entered[index]) {
			was_entered[index] = true;
			is_running[index] = inject_open_in_child() && start(index);
		}
		is_ours = is_running[index];
		pthread_mutex_unlock(&lock);
	}
	errno = saved_errno;
	return is_ours;
}

static void list_running(bool ret_is_ours[RUNTIMES_MAX])
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; runtimes[i]; i++)
		ret_is_ours[i] = is_running[i] && started_in == getpid();
	pthread_mutex_unlock(&lock);
}

void runtime_join_session(void)
{
	bool is_ours[RUNTIMES_MAX] = {0};
	int saved_errno = errno;

	list_running(is_ours);
	for (size_t i = 0; runtimes[i]; i++)
		if (is_ours[i] && runtimes[i]->join_session)
			runtimes[i]->join_session();
	errno = saved_errno;
}

/* Children of multiprocessing call it: python/sonde/hooks/child_end.py. */
__attribute__((visibility("default"))) void sonde_flush(void)
{
	bool is_ours[RUNTIMES_MAX] = {0};
	int saved_errno = errno;

	list_running(is_ours);
	for (size_t i = 0; runtimes[i]; i++)
		if (is_ours[i] && runtimes[i]->flush)
			runtimes[i]->flush();
	errno = saved_errno;
}

__attribute__((visibility("default"))) void sonde_profiler(int runs)
{
	bool is_ours[RUNTIMES_MAX] = {0};
	int saved_errno = errno;

	list_running(is_ours);
	for (size_t i = 0; runtimes[i]; i++)
		if (is_ours[i] && runtimes[i]->meet_profiler)
			runtimes[i]->meet_profiler(runs != 0);
	errno = saved_errno;
}
