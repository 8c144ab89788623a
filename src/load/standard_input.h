/* SPDX-License-Identifier: Apache-2.0 */
/* "-" among the paths of a command line. */
#pragma once

/*
 * The path itself; of "-" one of standard input, which can be opened, and read from its beginning,
 * more than once. What comes through a pipe is kept in memory for that, by the first call, which
 * returns when all of it is there.
 */
const char *load_path(const char *path);
