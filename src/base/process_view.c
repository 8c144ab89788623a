/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_rights.h"
#include "base/strbuf.h"

#define STATUS_MAX_BYTES (1 << 20)
#define OVERFLOW_USER    65534 /* "nobody", and who stands for ids that a namespace lacks */
#define READ_FLAGS       (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* ---- Who the process is ---- */

/* The numbers behind "KEY:" in the text of /proc/PID/status: the count stored, at most `capacity`.
 */
static size_t status_numbers(const char *text, const char *key, uint32_t *ret, size_t capacity)
{
	const char *at = strstr(text, key), *end;
	size_t count = 0;

	if (!at)
		return 0;
	at += strlen(key);
	end = at + strcspn(at, "\n");
	while (at < end && count < capacity) {
		char *next;
		unsigned long value = strtoul(at, &next, 10);

		if (next == at || next > end)
			break;
		ret[count++] = (uint32_t)value;
		at = next;
	}
	return count;
}

/*
 * Of real, effective, saved and file system id the first that is not root's. A set-uid program runs
 * as root, but another user started it and chose what it reads: that user's rights count.
 */
static uint32_t least_trusted(const uint32_t ids[4])
{
	for (size_t i = 0; i < 4; i++) {
		if (ids[i] != 0)
			return ids[i];
	}
	return 0;
}

static int read_identity(struct process_view *view, int process)
{
	_cleanup_close_ int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t users[4], groups[4], pids[32];
	size_t pid_count;
	int result;

	if (fd < 0)
		return -errno;
	result = read_whole_fd(fd, STATUS_MAX_BYTES, &text);
	if (result < 0)
		return result;
	if (status_numbers(strbuf_cstr(&text), "\nUid:", users, ARRAY_SIZE(users)) < 4 ||
		status_numbers(strbuf_cstr(&text), "\nGid:", groups, ARRAY_SIZE(groups)) < 4)
		return -EINVAL;
	view->user = least_trusted(users);
	view->group = least_trusted(groups);
	view->group_count = (unsigned)status_numbers(
		strbuf_cstr(&text), "\nGroups:", view->groups, ARRAY_SIZE(view->groups));
	pid_count = status_numbers(strbuf_cstr(&text), "\nNSpid:", pids, ARRAY_SIZE(pids));
	if (pid_count)
		view->inner_pid = pids[pid_count - 1];
	return 0;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Leaves the view with our root where the process has the same, or may not be looked at. */
static void open_root(struct process_view *view, int process)
{
	_cleanup_close_ int mounts = openat(process, "ns/mnt", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat own_root, own_mounts, its_root, its_mounts;

	if (root < 0 || mounts < 0 || fstat(root, &its_root) < 0 || fstat(mounts, &its_mounts) < 0)
		return;
	if (stat("/", &own_root) == 0 && stat("/proc/self/ns/mnt", &own_mounts) == 0 &&
		is_same_inode(&own_root, &its_root) && is_same_inode(&own_mounts, &its_mounts))
		return;
	view->root = TAKE_FD(root);
	view->mounts = TAKE_FD(mounts);
}

int process_view_open(struct process_view *ret_view, uint32_t pid)
{
	struct process_view view = {.root = -1, .mounts = -1, .inner_pid = pid};
	_cleanup_close_ int process = -1;
	char path[32];
	int result;

	/* One handle for both: ids and root are of one process, whatever becomes of its id. */
	snprintf(path, sizeof(path), "/proc/%u", pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return -errno;
	open_root(&view, process);
	result = read_identity(&view, process);
	if (result < 0) {
		process_view_done(&view);
		return result == -ESRCH ? -ENOENT : result;
	}
	*ret_view = view;
	return 0;
}

struct process_view process_view_own(void)
{
	return (struct process_view){
		.root = -1,
		.mounts = -1,
		.user = geteuid(),
		.group = getegid(),
		.inner_pid = (uint32_t)getpid(),
	};
}

struct process_view process_view_nobody(void)
{
	return (struct process_view){
		.root = -1, .mounts = -1, .user = OVERFLOW_USER, .group = OVERFLOW_USER};
}

void process_view_done(struct process_view *view)
{
	closep(&view->root);
	closep(&view->mounts);
}

/* ---- Its rights ---- */

static int rights_take(const struct process_view *view, struct own_rights *ret_own)
{
	const struct file_rights rights = {
		.user = view->user,
		.group = view->group,
		.groups = view->groups,
		.group_count = view->group_count,
	};

	return file_rights_take(&rights, ret_own);
}

/* ---- Finding and opening ---- */

/*
 * Before Linux 5.6, and where a container's filter lacks openat2: each component by itself. Links
 * are not followed, whatever the caller would have.
 */
static int walk(int root, const char *path)
{
	_cleanup_close_ int folder = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char component[NAME_MAX + 1];

	while (folder >= 0) {
		struct stat status;
		size_t length;
		int next;

		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (length == 0)
			return TAKE_FD(folder);
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(component, path, length);
		component[length] = '\0';
		if (strcmp(component, "..") == 0)
			return -ELOOP;
		next = openat(folder, component, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(folder);
		folder = next;
		if (fstat(folder, &status) < 0)
			return -errno;
		if (S_ISLNK(status.st_mode))
			return -ELOOP;
		path += length;
	}
	return -errno;
}

static int resolve(int root, const char *path, enum process_view_links links)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
			   (links == PROCESS_VIEW_LINKS ? 0 : RESOLVE_NO_SYMLINKS),
	};
	int found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (found < 0 && (errno == ENOSYS || errno == EPERM))
		return walk(root, path);
	return found < 0 ? -errno : found;
}

int process_view_find(const struct process_view *view, const char *path,
	enum process_view_links links, struct stat *ret_status)
{
	_cleanup_close_ int own_root = -1, found = -1;
	struct own_rights own;
	int result;

	if (view->root < 0) {
		own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (own_root < 0)
			return -errno;
	}
	result = rights_take(view, &own);
	if (result < 0)
		return result;
	found = resolve(view->root < 0 ? own_root : view->root, path, links);
	file_rights_restore(&own);
	if (found >= 0 && fstat(found, ret_status) < 0)
		return -errno;
	return TAKE_FD(found);
}

int process_view_open_found(const struct process_view *view, int found)
{
	struct own_rights own;
	struct stat status;
	char path[32];
	int result, fd;

	if (fstat(found, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	result = rights_take(view, &own);
	if (result < 0)
		return result;
	fd = open(path, READ_FLAGS);
	result = fd < 0 ? -errno : fd;
	file_rights_restore(&own);
	return result;
}

int process_view_open_file(const struct process_view *view, const char *path,
	enum process_view_links links, struct stat *ret_status)
{
	struct stat status;
	_cleanup_close_ int found =
		process_view_find(view, path, links, ret_status ? ret_status : &status);

	return found < 0 ? found : process_view_open_found(view, found);
}

int open_regular_file(const char *path, struct stat *ret_status)
{
	const struct process_view own = process_view_own();
	_cleanup_close_ int found = open(path, O_PATH | O_CLOEXEC);

	if (found < 0 || fstat(found, ret_status) < 0)
		return -errno;
	return process_view_open_found(&own, found);
}
