/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int open_path(struct output_file *file, const char *path)
{
	_cleanup_strbuf_ struct strbuf temporary = {0};
	struct stat status;
	bool exists = stat(path, &status) == 0;

	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	if (exists && !S_ISREG(status.st_mode)) {
		file->fd = open(path, O_WRONLY | O_CLOEXEC);
		return file->fd < 0 ? -errno : 0;
	}
	strbuf_addf(&temporary, "%s.XXXXXX", path);
	if (strbuf_status(&temporary) < 0)
		return -ENOMEM;
	file->mode = new_file_mode(exists ? &status : NULL);
	file->fd = mkostemp(temporary.data, O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	file->temporary = TAKE_PTR(temporary.data);
	return 0;
}

static int cannot_write(const struct output_file *file, int error, struct errmsg *err)
{
	const char *path = file->path ? file->path : "standard output";
	const char *remedy = "name another file";

	if (error == -ENOMEM)
		return errmsg_set(err, error, "memory ran out while writing %s", path);
	if (error == -ENOSPC || error == -EDQUOT)
		remedy = "free some space, or write elsewhere";
	else if (error == -ENOENT)
		remedy = "make the directory first";
	else if (error == -EISDIR)
		remedy = "name a file in it";
	return errmsg_set(err, error, "cannot write %s: %s; %s", path, strerror(-error), remedy);
}

int output_file_open(struct output_file *file, const char *path, struct errmsg *err)
{
	int r = 0;

	*file = (struct output_file){.fd = -1};
	if (strcmp(path, "-") == 0)
		file->fd = STDOUT_FILENO;
	else
		r = open_path(file, path);
	return r < 0 ? cannot_write(file, r, err) : 0;
}

void output_file_flush(struct output_file *file)
{
	int r = strbuf_status(&file->out);

	if (r == 0 && file->error == 0)
		r = write_all(file->fd, strbuf_cstr(&file->out), file->out.length);
	if (file->error == 0)
		file->error = r;
	file->bytes += file->out.length;
	strbuf_clear(&file->out);
}

/* The temporary file becomes the one that was asked for. */
static int put_in_place(struct output_file *file)
{
	if (file->path && close(TAKE_FD(file->fd)) < 0)
		return -errno;
	if (!file->temporary)
		return 0;
	/* Temporary files are private; a failure to open it to others loses nothing. */
	(void)!chmod(file->temporary, file->mode);
	if (rename(file->temporary, file->path) < 0)
		return -errno;
	free(file->temporary);
	file->temporary = NULL;
	return 0;
}

int output_file_close(struct output_file *file, struct errmsg *err)
{
	int r;

	output_file_flush(file);
	r = file->error ?: put_in_place(file);
	return r < 0 ? cannot_write(file, r, err) : 0;
}

void output_file_done(struct output_file *file)
{
	if (file->path)
		closep(&file->fd);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	strbuf_done(&file->out);
	*file = (struct output_file){.fd = -1};
}
