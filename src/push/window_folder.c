/* SPDX-License-Identifier: Apache-2.0 */
#include "push/window_folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/strbuf.h"

#define MOST_HOST_LETTERS 64
#define MOST_DIGITS       18

struct kept_window {
	uint64_t number, bytes;
	char *name;
};

struct window_folder {
	struct window_folder_options options;
	struct window_folder_account account;
	char *path;
	int fd, lock_fd;
	dev_t device;
	ino_t inode;
	uint64_t last_number;
	ARRAY_OF(struct kept_window) windows; /* oldest first */
};

/* ---- names ---- */

/* "-000042" before the extension. */
static bool parse_number(const char *name, const char *extension, uint64_t *ret_number)
{
	size_t length = strlen(name), digits = 0;
	const char *end;

	if (!text_ends_in(name, extension))
		return false;
	end = name + length - strlen(extension);
	while (end - digits > name && isdigit((unsigned char)end[-(ptrdiff_t)digits - 1]))
		digits++;
	if (!digits || digits > MOST_DIGITS || end - digits == name ||
		end[-(ptrdiff_t)digits - 1] != '-')
		return false;
	*ret_number = strtoull(end - digits, NULL, 10);
	return true;
}

bool window_name_parse(const char *name, uint64_t *ret_number)
{
	return !strchr(name, '/') && parse_number(name, WINDOW_EXTENSION, ret_number);
}

static void add_host(struct strbuf *name)
{
	struct utsname system;
	size_t count = 0;

	uname(&system);
	for (const char *c = system.nodename; *c && count < MOST_HOST_LETTERS; c++, count++)
		strbuf_add_char(name, isalnum((unsigned char)*c) || *c == '-' ? *c : '_');
	if (!count)
		strbuf_add(name, "host");
}

static void make_path(
	const struct window_folder *folder, uint64_t begin_realtime_ns, struct strbuf *path)
{
	time_t seconds = (time_t)(begin_realtime_ns / NS_PER_S);
	struct tm parts;
	char time[32];

	gmtime_r(&seconds, &parts);
	strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &parts);
	strbuf_addf(path, "%s/", folder->path);
	add_host(path);
	strbuf_addf(path, "-%s-%06llu" WINDOW_OPEN_EXTENSION, time,
		(unsigned long long)folder->last_number);
}

int window_keep_parse(
	const char *text, uint64_t *ret_bytes, uint64_t *ret_windows, struct errmsg *err)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (errno || end == text || *text == '-' || !value || value > UINT64_MAX >> 40 ||
		(*end && (!unit || (end[1] && strcmp(end + 1, "B") != 0 &&
					   strcmp(end + 1, "iB") != 0))))
		return errmsg_set(err, -EINVAL,
			"--keep %s is neither a number of windows nor a size: give, for example, "
			"--keep 1440 or --keep 20G",
			text);
	*ret_windows = unit ? 0 : value;
	*ret_bytes = unit ? value << (10 * (unit - units + 1)) : 0;
	return 0;
}

/* ---- what is there ---- */

static int compare_windows(const void *left, const void *right)
{
	const struct kept_window *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

static void forget_windows(struct window_folder *folder)
{
	array_foreach (&folder->windows, window)
		free(window->name);
	array_clear(&folder->windows);
	folder->account.windows = folder->account.bytes = 0;
}

static int add_window(struct window_folder *folder, const char *name, uint64_t number)
{
	struct kept_window window = {.number = number};
	struct stat status;
	int r;

	if (fstatat(folder->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
		return 0;
	window.bytes = (uint64_t)status.st_size;
	window.name = strdup(name);
	r = window.name ? array_append(&folder->windows, window) : -ENOMEM;
	if (r < 0) {
		free(window.name);
		return r;
	}
	folder->last_number = MAX(folder->last_number, number);
	folder->account.windows++;
	folder->account.bytes += window.bytes;
	return 0;
}

static void finished_name(const char *open_name, struct strbuf *name)
{
	strbuf_add_bytes(name, open_name, strlen(open_name) - strlen(WINDOW_OPEN_EXTENSION));
	strbuf_add(name, WINDOW_EXTENSION);
}

/* Of a recorder that was killed: it is a capture up to its last second. */
static int recover(struct window_folder *folder, const char *open_name, uint64_t number)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	struct stat status;

	finished_name(open_name, &name);
	if (fstatat(folder->fd, open_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(status.st_mode) ||
		renameat(folder->fd, open_name, folder->fd, strbuf_cstr(&name)) < 0)
		return 0;
	folder->account.recovered++;
	return add_window(folder, strbuf_cstr(&name), number);
}

static int scan(struct window_folder *folder)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t number;

	if (!entries) {
		r = -errno;
		closep(&fd);
		return r;
	}
	forget_windows(folder);
	while (r == 0 && (entry = readdir(entries))) {
		if (parse_number(entry->d_name, WINDOW_OPEN_EXTENSION, &number))
			r = recover(folder, entry->d_name, number);
		else if (window_name_parse(entry->d_name, &number))
			r = add_window(folder, entry->d_name, number);
	}
	closedir(entries);
	if (folder->windows.count)
		qsort(folder->windows.items, folder->windows.count, sizeof(*folder->windows.items),
			compare_windows);
	return r;
}

/* ---- taking the folder ---- */

/* Of another recorder that was here before, or a new one. */
static int open_lock(int folder)
{
	int fd = openat(folder, WINDOW_FOLDER_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	fd = new_file_at(folder, WINDOW_FOLDER_LOCK, O_RDWR, 0600);
	return fd == -EEXIST ? open_lock(folder) : fd;
}

static int lock(struct window_folder *folder, struct errmsg *err)
{
	_cleanup_close_ int fd = open_lock(folder->fd);

	if (fd < 0)
		return errmsg_set(err, fd, "cannot make %s/" WINDOW_FOLDER_LOCK ": %s",
			folder->path, strerror(-fd));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errmsg_set(err, -errno,
			errno == EWOULDBLOCK
				? "%s belongs to another `sonde record --continuous` that is "
				  "running: give another folder with -o"
				: "cannot lock %s",
			folder->path);
	folder->lock_fd = TAKE_FD(fd);
	return 0;
}

static int take(struct window_folder *folder, struct errmsg *err)
{
	struct stat status;
	int r;

	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->fd < 0 || fstat(folder->fd, &status) < 0)
		return errmsg_set(err, -errno, "cannot open the folder %s: %s", folder->path,
			strerror(errno));
	r = lock(folder, err);
	if (r < 0)
		return r;
	folder->device = status.st_dev;
	folder->inode = status.st_ino;
	r = scan(folder);
	return r < 0 ? errmsg_set(
			       err, r, "cannot read the folder %s: %s", folder->path, strerror(-r))
		     : 0;
}

int window_folder_open(struct window_folder **ret_folder,
	const struct window_folder_options *options, struct errmsg *err)
{
	struct window_folder *folder = calloc(1, sizeof(*folder));
	int r = folder ? 0 : -ENOMEM;

	if (folder) {
		folder->options = *options;
		folder->fd = folder->lock_fd = -1;
		folder->path = strdup(options->path);
		r = folder->path ? new_folders(options->path, 0700) : -ENOMEM;
	}
	if (r < 0)
		errmsg_set(err, r, "cannot make the folder %s: %s", options->path, strerror(-r));
	if (r == 0)
		r = take(folder, err);
	if (r == 0)
		*ret_folder = folder;
	else
		window_folder_free(folder);
	return r;
}

struct window_folder *window_folder_free(struct window_folder *folder)
{
	if (!folder)
		return NULL;
	forget_windows(folder);
	array_done(&folder->windows);
	closep(&folder->fd);
	closep(&folder->lock_fd);
	free(folder->path);
	free(folder);
	return NULL;
}

/* Somebody removed it, or its disk: what is at its path now may be the same place again. */
static int check(struct window_folder *folder, struct errmsg *err)
{
	struct stat status;

	if (stat(folder->path, &status) < 0)
		return errmsg_set(err, -errno,
			"the folder %s is gone: %s; make it again, and recording goes on with the "
			"next window",
			folder->path, strerror(errno));
	if (status.st_dev == folder->device && status.st_ino == folder->inode)
		return 0;
	if (status.st_dev != folder->device || !S_ISDIR(status.st_mode))
		return errmsg_set(err, -ESTALE,
			"%s is on another disk than before: mount it again, and recording goes on "
			"with the next window",
			folder->path);
	closep(&folder->fd);
	closep(&folder->lock_fd);
	folder->fd = folder->lock_fd = -1;
	return take(folder, err);
}

/* ---- windows ---- */

int window_folder_next(struct window_folder *folder, uint64_t begin_realtime_ns, char **ret_path,
	struct errmsg *err)
{
	struct strbuf path = {0};
	int r = check(folder, err);

	if (r < 0)
		return r;
	folder->last_number++;
	make_path(folder, begin_realtime_ns, &path);
	if (strbuf_status(&path) < 0) {
		strbuf_done(&path);
		return -ENOMEM;
	}
	*ret_path = path.data;
	return 0;
}

int window_folder_finish(
	struct window_folder *folder, const char *path, char **ret_name, struct errmsg *err)
{
	const char *slash = strrchr(path, '/'), *open_name = slash ? slash + 1 : path;
	_cleanup_strbuf_ struct strbuf name = {0};
	struct stat status;
	uint64_t number;
	int r;

	*ret_name = NULL;
	if (!parse_number(open_name, WINDOW_OPEN_EXTENSION, &number))
		return -EINVAL;
	finished_name(open_name, &name);
	if (strbuf_status(&name) < 0)
		return -ENOMEM;
	/* The disk was full before it began. */
	if (fstatat(folder->fd, open_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !status.st_size)
		return unlinkat(folder->fd, open_name, 0) < 0 ? -errno : 0;
	if (renameat(folder->fd, open_name, folder->fd, strbuf_cstr(&name)) < 0)
		return errno == ENOENT ? 0
				       : errmsg_set(err, -errno, "cannot rename %s: %s", path,
						 strerror(errno));
	r = add_window(folder, strbuf_cstr(&name), number);
	if (r == 0)
		*ret_name = TAKE_PTR(name.data);
	return r;
}

static bool is_too_much(const struct window_folder *folder, uint64_t open_bytes)
{
	const struct window_folder_options *options = &folder->options;

	if (options->keep_windows && folder->account.windows > options->keep_windows)
		return true;
	return options->keep_bytes && folder->account.windows &&
	       folder->account.bytes + open_bytes > options->keep_bytes;
}

/* One that somebody else removed is gone all the same. */
static void remove_oldest(struct window_folder *folder)
{
	struct kept_window *oldest = &folder->windows.items[0];

	if (unlinkat(folder->fd, oldest->name, 0) == 0) {
		folder->account.removed++;
		folder->account.removed_bytes += oldest->bytes;
	}
	folder->account.windows--;
	folder->account.bytes -= oldest->bytes;
	free(oldest->name);
	folder->windows.count--;
	memmove(folder->windows.items, folder->windows.items + 1,
		folder->windows.count * sizeof(*folder->windows.items));
}

void window_folder_trim(struct window_folder *folder, uint64_t open_bytes)
{
	while (folder->windows.count && is_too_much(folder, open_bytes))
		remove_oldest(folder);
}

const struct window_folder_account *window_folder_account(const struct window_folder *folder)
{
	return &folder->account;
}

const char *window_folder_path(const struct window_folder *folder)
{
	return folder->path;
}
