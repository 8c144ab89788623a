/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of ours in the program, which talks to a vendor's tracing library: it takes no signals,
 * and others wait for it in bounded time only.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKER_MS     1000000ULL
#define WORKER_SECOND (1000 * WORKER_MS)

/* Zeroed at first. */
struct inject_worker {
	sem_t wake;
	pthread_t thread;
	_Atomic bool is_stopping;
	_Atomic uint32_t asked, answered;
};

/* False, and nothing runs: no memory. The name has 15 characters at most. */
bool inject_worker_start(struct inject_worker *worker, const char *name, void *(*run)(void *));
/* From any thread, before its start, too, but not before inject_worker_init(). */
bool inject_worker_init(struct inject_worker *worker);
void inject_worker_wake(struct inject_worker *worker);
/* Has it end, and waits for that. */
void inject_worker_stop(struct inject_worker *worker);
/* Waits until it has answered. */
void inject_worker_ask(struct inject_worker *worker);

/* ---- on the thread ---- */

bool inject_worker_is_stopping(struct inject_worker *worker);
/* Returns at this time, or when it is woken. */
void inject_worker_wait(struct inject_worker *worker, uint64_t until_ns);
/* Is somebody waiting? What was asked until then is in *ret_asked, for the answer. */
bool inject_worker_is_asked(struct inject_worker *worker, uint32_t *ret_asked);
void inject_worker_answer(struct inject_worker *worker, uint32_t asked);
