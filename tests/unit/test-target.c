/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded command: held back, released, refused by the kernel, ended in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/session/target.h"

#define SHELL(script) ((char *const[]){"/bin/sh", "-c", script, NULL})

static struct target_surroundings own_surroundings(void)
{
	struct target_surroundings surroundings = {.on_child_signal = {.sa_handler = SIG_DFL}};

	sigprocmask(SIG_BLOCK, NULL, &surroundings.signal_mask);
	getrlimit(RLIMIT_NOFILE, &surroundings.descriptors);
	return surroundings;
}

static struct target started(char *const *command)
{
	struct target_surroundings surroundings = own_surroundings();
	struct target target;
	struct errmsg err;

	assert_int_equal(target_start(&target, command, &surroundings, &err), 0);
	assert_true(target.pid > 0);
	assert_false(target_reap(&target, false)); /* waits for its release */
	return target;
}

static struct target released(char *const *command)
{
	struct target target = started(command);
	struct errmsg err;

	assert_int_equal(target_release(&target, command[0], &err), 0);
	assert_int_equal(target.go_fd, -1);
	return target;
}

static int status_of(char *const *command)
{
	struct target target = released(command);

	assert_true(target_reap(&target, true));
	assert_true(target_reap(&target, false)); /* known by now */
	target_done(&target);
	return target.exit_status;
}

/* The process is neither there nor a zombie of ours. */
static void assert_gone(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_exit_statuses(void **state)
{
	assert_int_equal(status_of(SHELL("exit 0")), 0);
	assert_int_equal(status_of(SHELL("exit 7")), 7);
	assert_int_equal(status_of(SHELL("exit 255")), 255);
	assert_int_equal(status_of(SHELL("kill -KILL $$")), 128 + SIGKILL);
	assert_int_equal(status_of(SHELL("kill -TERM $$")), 128 + SIGTERM);
	assert_int_equal(status_of((char *const[]){"true", NULL}), 0); /* found in PATH */
}

static void assert_refused(const char *path, int error, int status, const char *sentence_part)
{
	char *const command[] = {(char *)path, NULL};
	struct target target = started(command);
	struct errmsg err;

	assert_int_equal(target_release(&target, path, &err), error);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, sentence_part));
	assert_true(target.ended);
	assert_int_equal(target.exit_status, status);
	assert_gone(target.pid);
	target_done(&target);
}

static void test_commands_that_cannot_run(void **state)
{
	char path[] = "/tmp/sonde-test-target-XXXXXX";
	_cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_refused("/nonexistent/command", -ENOENT, 127, "command not found");
	assert_refused("sonde-no-such-command", -ENOENT, 127, "command not found");
	assert_refused(path, -EACCES, 126, "chmod +x");
	assert_int_equal(fchmod(fd, 0700), 0);
	assert_int_equal(write_all(fd, "#!/nonexistent/interpreter\n", 27), 0);
	closep(&fd);
	assert_refused(path, -ENOENT, 127, "the interpreter that it names does not exist");
	assert_refused("/tmp", -EACCES, 126, "Permission denied");
	unlink(path);
}

/* Its command does not begin, not even when the collector ends without a word. */
static void test_never_released(void **state)
{
	char path[] = "/tmp/sonde-test-target-XXXXXX", script[64];
	_cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
	struct target target;

	assert_true(fd >= 0);
	snprintf(script, sizeof(script), "rm %s", path);
	target = started(SHELL(script));
	target_done(&target);
	assert_true(target.ended);
	assert_int_equal(target.exit_status, EXIT_FAILURE);
	assert_gone(target.pid);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	target_done(&target);
}

/* Somebody kills it while it is held back: an error, and not our end. */
static void test_killed_before_release(void **state)
{
	struct target target = started(SHELL("exit 0"));
	struct sigaction before;
	struct errmsg err;

	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
	assert_int_equal(kill(target.pid, SIGKILL), 0);
	assert_int_equal(
		poll(&(struct pollfd){.fd = target.pid_fd, .events = POLLIN}, 1, 10000), 1);
	assert_int_equal(target_release(&target, "sh", &err), -EPIPE);
	assert_non_null(strstr(err.text, "cannot start sh"));
	target_done(&target);
	assert_int_equal(target.exit_status, 128 + SIGKILL);
	assert_gone(target.pid);
	sigaction(SIGPIPE, &before, NULL);
}

static void test_a_running_command_is_left_alone(void **state)
{
	struct target target = released(SHELL("exec sleep 100"));
	pid_t pid = target.pid;

	assert_false(target_reap(&target, false));
	target_done(&target);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_end_is_seen_through_the_descriptor(void **state)
{
	struct target target = released(SHELL("exit 3"));
	struct pollfd end = {.fd = target.pid_fd, .events = POLLIN};

	assert_int_equal(poll(&end, 1, 10000), 1);
	assert_true(target_reap(&target, false));
	assert_int_equal(target.exit_status, 3);
	target_done(&target);
}

/* Signals that sonde blocks and limits that it raises are the command's as they were. */
static void test_surroundings(void **state)
{
	struct target_surroundings surroundings = own_surroundings();
	char *const *command = SHELL("[ $(ulimit -n) = 123 ] || exit 1; kill -TERM $$; exit 2");
	struct target target;
	sigset_t mask, before;
	struct errmsg err;

	surroundings.descriptors.rlim_cur = 123;
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &before);
	assert_int_equal(target_start(&target, command, &surroundings, &err), 0);
	assert_int_equal(target_release(&target, "sh", &err), 0);
	assert_true(target_reap(&target, true));
	assert_int_equal(target.exit_status, 128 + SIGTERM);
	target_done(&target);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Without descriptors left there is no command, and no descriptor or process leaks. */
static void test_out_of_descriptors(void **state)
{
	struct target_surroundings surroundings = own_surroundings();
	struct target target = {.go_fd = -2};
	int first_free = dup(STDERR_FILENO);
	struct errmsg err;

	assert_true(first_free >= 0);
	close(first_free);
	/* Room for one pipe of the two, and for none. */
	for (int room = 2; room >= 0; room -= 2) {
		struct rlimit limit = surroundings.descriptors;

		limit.rlim_cur = (rlim_t)(first_free + room);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(
			target_start(&target, SHELL("exit 0"), &surroundings, &err), -EMFILE);
		setrlimit(RLIMIT_NOFILE, &surroundings.descriptors);
		assert_non_null(strstr(err.text, "cannot start /bin/sh"));
		assert_int_equal(target.go_fd, -2);
	}
	assert_int_equal(dup(STDERR_FILENO), first_free);
	close(first_free);
}

static void test_nothing_started(void **state)
{
	struct target target = {.go_fd = -1, .error_fd = -1, .pid_fd = -1};

	assert_false(target_reap(&target, true));
	target_done(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_commands_that_cannot_run),
		cmocka_unit_test(test_never_released),
		cmocka_unit_test(test_killed_before_release),
		cmocka_unit_test(test_a_running_command_is_left_alone),
		cmocka_unit_test(test_end_is_seen_through_the_descriptor),
		cmocka_unit_test(test_surroundings),
		cmocka_unit_test(test_out_of_descriptors),
		cmocka_unit_test(test_nothing_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
