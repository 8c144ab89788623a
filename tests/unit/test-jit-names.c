/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps as a thread reads them: in time, late, too large, and of processes that have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/pipeline/jit_names.h"

struct fixture {
	struct jit_names *names;
	int event_fd;
	struct strbuf name, late;
	char path[64]; /* of our own map */
	struct jit_process_key self;
};

static void announce(void *context)
{
	const struct fixture *fixture = context;
	uint64_t one = 1;

	assert_int_equal(write(fixture->event_fd, &one, sizeof(one)), sizeof(one));
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fixture->self.pid = (uint32_t)getpid();
	snprintf(fixture->path, sizeof(fixture->path), "/tmp/perf-%u.map", fixture->self.pid);
	unlink(fixture->path);
	*state = fixture;
	return jit_names_new(&fixture->names, announce, fixture);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	jit_names_free(fixture->names);
	close(fixture->event_fd);
	unlink(fixture->path);
	strbuf_done(&fixture->name);
	strbuf_done(&fixture->late);
	free(fixture);
	return 0;
}

static void write_map(const char *path, const char *text)
{
	assert_int_equal(write_file_atomically(path, text, strlen(text)), 0);
}

/* Asks, and waits for announcements while the answer is pending. */
static enum jit_name_state find(struct fixture *fixture, const struct jit_process_key *process,
	uint64_t address, uint64_t time_ns)
{
	for (;;) {
		struct pollfd ready = {.fd = fixture->event_fd, .events = POLLIN};
		enum jit_name_state state =
			jit_names_find(fixture->names, process, address, time_ns, &fixture->name);
		uint64_t count;

		if (state != JIT_NAME_PENDING)
			return state;
		poll(&ready, 1, 50);
		if (read(fixture->event_fd, &count, sizeof(count)) < 0)
			assert_int_equal(errno, EAGAIN);
	}
}

static void test_names_in_time(void **state)
{
	struct fixture *fixture = *state;
	const struct jit_process_key *self = &fixture->self;

	write_map(fixture->path, "1000 10 one\n");
	assert_int_equal(find(fixture, self, 0x1000, monotonic_now_ns()), JIT_NAME_FOUND);
	assert_string_equal(strbuf_cstr(&fixture->name), "one");
	assert_int_equal(find(fixture, self, 0x2000, monotonic_now_ns()), JIT_NAME_NONE);
	write_map(fixture->path, "1000 10 one\n2000 10 two\n");
	assert_int_equal(find(fixture, self, 0x2000, monotonic_now_ns()), JIT_NAME_FOUND);
	assert_string_equal(strbuf_cstr(&fixture->name), "two");
}

static int take_name(void *context, uint32_t mapping, uint64_t address, const char *text)
{
	struct fixture *fixture = context;

	strbuf_addf(&fixture->late, "%u:%llx:%s ", mapping, (unsigned long long)address, text);
	return 0;
}

static void wait_until_idle(struct fixture *fixture)
{
	struct pollfd ready = {.fd = fixture->event_fd, .events = POLLIN};
	uint64_t count;

	while (!jit_names_idle(fixture->names)) {
		poll(&ready, 1, 50);
		if (read(fixture->event_fd, &count, sizeof(count)) < 0)
			assert_int_equal(errno, EAGAIN);
	}
}

static void test_names_written_at_the_end(void **state)
{
	struct fixture *fixture = *state;
	const struct jit_process_key *self = &fixture->self;
	uint32_t frame = 0, mapping = 99;

	assert_int_equal(find(fixture, self, 0x1000, monotonic_now_ns()), JIT_NAME_LATER);
	assert_false(jit_names_kept(fixture->names, self, 0x1000, &frame, &mapping));
	assert_int_equal(mapping, 0);
	assert_int_equal(jit_names_keep(fixture->names, self, 0x1000, 5, 7), 0);
	assert_int_equal(jit_names_keep(fixture->names, self, 0x3000, 6, 7), 0);
	assert_true(jit_names_kept(fixture->names, self, 0x1000, &frame, &mapping));
	assert_int_equal(frame, 5);
	assert_int_equal(mapping, 7);

	write_map(fixture->path, "1000 10 dumped\n");
	jit_names_end_process(fixture->names, self->pid);
	wait_until_idle(fixture);
	assert_int_equal(jit_names_take_late(fixture->names, UINT64_MAX, take_name, fixture), 0);
	assert_int_equal(jit_names_take_late(fixture->names, UINT64_MAX, take_name, fixture), 0);
	assert_string_equal(strbuf_cstr(&fixture->late), "7:1000:dumped ");
}

/* An id that is used again is another process: it has nothing of the first one's. */
static void test_id_used_again(void **state)
{
	struct fixture *fixture = *state;
	struct jit_process_key second = {.pid = fixture->self.pid, .incarnation = 1};
	uint32_t frame, mapping;

	assert_int_equal(jit_names_keep(fixture->names, &fixture->self, 0x1000, 5, 7), 0);
	assert_false(jit_names_kept(fixture->names, &second, 0x1000, &frame, &mapping));
	assert_int_equal(mapping, 0);
	wait_until_idle(fixture);
	assert_int_equal(jit_names_take_late(fixture->names, UINT64_MAX, take_name, fixture), 0);
	assert_null(strstr(strbuf_cstr(&fixture->late), "1000"));
}

static uint64_t bytes_read_so_far(void)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(read_whole_file("/proc/self/io", 4096, &text), 0);
	return strtoull(strchr(strbuf_cstr(&text), ':') + 1, NULL, 10);
}

/* A sparse map of a gigabyte is read up to the limit, once; another process has its names. */
static void test_large_map_of_another(void **state)
{
	struct fixture *fixture = *state;
	struct jit_process_key other = {.incarnation = 1};
	struct jit_names_account account;
	uint64_t before;
	char path[64];
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	other.pid = (uint32_t)child;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", other.pid);
	write_map(path, "1000 10 hostile\n");
	assert_int_equal(truncate(path, (off_t)1 << 30), 0);
	write_map(fixture->path, "1000 10 mine\n");
	before = bytes_read_so_far();
	for (int i = 0; i < 100; i++) {
		uint64_t now_ns = monotonic_now_ns();

		find(fixture, &other, 0x5000, now_ns);
		assert_int_equal(find(fixture, &fixture->self, 0x1000, now_ns), JIT_NAME_FOUND);
		assert_int_equal(truncate(path, ((off_t)1 << 30) + i), 0);
	}
	jit_names_end_process(fixture->names, other.pid);
	wait_until_idle(fixture);
	jit_names_account(fixture->names, &account);
	assert_int_equal(account.cut, 1);
	assert_non_null(strstr(account.cut_example.text, "too large"));
	assert_true(bytes_read_so_far() - before < (uint64_t)160 << 20);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unlink(path);
}

static void test_refused_map(void **state)
{
	struct fixture *fixture = *state;
	struct jit_names_account account;

	assert_int_equal(symlink("/etc/passwd", fixture->path), 0);
	assert_int_equal(find(fixture, &fixture->self, 0x1000, monotonic_now_ns()), JIT_NAME_LATER);
	jit_names_account(fixture->names, &account);
	assert_int_equal(account.refused, 1);
	assert_non_null(strstr(account.refused_example.text, "symbolic link"));
}

static void test_process_that_is_gone(void **state)
{
	struct fixture *fixture = *state;
	struct jit_process_key gone = {.pid = 0x7fffffff};

	assert_int_equal(find(fixture, &gone, 0x1000, monotonic_now_ns()), JIT_NAME_LATER);
	jit_names_end_all(fixture->names);
	assert_true(jit_names_idle(fixture->names));
	assert_int_equal(jit_names_take_late(fixture->names, UINT64_MAX, take_name, fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names_in_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_written_at_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_id_used_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_large_map_of_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_process_that_is_gone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
