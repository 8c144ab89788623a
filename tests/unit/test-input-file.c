/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read as input, by a process that follows links, and by one that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input_file.h"

static char folder[] = "/tmp/sonde-input-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int setup(void **state)
{
	int fd;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(path_of("inside"), 0700), 0);
	fd = open(path_of("inside/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink("file", path_of("inside/link")), 0);
	assert_int_equal(symlink("inside", path_of("linked")), 0);
	return 0;
}

static int teardown(void **state)
{
	unlink(path_of("linked"));
	unlink(path_of("inside/link"));
	unlink(path_of("inside/file"));
	rmdir(path_of("inside"));
	return rmdir(folder);
}

static int error_of_file(const char *name)
{
	_cleanup_close_ int fd = input_open(path_of(name), 0);

	return fd < 0 ? errno : 0;
}

static int error_of_folder(const char *name)
{
	DIR *directory = input_opendir(path_of(name));

	if (!directory)
		return errno;
	closedir(directory);
	return 0;
}

static void test_links(void **state)
{
	assert_int_equal(error_of_file("inside/file"), 0);
	assert_int_equal(error_of_file("inside/link"), 0);
	assert_int_equal(error_of_file("linked/file"), 0);
	assert_int_equal(error_of_file("nothing"), ENOENT);
	assert_int_equal(error_of_folder("linked"), 0);
	input_refuse_links();
	assert_int_equal(error_of_file("inside/file"), 0);
	assert_int_equal(error_of_file("inside/link"), ELOOP);
	assert_int_equal(error_of_file("linked/file"), ELOOP);
	assert_int_equal(error_of_file("nothing"), ENOENT);
	assert_int_equal(error_of_folder("inside"), 0);
	assert_true(error_of_folder("linked") == ELOOP || error_of_folder("linked") == ENOTDIR);
	assert_int_equal(error_of_folder("inside/file"), ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_links)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
