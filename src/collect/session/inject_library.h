/* SPDX-License-Identifier: Apache-2.0 */
/* Where libsonde-inject.so is. */
#pragma once

#define INJECT_LIBRARY "libsonde-inject.so"

/*
 * Beside the program, where it is installed, or in the build folder. Returns 0 and a path to free,
 * or a negative errno.
 */
int inject_library_find(char **ret_path);
