/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/worker.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

/* How often it looks what it used. */
#define WATCH_NS    (500 * NS_PER_MS)
#define STRETCH_MAX 100

static struct timespec timespec_of(uint64_t time_ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(time_ns / NS_PER_S), .tv_nsec = (long)(time_ns % NS_PER_S)};
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

static bool is_read(const struct energy_channel *channel)
{
	return atomic_load_explicit(&channel->stage, memory_order_relaxed) == CHANNEL_READS &&
	       !atomic_load_explicit(&channel->is_done, memory_order_relaxed);
}

static uint64_t tick_ns(const struct energy_worker *worker, const struct energy_channel *channel)
{
	return (uint64_t)((double)channel->tick_ns * worker->stretch);
}

/* What waking up costs, the kernel's part included, shows only here. */
static void watch_cost(struct energy_worker *worker, uint64_t now_ns)
{
	uint64_t used_ns;
	double share;

	if (now_ns - worker->watched_ns < WATCH_NS)
		return;
	used_ns = thread_cpu_ns();
	share = (double)(used_ns - worker->used_ns) / (double)(now_ns - worker->watched_ns);
	worker->used_ns = used_ns;
	worker->watched_ns = now_ns;
	worker->stretch *= share / ENERGY_SHARE;
	worker->stretch = MIN(MAX(worker->stretch, 1.0), (double)STRETCH_MAX);
	for (unsigned i = 0; i < worker->channel_count; i++) {
		struct energy_channel *channel = &worker->channels[i];

		if (channel->wanted_tick_ns)
			worker->stretch = 1;
		for (unsigned k = 0; is_read(channel) && k < channel->found.count; k++)
			energy_meter_tick(&channel->meters[k], tick_ns(worker, channel));
	}
}

/* Ticks lie at multiples of their length, so that several sources share a waking. Missed ones are
 * not made up for. */
static uint64_t read_due(struct energy_worker *worker)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < worker->channel_count; i++) {
		struct energy_channel *channel = &worker->channels[i];
		uint64_t now_ns = monotonic_now_ns(), length_ns;

		if (!is_read(channel))
			continue;
		if (now_ns >= channel->due_ns) {
			energy_channel_read(channel);
			now_ns = monotonic_now_ns();
			length_ns = tick_ns(worker, channel);
			channel->due_ns = (now_ns / length_ns + 1) * length_ns;
		}
		next_ns = MIN(next_ns, channel->due_ns);
	}
	return next_ns;
}

/*
 * False when the thread is to end. One system call: a condition would take its lock at each waking,
 * and call the kernel again to let go of it.
 */
static bool wait_until(struct energy_worker *worker, uint64_t time_ns)
{
	struct timespec until = timespec_of(MIN(time_ns, monotonic_now_ns() + 3600 * NS_PER_S));

	syscall(SYS_futex, &worker->should_end, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
	return !atomic_load(&worker->should_end);
}

static void say(struct energy_worker *worker, bool has_ended)
{
	pthread_mutex_lock(&worker->lock);
	worker->has_ended = has_ended;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

static void release(struct energy_worker *worker)
{
	if (atomic_fetch_sub(&worker->references, 1) > 1)
		return;
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void *run_worker(void *argument)
{
	struct energy_worker *worker = argument;
	bool has_any = false;
	uint64_t next_ns;

	for (unsigned i = 0; i < worker->channel_count; i++) {
		energy_channel_open(&worker->channels[i]);
		has_any = has_any || is_read(&worker->channels[i]);
		say(worker, false);
	}
	worker->watched_ns = monotonic_now_ns();
	worker->used_ns = thread_cpu_ns();
	if (has_any) {
		do {
			next_ns = read_due(worker);
			watch_cost(worker, monotonic_now_ns());
		} while (wait_until(worker, next_ns));
	}
	for (unsigned i = 0; i < worker->channel_count; i++) {
		if (is_read(&worker->channels[i])) /* up to the very end */
			energy_channel_read(&worker->channels[i]);
		energy_channel_close(&worker->channels[i]);
	}
	say(worker, true);
	release(worker);
	return NULL;
}

static void init(struct energy_worker *worker)
{
	pthread_condattr_t attributes;

	worker->stretch = 1;
	atomic_store(&worker->references, 2);
	pthread_mutex_init(&worker->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int energy_worker_start(struct energy_worker **ret_worker,
	const struct energy_source *const *sources, unsigned count,
	const struct energy_place *place, uint64_t wanted_tick_ns)
{
	struct energy_worker *worker = calloc(1, sizeof(*worker));
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (!worker)
		return -ENOMEM;
	init(worker);
	worker->channel_count = MIN(count, (unsigned)WORKER_CHANNELS);
	for (unsigned i = 0; i < worker->channel_count; i++) {
		worker->channels[i].source = sources[i];
		worker->channels[i].place = *place;
		worker->channels[i].wanted_tick_ns = wanted_tick_ns;
	}
	sigfillset(&all); /* signals are the session's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread, NULL, run_worker, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		atomic_store(&worker->references, 1);
		release(worker);
		return r;
	}
	pthread_detach(thread);
	*ret_worker = worker;
	return 0;
}

enum channel_stage energy_worker_wait(
	struct energy_worker *worker, const struct energy_channel *channel, uint64_t deadline_ns)
{
	struct timespec until = timespec_of(deadline_ns);

	pthread_mutex_lock(&worker->lock);
	while (atomic_load(&channel->stage) == CHANNEL_OPENING &&
		pthread_cond_timedwait(&worker->changed, &worker->lock, &until) == 0)
		;
	pthread_mutex_unlock(&worker->lock);
	return (enum channel_stage)atomic_load(&channel->stage);
}

bool energy_worker_stop(struct energy_worker *worker, uint64_t deadline_ns)
{
	struct timespec until = timespec_of(deadline_ns);
	bool has_ended;

	atomic_store(&worker->should_end, 1);
	syscall(SYS_futex, &worker->should_end, FUTEX_WAKE_PRIVATE, 1);
	pthread_mutex_lock(&worker->lock);
	while (!worker->has_ended &&
		pthread_cond_timedwait(&worker->changed, &worker->lock, &until) == 0)
		;
	has_ended = worker->has_ended;
	pthread_mutex_unlock(&worker->lock);
	return has_ended;
}

struct energy_worker *energy_worker_free(struct energy_worker *worker)
{
	if (worker)
		release(worker);
	return NULL;
}
