/* SPDX-License-Identifier: Apache-2.0 */
#include "server/jobs/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

#define NAMES_TRIED 100

int job_file_name(
	const char *folder, const char *command, int64_t unix_s, char ret_name[JOB_FILE_BYTES])
{
	_cleanup_close_ int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	time_t seconds = (time_t)unix_s;
	char time_text[20];
	struct tm utc;

	if (fd < 0)
		return -errno;
	gmtime_r(&seconds, &utc);
	strftime(time_text, sizeof(time_text), "%Y%m%d-%H%M%S", &utc);
	for (int i = 1; i <= NAMES_TRIED; i++) {
		struct stat status;
		char number[12] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%d", i);
		snprintf(ret_name, JOB_FILE_BYTES, "%s-%s%s.pftrace", command, time_text, number);
		if (fstatat(fd, ret_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

static const char *skip_digits(const char *text, size_t count)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	return digits && (!count || digits == count) ? text + digits : NULL;
}

static const char *skip_dash(const char *text)
{
	return text && *text == '-' ? text + 1 : NULL;
}

static bool is_of_command(const char *name, const char *command)
{
	size_t length = strlen(command);
	const char *at = strncmp(name, command, length) == 0 ? name + length : NULL;

	at = skip_digits(skip_dash(skip_digits(skip_dash(at), 8)), 6);
	if (at && *at == '-')
		at = skip_digits(at + 1, 0);
	return at && strcmp(at, ".pftrace") == 0;
}

struct old {
	char name[JOB_FILE_BYTES];
	struct timespec modified;
};

static int compare_times(const void *left, const void *right)
{
	const struct old *a = left, *b = right;

	if (a->modified.tv_sec != b->modified.tv_sec)
		return a->modified.tv_sec < b->modified.tv_sec ? -1 : 1;
	if (a->modified.tv_nsec != b->modified.tv_nsec)
		return a->modified.tv_nsec < b->modified.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

void job_files_trim(const char *folder, const char *command, uint64_t keep)
{
	DIR *directory = opendir(folder);
	const struct dirent *entry;
	ARRAY_OF(struct old) files = {0};

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		struct stat status;
		struct old one = {{0}};

		if (strlen(entry->d_name) >= sizeof(one.name) ||
			!is_of_command(entry->d_name, command) ||
			fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) <
				0 ||
			!S_ISREG(status.st_mode))
			continue;
		snprintf(one.name, sizeof(one.name), "%s", entry->d_name);
		one.modified = status.st_mtim;
		if (array_append(&files, one) < 0)
			break;
	}
	if (files.count > keep) {
		qsort(files.items, files.count, sizeof(files.items[0]), compare_times);
		for (size_t i = 0; i < files.count - keep; i++) {
			char windows[JOB_FILE_BYTES + 16];

			snprintf(windows, sizeof(windows), "%s.windows.json", files.items[i].name);
			unlinkat(dirfd(directory), files.items[i].name, 0);
			unlinkat(dirfd(directory), windows, 0);
		}
	}
	array_done(&files);
	closedir(directory);
}
