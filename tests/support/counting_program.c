/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that only count, and a handler that counts signals. Ends with its parent. */
#include "counting_program.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static struct counting_shared *shared;

static void *count_up(void *context)
{
	_Atomic uint64_t *count = context;

	for (;;)
		atomic_fetch_add(count, 1);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&shared->signals, 1);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;

	if (argc != 2)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
	if (shared == MAP_FAILED || sigaction(SIGRTMIN, &action, NULL) < 0)
		return 1;
	for (int i = 1; i < COUNTING_THREADS; i++) {
		if (pthread_create(&thread, NULL, count_up, (void *)&shared->counts[i]))
			return 1;
	}
	count_up((void *)&shared->counts[0]);
}
