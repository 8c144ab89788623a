/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler without privileges: samples of a busy process, its threads and children, as root and
 * as nobody. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "sources/cpu/perf_sample.h"
#include "sources/cpu/sampler.h"
#include "sources/cpu/thread_names.h"
#include "sources/process/sideband.h"

#define NOBODY      65534
#define PERIOD_NS   NS_PER_MS
#define SPIN_NS     (120 * NS_PER_MS)
#define TURN_NS     (4 * NS_PER_MS)
#define MARKER      0x736f6e6465000000ULL
#define MARKER_SIZE 32

/* ---- the busy program ---- */

static uint64_t own_cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/*
 * The busy program waits for the reader after each TURN_NS of CPU time: on a machine where the
 * reader seldom runs, the small ring of a nobody would lose nearly all. -1: it waits for nobody.
 */
static int ask_fd = -1, answer_fd = -1;

static void wait_for_reader(void)
{
	char byte = 0;

	if (ask_fd >= 0 && (write(ask_fd, &byte, 1) != 1 || read(answer_fd, &byte, 1) != 1))
		_exit(2);
}

/*
 * Uses SPIN_NS of CPU time with a pattern on its stack that a right copy must contain;
 * AddressSanitizer would move the pattern into memory of its own.
 */
static __attribute__((noinline, no_sanitize_address)) void spin(void)
{
	volatile uint64_t marker[MARKER_SIZE];
	uint64_t turn_ns = own_cpu_time_ns(), until_ns = turn_ns + SPIN_NS, sum = 0;

	for (uint64_t i = 0; i < MARKER_SIZE; i++)
		marker[i] = MARKER + i;
	while (own_cpu_time_ns() < until_ns) {
		for (int i = 0; i < 10000; i++)
			sum += marker[i % MARKER_SIZE];
		if (own_cpu_time_ns() - turn_ns < TURN_NS)
			continue;
		wait_for_reader();
		turn_ns = own_cpu_time_ns();
	}
	marker[0] = sum;
}

static void *spin_in_thread(void *argument)
{
	prctl(PR_SET_NAME, "spin-thread");
	spin();
	return argument;
}

static int be_busy(void)
{
	pthread_t thread;
	pid_t child;

	prctl(PR_SET_NAME, "spin-leader");
	spin();
	if (pthread_create(&thread, NULL, spin_in_thread, NULL) || pthread_join(thread, NULL))
		return 1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "spin-child");
		spin();
		_exit(0);
	}
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}

struct busy {
	pid_t pid;
	int answer[2]; /* of the reader: the first byte starts the program */
	int ask[2];    /* that it has used TURN_NS */
};

static void become_busy(const struct busy *busy, bool waits_for_reader)
{
	char ask[16] = "-1", answer[16] = "-1", byte;

	if (waits_for_reader) {
		snprintf(ask, sizeof(ask), "%d", busy->ask[1]);
		snprintf(answer, sizeof(answer), "%d", busy->answer[0]);
	}
	close(busy->ask[0]);
	close(busy->answer[1]);
	if (read(busy->answer[0], &byte, 1) == 1)
		execl("/proc/self/exe", "test-perf-sampler", "busy", ask, answer, NULL);
	_exit(127);
}

/* Waits for a byte, then becomes the busy program. False: there are no pipes or processes. */
static bool start_busy(struct busy *busy, bool waits_for_reader)
{
	if (pipe(busy->answer) < 0 || pipe(busy->ask) < 0)
		return false;
	busy->pid = fork();
	if (busy->pid == 0)
		become_busy(busy, waits_for_reader);
	close(busy->answer[0]);
	close(busy->ask[1]);
	return busy->pid > 0;
}

static void close_busy(const struct busy *busy)
{
	close(busy->answer[1]);
	close(busy->ask[0]);
}

/* ---- checking samples ---- */

struct tally {
	uint32_t pid;
	unsigned leader, thread, child, other;
	unsigned copies, marked, kernel_frames;
	uint32_t exec_id;
	uint64_t time_ns;
	const char *wrong;
};

static void count_name(struct tally *tally, const struct wire_sample *sample)
{
	bool is_leader = sample->tid == tally->pid, is_own = sample->pid == tally->pid;

	if (is_leader && strcmp(sample->thread_name, "spin-leader") == 0)
		tally->leader++;
	else if (is_own && !is_leader && strcmp(sample->thread_name, "spin-thread") == 0 &&
		 strcmp(sample->process_name, "spin-leader") == 0)
		tally->thread++;
	else if (!is_own && sample->tid == sample->pid &&
		 strcmp(sample->process_name, "spin-child") == 0)
		tally->child++;
	else
		tally->other++; /* before the names were set */
}

static bool has_marker(const struct wire_stack_copy *copy)
{
	const uint64_t *words = (const uint64_t *)(copy + 1);
	size_t count = copy->stack_bytes / 8, run = 0;

	for (size_t i = 0; i < count && run < MARKER_SIZE; i++)
		run = words[i] == MARKER + run ? run + 1 : words[i] == MARKER ? 1 : 0;
	return run == MARKER_SIZE;
}

static void check_copy(struct tally *tally, const struct wire_sample *sample)
{
	const struct wire_stack_copy *copy =
		(const void *)&sample->frames[sample->kernel_frame_count];
	size_t head = sizeof(*sample) + sample->kernel_frame_count * 8 + sizeof(*copy);

	tally->copies++;
	if (sample->record.length_bytes != head + copy->stack_bytes)
		tally->wrong = "the record's length";
	if (copy->sp != copy->leaf[7] || copy->fp != copy->leaf[6] || copy->second != copy->leaf[3])
		tally->wrong = "registers in DWARF order";
	if (!copy->pc || copy->sp >> 47 || copy->stack_bytes % 8)
		tally->wrong = "pc, sp and the size of the copy";
	tally->marked += has_marker(copy);
}

static void check_sample(void *context, const struct wire_record *record)
{
	const struct wire_sample *sample = (const struct wire_sample *)record;
	struct tally *tally = context;

	if (record->type != WIRE_RECORD_SAMPLE || record->length_bytes < sizeof(*sample)) {
		tally->wrong = "a sample record";
		return;
	}
	if (sample->user_frame_count || sample->cgroup_id || sample->stop == WIRE_STOP_COMPAT)
		tally->wrong = "fields that this sampler does not know";
	if (sample->time_ns < tally->time_ns)
		tally->wrong = "times that grow";
	tally->time_ns = sample->time_ns;
	tally->exec_id = sample->exec_id;
	tally->kernel_frames += sample->kernel_frame_count;
	if (sample->kernel_frame_count && !(sample->frames[0] >> 63))
		tally->wrong = "kernel addresses";
	count_name(tally, sample);
	if (sample->flags & WIRE_SAMPLE_STACK_COPY)
		check_copy(tally, sample);
}

static const char *judge(const struct tally *tally, const struct cpu_sampler_account *account)
{
	/* 120 ms of CPU time at 1 kHz, though a virtual machine's time may be stolen. */
	const unsigned enough = 20, counted = tally->leader + tally->thread + tally->child;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < account->cpu_count; i++)
		lost += account->lost_per_cpu[i];
	if (tally->wrong)
		return tally->wrong;
	if (tally->leader < enough || tally->thread < enough || tally->child < enough)
		return "samples of the leader, the thread and the child";
	if (counted < tally->other)
		return "right names";
	if (tally->marked < counted * 8 / 10 || tally->copies < counted * 9 / 10)
		return "the stacks' contents";
	if (tally->exec_id == 0)
		return "the exec";
	/* A nobody's ring is small: what was lost is counted, and is the smaller part. */
	if (lost > account->samples)
		return "more kept than lost";
	return account->samples == counted + tally->other ? NULL : "the number of samples";
}

/* `busy` NULL: the process waits for nobody. */
static void record_until_end(
	void *sampler, pid_t pid, const struct busy *busy, struct tally *tally, int *ret_status)
{
	struct pollfd asked = {.fd = busy ? busy->ask[0] : -1, .events = POLLIN};
	int answers = busy ? busy->answer[1] : -1;
	char byte;

	while (waitpid(pid, ret_status, WNOHANG) == 0) {
		poll(&asked, 1, 5);
		perf_sampler.drain(sampler, check_sample, tally);
		if (asked.revents & POLLIN && read(asked.fd, &byte, 1) == 1 &&
			write(answers, &byte, 1) != 1)
			tally->wrong = "a pipe";
	}
	perf_sampler.stop(sampler);
	perf_sampler.drain(sampler, check_sample, tally);
}

/* Once is enough. */
static int follow_twice(void *sampler, uint32_t pid, struct errmsg *err)
{
	int r = perf_sampler.follow(sampler, pid, err);

	return r < 0 ? r : perf_sampler.follow(sampler, pid, err);
}

/* Samples the busy program; returns what is wrong. */
static const char *sample_busy(struct errmsg *err, struct cpu_sampler_account *ret_account)
{
	struct cpu_sampler_options options = {.period_ns = PERIOD_NS};
	struct tally tally = {0};
	void *sampler = NULL;
	const char *wrong;
	struct busy busy;
	int status = -1;

	if (!start_busy(&busy, true))
		return "a process";
	tally.pid = (uint32_t)busy.pid;
	if (perf_sampler.probe(err) < 0 || perf_sampler.open(&sampler, &options, err) < 0)
		return err->text;
	if (follow_twice(sampler, tally.pid, err) < 0 || perf_sampler.start(sampler, err) < 0)
		wrong = err->text;
	else if (write(busy.answer[1], "g", 1) != 1)
		wrong = "a pipe";
	else {
		record_until_end(sampler, busy.pid, &busy, &tally, &status);
		perf_sampler.account(sampler, ret_account);
		wrong = status ? "a good end" : judge(&tally, ret_account);
	}
	if (wrong)
		fprintf(stderr, "leader %u thread %u child %u other %u copies %u marked %u\n",
			tally.leader, tally.thread, tally.child, tally.other, tally.copies,
			tally.marked);
	close_busy(&busy);
	perf_sampler.close(sampler);
	return wrong;
}

/* ---- tests ---- */

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static void test_samples_with_privileges(void **state)
{
	struct cpu_sampler_account account = {0};
	struct errmsg err = {0};
	const char *wrong;

	(void)state;
	skip_unless_root();
	wrong = sample_busy(&err, &account);
	if (wrong)
		fail_msg("wrong: %s", wrong);
	assert_null(strstr(account.notes, "kernel is not sampled"));
}

/* With the little memory that many systems let a user lock, and the process events beside the
 * samples. */
static const char *as_nobody(struct errmsg *err, struct cpu_sampler_account *account)
{
	struct rlimit little = {.rlim_cur = 64 * 1024, .rlim_max = 64 * 1024};
	struct sideband *sideband = NULL;
	const char *wrong;

	if (setrlimit(RLIMIT_MEMLOCK, &little) < 0)
		return "setrlimit";
	if (geteuid() == 0 &&
		(setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return "setresuid";
	prctl(PR_SET_DUMPABLE, 1);
	if (sideband_open(&sideband, (uint32_t)getpid(), err) < 0)
		return err->text;
	wrong = sample_busy(err, account);
	sideband_free(sideband);
	return wrong;
}

static void test_samples_as_nobody(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0) {
		struct cpu_sampler_account account = {0};
		struct errmsg err = {0};
		const char *wrong = as_nobody(&err, &account);

		if (wrong)
			fprintf(stderr, "as nobody, wrong: %s\n", wrong);
		_exit(wrong ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Shared with the process. */
struct following {
	atomic_uint named; /* threads that have their name */
	atomic_bool followed;
};

static struct following *following;

/* However long it took to follow it: at least once more from then on. */
static void *spin_while_followed(void *name)
{
	bool is_last;

	prctl(PR_SET_NAME, name);
	following->named++;
	do {
		is_last = following->followed;
		spin();
	} while (!is_last);
	return NULL;
}

/* A process that runs already, with a thread: attached to, and in the middle of it. */
static void test_follows_a_running_process(void **state)
{
	struct cpu_sampler_options options = {.period_ns = PERIOD_NS};
	struct tally tally = {0};
	struct errmsg err = {0};
	void *sampler = NULL;
	pid_t pid;
	int status;

	(void)state;
	skip_unless_root();
	following = mmap(NULL, sizeof(*following), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(following != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, spin_while_followed, "spin-thread");
		spin_while_followed("spin-leader");
		pthread_join(thread, NULL);
		_exit(0);
	}
	while (following->named < 2)
		usleep(1000);
	tally.pid = (uint32_t)pid;
	assert_int_equal(perf_sampler.open(&sampler, &options, &err), 0);
	assert_int_equal(perf_sampler.start(sampler, &err), 0);
	assert_int_equal(perf_sampler.follow(sampler, tally.pid, &err), 0);
	following->followed = true;
	record_until_end(sampler, pid, NULL, &tally, &status);
	munmap(following, sizeof(*following));
	assert_null(tally.wrong);
	assert_true(tally.leader > 10 && tally.thread > 10);
	assert_int_equal(tally.other, 0);
	perf_sampler.close(sampler);
}

/* Rings that nobody drains overflow; each sample is counted as seen or lost. */
static void test_losses_are_counted(void **state)
{
	struct cpu_sampler_options options = {.period_ns = PERIOD_NS, .ring_bytes = 1};
	struct cpu_sampler_account account;
	struct tally tally = {0};
	struct errmsg err = {0};
	void *sampler = NULL;
	uint64_t lost = 0;
	struct busy busy;

	(void)state;
	skip_unless_root();
	assert_true(start_busy(&busy, false));
	tally.pid = (uint32_t)busy.pid;
	assert_int_equal(perf_sampler.open(&sampler, &options, &err), 0);
	assert_int_equal(perf_sampler.follow(sampler, tally.pid, &err), 0);
	assert_int_equal(perf_sampler.start(sampler, &err), 0);
	assert_int_equal(write(busy.answer[1], "g", 1), 1);
	waitpid(busy.pid, NULL, 0);
	perf_sampler.drain(sampler, check_sample, &tally);
	perf_sampler.account(sampler, &account);
	for (uint32_t i = 0; i < account.cpu_count; i++)
		lost += account.lost_per_cpu[i];
	assert_null(tally.wrong);
	assert_true(account.samples > 0);
	assert_true(lost > 50);
	assert_non_null(strstr(account.notes, "ulimit -l"));
	close_busy(&busy);
	perf_sampler.close(sampler);
}

static void test_refusals_say_why(void **state)
{
	struct cpu_sampler_options options = {.period_ns = PERIOD_NS, .whole_machine = true};
	struct errmsg err = {0};
	void *sampler = NULL;
	pid_t gone;

	(void)state;
	assert_int_equal(perf_sampler.open(&sampler, &options, &err), -EPERM);
	assert_non_null(strstr(err.text, "whole machine"));
	options.whole_machine = false;
	options.period_ns = 100;
	assert_int_equal(perf_sampler.open(&sampler, &options, &err), -EINVAL);
	options.period_ns = PERIOD_NS;
	if (perf_sampler.probe(&err) < 0) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	gone = fork();
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(perf_sampler.open(&sampler, &options, &err), 0);
	assert_int_equal(perf_sampler.follow(sampler, (uint32_t)gone, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has ended"));
	perf_sampler.close(sampler);
	perf_sampler.close(NULL);
}

/* ---- records ---- */

struct sample_event {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t fields[64];
};

static struct sample_event sample_event(const uint64_t *fields, size_t count)
{
	struct sample_event event = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = (uint16_t)(40 + count * 8)},
		.pid = 1,
		.tid = 2,
		.time_ns = 3,
		.cpu = 4};

	memcpy(event.fields, fields, count * 8);
	return event;
}

static struct wire_sample *convert(
	const struct sample_event *event, uint64_t more_type, bool *ret_ok)
{
	struct wire_sample *sample = malloc(PERF_SAMPLE_MAX_BYTES);

	assert_non_null(sample);
	*ret_ok = perf_sample_convert(
		&event->header, PERF_SAMPLE_USER_STACK_TYPE | more_type, sample);
	return sample;
}

static void test_converts_registers_and_stack(void **state)
{
	/* chain of a marker and two; abi 64; ax … ip, r8 … r15 as 100 … 116; 24 bytes of which 16.
	 */
	uint64_t fields[] = {3, PERF_CONTEXT_KERNEL, ~0ULL << 20, ~0ULL << 19, 2, 100, 101, 102,
		103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 24, 7, 8, 9,
		16};
	static const uint64_t dwarf[16] = {
		100, 103, 102, 101, 104, 105, 106, 107, 109, 110, 111, 112, 113, 114, 115, 116};
	struct sample_event event = sample_event(fields, ARRAY_SIZE(fields));
	const struct wire_stack_copy *copy;
	struct wire_sample *sample;
	bool ok;

	(void)state;
	event.header.misc = PERF_RECORD_MISC_KERNEL;
	sample = convert(&event, PERF_SAMPLE_CALLCHAIN, &ok);
	assert_true(ok);
	assert_int_equal(sample->pid, 1);
	assert_int_equal(sample->tid, 2);
	assert_int_equal(sample->time_ns, 3);
	assert_int_equal(sample->cpu, 4);
	assert_int_equal(sample->flags, WIRE_SAMPLE_KERNEL_MODE | WIRE_SAMPLE_STACK_COPY);
	assert_int_equal(sample->kernel_frame_count, 2);
	assert_true(sample->frames[0] == ~0ULL << 20 && sample->frames[1] == ~0ULL << 19);
	copy = (const void *)&sample->frames[2];
	assert_memory_equal(copy->leaf, dwarf, sizeof(dwarf));
	assert_int_equal(copy->pc, 108);
	assert_int_equal(copy->stack_bytes, 16);
	assert_int_equal(((const uint64_t *)(copy + 1))[1], 8);
	assert_int_equal(sample->record.length_bytes, sizeof(*sample) + 16 + sizeof(*copy) + 16);
	free(sample);

	/* Cut anywhere, it is refused, and nothing beyond its end is read (AddressSanitizer looks).
	 */
	for (size_t size = 8; size < event.header.size; size += 8) {
		struct sample_event *cut = malloc(size);

		assert_non_null(cut);
		memcpy(cut, &event, size);
		cut->header.size = (uint16_t)size;
		free(convert(cut, PERF_SAMPLE_CALLCHAIN, &ok));
		assert_false(ok);
		free(cut);
	}
}

static void test_samples_without_a_stack_copy(void **state)
{
	uint64_t kernel_task[] = {0, 0}, compat[20] = {1}, too_long[20] = {2};
	struct sample_event event = sample_event(kernel_task, ARRAY_SIZE(kernel_task));
	struct wire_sample *sample;
	bool ok;

	(void)state;
	sample = convert(&event, 0, &ok);
	assert_true(ok);
	assert_int_equal(sample->stop, WIRE_STOP_NO_USER_STACK);
	assert_int_equal(sample->record.length_bytes, sizeof(*sample));
	free(sample);
	event = sample_event(compat, ARRAY_SIZE(compat));
	sample = convert(&event, 0, &ok);
	assert_true(ok);
	assert_int_equal(sample->stop, WIRE_STOP_COMPAT);
	assert_int_equal(sample->flags, 0);
	assert_int_equal(sample->record.length_bytes, sizeof(*sample));
	free(sample);
	too_long[18] = UINT64_MAX; /* the stack's size */
	event = sample_event(too_long, ARRAY_SIZE(too_long));
	free(convert(&event, 0, &ok));
	assert_false(ok);
	event.fields[0] = UINT64_MAX; /* the chain's length */
	free(convert(&event, PERF_SAMPLE_CALLCHAIN, &ok));
	assert_false(ok);
}

/* ---- names ---- */

struct task_event {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};

struct comm_event {
	struct perf_event_header header;
	uint32_t pid, tid;
	char name[16];
	uint64_t id[3];
};

static void tell_task(
	struct thread_names *names, uint32_t type, uint32_t pid, uint32_t parent, uint32_t tid)
{
	struct task_event event = {.header = {.type = type, .size = sizeof(event)},
		.pid = pid,
		.parent_pid = parent,
		.tid = tid,
		.parent_tid = parent};

	assert_int_equal(thread_names_apply(names, &event.header), 0);
}

static void tell_comm(
	struct thread_names *names, uint32_t pid, uint32_t tid, const char *name, bool is_exec)
{
	struct comm_event event = {.header = {.type = PERF_RECORD_COMM,
					   .misc = is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
					   .size = sizeof(event)},
		.pid = pid,
		.tid = tid};

	snprintf(event.name, sizeof(event.name), "%s", name);
	assert_int_equal(thread_names_apply(names, &event.header), 0);
}

static void assert_names(const struct thread_names *names, uint32_t pid, uint32_t tid,
	const char *process, const char *thread, uint32_t exec_id)
{
	char process_name[THREAD_NAME_BYTES], thread_name[THREAD_NAME_BYTES];
	uint32_t found;

	thread_names_get(names, pid, tid, process_name, thread_name, &found);
	assert_string_equal(process_name, process);
	assert_string_equal(thread_name, thread);
	assert_int_equal(found, exec_id);
}

static void test_names_follow_events(void **state)
{
	struct thread_names names = {0};

	(void)state;
	assert_names(&names, 1, 1, "", "", 0);
	tell_comm(&names, 1, 1, "first", true);
	tell_task(&names, PERF_RECORD_FORK, 1, 1, 2); /* a thread */
	assert_names(&names, 1, 2, "first", "first", 1);
	tell_comm(&names, 1, 2, "worker", false);
	assert_names(&names, 1, 2, "first", "worker", 1);
	tell_task(&names, PERF_RECORD_FORK, 3, 2, 3); /* the worker forks */
	assert_names(&names, 3, 3, "worker", "worker", 1);
	tell_comm(&names, 3, 3, "second", true);
	assert_names(&names, 3, 3, "second", "second", 2);
	tell_task(&names, PERF_RECORD_EXIT, 1, 1, 2);
	assert_int_equal(names.unused.count, 1);
	tell_task(&names, PERF_RECORD_FORK, 1, 1, 9); /* takes the entry */
	assert_int_equal(names.unused.count, 0);
	assert_names(&names, 1, 9, "first", "first", 1);
	tell_task(&names, PERF_RECORD_EXIT, 1, 1, 1); /* the leader goes first */
	assert_names(&names, 1, 9, "first", "first", 1);
	thread_names_done(&names);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_converts_registers_and_stack),
		cmocka_unit_test(test_samples_without_a_stack_copy),
		cmocka_unit_test(test_names_follow_events),
		cmocka_unit_test(test_refusals_say_why),
		cmocka_unit_test(test_samples_with_privileges),
		cmocka_unit_test(test_samples_as_nobody),
		cmocka_unit_test(test_follows_a_running_process),
		cmocka_unit_test(test_losses_are_counted),
	};

	if (argc > 3 && strcmp(argv[1], "busy") == 0) {
		ask_fd = (int)strtol(argv[2], NULL, 10);
		answer_fd = (int)strtol(argv[3], NULL, 10);
		return be_busy();
	}
	return cmocka_run_group_tests_name("perf-sampler", tests, NULL, NULL);
}
