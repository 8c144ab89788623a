/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of processes: tree forks one child that goes on in this program ("tree-fork", forked_spin)
 * and one that executes it anew as `tree SECONDS exec` ("tree-exec", executed_spin), which forks a
 * grandchild
 * ("tree-grand", grandchild_spin). The parent works in parent_spin. Prints "pid NAME PID" for each
 * of them.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "workload.h"

SPIN_FUNCTION(parent_spin)
SPIN_FUNCTION(forked_spin)
SPIN_FUNCTION(executed_spin)
SPIN_FUNCTION(grandchild_spin)

static void work(const char *name, void (*spin)(unsigned), double seconds)
{
	pid_t parent = getppid();

	prctl(PR_SET_NAME, name);
	printf("pid %s %d\n", name, getpid());
	fflush(stdout);
	/* CPU time; without its parent nobody wants the rest. */
	while (cpu_s() < seconds && getppid() == parent)
		spin(100);
}

static pid_t fork_worker(const char *name, void (*spin)(unsigned), double seconds)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0) {
		work(name, spin, seconds);
		exit(0);
	}
	return child;
}

/* 0 when every child ended well. */
static int wait_all(void)
{
	int status, failures = 0;

	while (wait(&status) > 0)
		failures += status != 0;
	return failures ? 1 : 0;
}

static pid_t execute_anew(char **argv)
{
	char *arguments[] = {argv[0], argv[1], "exec", NULL};
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child > 0)
		return child;
	execv(self_path(), arguments);
	die("execv");
	return -1;
}

int main(int argc, char **argv)
{
	double seconds = seconds_argument(argc, argv);

	if (argc > 2 && strcmp(argv[2], "exec") == 0) {
		fork_worker("tree-grand", grandchild_spin, seconds);
		work("tree-exec", executed_spin, seconds);
		return wait_all();
	}
	fork_worker("tree-fork", forked_spin, seconds);
	execute_anew(argv);
	ready();
	work("tree", parent_spin, seconds);
	return wait_all();
}
