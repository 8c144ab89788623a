/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders that a person asked for. Behind sudo they are made with the rights of the user
 * who typed it, so that they are that user's; where those do not suffice, root makes them for
 * itself. So what goes to the user's own folder, or to /tmp, is the user's, and what goes to a
 * folder that only root can write in is root's.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Who typed sudo, as it tells root; false: this is not root behind sudo, or it was root. */
bool sudo_user(uid_t *ret_user, gid_t *ret_group);

/* openat() of a file that must not be there yet. Returns a descriptor or a negative errno. */
int new_file_at(int folder, const char *name, int flags, mode_t mode);
/* mkdirat(). Returns 0 or a negative errno, -EEXIST too. */
int new_folder_at(int folder, const char *name, mode_t mode);
/* mkdir -p. Returns 0 or a negative errno. */
int new_folders(const char *path, mode_t mode);

/* Does the file belong to the user who typed sudo? */
bool is_of_sudo_user(int fd);
/*
 * Calls call(context) with that user's rights: what that user could not do is not done. Returns
 * what it returns, 0 or a negative errno; -EPERM where nobody typed sudo. After -EPERM or -EACCES
 * it is called again with the rights of the user's groups.
 */
int as_sudo_user(int (*call)(void *context), void *context);
