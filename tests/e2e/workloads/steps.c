/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `steps SECONDS STEPS [ENDING]`: so many steps named "work" in so many seconds, each with a range
 * of sonde's own API around what it does; then it ends as ENDING says, without a word.
 */
#include <pthread.h>
#include <sys/wait.h>

#include <sonde/sonde.h>

#include "workload.h"

#define THREADS   4
#define PROCESSES 3

static double step_s;
static unsigned steps;

static NOINLINE void work(double until_s)
{
	volatile unsigned value = 0;

	while (now_s() < until_s) {
		for (unsigned i = 0; i < 1000; i++)
			value += i;
	}
}

static void make_steps(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		sonde_range_push("body");
		work(now_s() + step_s);
		sonde_range_pop();
		sonde_step("work");
	}
}

static void *run_thread(void *unused)
{
	make_steps(steps);
	return unused;
}

static void make_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Ranks: each begins a little later than the one before. */
static void make_processes(char **arguments)
{
	for (int i = 0; i < PROCESSES; i++) {
		char rank[12];

		if (fork() == 0) {
			snprintf(rank, sizeof(rank), "%d", i);
			setenv("RANK", rank, 1);
			setenv("WORLD_SIZE", "3", 1);
			execl("/proc/self/exe", arguments[0], arguments[1], arguments[2], NULL);
			_exit(1);
		}
		work(now_s() + step_s);
	}
	while (wait(NULL) > 0)
		;
}

/* A child that executes nothing goes on as its parent does. */
static void fork_and_go_on(void)
{
	pid_t child = fork();

	make_steps(steps / 2);
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv);
	const char *ending = argc > 3 ? argv[3] : "exit";

	steps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	step_s = seconds / steps;
	if (strcmp(ending, "threads") == 0) {
		make_threads();
	} else if (strcmp(ending, "processes") == 0) {
		make_processes(argv);
	} else if (strcmp(ending, "fork") == 0) {
		make_steps(steps - steps / 2);
		fork_and_go_on();
	} else {
		make_steps(steps);
		if (strcmp(ending, "_exit") == 0)
			_exit(3);
		if (strcmp(ending, "abort") == 0)
			abort();
		if (strcmp(ending, "kill") == 0)
			raise(SIGKILL);
		if (strcmp(ending, "term") == 0)
			raise(SIGTERM);
		if (strcmp(ending, "idle") == 0)
			sleep(60);
	}
	return 0;
}
