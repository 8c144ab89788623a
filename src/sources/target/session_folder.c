/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/target/session_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "wire/gate.h"

#define FOLDER_DEPTH  16 /* of folders in the session folder that are removed with it */
#define FOLDER_PREFIX "sonde-"

/* Whatever is in the folder: processes may have made more than we looked at, folders as well. */
static void empty_folder(int fd, unsigned depth)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!folder) {
		closep(&copy);
		return;
	}
	while ((entry = readdir(folder))) {
		_cleanup_close_ int below = -1;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			unlinkat(fd, entry->d_name, 0) == 0 || depth == 0)
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below >= 0)
			empty_folder(below, depth - 1);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(folder);
}

/* Of a sonde that was killed: nobody holds its gate's lock any more. */
static void remove_if_left(int base_fd, const char *name)
{
	_cleanup_close_ int fd =
		openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_close_ int gate_fd = -1;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_uid != geteuid())
		return;
	gate_fd = openat(fd, WIRE_GATE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (gate_fd < 0 || flock(gate_fd, LOCK_EX | LOCK_NB) < 0)
		return;
	empty_folder(fd, FOLDER_DEPTH);
	unlinkat(base_fd, name, AT_REMOVEDIR);
}

static void remove_left_folders(const char *base)
{
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		closep(&fd);
		return;
	}
	while ((entry = readdir(folder))) {
		if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0)
			remove_if_left(dirfd(folder), entry->d_name);
	}
	closedir(folder);
}

int session_folder_make(char *ret_path, size_t size, int *ret_fd, struct errmsg *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *const bases[] = {"/dev/shm", runtime, "/tmp"};
	int error = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (!bases[i] || bases[i][0] != '/' ||
			(size_t)snprintf(ret_path, size, "%s/" FOLDER_PREFIX "%d-XXXXXX", bases[i],
				(int)getpid()) >= size)
			continue;
		remove_left_folders(bases[i]);
		if (mkdtemp(ret_path)) {
			*ret_fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			return *ret_fd < 0 ? -errno : 0;
		}
		error = errno;
	}
	ret_path[0] = '\0';
	return errmsg_set(err, -error,
		"device work is not recorded: cannot make a folder in /dev/shm or /tmp: %s",
		strerror(error));
}

void session_folder_remove(const char *path, int fd)
{
	empty_folder(fd, FOLDER_DEPTH);
	rmdir(path);
}
