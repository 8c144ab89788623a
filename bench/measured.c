/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured FILE COMMAND…: runs a command, and writes to a file what it took, as JSON: seconds by
 * the clock, seconds of CPU, user and all, and the most memory that it had. It ends with the
 * command's status.
 *
 * The kernel counts as a program's memory what the process had before it became that program:
 * under an interpreter that is more than a small program ever needs. This one is smaller still.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int write_usage(const char *path, double wall_s, const struct rusage *usage)
{
	double user_s = seconds_of(usage->ru_utime);
	FILE *file = fopen(path, "w");

	if (!file)
		return -1;
	fprintf(file, "{\"wall_s\": %.6f, \"user_s\": %.6f, \"cpu_s\": %.6f, ", wall_s, user_s,
		user_s + seconds_of(usage->ru_stime));
	fprintf(file, "\"peak_bytes\": %ld}\n", usage->ru_maxrss * 1024);
	return fclose(file);
}

int main(int argc, char **argv)
{
	double begin_s = now_s();
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: measured FILE COMMAND…\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("measured");
		return 1;
	}
	if (write_usage(argv[1], now_s() - begin_s, &usage) != 0) {
		perror(argv[1]);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
