/* SPDX-License-Identifier: Apache-2.0 */
#include "base/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "base/process_view.h"

#define MOST_FILES   64
#define LINE_COLUMNS 240 /* of a line; what is longer is cut */

struct source_file {
	struct strbuf text;     /* empty: it cannot be read */
	ARRAY_OF(size_t) lines; /* where each begins */
};

struct source_text {
	uint64_t recorded_ns;
	struct intern paths;
	ARRAY_OF(struct source_file) files;
};

static int check(const struct stat *status)
{
	if (!S_ISREG(status->st_mode))
		return -EINVAL;
	/* Who named the file may not be who may read it. */
	if (geteuid() == 0 && !(status->st_mode & S_IROTH))
		return -EACCES;
	return (uint64_t)status->st_size > SOURCE_TEXT_LARGEST ? -EFBIG : 0;
}

/* A device or pipe is looked at, but never opened. */
static int open_source(const char *path, uint64_t recorded_ns, int *ret_fd)
{
	_cleanup_close_ int handle = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const struct process_view own = process_view_own();
	struct stat status;
	int r;

	if (handle < 0 || fstat(handle, &status) < 0)
		return -errno;
	r = check(&status);
	if (r < 0)
		return r;
	if (recorded_ns && (uint64_t)status.st_mtim.tv_sec > recorded_ns / NS_PER_S)
		return -ESTALE;
	*ret_fd = process_view_open_found(&own, handle);
	return MIN(*ret_fd, 0);
}

static int read_source(const char *path, uint64_t recorded_ns, struct strbuf *ret_text)
{
	_cleanup_close_ int fd = -1;
	int r = open_source(path, recorded_ns, &fd);

	if (r < 0)
		return r;
	return read_whole_fd(fd, SOURCE_TEXT_LARGEST, ret_text);
}

int source_text_read(const char *path, struct strbuf *ret_text)
{
	return read_source(path, 0, ret_text);
}

int source_text_new(struct source_text **ret_source, uint64_t recorded_ns)
{
	*ret_source = calloc(1, sizeof(**ret_source));
	if (!*ret_source)
		return -ENOMEM;
	(*ret_source)->recorded_ns = recorded_ns;
	return 0;
}

struct source_text *source_text_free(struct source_text *source)
{
	if (!source)
		return NULL;
	array_foreach (&source->files, file) {
		strbuf_done(&file->text);
		array_done(&file->lines);
	}
	array_done(&source->files);
	intern_done(&source->paths);
	free(source);
	return NULL;
}

void source_text_freep(struct source_text **source)
{
	*source = source_text_free(*source);
}

static int find_lines(struct source_file *file)
{
	const char *text = strbuf_cstr(&file->text);
	int r = 0;

	for (size_t at = 0; r == 0 && at < file->text.length;) {
		const char *newline = memchr(text + at, '\n', file->text.length - at);

		r = array_append(&file->lines, at);
		at = newline ? (size_t)(newline - text) + 1 : file->text.length;
	}
	return r;
}

static int add_file(struct source_text *source, const char *path)
{
	struct source_file file = {0};
	int r = read_source(path, source->recorded_ns, &file.text);

	if (r < 0)
		strbuf_done(&file.text);
	r = r == -ENOMEM ? r : find_lines(&file);
	r = r ?: array_append(&source->files, file);
	if (r < 0) {
		strbuf_done(&file.text);
		array_done(&file.lines);
	}
	return r;
}

static void add_line(struct strbuf *out, const char *line, const char *end)
{
	size_t columns = 0;

	while (line < end && strchr(" \t\r\f", *line))
		line++;
	while (end > line && strchr(" \t\r\f\n", end[-1]))
		end--;
	for (; line < end && *line && columns < LINE_COLUMNS; line++, columns++)
		strbuf_add_char(out, *line == '\t' ? ' ' : *line);
}

int source_text_line(
	struct source_text *source, const char *path, uint32_t number, struct strbuf *out)
{
	const struct source_file *file;
	size_t next;
	uint32_t id;
	int r;

	if (!number || !*path || path[0] == '<' || path[0] == '[')
		return 0;
	if (!intern_find(&source->paths, path, strlen(path), &id)) {
		if (source->files.count == MOST_FILES)
			return 0;
		r = add_file(source, path);
		r = r < 0 ? r : intern_add(&source->paths, path, strlen(path), &id);
		if (r < 0)
			return r;
	}
	file = &source->files.items[id];
	if (number > file->lines.count)
		return 0;
	next = number < file->lines.count ? file->lines.items[number] - 1 : file->text.length;
	add_line(out, file->text.data + file->lines.items[number - 1], file->text.data + next);
	return strbuf_status(out);
}
