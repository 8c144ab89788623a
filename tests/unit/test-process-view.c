/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others name: what is not a regular file is never opened, nor what they may not read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process_view.h"

#define OTHER_USER  4711
#define OTHER_GROUP 4712

static char folder[] = "/tmp/sonde-test-view-XXXXXX";

/* Valid until the next call but three. */
static const char *in_folder(const char *name)
{
	static char paths[4][PATH_MAX];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

static void write_text(const char *name, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static struct process_view other_user(void)
{
	struct process_view view = process_view_own();

	view.user = OTHER_USER;
	view.group = OTHER_USER;
	view.groups[0] = OTHER_GROUP;
	view.group_count = 1;
	return view;
}

/* 0 when it opens. */
static int try_open(
	const struct process_view *view, const char *path, enum process_view_links links)
{
	_cleanup_close_ int fd = process_view_open_file(view, path, links, NULL);

	return fd < 0 ? fd : 0;
}

static void test_regular_files(void **state)
{
	struct process_view own = process_view_own();
	struct stat status;
	char text[8] = "";
	int fd;

	write_text("plain", "text", 0600);
	fd = process_view_open_file(&own, in_folder("plain"), PROCESS_VIEW_NO_LINKS, &status);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(status.st_size, 4);
	close(fd);
	assert_int_equal(try_open(&own, in_folder("absent"), PROCESS_VIEW_NO_LINKS), -ENOENT);
	assert_int_equal(try_open(&own, folder, PROCESS_VIEW_NO_LINKS), -EINVAL);
	fd = open_regular_file(in_folder("plain"), &status);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_regular_file(folder, &status), -EINVAL);
	assert_int_equal(open_regular_file(in_folder("absent"), &status), -ENOENT);
}

static void test_links(void **state)
{
	struct process_view own = process_view_own();

	assert_int_equal(mkdir(in_folder("real"), 0755), 0);
	write_text("real/file", "", 0600);
	assert_int_equal(symlink("real/file", in_folder("link")), 0);
	assert_int_equal(symlink("real", in_folder("way")), 0);
	assert_int_equal(symlink("/proc/self/fd/0", in_folder("magic")), 0);
	assert_int_equal(try_open(&own, in_folder("link"), PROCESS_VIEW_NO_LINKS), -ELOOP);
	assert_int_equal(try_open(&own, in_folder("way/file"), PROCESS_VIEW_NO_LINKS), -ELOOP);
	assert_int_equal(try_open(&own, in_folder("link"), PROCESS_VIEW_LINKS), 0);
	assert_int_equal(try_open(&own, in_folder("way/file"), PROCESS_VIEW_LINKS), 0);
	assert_int_equal(try_open(&own, in_folder("magic"), PROCESS_VIEW_LINKS), -ELOOP);
}

/* Opening a device may act, and opening a FIFO wakes its reader or waits for its writer. */
static void test_nothing_else_is_opened(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	_cleanup_close_ int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	_cleanup_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char *const names[] = {"fifo", "socket", "null"};
	struct process_view own = process_view_own();
	struct stat status;
	char events[4096];
	bool has_device;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", folder);
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	has_device = mknod(in_folder("null"), S_IFCHR | 0600, makedev(1, 3)) == 0;
	assert_true(has_device || getuid() != 0);
	assert_true(inotify_add_watch(watch, folder, IN_OPEN) >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(names) - !has_device; i++) {
		const char *path = in_folder(names[i]);

		assert_int_equal(try_open(&own, path, PROCESS_VIEW_NO_LINKS), -EINVAL);
		assert_int_equal(try_open(&own, path, PROCESS_VIEW_LINKS), -EINVAL);
		assert_int_equal(open_regular_file(path, &status), -EINVAL);
	}
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
	write_text("seen", "", 0600); /* the watch does see */
	assert_true(read(watch, events, sizeof(events)) > 0);
}

static void test_rights(void **state)
{
	struct process_view view = other_user(), nobody = process_view_nobody();
	gid_t before[64], after[64];
	int count;

	if (getuid() != 0)
		skip();
	assert_int_equal(chmod(folder, 0755), 0);
	write_text("secret", "root's", 0600);
	write_text("public", "all's", 0644);
	write_text("group's", "group's", 0640);
	assert_int_equal(chown(in_folder("group's"), 0, OTHER_GROUP), 0);
	write_text("user's", "user's", 0600);
	assert_int_equal(chown(in_folder("user's"), OTHER_USER, 0), 0);
	assert_int_equal(mkdir(in_folder("closed"), 0700), 0);
	write_text("closed/public", "all's", 0644);
	count = getgroups(ARRAY_SIZE(before), before);

	assert_int_equal(try_open(&view, in_folder("secret"), PROCESS_VIEW_NO_LINKS), -EACCES);
	assert_int_equal(try_open(&view, in_folder("public"), PROCESS_VIEW_NO_LINKS), 0);
	assert_int_equal(try_open(&view, in_folder("group's"), PROCESS_VIEW_NO_LINKS), 0);
	assert_int_equal(try_open(&view, in_folder("user's"), PROCESS_VIEW_NO_LINKS), 0);
	assert_int_equal(
		try_open(&view, in_folder("closed/public"), PROCESS_VIEW_NO_LINKS), -EACCES);
	assert_int_equal(try_open(&nobody, in_folder("public"), PROCESS_VIEW_NO_LINKS), 0);
	assert_int_equal(try_open(&nobody, in_folder("user's"), PROCESS_VIEW_NO_LINKS), -EACCES);

	assert_int_equal(syscall(SYS_setfsuid, -1), 0); /* ours are back */
	assert_int_equal(syscall(SYS_setfsgid, -1), getegid());
	assert_int_equal(getgroups(ARRAY_SIZE(after), after), count);
	assert_memory_equal(before, after, (size_t)count * sizeof(gid_t));
	assert_int_equal(access(in_folder("secret"), R_OK), 0);
}

/* Runs until it is killed, as another user, with the folder as its root. */
static pid_t start_in_root(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(folder) < 0 || setresgid(OTHER_USER, OTHER_USER, OTHER_USER) < 0 ||
			setresuid(OTHER_USER, OTHER_USER, OTHER_USER) < 0 ||
			write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_root_of_a_process(void **state)
{
	struct process_view view;
	pid_t pid;

	if (getuid() != 0)
		skip();
	assert_int_equal(chmod(folder, 0755), 0);
	write_text("file", "", 0644);
	assert_int_equal(symlink("/file", in_folder("absolute")), 0);
	assert_int_equal(symlink("../../../../etc/passwd", in_folder("out")), 0);
	pid = start_in_root();
	assert_int_equal(process_view_open(&view, (uint32_t)pid), 0);
	assert_int_equal(view.user, OTHER_USER);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	assert_int_equal(try_open(&view, "/file", PROCESS_VIEW_NO_LINKS), 0);
	assert_int_equal(try_open(&view, "/absolute", PROCESS_VIEW_LINKS), 0);
	assert_int_equal(try_open(&view, "/../file", PROCESS_VIEW_LINKS), 0);
	assert_int_equal(try_open(&view, "/out", PROCESS_VIEW_LINKS), -ENOENT);
	assert_int_equal(try_open(&view, "/etc/passwd", PROCESS_VIEW_NO_LINKS), -ENOENT);
	process_view_done(&view);
	assert_int_equal(process_view_open(&view, 0x7fffffff), -ENOENT);
}

static void test_own_process(void **state)
{
	struct process_view view;

	assert_int_equal(process_view_open(&view, (uint32_t)getpid()), 0);
	assert_int_equal(view.root, -1); /* nothing is kept for what is as ours */
	assert_int_equal(view.mounts, -1);
	assert_int_equal(view.user, getuid());
	assert_int_equal(view.inner_pid, getpid());
}

static void refuse_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(100);
}

/* Bits of what went wrong. */
static int walk_without_openat2(void)
{
	struct process_view own = process_view_own();

	return (try_open(&own, in_folder("plain"), PROCESS_VIEW_NO_LINKS) != 0) |
	       (try_open(&own, in_folder("link"), PROCESS_VIEW_LINKS) != -ELOOP) << 1 |
	       (try_open(&own, in_folder("way/file"), PROCESS_VIEW_LINKS) != -ELOOP) << 2 |
	       (try_open(&own, in_folder("real/../plain"), PROCESS_VIEW_LINKS) != -ELOOP) << 3 |
	       (try_open(&own, in_folder("fifo"), PROCESS_VIEW_LINKS) != -EINVAL) << 4 |
	       (try_open(&own, in_folder("absent/file"), PROCESS_VIEW_LINKS) != -ENOENT) << 5;
}

static void test_without_openat2(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		refuse_openat2();
		_exit(walk_without_openat2());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"plain", "real/file", "real", "link", "way", "magic",
		"fifo", "socket", "null", "seen", "secret", "public", "group's", "user's",
		"closed/public", "closed", "file", "absolute", "out"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		remove(in_folder(names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regular_files),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_nothing_else_is_opened),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_root_of_a_process),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_without_openat2),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
