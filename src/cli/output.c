/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command.h"
#include "exporters/format.h"

bool output_is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* Devices and pipes are written to, not replaced. */
static int write_special(const char *path, const void *bytes, size_t length)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_all(fd, bytes, length);
}

static int write_path(const char *path, const void *bytes, size_t length)
{
	struct stat status;
	bool exists = stat(path, &status) == 0;
	int r;

	if (exists && !S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : write_special(path, bytes, length);
	r = write_file_atomically(path, bytes, length);
	/* Temporary files are private; a failure to open it to others loses nothing. */
	if (r == 0 && chmod(path, new_file_mode(exists ? &status : NULL)) < 0)
		return 0;
	return r;
}

static const char *remedy(int error)
{
	switch (-error) {
	case ENOSPC:
	case EDQUOT:
		return "free some space, or write elsewhere with -o";
	case ENOENT:
		return "make the directory first";
	case EISDIR:
		return "name a file in it";
	default:
		return "write elsewhere with -o";
	}
}

int output_write(const char *path, const void *bytes, size_t length, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf size = {0};
	int r;

	if (output_is_standard(path)) {
		fflush(stdout);
		r = write_all(STDOUT_FILENO, bytes, length);
		if (r < 0)
			return errmsg_set(
				err, r, "cannot write to standard output: %s", strerror(-r));
		return 0;
	}
	r = write_path(path, bytes, length);
	if (r < 0)
		return errmsg_set(err, r, "cannot write %s: %s; %s", path, strerror(-r), remedy(r));
	format_bytes(&size, length);
	warn("wrote %s (%s)", path, strbuf_cstr(&size));
	return 0;
}

/* "DIR/NAME", and the folder that it is in. */
static int write_below(const char *folder, const struct export_file *file, struct strbuf *path)
{
	char *slash;
	int r;

	strbuf_clear(path);
	strbuf_addf(path, "%s/%s", folder, file->name);
	r = strbuf_status(path);
	if (r < 0)
		return r;
	slash = strrchr(path->data, '/');
	*slash = '\0';
	r = make_directories(path->data, 0777);
	*slash = '/';
	return r ?: write_path(path->data, file->content.data, file->content.length);
}

int output_write_folder(const char *folder, const struct export_files *files, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf path = {0}, size = {0};
	uint64_t bytes = 0;

	if (output_is_standard(folder))
		return errmsg_set(err, -EINVAL,
			"this format is a folder of files: name one with -o, not standard output");
	array_foreach (&files->items, file) {
		int r = write_below(folder, file, &path);

		if (r < 0)
			return errmsg_set(err, r, "cannot write %s: %s; %s", strbuf_cstr(&path),
				strerror(-r), remedy(r));
		bytes += file->content.length;
	}
	format_bytes(&size, bytes);
	warn("wrote %zu files in %s (%s)", files->items.count, folder, strbuf_cstr(&size));
	return 0;
}
