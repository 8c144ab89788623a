/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutter LIBRARY FOLDER ROUNDS cut|copy: in each round a child maps and runs a copy of the library,
 * while its parent cuts the copy, or copies another file over it as cp does. The child may die of
 * it. A profiler that has the copy mapped must not. Prints "ready PID", waits for a line, and
 * prints "done ROUNDS".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_US 60000

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* `tail` makes each copy another file, also for a cache that goes by contents. */
static void copy(const char *from_path, const char *path, unsigned tail)
{
	int from = open(from_path, O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	struct stat status;
	off_t at = 0;

	if (from < 0 || to < 0 || fstat(from, &status) < 0)
		fail(path);
	while (at < status.st_size)
		if (sendfile(to, from, &at, (size_t)(status.st_size - at)) < 0)
			fail(path);
	for (unsigned i = 0; i < 2048; i++)
		if (write(to, &tail, sizeof(tail)) != sizeof(tail))
			fail(path);
	close(from);
	close(to);
}

static void run_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*work)(void) = library ? (void (*)(void))dlsym(library, "work") : NULL;

	signal(SIGBUS, SIG_DFL);
	if (!work)
		fail("dlopen");
	for (;;)
		work();
}

static off_t length_of(const char *path)
{
	struct stat status;

	return stat(path, &status) < 0 ? 0 : status.st_size;
}

static void run_round(const char *library, const char *folder, unsigned round, int copies)
{
	struct timespec delay = {.tv_nsec = (long)(rand() % LONGEST_US) * 1000};
	char path[4096];
	pid_t child;
	int status;

	snprintf(path, sizeof(path), "%s/copy-%u.so", folder, round);
	copy(library, path, round);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		run_library(path);
	nanosleep(&delay, NULL);
	if (copies)
		copy("/proc/self/exe", path, round);
	else if (truncate(path, round % 2 ? 0 : rand() % length_of(path)) < 0)
		fail("truncate");
	nanosleep(&delay, NULL);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	unlink(path);
}

int main(int count, char **arguments)
{
	unsigned rounds = count == 5 ? (unsigned)atoi(arguments[3]) : 0;

	if (!rounds)
		return 2;
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (getchar() != '\n')
		if (feof(stdin))
			return 1;
	for (unsigned i = 0; i < rounds; i++)
		run_round(arguments[1], arguments[2], i, strcmp(arguments[4], "copy") == 0);
	printf("done %u\n", rounds);
	return 0;
}
