/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler that works: every 10 ms of CPU time SIGPROF interrupts interrupted_spin, and
 * on_signal spends about as long in handler_spin, so that about half of all stacks go through a
 * signal frame. With a second argument the handler runs on a stack of its own.
 */
#include <sys/time.h>

#include "workload.h"

SPIN_FUNCTION(interrupted_spin)
SPIN_FUNCTION(handler_spin)

static NOINLINE void on_signal(int number)
{
	struct timespec used;
	double end;

	(void)number;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	end = (double)used.tv_sec + (double)used.tv_nsec * 1e-9 + 0.005;
	do {
		handler_spin(20);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while ((double)used.tv_sec + (double)used.tv_nsec * 1e-9 < end);
}

int main(int argc, char **argv)
{
	static char other_stack[64 * 1024];
	double end = cpu_s() + seconds_argument(argc, argv);
	stack_t other = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART | (argc > 2 ? SA_ONSTACK : 0)};
	struct itimerval every = {.it_interval.tv_usec = 10000, .it_value.tv_usec = 10000};

	if (sigaltstack(&other, NULL) < 0 || sigaction(SIGPROF, &action, NULL) < 0 ||
		setitimer(ITIMER_PROF, &every, NULL) < 0)
		die("setitimer");
	ready();
	while (cpu_s() < end)
		interrupted_spin(100);
	return 0;
}
