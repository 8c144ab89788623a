/* SPDX-License-Identifier: Apache-2.0 */
#include "load/standard_input.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* In place of the pipe. Where that fails, opening what is left says why. */
static void keep_input(void)
{
	_cleanup_close_ int fd = memfd_create("standard-input", MFD_CLOEXEC);
	char bytes[65536];
	ssize_t got;

	if (fd < 0)
		return;
	do {
		got = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (got > 0 && write_all(fd, bytes, (size_t)got) < 0)
			return;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got == 0)
		dup2(fd, STDIN_FILENO);
}

const char *load_path(const char *path)
{
	static const char *const names[] = {
		"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", NULL};
	const char *const *name = names;
	struct stat status;

	while (*name && strcmp(path, *name) != 0)
		name++;
	if (!*name)
		return path;
	if (fstat(STDIN_FILENO, &status) == 0 && !S_ISREG(status.st_mode))
		keep_input();
	return "/dev/stdin";
}
