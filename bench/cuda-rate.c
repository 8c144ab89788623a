/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-rate LIBCUPTI_DOUBLE RATE SECONDS: RATE kernels a second, launched by two threads, each into
 * a stream of its own; a third thread tells of them as the device does. No CUDA and no device: the
 * stand-in of the tests. Prints what was done, as JSON.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "doubles/cupti/double.h"

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define KEEP_FRAME()   __asm__ volatile("" ::: "memory")
#define RUNTIME_LAUNCH 211
#define STREAMS        2
#define DEPTH          20
#define TURN_NS        50000 /* a thread launches what is due, and sleeps */

struct stream {
	_Alignas(64) _Atomic uint64_t launched;
	uint64_t told;
	uint64_t last_end_ns;
};

static const struct double_functions *cupti;
static struct stream streams[STREAMS];
static uint64_t rate, all, begun_ns;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void sleep_one_turn(void)
{
	nanosleep(&(struct timespec){.tv_nsec = TURN_NS}, NULL);
}

/* ---- launches ---- */

static uint32_t correlation_of(uint64_t launch, size_t stream)
{
	return (uint32_t)(launch * STREAMS + stream + 1);
}

static NOINLINE void launch(uint32_t correlation)
{
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_ENTER, 0);
	cupti->call(CUPTI_DOMAIN_RUNTIME, RUNTIME_LAUNCH, correlation, CUPTI_SITE_EXIT, 0);
	KEEP_FRAME();
}

/* Three places, in turn. */
static NOINLINE void launch_next(uint64_t i, size_t stream)
{
	if (i % 3 == 0)
		launch(correlation_of(i, stream));
	else if (i % 3 == 1)
		launch(correlation_of(i, stream));
	else
		launch(correlation_of(i, stream));
	KEEP_FRAME();
}

static void launch_all(size_t stream)
{
	uint64_t done = 0, due;

	while (done < all) {
		due = (now_ns(CLOCK_MONOTONIC) - begun_ns) * (rate / STREAMS) / 1000000000ULL;
		for (; done < due && done < all; done++) {
			launch_next(done, stream);
			atomic_store_explicit(
				&streams[stream].launched, done + 1, memory_order_release);
		}
		sleep_one_turn();
	}
}

static NOINLINE void launch_deep(int depth, size_t stream)
{
	if (depth)
		launch_deep(depth - 1, stream);
	else
		launch_all(stream);
	KEEP_FRAME();
}

static void *run_stream(void *stream)
{
	launch_deep(DEPTH, (size_t)stream);
	return NULL;
}

/* ---- the device ---- */

static void tell_kernel(size_t stream, uint64_t launch)
{
	uint64_t kernel_ns = 1000000000ULL * STREAMS / rate / 2 + 1, now = now_ns(CLOCK_REALTIME);
	struct stream *one = &streams[stream];
	struct cupti_kernel record = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.context = 1,
		.stream = (uint32_t)stream + 7,
		.grid = {64, 1, 1},
		.block = {256, 1, 1},
		.correlation = correlation_of(launch, stream),
		.name = "kernel",
	};

	record.start = now > one->last_end_ns ? now : one->last_end_ns;
	record.end = one->last_end_ns = record.start + kernel_ns;
	cupti->emit(&record, sizeof(record));
}

static uint64_t tell_what_was_launched(void)
{
	uint64_t told = 0, launched;

	for (size_t i = 0; i < STREAMS; i++) {
		launched = atomic_load_explicit(&streams[i].launched, memory_order_acquire);
		for (; streams[i].told < launched; streams[i].told++)
			tell_kernel(i, streams[i].told);
		told += streams[i].told;
	}
	return told;
}

static void *run_device(void *unused)
{
	while (tell_what_was_launched() < all * STREAMS)
		sleep_one_turn();
	return unused;
}

/* ---- the program ---- */

static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void);

	*(void **)&initialize = library ? dlsym(library, "InitializeInjection") : NULL;
	if (initialize)
		initialize();
}

int main(int count, char **arguments)
{
	void *library = count == 4 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	pthread_t threads[STREAMS + 1];
	double seconds;

	cupti = library ? dlsym(library, "double_cupti") : NULL;
	rate = cupti ? strtoull(arguments[2], NULL, 10) : 0;
	all = rate ? rate * strtoull(arguments[3], NULL, 10) / STREAMS : 0;
	if (!all || all * STREAMS >= UINT32_MAX) {
		fputs("usage: cuda-rate LIBCUPTI_DOUBLE RATE SECONDS\n", stderr);
		return 2;
	}
	load_injection();
	begun_ns = now_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < STREAMS; i++)
		pthread_create(&threads[i], NULL, run_stream, (void *)i);
	pthread_create(&threads[STREAMS], NULL, run_device, NULL);
	for (size_t i = 0; i < STREAMS + 1; i++)
		pthread_join(threads[i], NULL);
	seconds = (double)(now_ns(CLOCK_MONOTONIC) - begun_ns) / 1e9;
	printf("{\"kernels\": %llu, \"seconds\": %.3f}\n", (unsigned long long)(all * STREAMS),
		seconds);
	return 0;
}
