/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command reads that was given no file: the capture of the default name, or, where a job of
 * several ranks recorded last in this folder, the captures of its ranks (record/output_name.h).
 */
#pragma once

/*
 * Paths, ended by NULL, as long as the process lives; none: there are none. Says on standard error
 * where it chose those of ranks. `single` is the default name.
 */
char **default_captures(const char *single, int *ret_count);
