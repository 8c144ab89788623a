/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/stopped/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define MAX_TEXT_BYTES 65536

static int read_number(const char *path, int otherwise)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	return read_whole_file(path, MAX_TEXT_BYTES, &text) == 0
		       ? (int)strtol(strbuf_cstr(&text), NULL, 10)
		       : otherwise;
}

/* Of a line "TracerPid:\t0" of /proc/PID/status. */
static uint32_t read_field(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? (uint32_t)strtoul(line + strlen(name), NULL, 10) : 0;
}

/* What is not dumpable has files of root's in /proc, but for /proc/PID itself. */
struct refusal refusal_read(uint32_t pid)
{
	struct refusal refusal = {.pid = pid,
		.own_uid = geteuid(),
		.yama_scope = read_number("/proc/sys/kernel/yama/ptrace_scope", -1),
		.is_dumpable = true};
	_cleanup_strbuf_ struct strbuf status = {0};
	struct stat file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (read_whole_file(path, MAX_TEXT_BYTES, &status) == 0) {
		refusal.uid = read_field(strbuf_cstr(&status), "\nUid:\t");
		refusal.tracer_pid = read_field(strbuf_cstr(&status), "\nTracerPid:\t");
	}
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	if (stat(path, &file) == 0)
		refusal.is_dumpable = file.st_uid == refusal.uid;
	return refusal;
}

static int explain_yama(const struct refusal *refusal, int error, struct errmsg *err)
{
	if (refusal->yama_scope >= 3)
		return errmsg_set(err, error,
			"process %u may not be traced: kernel.yama.ptrace_scope is %d, which "
			"forbids ptrace until the next boot; run sonde with sudo, to read stacks by "
			"BPF",
			refusal->pid, refusal->yama_scope);
	if (refusal->yama_scope == 2)
		return errmsg_set(err, error,
			"process %u may not be traced: kernel.yama.ptrace_scope is 2, which leaves "
			"ptrace to CAP_SYS_PTRACE; run sonde with sudo",
			refusal->pid);
	return errmsg_set(err, error,
		"process %u may not be traced: kernel.yama.ptrace_scope is 1, which allows ptrace "
		"of one's own children only; run sonde with sudo, or sudo sysctl "
		"kernel.yama.ptrace_scope=0",
		refusal->pid);
}

int refusal_explain(const struct refusal *refusal, int error, struct errmsg *err)
{
	unsigned pid = refusal->pid;

	if (error == -ESRCH)
		return errmsg_set(
			err, error, "process %u has ended: ps -e lists those that there are", pid);
	if (error != -EPERM && error != -EACCES)
		return errmsg_set(err, error,
			"process %u cannot be traced (%s): run sonde with sudo, to read stacks by "
			"BPF",
			pid, strerror(-error));
	if (refusal->tracer_pid)
		return errmsg_set(err, error,
			"process %u may not be traced: process %u, such as a debugger or strace, "
			"traces it already; end that first",
			pid, refusal->tracer_pid);
	if (refusal->own_uid && refusal->uid != refusal->own_uid)
		return errmsg_set(err, error,
			"process %u may not be traced: it belongs to user %u, and you are user %u; "
			"run sonde with sudo",
			pid, refusal->uid, refusal->own_uid);
	if (refusal->own_uid && !refusal->is_dumpable)
		return errmsg_set(err, error,
			"process %u may not be traced: it is not dumpable, like a program that "
			"changed its user or holds secrets (prctl PR_SET_DUMPABLE); run sonde with "
			"sudo",
			pid);
	if (refusal->yama_scope > 0)
		return explain_yama(refusal, error, err);
	return errmsg_set(err, error,
		"process %u may not be traced (%s): a sandbox or a security module forbids ptrace; "
		"run sonde with sudo outside of it, or start the container with "
		"--cap-add SYS_PTRACE",
		pid, strerror(-error));
}
