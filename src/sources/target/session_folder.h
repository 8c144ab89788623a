/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which a session's gate and the rings of its processes are. */
#pragma once

#include <stddef.h>

#include "base/errmsg.h"

/*
 * In memory, not on a disk, and this user's alone; folders that killed sessions left are removed.
 * Returns 0 or a negative errno; the descriptor is the caller's.
 */
int session_folder_make(char *ret_path, size_t size, int *ret_fd, struct errmsg *err);
/* With whatever is in it: processes may have made more than we looked at, folders as well. */
void session_folder_remove(const char *path, int fd);
