/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/stopped/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/file.h"
#include "bpf/reason_shared.h"

#define MAX_LINE_BYTES 4096

static bool read_text(uint32_t pid, uint32_t tid, const char *name, struct strbuf *ret_text)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	return read_whole_file(path, MAX_LINE_BYTES, ret_text) == 0;
}

/* "7 0x7f… 0x1 0xffffffff 0x0 0x0 0x0 0x7ffc… 0x7f…": number, arguments, sp and pc; outside of a
 * call "-1 0x7ffc… 0x7f…". */
bool waiting_parse(const char *line, struct waiting *ret_waiting)
{
	uint64_t words[9];
	size_t count = 0;

	for (char *end; count < ARRAY_SIZE(words); line = end, count++) {
		words[count] = count ? strtoull(line, &end, 16) : (uint64_t)strtoll(line, &end, 10);
		if (end == line)
			break;
	}
	if (count != ARRAY_SIZE(words) && count != 3)
		return false;
	ret_waiting->system_call = words[0];
	ret_waiting->first_argument = count == 3 ? 0 : words[1];
	ret_waiting->sp = words[count - 2];
	ret_waiting->pc = words[count - 1];
	return true;
}

/* The state stands behind the name, which may have parentheses of its own. */
static char parse_state(const char *text)
{
	const char *end = strrchr(text, ')');

	return end && end[1] == ' ' ? end[2] : '?';
}

/* A call that an earlier stop interrupted goes on under another number: its code has its own. */
static uint64_t restarted_call(uint32_t pid, uint64_t pc)
{
	uint8_t code[ARCH_CALL_CODE_BYTES];
	struct iovec local = {.iov_base = code, .iov_len = sizeof(code)};
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)(pc - sizeof(code)), .iov_len = sizeof(code)};
	int64_t number = -1;

	if (process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == sizeof(code))
		number = arch_call_in_code(code);
	return number < 0 ? ARCH_CALL_RESTART : (uint64_t)number;
}

struct waiting waiting_read(uint32_t pid, uint32_t tid)
{
	_cleanup_strbuf_ struct strbuf call = {0}, status = {0};
	struct waiting waiting = {.system_call = UINT64_MAX};

	if (!read_text(pid, tid, "stat", &status))
		return waiting;
	waiting.state = parse_state(strbuf_cstr(&status));
	waiting.is_known = read_text(pid, tid, "syscall", &call) &&
			   waiting_parse(strbuf_cstr(&call), &waiting);
	if (waiting.system_call == ARCH_CALL_RESTART)
		waiting.system_call = restarted_call(pid, waiting.pc);
	return waiting;
}

static mode_t type_of_file(uint32_t pid, uint64_t descriptor)
{
	struct stat file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%llu", pid, (unsigned long long)descriptor);
	return stat(path, &file) == 0 ? file.st_mode & S_IFMT : 0;
}

static enum wire_wait reason_of_file(uint32_t pid, uint64_t descriptor)
{
	switch (type_of_file(pid, descriptor)) {
	case S_IFIFO:
		return WIRE_WAIT_PIPE;
	case S_IFSOCK:
		return WIRE_WAIT_SOCKET;
	case 0:
		return WIRE_WAIT_OTHER;
	default:
		return WIRE_WAIT_DISK;
	}
}

/* Sockets with a timeout answer EINTR. */
bool waiting_is_not_restarted(const struct waiting *waiting, uint32_t pid)
{
	if (!waiting->is_known)
		return false;
	switch (waiting->system_call) {
	ARCH_CASES_NOT_RESTARTED:
	ARCH_CASES_SOCKET:
		return true;
	default:
		return arch_reads_or_writes(waiting->system_call) &&
		       type_of_file(pid, waiting->first_argument) == S_IFSOCK;
	}
}

enum wire_wait waiting_reason(const struct waiting *waiting, uint32_t pid)
{
	bool is_uninterruptible = waiting->state == 'D';
	int reason;

	if (waiting->state == 'T' || waiting->state == 't')
		return WIRE_WAIT_STOPPED;
	if (!waiting->is_known)
		return WIRE_WAIT_NONE;
	if (waiting->state != 'S' && !is_uninterruptible)
		return WIRE_WAIT_CPU;
	if ((int64_t)waiting->system_call < 0)
		return WIRE_WAIT_FAULT;
	if (arch_reads_or_writes(waiting->system_call))
		return reason_of_file(pid, waiting->first_argument);
	reason = reason_of_system_call(waiting->system_call);
	if (reason != WIRE_WAIT_OTHER || !is_uninterruptible)
		return (enum wire_wait)reason;
	if (arch_makes_child(waiting->system_call))
		return WIRE_WAIT_CHILD;
	return looks_for_files(waiting->system_call) ? WIRE_WAIT_DISK : WIRE_WAIT_UNKNOWN;
}
