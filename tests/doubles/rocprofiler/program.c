/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A HIP program as sonde meets it, except that no device and no ROCm are there: it calls the double
 * of HIP, which loads the double of rocprofiler-sdk as AMD's libraries do. For end-to-end tests.
 *
 *     hip-program STEPS [WHAT [PATH]]
 *
 * Each step launches `scale` twice and `add` once, from functions of their own, and copies, on two
 * threads; then three launches are captured into a graph, which is launched 10 times. One launch
 * fails, and one fill is done by the host.  WHAT: exit, _exit, fork: how it ends;
 * window: nothing of that, but 5 launches of `scale`, STEPS of `add` while there is a file PATH, of
 * which sonde makes a window, and 5 of `scale` again.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "double.h"

#define NOINLINE __attribute__((noinline, noclone))
/* After a call, so that it does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
#define REPLAYS      10

static _Atomic uint32_t checksum; /* what the program computes */

static NOINLINE void launch_scale(void)
{
	checksum++;
	hipLaunchKernel(KERNEL_SCALE);
	KEEP_FRAME();
}

static NOINLINE void launch_add(void)
{
	checksum++;
	hipLaunchKernel(KERNEL_ADD);
	KEEP_FRAME();
}

static NOINLINE void train_step(void)
{
	launch_scale();
	launch_scale();
	launch_add();
	hipMemcpyAsync(4096);
	KEEP_FRAME();
}

static void *train(void *steps)
{
	for (uintptr_t i = 0; i < (uintptr_t)steps; i++)
		train_step();
	hipDeviceSynchronize();
	return NULL;
}

static NOINLINE void replay_model(void)
{
	hipGraphLaunch();
	KEEP_FRAME();
}

static void run_graph(void)
{
	hipStreamBeginCapture();
	launch_add();
	launch_add();
	launch_add();
	hipStreamEndCapture();
	for (unsigned i = 0; i < REPLAYS; i++)
		replay_model();
}

static void fork_child(uintptr_t steps)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		train((void *)steps);
		exit(7);
	}
	waitpid(child, &status, 0);
	printf("child ended with %d\n", WEXITSTATUS(status));
}

static void set_window(const char *path, bool is_open)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	if (is_open)
		fclose(fopen(path, "w"));
	else
		remove(path);
	while (double_is_traced() != is_open)
		nanosleep(&pause, NULL);
}

static void run_window(uintptr_t steps, const char *path)
{
	for (unsigned i = 0; i < 5; i++)
		launch_scale();
	set_window(path, true);
	for (uintptr_t i = 0; i < steps; i++)
		launch_add();
	set_window(path, false);
	for (unsigned i = 0; i < 5; i++)
		launch_scale();
}

static void run(uintptr_t steps)
{
	pthread_t thread;

	pthread_create(&thread, NULL, train, (void *)steps);
	train((void *)steps);
	pthread_join(thread, NULL);
	run_graph();
	hipLaunchKernel(KERNEL_ODD);
	hipMemset();
}

int main(int count, char **arguments)
{
	const struct timespec time = {.tv_nsec = 900000000};
	uintptr_t steps = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
	const char *what = count > 2 ? arguments[2] : "exit";

	hipModuleLoad();
	if (strcmp(what, "window") == 0 && count > 3)
		run_window(steps, arguments[3]);
	else
		run(steps);
	if (strcmp(what, "fork") == 0)
		fork_child(steps);
	printf("computed %u\n", checksum);
	fflush(stdout);
	if (strcmp(what, "_exit") == 0) {
		nanosleep(&time, NULL); /* what was flushed until then is kept */
		_exit(5);
	}
	return 5;
}
