/* SPDX-License-Identifier: Apache-2.0 */
/* The captures of commands, as they lie in the served folder: COMMAND-YYYYMMDD-HHMMSS.pftrace. */
#pragma once

#include <stdint.h>

#define JOB_FILE_BYTES 128

/* A name that no file of the folder has. Returns 0 or a negative errno. */
int job_file_name(
	const char *folder, const char *command, int64_t unix_s, char ret_name[JOB_FILE_BYTES]);
/* Removes captures of the command but the `keep` latest. Not those of other commands, nor links. */
void job_files_trim(const char *folder, const char *command, uint64_t keep);
