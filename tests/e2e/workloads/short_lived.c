/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `short_lived SECONDS [MILLISECONDS]`: one process after the other, each forked, executed anew as
 * `short_lived MILLISECONDS child`, working in short_spin for MILLISECONDS (5). Prints "processes
 * N" at the end.
 */
#include <sys/wait.h>

#include "workload.h"

SPIN_FUNCTION(short_spin)

static int child_main(const char *milliseconds)
{
	double end = now_s() + strtod(milliseconds, NULL) * 1e-3;

	while (now_s() < end)
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
	double end = now_s() + seconds_argument(argc, argv);
	unsigned long count = 0;

	if (argc > 2 && strcmp(argv[2], "child") == 0)
		return child_main(argv[1]);
	ready();
	for (; now_s() < end; count++)
		run_child(argv[0], argc > 2 ? argv[2] : "5");
	printf("processes %lu\n", count);
	return 0;
}
