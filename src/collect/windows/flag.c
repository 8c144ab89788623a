/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/windows/flag.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/new_file.h"

#define FOLDER_EVENTS                                                                              \
	(IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB | IN_DELETE_SELF |        \
		IN_MOVE_SELF | IN_ONLYDIR)

struct window_flag {
	char path[PATH_MAX];
	char watched[PATH_MAX]; /* the folder, or the next one above it that is there; "": none */
	int watch_fd, watch;
	bool is_missing_reported, is_foreign_reported;
};

/* Under sudo the flag may be of who called it: the program to record often is. */
static bool is_trusted(uid_t owner)
{
	uid_t caller;
	gid_t group;

	if (owner == 0 || owner == geteuid() || owner == getuid())
		return true;
	return sudo_user(&caller, &group) && owner == caller;
}

/* "/a/b" → "/a", "/a" → "/"; false at the root. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || strcmp(path, "/") == 0)
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* Watches the nearest folder that is there. Events that came before it was watched are nobody's. */
static bool watch_folder(struct window_flag *flag)
{
	char folder[PATH_MAX];
	int watch = -1;

	memcpy(folder, flag->path, sizeof(folder));
	while (watch < 0 && cut_last(folder))
		watch = inotify_add_watch(flag->watch_fd, folder, FOLDER_EVENTS);
	if (watch < 0 || (watch == flag->watch && strcmp(folder, flag->watched) == 0))
		return false;
	if (flag->watch >= 0 && flag->watch != watch)
		inotify_rm_watch(flag->watch_fd, flag->watch);
	flag->watch = watch;
	memcpy(flag->watched, folder, sizeof(folder));
	return true;
}

static bool is_folder_watched(const struct window_flag *flag)
{
	char folder[PATH_MAX];

	memcpy(folder, flag->path, sizeof(folder));
	cut_last(folder);
	return strcmp(folder, flag->watched) == 0;
}

int window_flag_open(struct window_flag **ret_flag, const char *path, struct errmsg *err)
{
	struct window_flag *flag = calloc(1, sizeof(*flag));
	char here[PATH_MAX];
	int result = 0;

	if (!flag)
		return -ENOMEM;
	flag->watch = flag->watch_fd = -1;
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		result = errmsg_set(err, -errno, "cannot find the folder of --window flag:%s: %s",
			path, strerror(errno));
	else if ((size_t)snprintf(flag->path, sizeof(flag->path), "%s%s%s",
			 path[0] == '/' ? "" : here, path[0] == '/' ? "" : "/",
			 path) >= sizeof(flag->path))
		result = errmsg_set(err, -ENAMETOOLONG,
			"the path of --window flag:%.60s… is too long; give a shorter one", path);
	if (result == 0) {
		flag->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (flag->watch_fd < 0)
			result = errmsg_set(err, -errno,
				"cannot watch for the flag %s: %s; raise "
				"fs.inotify.max_user_instances",
				path, strerror(errno));
	}
	if (result < 0) {
		window_flag_free(flag);
		return result;
	}
	*ret_flag = flag;
	return 0;
}

struct window_flag *window_flag_free(struct window_flag *flag)
{
	if (!flag)
		return NULL;
	closep(&flag->watch_fd);
	free(flag);
	return NULL;
}

int window_flag_descriptor(const struct window_flag *flag)
{
	return flag->watch_fd;
}

/* Whatever the events were: what counts is what is there now. */
static void read_events(struct window_flag *flag)
{
	char events[4096];

	while (read(flag->watch_fd, events, sizeof(events)) > 0)
		;
	/* A folder that was made while we looked further up is found by looking again. */
	while (watch_folder(flag))
		;
}

static void say_missing(struct window_flag *flag, struct errmsg *ret_note)
{
	if (is_folder_watched(flag) || flag->is_missing_reported)
		return;
	flag->is_missing_reported = true;
	errmsg_set(ret_note, 0,
		"the folder of the flag %s does not exist yet: waiting for it below %s", flag->path,
		flag->watched);
}

bool window_flag_is_up(struct window_flag *flag, struct errmsg *ret_note)
{
	struct stat status;

	read_events(flag);
	say_missing(flag, ret_note);
	if (lstat(flag->path, &status) < 0)
		return false;
	if (is_trusted(status.st_uid))
		return true;
	if (!flag->is_foreign_reported)
		errmsg_set(ret_note, 0,
			"the flag %s is owned by user %u, who may not open windows here: remove it "
			"and create it as user %u or root",
			flag->path, (unsigned)status.st_uid, (unsigned)geteuid());
	flag->is_foreign_reported = true;
	return false;
}
