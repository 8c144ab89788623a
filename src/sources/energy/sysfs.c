/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/energy/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

#define NAMES_MAX 256

int sysfs_path(char path[SYSFS_PATH_MAX], const char *root, const char *format, ...)
{
	int length = snprintf(path, SYSFS_PATH_MAX, "%s", root), written;
	va_list arguments;

	if (length < 0 || length >= SYSFS_PATH_MAX)
		return -ENAMETOOLONG;
	va_start(arguments, format);
	written = vsnprintf(path + length, (size_t)(SYSFS_PATH_MAX - length), format, arguments);
	va_end(arguments);
	return written < 0 || written >= SYSFS_PATH_MAX - length ? -ENAMETOOLONG : 0;
}

int sysfs_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int sysfs_reread_text(int fd, char *text, size_t size)
{
	ssize_t got = pread(fd, text, size - 1, 0);

	if (got < 0)
		return -errno;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int sysfs_reread(int fd, int64_t *ret_value)
{
	char text[32], *end;
	int64_t value;
	int r = sysfs_reread_text(fd, text, sizeof(text));

	if (r < 0)
		return r;
	if (!text[0])
		return -ENODATA;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int sysfs_read_text(const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = sysfs_open(path);

	return fd < 0 ? fd : sysfs_reread_text(fd, text, size);
}

int sysfs_read_u64(const char *path, uint64_t *ret_value)
{
	_cleanup_close_ int fd = sysfs_open(path);
	int64_t value;
	int r;

	if (fd < 0)
		return fd;
	r = sysfs_reread(fd, &value);
	if (r < 0)
		return r;
	if (value < 0)
		return -EINVAL;
	*ret_value = (uint64_t)value;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(a, b);
}

int sysfs_list(const char *folder, const char *prefix, struct sysfs_names *ret_names)
{
	struct sysfs_names names = {calloc(NAMES_MAX, sizeof(*names.items)), 0};
	const struct dirent *entry;
	DIR *directory;

	if (!names.items)
		return -ENOMEM;
	directory = opendir(folder);
	if (!directory) {
		int error = -errno;

		free(names.items);
		return error;
	}
	while (names.count < NAMES_MAX && (entry = readdir(directory))) {
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(*names.items) &&
			strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
			snprintf(names.items[names.count++], sizeof(*names.items), "%s",
				entry->d_name);
	}
	closedir(directory);
	qsort(names.items, names.count, sizeof(*names.items), compare_names);
	*ret_names = names;
	return 0;
}

void sysfs_names_done(struct sysfs_names *names)
{
	free(TAKE_PTR(names->items));
	names->count = 0;
}
