/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output in a folder that others write in: what they left there is replaced, or refused, and never
 * written to. Another user's things are made by root for him, so that these tests need root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output_place.h"

#define OTHER_USER 65534

static char folder[64];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-output-place.XXXXXX");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	return mkdtemp(folder) && chdir(folder) == 0 && mkdir("private", 0700) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const files[] = {
		"file", "file.2", "file.old", "link", "pipe", "private/file", "new/deep/file"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlink(files[i]);
	rmdir("new/deep");
	rmdir("new");
	rmdir("private");
	/* A temporary file that stayed makes this fail. */
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void put(const char *path, const char *text)
{
	assert_int_equal(write_file_atomically(path, text, strlen(text)), 0);
}

static void check_text(const char *path, const char *expected)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	assert_int_equal(read_whole_file(path, 100, &text), 0);
	assert_string_equal(strbuf_cstr(&text), expected);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	return status.st_mode;
}

static int write_how(const char *path, const struct output_how *how, struct errmsg *reason)
{
	return output_place_write(path, how, "new", 3, reason);
}

static void behind_sudo(const char *user)
{
	setenv("SUDO_UID", user, 1);
	setenv("SUDO_GID", "4712", 1);
}

static const struct output_how private = {.access = OUTPUT_PRIVATE};

static void test_new_file(void **state)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK, .make_folders = true};
	struct errmsg reason;

	assert_int_equal(write_how("file", &private, &reason), 0);
	assert_int_equal(mode_of("file"), S_IFREG | 0600);
	check_text("file", "new");
	umask(027);
	assert_int_equal(write_how("new/deep/file", &how, &reason), 0);
	umask(022);
	assert_int_equal(mode_of("new/deep/file"), S_IFREG | 0640);
	assert_int_equal(chmod("file", 0604), 0);
	assert_int_equal(write_how("file", &how, &reason), 0);
	assert_int_equal(mode_of("file"), S_IFREG | 0604);
	assert_int_equal(write_how("file", &private, &reason), 0);
	assert_int_equal(mode_of("file"), S_IFREG | 0600);
	assert_int_equal(write_how("none/file", &private, &reason), -ENOENT);
	assert_int_equal(write_how("private", &private, &reason), -EISDIR);
	assert_int_equal(write_how("private/", &private, &reason), -EISDIR);
	assert_int_equal(write_how("file/file", &private, &reason), -ENOTDIR);
	assert_int_equal(write_how("", &private, &reason), -ENOENT);
}

static void test_failure_leaves_the_file_before(void **state)
{
	struct output_place place;
	struct errmsg reason;

	put("file", "old");
	assert_int_equal(output_place_open(&place, "file", &private, &reason), 0);
	assert_int_equal(write_all(place.fd, "half", 4), 0);
	check_text("file", "old");
	output_place_done(&place);
	check_text("file", "old");
}

/* Whoever opened the file before keeps what he has, and gets nothing of the new one. */
static void test_replaces_what_is_open(void **state)
{
	_cleanup_close_ int before = -1;
	struct errmsg reason;
	char text[16];

	put("file", "old");
	before = open("file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(write_how("file", &private, &reason), 0);
	assert_int_equal(read(before, text, sizeof(text)), 3);
	assert_memory_equal(text, "old", 3);
}

static void test_link_to_a_file_is_replaced(void **state)
{
	struct errmsg reason;

	put("private/file", "precious");
	assert_int_equal(symlink("private/file", "link"), 0);
	assert_int_equal(write_how("link", &private, &reason), 0);
	assert_int_equal(mode_of("link"), S_IFREG | 0600);
	check_text("private/file", "precious");
}

static void test_pipes_and_devices(void **state)
{
	_cleanup_close_ int reader = -1;
	struct output_place place;
	struct errmsg reason;
	char text[16];

	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(symlink("pipe", "link"), 0);
	reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write_how("pipe", &private, &reason), 0);
	assert_int_equal(write_how("link", &private, &reason), 0);
	assert_int_equal(read(reader, text, sizeof(text)), 6);
	assert_int_equal(write_how("/dev/null", &private, &reason), 0);
	assert_int_equal(mode_of("/dev/null") & S_IFMT, S_IFCHR);
	assert_int_equal(output_place_open(&place, "/dev/full", &private, &reason), 0);
	assert_int_equal(write_all(place.fd, "x", 1), -ENOSPC);
	output_place_done(&place);
}

/* /dev/stdout is this process's own file, and stays the link that it is. */
static void test_own_descriptors(void **state)
{
	_cleanup_close_ int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct errmsg reason;
	char path[32];

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_int_equal(write_how(path, &private, &reason), 0);
	check_text("file", "new");
	assert_int_equal(mode_of("file"), S_IFREG | 0644);
	assert_int_equal(write_how("/dev/fd/4000", &private, &reason), -EBADF);
	assert_int_equal(write_how("/dev/stdout", &private, &reason), 0);
	assert_int_equal(write_how("-", &private, &reason), 0);
	assert_int_equal(mode_of("/dev/stdout") & S_IFMT, S_IFLNK);
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void give_away(const char *path)
{
	assert_int_equal(fchownat(AT_FDCWD, path, OTHER_USER, -1, AT_SYMLINK_NOFOLLOW), 0);
}

/* A user who planted a link, a file or a pipe under the name that root will write to. */
static void test_planted_by_another_user(void **state)
{
	struct errmsg reason;
	struct stat status;

	need_root();
	put("private/file", "precious");
	assert_int_equal(symlink("private/file", "link"), 0);
	give_away("link");
	assert_int_equal(write_how("link", &private, &reason), 0);
	check_text("private/file", "precious");
	assert_int_equal(stat("link", &status), 0);
	assert_int_equal(status.st_uid, 0);

	put("file", "his");
	assert_int_equal(chmod("file", 0666), 0);
	give_away("file");
	assert_int_equal(
		write_how("file", &(struct output_how){.access = OUTPUT_BY_UMASK}, &reason), 0);
	assert_int_equal(mode_of("file"), S_IFREG | 0644);

	assert_int_equal(mkfifo("pipe", 0666), 0);
	give_away("pipe");
	assert_int_equal(write_how("pipe", &private, &reason), -EPERM);
	assert_string_equal(reason.text, "it is a pipe that user 65534 made");
	behind_sudo("65533");
	assert_int_equal(write_how("pipe", &private, &reason), -EPERM);
}

static void test_folders_that_are_links(void **state)
{
	struct errmsg reason;

	need_root();
	assert_int_equal(symlink("private", "link"), 0);
	assert_int_equal(write_how("link/file", &private, &reason), 0);
	check_text("private/file", "new");
	unlink("private/file");
	give_away("link");
	assert_int_equal(write_how("link/file", &private, &reason), -ELOOP);
	assert_string_equal(reason.text, "link is a link that user 65534 made");
	assert_int_equal(
		write_how("link/new/file", &(struct output_how){.make_folders = true}, &reason),
		-ELOOP);
	assert_int_equal(access("private/new", F_OK), -1);
	assert_int_equal(access("private/file", F_OK), -1);
	/* The one who typed sudo may lead root where he likes: he could name the place. */
	behind_sudo("65534");
	assert_int_equal(write_how("link/file", &private, &reason), 0);
	unlink("link");
	assert_int_equal(symlink("link", "link"), 0);
	assert_int_equal(write_how("link/file", &private, &reason), -ELOOP);
}

static void check_owner(const char *path, uid_t user, gid_t group)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	assert_int_equal(status.st_uid, user);
	assert_int_equal(status.st_gid, group);
}

/* What is made behind sudo is the user's, where the user could have made it. */
static void test_behind_sudo(void **state)
{
	static const struct output_how how = {.access = OUTPUT_BY_UMASK, .make_folders = true};
	static const char *const others[] = {"", "0", "65534x", "-1", "4294967295", " 65534", NULL};
	struct errmsg reason;

	need_root();
	assert_int_equal(chmod(".", 0777), 0);
	behind_sudo("65534");
	assert_int_equal(write_how("file", &private, &reason), 0);
	check_owner("file", 65534, 4712);
	assert_int_equal(mode_of("file"), S_IFREG | 0600);
	assert_int_equal(chmod("file", 0640), 0);
	assert_int_equal(write_how("file", &how, &reason), 0);
	assert_int_equal(mode_of("file"), S_IFREG | 0640);
	assert_int_equal(write_how("new/deep/file", &how, &reason), 0);
	check_owner("new", 65534, 4712);
	check_owner("new/deep", 65534, 4712);
	check_owner("new/deep/file", 65534, 4712);
	/* A folder of root's alone keeps root's files. */
	assert_int_equal(write_how("private/file", &private, &reason), 0);
	check_owner("private/file", 0, 0);
	for (size_t i = 0; others[i]; i++) {
		behind_sudo(others[i]);
		assert_int_equal(write_how("file", &private, &reason), 0);
		check_owner("file", 0, 0);
	}
	behind_sudo("65534");
	unsetenv("SUDO_GID");
	assert_int_equal(write_how("file", &private, &reason), 0);
	check_owner("file", 0, 0);
}

/* The new file is the user's; what had its name, and links to that elsewhere, are as they were. */
static void test_behind_sudo_what_was_there_keeps_its_owner(void **state)
{
	_cleanup_close_ int before = -1;
	struct errmsg reason;
	struct stat status;

	need_root();
	assert_int_equal(chmod(".", 0777), 0);
	put("private/file", "root's");
	assert_int_equal(link("private/file", "file"), 0);
	before = open("file", O_RDONLY | O_CLOEXEC);
	behind_sudo("65534");
	assert_int_equal(write_how("file", &private, &reason), 0);
	check_owner("file", 65534, 4712);
	check_owner("private/file", 0, 0);
	check_text("private/file", "root's");
	assert_int_equal(fstat(before, &status), 0);
	assert_int_equal(status.st_uid, 0);
}

static void test_for_a_group(void **state)
{
	struct output_how how = {.access = OUTPUT_GROUP, .group = 7};
	struct errmsg reason;
	struct stat status;

	need_root();
	assert_int_equal(write_how("file", &how, &reason), 0);
	assert_int_equal(stat("file", &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0640);
	assert_int_equal(status.st_gid, 7);
}

static const struct output_how capture = {.access = OUTPUT_PRIVATE, .keeps_others = true};

static void write_capture(struct output_place *place, const char *text)
{
	assert_int_equal(write_all(place->fd, text, strlen(text)), 0);
	assert_int_equal(output_place_close(place), 0);
}

static void test_what_appears_meanwhile_is_kept(void **state)
{
	_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE;
	struct errmsg reason;

	assert_int_equal(output_place_open(&place, "file", &capture, &reason), 0);
	put("file", "another's");
	write_capture(&place, "own");
	assert_true(place.is_another);
	assert_string_equal(place.name, "file.2");
	check_text("file", "another's");
	check_text("file.2", "own");
}

/* What was there at the beginning is replaced, another file that took its place is not. */
static void test_what_was_there_is_replaced(void **state)
{
	static const struct output_how keeping = {.keeps_others = true, .keep_previous = true};
	_cleanup_output_place_ struct output_place first = OUTPUT_PLACE_NONE,
						   second = OUTPUT_PLACE_NONE;
	struct errmsg reason;

	put("file", "before");
	assert_int_equal(output_place_open(&first, "file", &keeping, &reason), 0);
	assert_int_equal(output_place_open(&second, "file", &keeping, &reason), 0);
	write_capture(&first, "first");
	assert_false(first.is_another);
	write_capture(&second, "second");
	check_text("file", "first");
	check_text("file.2", "second");
	check_text("file.old", "before");
}

static void test_what_is_written_is_kept(void **state)
{
	_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE,
						   later = OUTPUT_PLACE_NONE;
	struct errmsg reason;

	assert_int_equal(output_place_open(&place, "file", &capture, &reason), 0);
	assert_int_equal(output_place_name(&place), 0);
	assert_int_equal(output_place_open(&later, "file", &capture, &reason), 0);
	write_capture(&later, "later");
	assert_string_equal(later.name, "file.2");
	output_place_done(&later);
	write_capture(&place, "first");
	check_text("file", "first");
	/* Nobody writes it any more. */
	assert_int_equal(output_place_open(&later, "file", &capture, &reason), 0);
	write_capture(&later, "last");
	assert_false(later.is_another);
	check_text("file", "last");
}

static void test_names_of_others(void **state)
{
	static const char *const names[] = {"a.pftrace", "a.2.pftrace", ".hidden", ".hidden.2"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i += 2) {
		_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE;
		struct errmsg reason;

		assert_int_equal(output_place_open(&place, names[i], &capture, &reason), 0);
		put(names[i], "another's");
		write_capture(&place, "own");
		assert_string_equal(place.name, names[i + 1]);
		unlink(names[i]);
		unlink(names[i + 1]);
	}
}

enum { WRITERS = 16 };

/* Begins with the others, and holds its file until all have named theirs. */
_Noreturn static void write_at_once(int number, int start, int named, int end)
{
	_cleanup_output_place_ struct output_place place = OUTPUT_PLACE_NONE;
	struct errmsg reason;
	char text[16], byte;
	int r;

	snprintf(text, sizeof(text), "%d", number);
	(void)!read(start, &byte, 1);
	r = output_place_open(&place, "file", &capture, &reason);
	if (r == 0)
		r = write_all(place.fd, text, strlen(text));
	if (r == 0)
		r = output_place_name(&place);
	write_all(named, "", 1);
	(void)!read(end, &byte, 1);
	_exit(r < 0 || output_place_close(&place) < 0);
}

/* Each file is there in the end, under a name of its own. */
static void test_several_at_once(void **state)
{
	int start[2], named[2], end[2], status;
	bool is_there[WRITERS] = {0};

	assert_true(pipe(start) == 0 && pipe(named) == 0 && pipe(end) == 0);
	for (int i = 0; i < WRITERS; i++) {
		if (fork() == 0) {
			close(start[1]);
			close(end[1]);
			write_at_once(i, start[0], named[1], end[0]);
		}
	}
	close(start[1]);
	for (int i = 0; i < WRITERS; i++) {
		char byte;

		assert_int_equal(read(named[0], &byte, 1), 1);
	}
	close(end[1]);
	for (int i = 0; i < WRITERS; i++)
		assert_true(wait(&status) > 0 && status == 0);
	for (int i = 1; i <= WRITERS; i++) {
		_cleanup_strbuf_ struct strbuf text = {0};
		char name[16] = "file";

		if (i > 1)
			snprintf(name, sizeof(name), "file.%d", i);
		assert_int_equal(read_whole_file(name, 100, &text), 0);
		is_there[strtol(strbuf_cstr(&text), NULL, 10)] = true;
		unlink(name);
	}
	for (int i = 0; i < WRITERS; i++)
		assert_true(is_there[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new_file),
		TEST(test_failure_leaves_the_file_before),
		TEST(test_replaces_what_is_open),
		TEST(test_link_to_a_file_is_replaced),
		TEST(test_pipes_and_devices),
		TEST(test_own_descriptors),
		TEST(test_planted_by_another_user),
		TEST(test_folders_that_are_links),
		TEST(test_what_appears_meanwhile_is_kept),
		TEST(test_what_was_there_is_replaced),
		TEST(test_what_is_written_is_kept),
		TEST(test_names_of_others),
		TEST(test_several_at_once),
		TEST(test_behind_sudo),
		TEST(test_behind_sudo_what_was_there_keeps_its_owner),
		TEST(test_for_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
