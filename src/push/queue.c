/* SPDX-License-Identifier: Apache-2.0 */
#include "push/queue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/new_file.h"
#include "base/strbuf.h"
#include "push/window_folder.h"

#define QUEUES     "queue"
#define FORMAT     "format"
#define FIRST_LINE "sonde queue 1"
#define MOST_BYTES 8192

/* Each time by its path: a folder that was removed may be there again. */
static int open_folder(const struct push_queue *queue, bool make)
{
	_cleanup_close_ int folder = open(queue->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int queues = -1;
	int fd, r;

	if (folder < 0)
		return -errno;
	r = make ? new_folder_at(folder, QUEUES, 0700) : 0;
	if (r < 0 && r != -EEXIST)
		return r;
	queues = openat(folder, QUEUES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (queues < 0)
		return -errno;
	r = make ? new_folder_at(queues, queue->id, 0700) : 0;
	if (r < 0 && r != -EEXIST)
		return r;
	fd = openat(queues, queue->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_format(int folder, const char *address)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_close_ int fd = new_file_at(folder, FORMAT, O_WRONLY, 0600);

	if (fd < 0)
		return fd;
	strbuf_addf(&text, FIRST_LINE "\n%s\n", address);
	return write_all(fd, strbuf_cstr(&text), text.length);
}

/* Returns 1 when there is none. */
static int check_format(int folder, const struct push_queue *queue, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	_cleanup_close_ int fd =
		openat(folder, FORMAT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	int r = 0;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		r = -EINVAL;
	if (r == 0)
		r = read_whole_fd(fd, MOST_BYTES, &text);
	if (r == 0 && !text.length)
		return 1; /* killed before it was written */
	if (r == 0 && strncmp(strbuf_cstr(&text), FIRST_LINE "\n", strlen(FIRST_LINE) + 1) == 0)
		return 0;
	return errmsg_set(err, -EINVAL,
		"%s/" QUEUES "/%s is not a queue of this version of sonde: deliver what is in it "
		"with the version that made it, or remove it",
		queue->folder, queue->id);
}

int push_queue_open(struct push_queue *ret_queue, const char *folder, const char *kind,
	const char *address, struct errmsg *err)
{
	struct push_queue queue = {.folder = strdup(folder)};
	_cleanup_close_ int fd = -1;
	int r = queue.folder ? 0 : -ENOMEM;

	snprintf(queue.id, sizeof(queue.id), "%s-%08x", kind,
		(unsigned)hash_bytes(address, strlen(address), 0));
	if (r == 0)
		fd = open_folder(&queue, true);
	if (r == 0 && fd < 0)
		r = errmsg_set(err, fd, "cannot open %s/" QUEUES "/%s: %s", folder, queue.id,
			strerror(-fd));
	if (r == 0)
		r = check_format(fd, &queue, err);
	if (r == 1) {
		unlinkat(fd, FORMAT, 0);
		r = write_format(fd, address);
		if (r < 0)
			errmsg_set(err, r, "cannot write %s/" QUEUES "/%s: %s", folder, queue.id,
				strerror(-r));
	}
	if (r < 0)
		push_queue_done(&queue);
	else
		*ret_queue = queue;
	return r;
}

void push_queue_done(struct push_queue *queue)
{
	free(TAKE_PTR(queue->folder));
}

/* Under another name first: who delivers sees all of it or nothing. */
static int add_bytes(int folder, const char *window, const struct strbuf *bytes)
{
	_cleanup_strbuf_ struct strbuf part = {0};
	_cleanup_close_ int fd = -1;
	int r;

	strbuf_addf(&part, ".%s.part", window);
	if (strbuf_status(&part) < 0 || strbuf_status(bytes) < 0)
		return -ENOMEM;
	unlinkat(folder, part.data, 0);
	fd = new_file_at(folder, part.data, O_WRONLY, 0600);
	r = fd < 0 ? fd : write_all(fd, strbuf_cstr(bytes), bytes->length);
	if (r == 0 && renameat(folder, part.data, folder, window) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(folder, part.data, 0);
	return r;
}

int push_queue_add(const struct push_queue *queue, const char *window, const struct strbuf *bytes)
{
	_cleanup_close_ int folder = open_folder(queue, true), fd = -1;

	if (folder < 0)
		return folder;
	if (bytes)
		return add_bytes(folder, window, bytes);
	fd = new_file_at(folder, window, O_WRONLY, 0600);
	return fd < 0 && fd != -EEXIST ? fd : 0;
}

void push_queue_remove(const struct push_queue *queue, const char *window)
{
	_cleanup_close_ int folder = open_folder(queue, false);

	if (folder >= 0)
		unlinkat(folder, window, 0);
}

static bool is_waiting(int folder, const char *name, uint64_t *ret_number)
{
	struct stat status;

	return window_name_parse(name, ret_number) &&
	       fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

int push_queue_first(const struct push_queue *queue, char **ret_window, uint64_t *ret_count)
{
	int folder = open_folder(queue, false);
	DIR *entries = folder < 0 ? NULL : fdopendir(folder);
	uint64_t number, lowest = UINT64_MAX, count = 0;
	_cleanup_free_ char *window = NULL;
	const struct dirent *entry;

	*ret_count = 0;
	if (!entries) {
		closep(&folder);
		return folder < 0 ? folder : -errno;
	}
	while ((entry = readdir(entries))) {
		if (!is_waiting(folder, entry->d_name, &number))
			continue;
		count++;
		if (number >= lowest)
			continue;
		lowest = number;
		free(window);
		window = strdup(entry->d_name);
	}
	closedir(entries);
	*ret_count = count;
	if (!window)
		return count ? -ENOMEM : 0;
	*ret_window = TAKE_PTR(window);
	return 1;
}

static int open_regular(int folder, const char *name)
{
	_cleanup_close_ int fd =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return errno == ELOOP ? -ENOENT : -errno;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -ENOENT;
	return TAKE_FD(fd);
}

int push_queue_open_window(const struct push_queue *queue, const char *window)
{
	_cleanup_close_ int folder = open(queue->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? -errno : open_regular(folder, window);
}

int push_queue_open_bytes(const struct push_queue *queue, const char *window)
{
	_cleanup_close_ int folder = open_folder(queue, false);

	return folder < 0 ? folder : open_regular(folder, window);
}
