/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/worker.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "inject/inject.h"

#define STOP_S      5 /* the program's end waits no longer */
#define STACK_BYTES (256 * 1024)

bool inject_worker_init(struct inject_worker *worker)
{
	return sem_init(&worker->wake, 0, 0) == 0;
}

bool inject_worker_start(struct inject_worker *worker, const char *name, void *(*run)(void *))
{
	sigset_t all, old;
	pthread_attr_t attributes;
	int error;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&worker->thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	if (!error)
		pthread_setname_np(worker->thread, name);
	return error == 0;
}

void inject_worker_wake(struct inject_worker *worker)
{
	sem_post(&worker->wake);
}

void inject_worker_stop(struct inject_worker *worker)
{
	struct timespec until;

	atomic_store_explicit(&worker->is_stopping, true, memory_order_release);
	inject_worker_wake(worker);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_S;
	pthread_clockjoin_np(worker->thread, NULL, CLOCK_MONOTONIC, &until);
}

void inject_worker_ask(struct inject_worker *worker)
{
	const struct timespec pause = {.tv_nsec = WORKER_MS};
	uint64_t until_ns = inject_now_ns() + STOP_S * WORKER_SECOND;
	uint32_t asked = 1 + atomic_fetch_add_explicit(&worker->asked, 1, memory_order_release);

	inject_worker_wake(worker);
	while ((int32_t)(atomic_load_explicit(&worker->answered, memory_order_acquire) - asked) <
			0 &&
		inject_now_ns() < until_ns)
		nanosleep(&pause, NULL);
}

bool inject_worker_is_stopping(struct inject_worker *worker)
{
	return atomic_load_explicit(&worker->is_stopping, memory_order_acquire);
}

void inject_worker_wait(struct inject_worker *worker, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / WORKER_SECOND),
		.tv_nsec = (long)(until_ns % WORKER_SECOND)};

	while (sem_clockwait(&worker->wake, CLOCK_MONOTONIC, &until) < 0 && errno == EINTR)
		;
}

bool inject_worker_is_asked(struct inject_worker *worker, uint32_t *ret_asked)
{
	*ret_asked = atomic_load_explicit(&worker->asked, memory_order_acquire);
	return *ret_asked != atomic_load_explicit(&worker->answered, memory_order_relaxed);
}

void inject_worker_answer(struct inject_worker *worker, uint32_t asked)
{
	atomic_store_explicit(&worker->answered, asked, memory_order_release);
}
