/* SPDX-License-Identifier: Apache-2.0 */
/* Files and descriptors: whole reads and writes, read-only mappings, cache directories, clocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/macros.h"
#include "base/strbuf.h"

void closep(int *fd);
void fclosep(FILE **file);
#define _cleanup_close_  _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* Writes all bytes, retrying short writes and EINTR. Returns 0 or a negative errno. */
int write_all(int fd, const void *bytes, size_t length);
/* Reads the whole file (also /proc files of unknown size), at most `max_bytes`; -EFBIG beyond. */
int read_whole_file(const char *path, size_t max_bytes, struct strbuf *ret_text);
/* From where the descriptor stands. */
int read_whole_fd(int fd, size_t max_bytes, struct strbuf *ret_text);
/* What stands behind the last slash; the path itself where nothing does. */
const char *path_base_name(const char *path);
/* mkdir -p. Returns 0 or a negative errno. */
int make_directories(const char *path, unsigned mode);
/* The same by a mkdirat() that returns 0 or a negative errno. */
int make_directories_by(
	const char *path, mode_t mode, int (*make)(int folder, const char *name, mode_t mode));
/*
 * Writes a file so that readers see either the old or the whole new one: a temporary file in the
 * same directory, then rename. Returns 0 or a negative errno.
 */
int write_file_atomically(const char *path, const void *bytes, size_t length);

/*
 * A read-only private mapping of a whole regular file; bytes is NULL for an empty file. Only for
 * files of our own: a mapping faults when somebody cuts the file.
 */
struct file_mapping {
	const unsigned char *bytes;
	size_t length;
};

int file_mapping_open(struct file_mapping *ret_mapping, const char *path, struct errmsg *err);
void file_mapping_done(struct file_mapping *mapping);
/* Appends a whole regular file, as long as it is when it is read. */
int read_regular_file(const char *path, struct strbuf *ret_text, struct errmsg *err);

/*
 * $XDG_CACHE_HOME/sonde/SUBDIRECTORY, or ~/.cache/sonde/…, made when missing (0700). Returns a
 * malloc'ed path, or NULL when there is no place to cache, which callers treat as "no cache". Root
 * has none in a folder that another user can change: where sudo left HOME at another user's, root's
 * own home has it.
 */
char *cache_directory(const char *subdirectory);
/* The same of $XDG_STATE_HOME/sonde, or ~/.local/state/sonde: what is to be kept. */
char *state_directory(void);

/* CLOCK_MONOTONIC, the one clock of every record. */
uint64_t monotonic_now_ns(void);
/* User and system time. */
uint64_t rusage_cpu_ns(const struct rusage *usage);
