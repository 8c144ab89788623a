/* SPDX-License-Identifier: Apache-2.0 */
#include "base/new_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_rights.h"

#define GROUPS_MAX     256
#define PASSWORD_BYTES 16384

/* ---- who typed sudo ---- */

/* A user's or group's number in decimal digits; -1 stands for none. */
static bool read_id(const char *variable, uid_t *ret_id)
{
	const char *text = getenv(variable);
	unsigned long long id;
	char *end;

	if (!text || !isdigit((unsigned char)*text) || strlen(text) > 10)
		return false;
	id = strtoull(text, &end, 10);
	if (*end || id >= (uid_t)-1)
		return false;
	*ret_id = (uid_t)id;
	return true;
}

bool sudo_user(uid_t *ret_user, gid_t *ret_group)
{
	return geteuid() == 0 && read_id("SUDO_UID", ret_user) && *ret_user != 0 &&
	       read_id("SUDO_GID", ret_group);
}

/* ---- as that user ---- */

struct request {
	int folder;
	const char *name;
	int flags;
	mode_t mode;
	bool is_folder;
};

static int make(void *context)
{
	const struct request *request = context;
	int r = request->is_folder
			? mkdirat(request->folder, request->name, request->mode)
			: openat(request->folder, request->name,
				  request->flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				  request->mode);

	return r < 0 ? -errno : r;
}

static bool is_refused(int result)
{
	return result == -EACCES || result == -EPERM;
}

static int call_with(const struct file_rights *rights, int (*call)(void *context), void *context)
{
	struct own_rights own;
	int r = file_rights_take(rights, &own);

	if (r < 0)
		return -EPERM;
	r = call(context);
	file_rights_restore(&own);
	return r;
}

/* All groups that the user is in, as the system's tables say. */
static size_t groups_of(uid_t user, gid_t group, gid_t groups[static GROUPS_MAX])
{
	struct passwd entry, *found = NULL;
	char text[PASSWORD_BYTES];
	int count = GROUPS_MAX;

	if (getpwuid_r(user, &entry, text, sizeof(text), &found) != 0 || !found)
		return 0;
	return getgrouplist(found->pw_name, group, groups, &count) < 0 ? 0 : (size_t)count;
}

/* The tables of groups, which may be on another machine, are read only if they are needed. */
int as_sudo_user(int (*call)(void *context), void *context)
{
	struct file_rights rights = {0};
	gid_t groups[GROUPS_MAX];
	int r;

	if (!sudo_user(&rights.user, &rights.group))
		return -EPERM;
	r = call_with(&rights, call, context);
	if (!is_refused(r))
		return r;
	rights.group_count = groups_of(rights.user, rights.group, groups);
	rights.groups = groups;
	return rights.group_count ? call_with(&rights, call, context) : r;
}

static int make_for_user(struct request *request)
{
	int r = as_sudo_user(make, request);

	return is_refused(r) ? make(request) : r;
}

int new_file_at(int folder, const char *name, int flags, mode_t mode)
{
	struct request request = {.folder = folder, .name = name, .flags = flags, .mode = mode};

	return make_for_user(&request);
}

int new_folder_at(int folder, const char *name, mode_t mode)
{
	struct request request = {.folder = folder, .name = name, .mode = mode, .is_folder = true};

	return make_for_user(&request);
}

int new_folders(const char *path, mode_t mode)
{
	return make_directories_by(path, mode, new_folder_at);
}

bool is_of_sudo_user(int fd)
{
	struct stat status;
	uid_t user;
	gid_t group;

	return sudo_user(&user, &group) && fstat(fd, &status) == 0 && status.st_uid == user;
}
