/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_rights.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

/*
 * These system calls change the calling thread alone, where those of libc change all. Leaving root
 * takes the capabilities that override permissions from the thread, and returning gives them back.
 */
static uid_t set_file_user(uid_t user)
{
	return (uid_t)syscall(SYS_setfsuid, user);
}

static gid_t set_file_group(gid_t group)
{
	return (gid_t)syscall(SYS_setfsgid, group);
}

static int set_groups(const gid_t *groups, size_t count)
{
	return syscall(SYS_setgroups, count, groups) < 0 ? -errno : 0;
}

void file_rights_restore(const struct own_rights *own)
{
	int error = errno;

	if (!own->is_switched)
		return;
	set_file_user(0);
	set_file_group(own->group);
	/* It worked a moment ago. */
	set_groups(own->groups, (size_t)own->group_count);
	errno = error;
}

/* Only root has rights to lay down: what others record with are their own. */
int file_rights_take(const struct file_rights *rights, struct own_rights *ret_own)
{
	struct own_rights *own = ret_own;
	int r;

	own->is_switched = false;
	if (geteuid() != 0 || rights->user == 0)
		return 0;
	own->group_count = getgroups((int)ARRAY_SIZE(own->groups), own->groups);
	if (own->group_count < 0)
		return -errno;
	own->group = getegid();
	r = set_groups(rights->groups, rights->group_count);
	if (r < 0)
		return r;
	own->is_switched = true;
	set_file_group(rights->group);
	set_file_user(rights->user);
	/* They say nothing of a failure, such as an id that this user namespace lacks. */
	if (set_file_user((uid_t)-1) == rights->user && set_file_group((gid_t)-1) == rights->group)
		return 0;
	file_rights_restore(own);
	own->is_switched = false;
	return -EPERM;
}
