/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring-drain COMMAND...: a session whose records are read and counted, and nothing more: what the
 * rings carry. Prints what became of them as JSON, after what the command says itself.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "sources/target/target_rings.h"

static void on_record(void *context, uint32_t pid, const struct wire_record *record)
{
	uint64_t *bytes = context;

	*bytes += record->length_bytes;
}

static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static pid_t start(struct target_rings *rings, char **command)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("SONDE_SESSION", target_rings_folder(rings), 1);
		execvp(command[0], command);
		_exit(127);
	}
	target_gate_set_ready(target_rings_gate(rings));
	return pid;
}

int main(int count, char **arguments)
{
	struct target_rings_account account;
	struct target_rings *rings;
	uint64_t bytes = 0, begin_ns;
	bool is_running = true;
	struct errmsg err;
	int status = 0;
	pid_t pid;

	if (count < 2 || target_rings_open(&rings, &(struct target_gate_options){0}, &err) < 0)
		return 2;
	begin_ns = monotonic_now_ns();
	pid = start(rings, arguments + 1);
	while (is_running) {
		/* As a recording does: at once where much is waiting. */
		if (target_rings_fill(rings) < 0.1)
			poll(NULL, 0, 1);
		is_running = waitpid(pid, &status, WNOHANG) == 0;
		if (target_rings_drain(rings, on_record, &bytes) < 0)
			return 2;
	}
	target_rings_account(rings, &account);
	printf("{\"records\": %llu, \"lost\": %llu, \"bytes\": %llu, \"cpu_s\": %.3f, \"seconds\": "
	       "%.3f}\n",
		(unsigned long long)account.records, (unsigned long long)account.lost,
		(unsigned long long)bytes, cpu_s(),
		(double)(monotonic_now_ns() - begin_ns) / NS_PER_S);
	target_rings_free(rings);
	return WEXITSTATUS(status);
}
