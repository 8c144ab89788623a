/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that ptrace stops: they stand still, and go on whatever becomes of who stopped them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "counting_program.h"
#include "sources/process/proc_info.h"
#include "sources/stopped/refusal.h"
#include "sources/stopped/tracees.h"

#define FOREVER (3600 * NS_PER_S)
#define SIGNALS 200

/* In memory that the target shares with us. */
static struct counting_shared *shared;
static int shared_fd;

/* A program of its own: sanitizers have threads, and handlers of signals, that are not the
 * target's. */
static void run_target(void)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", shared_fd);
	execl(COUNTING_PROGRAM, COUNTING_PROGRAM, fd, (char *)NULL);
	_exit(127);
}

/* Until all its threads run. */
static void wait_until_it_counts(void)
{
	for (size_t i = 0; i < COUNTING_THREADS; i++) {
		uint64_t before = atomic_load(&shared->counts[i]);

		while (atomic_load(&shared->counts[i]) == before)
			sched_yield();
	}
}

static pid_t start_target(void)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_target();
	wait_until_it_counts();
	return pid;
}

static void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static char state_of(pid_t pid)
{
	struct proc_status status;

	assert_int_equal(proc_read_status((uint32_t)pid, &status), 0);
	return status.state;
}

static bool stop_all(void *context, const struct tracee *tracee)
{
	(void)context;
	(void)tracee;
	return false;
}

static size_t count_stopped(const struct tracees *tracees)
{
	size_t count = 0;

	array_foreach (&tracees->threads, tracee)
		count += tracee->is_stopped;
	return count;
}

static void test_all_threads_stand_still_and_go_on(void **state)
{
	pid_t pid = start_target();
	struct tracees tracees = {.pid = (uint32_t)pid, .leave_alone = stop_all};
	uint64_t counts[COUNTING_THREADS];

	assert_int_equal(tracees_stop(&tracees, monotonic_now_ns() + FOREVER), 0);
	assert_int_equal(count_stopped(&tracees), COUNTING_THREADS);
	for (size_t i = 0; i < COUNTING_THREADS; i++)
		counts[i] = atomic_load(&shared->counts[i]);
	array_foreach (&tracees.threads, tracee) {
		struct wire_stack_copy registers = {0};
		uint64_t thread_pointer = 0;

		assert_int_equal(
			tracee_registers(tracee, &registers, &thread_pointer), WIRE_STOP_COMPLETE);
		assert_true(registers.pc && registers.sp && thread_pointer);
		assert_int_equal(registers.leaf[ARCH_DWARF_SP], registers.sp);
		assert_int_equal(registers.leaf[ARCH_DWARF_FP], registers.fp);
	}
	for (size_t i = 0; i < COUNTING_THREADS; i++)
		assert_int_equal(atomic_load(&shared->counts[i]), counts[i]);
	tracees_release(&tracees);
	tracees_done(&tracees);
	wait_until_it_counts();
	end_target(pid);
}

/* As when sonde is killed while it looks. */
static void test_who_stops_is_killed(void **state)
{
	pid_t pid = start_target(), tracer;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	tracer = fork();
	assert_true(tracer >= 0);
	if (tracer == 0) {
		struct tracees tracees = {.pid = (uint32_t)pid, .leave_alone = stop_all};

		byte = tracees_stop(&tracees, monotonic_now_ns() + FOREVER) == 0 &&
		       count_stopped(&tracees) == COUNTING_THREADS;
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	assert_int_equal(state_of(pid), 't');
	end_target(tracer);
	wait_until_it_counts();
	close(ready[0]);
	close(ready[1]);
	end_target(pid);
}

static void *stop_and_end(void *context)
{
	struct tracees tracees = {.pid = *(uint32_t *)context, .leave_alone = stop_all};
	intptr_t r = tracees_stop(&tracees, monotonic_now_ns() + FOREVER);

	tracees_done(&tracees); /* without a release */
	return (void *)r;
}

static void test_the_thread_that_stops_ends(void **state)
{
	pid_t pid = start_target();
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, stop_and_end, &pid), 0);
	pthread_join(thread, &result);
	assert_null(result);
	wait_until_it_counts();
	end_target(pid);
}

static void test_what_job_control_stopped_stays_stopped(void **state)
{
	pid_t pid = start_target();
	struct tracees tracees = {.pid = (uint32_t)pid, .leave_alone = stop_all};
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(tracees_stop(&tracees, monotonic_now_ns() + FOREVER), 0);
	assert_int_equal(count_stopped(&tracees), COUNTING_THREADS);
	tracees_release(&tracees);
	tracees_done(&tracees);
	while (state_of(pid) != 'T') /* it runs for a moment, into its own stop */
		sched_yield();
	kill(pid, SIGCONT);
	wait_until_it_counts();
	end_target(pid);
}

/* One that comes while its thread is stopped, or is what stops it, is delivered. */
static void test_no_signal_is_lost(void **state)
{
	pid_t pid = start_target();

	for (int i = 0; i < SIGNALS; i++) {
		struct tracees tracees = {.pid = (uint32_t)pid, .leave_alone = stop_all};

		assert_int_equal(sigqueue(pid, SIGRTMIN, (union sigval){0}), 0);
		assert_int_equal(tracees_stop(&tracees, monotonic_now_ns() + FOREVER), 0);
		tracees_release(&tracees);
		tracees_done(&tracees);
	}
	while (atomic_load(&shared->signals) < SIGNALS)
		sched_yield();
	end_target(pid);
}

static void test_who_is_gone_is_not_stopped(void **state)
{
	pid_t pid = start_target();
	struct tracees tracees = {.pid = (uint32_t)pid, .leave_alone = stop_all};

	end_target(pid);
	assert_int_equal(tracees_stop(&tracees, monotonic_now_ns() + FOREVER), -ESRCH);
	assert_int_equal(tracees_probe((uint32_t)pid), -ESRCH);
	tracees_done(&tracees);
}

static void test_lines_of_proc(void **state)
{
	struct waiting waiting = {0};

	assert_true(waiting_parse(
		"202 0x7f10 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe1 0x7f11\n", &waiting));
	assert_int_equal(waiting.system_call, 202);
	assert_int_equal(waiting.first_argument, 0x7f10);
	assert_int_equal(waiting.sp, 0x7ffe1);
	assert_int_equal(waiting.pc, 0x7f11);
	assert_true(waiting_parse("-1 0x7ffe2 0x7f12\n", &waiting));
	assert_int_equal(waiting.system_call, UINT64_MAX);
	assert_int_equal(waiting.sp, 0x7ffe2);
	assert_int_equal(waiting.pc, 0x7f12);
	assert_false(waiting_parse("running\n", &waiting));
	assert_false(waiting_parse("", &waiting));
	assert_false(waiting_parse("1 0x2", &waiting));
}

static void expect_refusal(const struct refusal *refusal, int error, const char *words)
{
	struct errmsg err = {{0}};

	assert_int_equal(refusal_explain(refusal, error, &err), error);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void test_why_a_process_is_refused(void **state)
{
	struct refusal refusal = {
		.pid = 7, .own_uid = 1000, .uid = 1000, .yama_scope = -1, .is_dumpable = true};

	expect_refusal(&refusal, -ESRCH, "has ended");
	expect_refusal(&refusal, -ENOSYS, "cannot be traced");
	expect_refusal(&refusal, -EPERM, "--cap-add SYS_PTRACE");
	refusal.yama_scope = 1;
	expect_refusal(&refusal, -EPERM, "kernel.yama.ptrace_scope=0");
	refusal.yama_scope = 2;
	expect_refusal(&refusal, -EPERM, "CAP_SYS_PTRACE");
	refusal.yama_scope = 3;
	expect_refusal(&refusal, -EPERM, "until the next boot");
	refusal.is_dumpable = false;
	expect_refusal(&refusal, -EPERM, "not dumpable");
	refusal.uid = 0;
	expect_refusal(&refusal, -EPERM, "belongs to user 0");
	refusal.tracer_pid = 8;
	expect_refusal(&refusal, -EPERM, "process 8, such as a debugger");
}

static int map_shared(void **state)
{
	shared_fd = memfd_create("counts", 0);
	if (shared_fd < 0 || ftruncate(shared_fd, sizeof(*shared)) < 0)
		return -1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

static int unmap_shared(void **state)
{
	close(shared_fd);
	return munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_threads_stand_still_and_go_on),
		cmocka_unit_test(test_who_stops_is_killed),
		cmocka_unit_test(test_the_thread_that_stops_ends),
		cmocka_unit_test(test_what_job_control_stopped_stays_stopped),
		cmocka_unit_test(test_no_signal_is_lost),
		cmocka_unit_test(test_who_is_gone_is_not_stopped),
		cmocka_unit_test(test_lines_of_proc),
		cmocka_unit_test(test_why_a_process_is_refused),
	};

	return cmocka_run_group_tests(tests, map_shared, unmap_shared);
}
