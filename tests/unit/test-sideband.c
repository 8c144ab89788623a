/* SPDX-License-Identifier: Apache-2.0 */
/* Side-band events of real processes, with privileges (the whole machine) and as nobody (one
 * process tree). */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/file.h"
#include "sources/process/sideband.h"

#define NOBODY       65534
#define DLOPENED     "libresolv.so.2"
#define BURST        1000
#define COMM_CHANGES 60000
#define ACTOR        "sonde-actor"

struct seen_event {
	struct sideband_event event;
	char name[256];
};

struct seen {
	ARRAY_OF(struct seen_event) events;
	uint64_t lost;
};

static void remember(void *context, const struct sideband_event *event)
{
	struct seen *seen = context;
	struct seen_event entry = {.event = *event};

	if (event->name)
		snprintf(entry.name, sizeof(entry.name), "%s", event->name);
	entry.event.name = NULL;
	if (event->type == SIDEBAND_LOST)
		seen->lost += event->lost;
	if (array_append(&seen->events, entry) < 0)
		abort();
}

/* ---- the program that is watched ---- */

static void *end_at_once(void *argument)
{
	return argument;
}

/* Each step leaves its event, in this order; the test looks for them in the same order. */
static int act(void)
{
	pthread_t thread;
	pid_t child;
	void *jit;

	prctl(PR_SET_NAME, ACTOR);
	if (pthread_create(&thread, NULL, end_at_once, NULL) || pthread_join(thread, NULL))
		return 1;
	if (!dlopen(DLOPENED, RTLD_NOW))
		return 2;
	jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (jit == MAP_FAILED || mprotect(jit, 4096, PROT_READ | PROT_EXEC))
		return 3;
	child = fork();
	if (child == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	return child < 0 || waitpid(child, NULL, 0) != child ? 4 : 0;
}

/* Starts `act` in a new program, once `go` is written to. */
static pid_t start_actor(int *ret_go)
{
	int go[2];
	pid_t pid;
	char byte;

	if (pipe(go) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execl("/proc/self/exe", "test-sideband", "act", NULL);
		_exit(127);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static int let_act(pid_t pid, int go)
{
	int status = -1;

	if (write(go, "g", 1) != 1)
		return -1;
	close(go);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* ---- looking for what must be there ---- */

struct expectation {
	const char *what;
	enum sideband_type type;
	bool (*matches)(const struct seen_event *seen, uint32_t actor, uint32_t *child);
};

static bool is_actor_exec(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && seen->event.is_exec;
}

static bool is_actor_image(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && strstr(seen->name, "sideband") &&
	       (seen->event.build_id.length || seen->event.inode) && seen->event.length;
}

static bool is_actor_vdso(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && strcmp(seen->name, "[vdso]") == 0;
}

static bool is_actor_name(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && strcmp(seen->name, ACTOR) == 0 && !seen->event.is_exec;
}

static bool is_thread_start(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && seen->event.parent_pid == actor &&
	       seen->event.tid != actor;
}

static bool is_thread_end(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && seen->event.tid != actor;
}

static bool is_dlopened(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && strstr(seen->name, DLOPENED);
}

static bool is_jit(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && strcmp(seen->name, "//anon") == 0 &&
	       seen->event.length == 4096;
}

static bool is_child_start(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	*child = seen->event.pid;
	return seen->event.parent_pid == actor && seen->event.pid != actor;
}

static bool is_child_exec(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == *child && seen->event.is_exec && strcmp(seen->name, "true") == 0;
}

static bool is_child_image(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == *child && strstr(seen->name, "/true");
}

static bool is_child_end(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == *child && seen->event.tid == *child;
}

static bool is_actor_end(const struct seen_event *seen, uint32_t actor, uint32_t *child)
{
	return seen->event.pid == actor && seen->event.tid == actor;
}

static const struct expectation story[] = {
	{"exec", SIDEBAND_COMM, is_actor_exec},
	{"the program's mapping", SIDEBAND_MMAP, is_actor_image},
	{"the vDSO", SIDEBAND_MMAP, is_actor_vdso},
	{"a new name", SIDEBAND_COMM, is_actor_name},
	{"a thread", SIDEBAND_FORK, is_thread_start},
	{"the thread's end", SIDEBAND_EXIT, is_thread_end},
	{"dlopen", SIDEBAND_MMAP, is_dlopened},
	{"memory made executable", SIDEBAND_MMAP, is_jit},
	{"fork", SIDEBAND_FORK, is_child_start},
	{"the child's exec", SIDEBAND_COMM, is_child_exec},
	{"the child's mapping", SIDEBAND_MMAP, is_child_image},
	{"the child's end", SIDEBAND_EXIT, is_child_end},
	{"the end", SIDEBAND_EXIT, is_actor_end},
};

/* Returns the first part of the story that did not come in its turn, NULL when all did. */
static const char *check_story(const struct seen *seen, uint32_t actor)
{
	size_t next = 0;
	uint32_t child = 0;
	uint64_t time_ns = 0;

	array_foreach (&seen->events, entry) {
		if (entry->event.time_ns < time_ns)
			return "times that grow";
		time_ns = entry->event.time_ns;
		if (next < ARRAY_SIZE(story) && entry->event.type == story[next].type &&
			story[next].matches(entry, actor, &child))
			next++;
	}
	return next < ARRAY_SIZE(story) ? story[next].what : NULL;
}

/* Watches the actor; returns what is missing. `lost`: records were, to the rest of the machine. */
static const char *watch_once(bool whole_machine, bool *lost, struct errmsg *err)
{
	struct sideband *sideband = NULL;
	struct seen seen = {0};
	const char *missing = NULL;
	uint64_t before_ns = monotonic_now_ns();
	int go;
	pid_t actor = start_actor(&go);

	if (actor < 0)
		return "a process";
	if (sideband_open(&sideband, whole_machine ? 0 : (uint32_t)actor, err) < 0)
		missing = err->text;
	if (let_act(actor, go) != 0 && !missing)
		missing = "a good end of the actor";
	if (!missing) {
		sideband_drain(sideband, remember, &seen);
		missing = seen.events.count ? check_story(&seen, (uint32_t)actor) : "any event";
		if (!missing && (seen.events.items[0].event.time_ns < before_ns || seen.lost))
			missing = "CLOCK_MONOTONIC times and no losses";
	}
	*lost = seen.lost > 0;
	sideband_free(sideband);
	array_done(&seen.events);
	return missing;
}

/* A machine on which others build fills the rings before they are drained: then once more. */
static const char *watch_actor(bool whole_machine, struct errmsg *err)
{
	const char *missing = NULL;
	bool lost = true;

	for (int i = 0; i < 10 && lost; i++)
		missing = watch_once(whole_machine, &lost, err);
	return missing;
}

/* ---- tests ---- */

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: needs root\n");
	skip();
}

static void test_whole_machine(void **state)
{
	struct errmsg err = {0};
	const char *missing;

	(void)state;
	skip_unless_root();
	missing = watch_actor(true, &err);
	if (missing)
		fail_msg("missing: %s", missing);
}

static void become_nobody(void)
{
	if (geteuid() != 0)
		return; /* without privileges as it is */
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(3);
	prctl(PR_SET_DUMPABLE, 1); /* setresuid cleared it; perf may look at our children again */
}

/* Runs `body` in a child as nobody; it returns what went wrong, or NULL. */
static void run_as_nobody(const char *(*body)(struct errmsg *err))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct errmsg err = {0};
		const char *wrong;

		become_nobody();
		wrong = body(&err);
		if (wrong)
			fprintf(stderr, "as nobody: missing: %s\n", wrong);
		_exit(wrong ? 1 : 0);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

static const char *watch_own_child(struct errmsg *err)
{
	return watch_actor(false, err);
}

static void test_without_privileges(void **state)
{
	(void)state;
	run_as_nobody(watch_own_child);
}

static const char *ask_for_the_machine(struct errmsg *err)
{
	struct sideband *sideband = NULL;

	if (sideband_open(&sideband, 0, err) == 0)
		return "a refusal";
	return strstr(err->text, "perf_event_paranoid") ? NULL : "a word on perf_event_paranoid";
}

static void test_machine_is_refused_with_a_reason(void **state)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 0;

	(void)state;
	skip_unless_root();
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &paranoid), 1);
	fclose(file);
	if (paranoid < 1)
		skip();
	run_as_nobody(ask_for_the_machine);
}

static void test_follows_an_attached_process(void **state)
{
	struct sideband *sideband = NULL;
	struct seen seen = {0};
	struct errmsg err = {0};
	bool named = false;
	int go;
	pid_t actor, gone;

	(void)state;
	skip_unless_root();
	actor = start_actor(&go);
	gone = fork();
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(sideband_open(&sideband, (uint32_t)gone, &err), -ESRCH);
	assert_int_equal(sideband_open(&sideband, (uint32_t)getpid(), &err), 0);
	assert_int_equal(sideband_follow(sideband, (uint32_t)actor, &err), 0);
	assert_int_equal(let_act(actor, go), 0);
	sideband_drain(sideband, remember, &seen);
	array_foreach (&seen.events, entry) {
		named |= strcmp(entry->name, ACTOR) == 0;
	}
	assert_true(named);
	sideband_free(sideband);
	array_done(&seen.events);
}

struct burst_count {
	uint32_t parent;
	uint64_t forks, execs, exits, lost;
};

static void count_burst(void *context, const struct sideband_event *event)
{
	struct burst_count *count = context;

	count->lost += event->lost;
	/* ThreadSanitizer gives the parent a thread. */
	if (event->type == SIDEBAND_FORK && event->parent_pid == count->parent &&
		event->pid != count->parent)
		count->forks++;
	if (event->type == SIDEBAND_COMM && event->is_exec && strcmp(event->name, "true") == 0)
		count->execs++;
	if (event->type == SIDEBAND_EXIT && event->tid == event->pid)
		count->exits++;
}

static _Noreturn void run_burst(unsigned count)
{
	char *arguments[] = {"true", NULL}, *environment[] = {NULL};

	for (unsigned i = 0; i < count; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environment) ||
			waitpid(pid, NULL, 0) != pid)
			_exit(1);
	}
	_exit(0);
}

/* The size of the burst can be raised: SONDE_TEST_BURST=10000. */
static void test_burst_loses_nothing(void **state)
{
	const char *wish = getenv("SONDE_TEST_BURST");
	unsigned size = wish ? (unsigned)atoi(wish) : BURST;
	struct sideband *sideband = NULL;
	struct burst_count count = {0};
	struct errmsg err = {0};
	pid_t parent;
	int status;

	(void)state;
	skip_unless_root();
	assert_int_equal(sideband_open(&sideband, 0, &err), 0);
	parent = fork();
	if (parent == 0)
		run_burst(size);
	count.parent = (uint32_t)parent;
	while (waitpid(parent, &status, WNOHANG) == 0) {
		usleep(100 * 1000);
		sideband_drain(sideband, count_burst, &count);
	}
	sideband_drain(sideband, count_burst, &count);
	assert_int_equal(status, 0);
	assert_int_equal(count.lost, 0);
	assert_int_equal(count.forks, size);
	assert_true(count.execs >= size && count.exits >= size);
	sideband_free(sideband);
}

static void count_names(void *context, const struct sideband_event *event)
{
	struct burst_count *count = context;

	count->lost += event->lost;
	if (event->type == SIDEBAND_COMM && event->pid == count->parent)
		count->forks++;
}

/* A ring that nobody drains overflows; what is seen and what is told lost add up. */
static void test_losses_are_counted(void **state)
{
	struct sideband *sideband = NULL;
	struct burst_count count = {0};
	struct errmsg err = {0};
	struct pollfd waiting[64] = {0};
	int fds[64];
	size_t fd_count;
	pid_t child;

	(void)state;
	skip_unless_root();
	child = fork();
	if (child == 0) {
		char name[16];

		raise(SIGSTOP);
		for (int i = 0; i < COMM_CHANGES; i++) {
			snprintf(name, sizeof(name), "n%d", i % 1000000);
			prctl(PR_SET_NAME, name);
		}
		_exit(0);
	}
	waitpid(child, NULL, WUNTRACED);
	assert_int_equal(sideband_open(&sideband, (uint32_t)child, &err), 0);
	kill(child, SIGCONT);
	waitpid(child, NULL, 0);

	fd_count = sideband_descriptors(sideband, fds, ARRAY_SIZE(fds));
	assert_true(fd_count > 0);
	for (size_t i = 0; i < fd_count; i++)
		waiting[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	assert_true(poll(waiting, fd_count, 0) > 0);

	count.parent = (uint32_t)child;
	sideband_drain(sideband, count_names, &count);
	assert_true(count.lost > 0);
	/* The child's EXIT may be among the lost, and what a sanitizer's own thread does. */
	assert_in_range(count.forks + count.lost, COMM_CHANGES, COMM_CHANGES + 8);
	sideband_drain(sideband, count_names, &count);
	assert_in_range(count.forks + count.lost, COMM_CHANGES, COMM_CHANGES + 8);
	/* Nothing new: no descriptor says so. */
	assert_int_equal(poll(waiting, fd_count, 0), 0);
	sideband_free(sideband);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_machine),
		cmocka_unit_test(test_without_privileges),
		cmocka_unit_test(test_machine_is_refused_with_a_reason),
		cmocka_unit_test(test_follows_an_attached_process),
		cmocka_unit_test(test_burst_loses_nothing),
		cmocka_unit_test(test_losses_are_counted),
	};

	if (argc > 1 && strcmp(argv[1], "act") == 0)
		return act();
	return cmocka_run_group_tests_name("sideband", tests, NULL, NULL);
}
