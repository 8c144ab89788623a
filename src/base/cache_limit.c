/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cache_limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

struct cached_file {
	char *name;
	uint64_t bytes;
	int64_t used_s; /* when it was read or written last, as far as the file system says */
};

struct cached_files {
	ARRAY_OF(struct cached_file) items;
	uint64_t bytes;
};

static void cached_files_done(struct cached_files *files)
{
	array_foreach (&files->items, file)
		free(file->name);
	array_done(&files->items);
}

static int add_file(struct cached_files *files, int folder, const char *name)
{
	struct cached_file file;
	struct stat status;

	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
		return 0;
	file = (struct cached_file){.name = strdup(name),
		.bytes = (uint64_t)status.st_size,
		.used_s = MAX(status.st_atime, status.st_mtime)};
	if (file.name && array_append(&files->items, file) == 0) {
		files->bytes += file.bytes;
		return 0;
	}
	free(file.name);
	return -ENOMEM;
}

static int read_files(struct cached_files *files, int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!entries) {
		r = -errno;
		closep(&copy);
		return r;
	}
	while (r == 0 && (entry = readdir(entries)))
		r = add_file(files, folder, entry->d_name);
	closedir(entries);
	return r;
}

static int compare_use(const void *left, const void *right)
{
	const struct cached_file *a = left, *b = right;

	return (a->used_s > b->used_s) - (a->used_s < b->used_s);
}

int cache_limit(const char *path, uint64_t max_bytes)
{
	_cleanup_close_ int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_(cached_files_done) struct cached_files files = {0};
	int r;

	if (folder < 0)
		return -errno;
	r = read_files(&files, folder);
	if (r < 0 || files.bytes <= max_bytes)
		return r;
	qsort(files.items.items, files.items.count, sizeof(*files.items.items), compare_use);
	array_foreach (&files.items, file) {
		if (files.bytes <= max_bytes / 4 * 3)
			break;
		/* Another recording may have removed it. */
		if (unlinkat(folder, file->name, 0) < 0 && errno != ENOENT)
			return -errno;
		files.bytes -= file->bytes;
	}
	return 0;
}
