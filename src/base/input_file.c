/* SPDX-License-Identifier: Apache-2.0 */
#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool refuses_links;

void input_refuse_links(void)
{
	refuses_links = true;
}

/* In no part of the path; before Linux 5.6, not in the last. */
static int open_without_links(const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 && errno == ENOSYS ? open(path, flags | O_NOFOLLOW) : fd;
}

int input_open(const char *path, int flags)
{
	flags |= O_RDONLY | O_CLOEXEC | O_NOCTTY;
	return refuses_links ? open_without_links(path, flags) : open(path, flags);
}

DIR *input_opendir(const char *path)
{
	int fd = input_open(path, O_DIRECTORY | O_NONBLOCK);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !directory)
		close(fd);
	return directory;
}
