/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files of sysfs: a number or a word each. They are the kernel's, so links are followed;
 * what they hold is checked all the same, since a driver may give text for a number.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/macros.h"

#define SYSFS_PATH_MAX 512

/* ROOT/FORMAT…; -ENAMETOOLONG. */
int sysfs_path(char path[SYSFS_PATH_MAX], const char *root, const char *format, ...) _printf_(3, 4);
/* The first line without its end. Returns 0 or a negative errno. */
int sysfs_read_text(const char *path, char *text, size_t size);
int sysfs_read_u64(const char *path, uint64_t *ret_value);
/* Opens for sysfs_reread(). Returns a descriptor or a negative errno. */
int sysfs_open(const char *path);
/* The number in an open file as it is now: -EINVAL when it is none, -ENODATA when it is empty. */
int sysfs_reread(int fd, int64_t *ret_value);
int sysfs_reread_text(int fd, char *text, size_t size);

/* Names in a folder that begin with the prefix, in order; digits count as numbers. */
struct sysfs_names {
	char (*items)[64];
	unsigned count;
};

int sysfs_list(const char *folder, const char *prefix, struct sysfs_names *ret_names);
void sysfs_names_done(struct sysfs_names *names);
#define _cleanup_sysfs_names_ _cleanup_(sysfs_names_done)
