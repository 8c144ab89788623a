/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/stopped/tracees.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/arch.h"
#include "base/file.h"
#include "sources/process/proc_info.h"

#include ARCH_HEADER(tracee)

/* Threads that are made while others are stopped: each round finds those of the last. */
#define MAX_ROUNDS  16
#define MAX_THREADS ((size_t)65536)
/* A stop takes microseconds, unless its thread is deep in the kernel. */
#define POLL_NS 50000

static const uint8_t positions[ARCH_REGISTERS] = ARCH_TRACEE_POSITIONS;

/* The leader may have ended before its threads. */
int tracees_probe(uint32_t pid)
{
	struct pid_list tids = {0};
	int r = proc_list_threads(pid, &tids);

	for (size_t i = 0; i < tids.pids.count; i++) {
		r = ptrace(PTRACE_SEIZE, (pid_t)tids.pids.items[i], NULL, NULL) < 0 ? -errno : 0;
		if (r == 0)
			break;
	}
	array_done(&tids.pids);
	return r;
}

/* ---- stopping ---- */

static bool trace(struct tracees *tracees, uint32_t tid)
{
	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL) < 0) {
		if (!tracees->error)
			tracees->error = -errno;
		return false;
	}
	return ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL) == 0;
}

/* Returns 1 when there is one more thread, or -ENOMEM. */
static int begin(struct tracees *tracees, uint32_t tid)
{
	struct tracee tracee = {.tid = tid, .waiting = waiting_read(tracees->pid, tid)};

	tracee.is_left_alone = tracees->leave_alone(tracees->context, &tracee);
	if (!tracee.is_left_alone)
		tracee.is_traced = trace(tracees, tid);
	if (map_u64_set(&tracees->known, tid, 1) < 0 || array_append(&tracees->threads, tracee) < 0)
		return -ENOMEM;
	return 1;
}

/* Returns how many threads were not known, or a negative errno. */
static int begin_round(struct tracees *tracees)
{
	struct pid_list tids = {0};
	int r = proc_list_threads(tracees->pid, &tids), count = 0;

	for (size_t i = 0; r >= 0 && i < tids.pids.count; i++) {
		if (map_u64_get(&tracees->known, tids.pids.items[i], NULL) ||
			tracees->threads.count >= MAX_THREADS)
			continue;
		r = begin(tracees, tids.pids.items[i]);
		count++;
	}
	array_done(&tids.pids);
	return r < 0 ? r : count;
}

/* Returns whether nothing more is to be waited for. */
static bool look_at(struct tracee *tracee)
{
	int status;
	pid_t got = waitpid((pid_t)tracee->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return false;
	if (got < 0 || !WIFSTOPPED(status)) {
		tracee->is_traced = false;
		return true;
	}
	tracee->is_stopped = true;
	/* A stop of ours, or of job control, has the event; else a signal was being delivered. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		tracee->signal = WSTOPSIG(status);
	return true;
}

static void wait_for_stops(struct tracees *tracees, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (;;) {
		size_t left = 0;

		array_foreach (&tracees->threads, tracee)
			left += tracee->is_traced && !tracee->is_stopped && !look_at(tracee);
		if (!left || monotonic_now_ns() >= deadline_ns)
			return;
		nanosleep(&pause, NULL);
	}
}

/* One thread that may not be traced is no reason to leave out the others. */
static int result_of(const struct tracees *tracees)
{
	array_foreach (&tracees->threads, tracee) {
		if (tracee->is_traced || tracee->is_left_alone)
			return 0;
	}
	return tracees->error ? tracees->error : -ESRCH;
}

int tracees_stop(struct tracees *tracees, uint64_t deadline_ns)
{
	int r = 1;

	for (int round = 0; r > 0 && round < MAX_ROUNDS && monotonic_now_ns() < deadline_ns;
		round++) {
		r = begin_round(tracees);
		wait_for_stops(tracees, deadline_ns);
	}
	return r < 0 ? r : result_of(tracees);
}

/* ---- registers ---- */

static int read_set(uint32_t tid, uintptr_t set, uint64_t *ret_words, size_t count)
{
	struct iovec to = {.iov_base = ret_words, .iov_len = count * sizeof(*ret_words)};

	if (ptrace(PTRACE_GETREGSET, (pid_t)tid, (void *)set, &to) < 0)
		return -errno;
	return to.iov_len == count * sizeof(*ret_words) ? 0 : -ENOTSUP;
}

enum wire_stop tracee_registers(const struct tracee *tracee, struct wire_stack_copy *ret_registers,
	uint64_t *ret_thread_pointer)
{
	uint64_t words[ARCH_TRACEE_WORDS], tls[ARCH_TRACEE_TLS_WORDS];
	int r = read_set(tracee->tid, NT_PRSTATUS, words, ARRAY_SIZE(words));

	if (r == -ENOTSUP) /* those of a 32-bit program are fewer */
		return WIRE_STOP_COMPAT;
	if (r == 0)
		r = read_set(tracee->tid, ARCH_TRACEE_TLS_SET, tls, ARRAY_SIZE(tls));
	if (r < 0)
		return WIRE_STOP_NO_USER_STACK;
	ret_registers->pc = words[ARCH_TRACEE_PC];
	ret_registers->sp = words[ARCH_TRACEE_SP];
	ret_registers->fp = words[ARCH_TRACEE_FP];
	ret_registers->second = words[ARCH_TRACEE_SECOND];
	for (size_t i = 0; i < ARRAY_SIZE(positions); i++)
		ret_registers->leaf[i] = words[positions[i]];
	*ret_thread_pointer = tls[ARCH_TRACEE_TLS];
	return WIRE_STOP_COMPLETE;
}

/* ---- going on ---- */

void tracees_release(struct tracees *tracees)
{
	array_foreach (&tracees->threads, tracee) {
		if (!tracee->is_stopped)
			continue;
		ptrace(PTRACE_DETACH, (pid_t)tracee->tid, NULL, (void *)(uintptr_t)tracee->signal);
		tracee->is_stopped = tracee->is_traced = false;
	}
}

void tracees_done(struct tracees *tracees)
{
	array_done(&tracees->threads);
	map_u64_done(&tracees->known);
}
