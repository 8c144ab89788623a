/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every workload shares. Each is run as `NAME SECONDS […]`, prints "ready PID" when it is at
 * full work and ends by itself with status 0 after that many seconds (of CPU time, those that only
 * spin). They are built with -O2 -fomit-frame-pointer, as the programs of a distribution are, so
 * that stacks must come from .eh_frame.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* After a call, so that the compiler cannot make it a jump that leaves no frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#ifdef __x86_64__
#define SQUARE "imul %0, %0"
#else
#define SQUARE "mul %0, %0, %0"
#endif

/*
 * Defines `static void NAME(unsigned rounds)`, whose self time is proportional to rounds: the same
 * loop in every function, around 1 ms for 1,000 rounds.
 */
#define SPIN_FUNCTION(name)                                                                        \
	static NOINLINE void name(unsigned rounds)                                                 \
	{                                                                                          \
		uint64_t value = rounds;                                                           \
                                                                                                   \
		for (uint64_t step = 0; step < (uint64_t)rounds * 1000; step++)                    \
			__asm__ volatile(SQUARE : "+r"(value));                                    \
	}

static inline double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * CPU time of this process: what a program that is sampled runs for, so that it has as many samples
 * on a busy machine as on a quiet one.
 */
static inline double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What the calling thread has done until now, by the kernel's own account. */
struct moment {
	double wall_s, cpu_s;
	double runnable_s; /* waited for a CPU; 0 where the kernel does not count it */
};

static inline unsigned long long runnable_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ran = 0, waited = 0;

	if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return waited;
}

static inline struct moment moment_now(void)
{
	struct moment moment = {0};
	unsigned long long before;
	struct timespec cpu;

	/* All at one moment: none while another thread had the CPU. */
	do {
		before = runnable_ns();
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
		moment.wall_s = now_s();
	} while (runnable_ns() != before);
	moment.runnable_s = (double)before * 1e-9;
	moment.cpu_s = (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9;
	return moment;
}

/* Seconds from `begin` to `end` in which the thread waited for anything but a CPU. */
static inline double waited_s(const struct moment *begin, const struct moment *end)
{
	return (end->wall_s - begin->wall_s) - (end->cpu_s - begin->cpu_s) -
	       (end->runnable_s - begin->runnable_s);
}

/* SECONDS, the first argument; ends the program when it is missing. */
static inline double seconds_argument(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;

	if (seconds > 0)
		return seconds;
	fprintf(stderr, "usage: %s SECONDS\n", argv[0]);
	exit(2);
}

/* This program's file: executing /proc/self/exe itself would name the process "exe". */
static inline const char *self_path(void)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0) {
		perror("/proc/self/exe");
		exit(1);
	}
	path[length] = '\0';
	return path;
}

static inline void ready(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}
