/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files whose paths another user chose. Root records the programs of other users, who name
 * the files that it reads: perf maps, debug files, what they map. Each is opened in the process's
 * root and mount namespace, with the rights of the process's user, and only if it is a regular
 * file: nothing that the user could not have read, and no device, FIFO or socket, is ever opened.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/macros.h"

#define PROCESS_VIEW_GROUPS 32

/* Which files of a process are looked at, and with whose rights. */
struct process_view {
	int root;   /* O_PATH; -1: our own root */
	int mounts; /* keeps what is mounted below `root` there when the process ends; -1 */
	/* Whose rights: never root's where the process also runs as somebody else. */
	uid_t user;
	gid_t group;
	gid_t groups[PROCESS_VIEW_GROUPS]; /* further ones are left out: fewer rights */
	unsigned group_count;
	uint32_t inner_pid; /* the process's id in its own PID namespace */
};

/*
 * Returns 0, -ENOENT when the process is gone, or another negative errno. Where the process's root
 * may not be looked at, and where it is ours, the view has our root.
 */
int process_view_open(struct process_view *ret_view, uint32_t pid);
/* Our own root and rights. Needs no process_view_done(). */
struct process_view process_view_own(void);
/* Our own root, and the rights of somebody who owns nothing. Needs no process_view_done(). */
struct process_view process_view_nobody(void);
void process_view_done(struct process_view *view);

enum process_view_links {
	PROCESS_VIEW_NO_LINKS,
	PROCESS_VIEW_LINKS, /* symbolic links are followed, never out of the root */
};

/*
 * Finds the file at an absolute path of the view, without opening it. Returns an O_PATH descriptor;
 * -ELOOP for a symbolic link, or another negative errno.
 */
int process_view_find(const struct process_view *view, const char *path,
	enum process_view_links links, struct stat *ret_status);
/*
 * Opens for reading what process_view_find() found, with the view's rights. -EINVAL when it is not
 * a regular file, and -EAGAIN when its owner holds a lease on it.
 */
int process_view_open_found(const struct process_view *view, int found);
/* Both in one. `ret_status` may be NULL. */
int process_view_open_file(const struct process_view *view, const char *path,
	enum process_view_links links, struct stat *ret_status);

/*
 * Opens a file of the kernel's naming (/proc/PID/map_files/…, /proc/self/fd/N) with our own rights,
 * if it is a regular file; else -EINVAL.
 */
int open_regular_file(const char *path, struct stat *ret_status);
