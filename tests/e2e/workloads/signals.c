/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler that works: every 10 ms of CPU time SIGPROF interrupts interrupted_spin, and
 * on_signal spends about as long in handler_spin, so that about half of all stacks go through a
 * signal frame.
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
	double end = cpu_s() + seconds_argument(argc, argv);
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct itimerval every = {.it_interval.tv_usec = 10000, .it_value.tv_usec = 10000};

	if (sigaction(SIGPROF, &action, NULL) < 0 || setitimer(ITIMER_PROF, &every, NULL) < 0)
		die("setitimer");
	ready();
	while (cpu_s() < end)
		interrupted_spin(100);
	return 0;
}
