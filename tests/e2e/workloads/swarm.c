/* SPDX-License-Identifier: Apache-2.0 */
/* `swarm SECONDS COUNT`: forks and executes COUNT processes that end at once, up to 50 at a time;
 * SECONDS is not used. */
#include <sys/wait.h>

#include "workload.h"

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100, running = 0;

	ready();
	for (unsigned i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0) {
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		if (++running == 50) {
			wait(NULL);
			running--;
		}
	}
	while (running--)
		wait(NULL);
	printf("processes %u\n", count);
	return 0;
}
