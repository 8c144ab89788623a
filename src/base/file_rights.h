/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose rights the kernel looks at when this thread opens or makes a file. Root takes those of a
 * user for a while: what the user could not open stays closed, and what is made is the user's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct file_rights {
	uid_t user;
	gid_t group;
	const gid_t *groups;
	size_t group_count;
};

/* What the thread had before. */
struct own_rights {
	bool is_switched; /* false: nothing was changed */
	gid_t group;
	gid_t groups[1024];
	int group_count;
};

/*
 * Of the calling thread alone, until file_rights_restore(), which comes first of all after the call
 * that they are for. Does nothing where this is not root, or the rights are root's. Returns 0, or a
 * negative errno when nothing was changed: -EPERM where a container forbids it.
 */
int file_rights_take(const struct file_rights *rights, struct own_rights *ret_own);
/* Leaves errno as it is. */
void file_rights_restore(const struct own_rights *own);
