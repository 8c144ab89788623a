/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `short_lived SECONDS [MILLISECONDS]`: one process after the other, each forked, executed anew as
 * `short_lived MILLISECONDS child`, working in short_spin for MILLISECONDS (5) of CPU time, so many
 * that they work for SECONDS together. Prints "processes N" at the end.
 */
#include <sys/wait.h>

#include "workload.h"

SPIN_FUNCTION(short_spin)

static int child_main(const char *milliseconds)
{
	double end = cpu_s() + strtod(milliseconds, NULL) * 1e-3;

	while (cpu_s() < end)
		short_spin(20);
	return 0;
}

static void run_child(char *name, char *milliseconds)
{
	char *arguments[] = {name, milliseconds, "child", NULL};
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (child == 0) {
		execv(self_path(), arguments);
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0 || status != 0)
		die("child");
}

int main(int argc, char **argv)
{
	char *milliseconds = argc > 2 ? argv[2] : (char[]){"5"};
	double seconds = seconds_argument(argc, argv);
	unsigned long count;

	if (argc > 2 && strcmp(argv[2], "child") == 0)
		return child_main(argv[1]);
	count = (unsigned long)(seconds * 1e3 / strtod(milliseconds, NULL));
	ready();
	for (unsigned long i = 0; i < count; i++)
		run_child(argv[0], milliseconds);
	printf("processes %lu\n", count);
	return 0;
}
