/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files that are read as input: captures and traces. A process that reads what others may
 * have put there, as the workers of a server do, refuses symbolic links: between the listing of a
 * folder and the opening of its files somebody could put a link to another file in place of one.
 */
#pragma once

#include <dirent.h>

/* From now on, in this process and those that it forks, no path with a symbolic link is opened. */
void input_refuse_links(void);
/* As open(), with O_RDONLY, O_CLOEXEC and O_NOCTTY added. -1 and errno; ELOOP: a link. */
int input_open(const char *path, int flags);
/* As opendir(). NULL and errno. */
DIR *input_opendir(const char *path);
