/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder that a continuous recording writes to: a file for each window,
 * HOST-TIME-NUMBER.pftrace, while it is written HOST-TIME-NUMBER.open.pftrace. Numbers go up,
 * whatever the clock does; the oldest files go when there are too many. One recorder at a time has
 * the folder. Links in it are left alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

#define WINDOW_EXTENSION      ".pftrace"
#define WINDOW_OPEN_EXTENSION ".open.pftrace"
/* Of the folder, held by its recorder. */
#define WINDOW_FOLDER_LOCK ".sonde-lock"

struct window_folder;

struct window_folder_options {
	size_t size; /* sizeof(struct window_folder_options) */
	const char *path;
	uint64_t keep_bytes, keep_windows; /* one of them; 0: without limit */
};

struct window_folder_account {
	uint64_t windows, bytes; /* that are there */
	uint64_t removed, removed_bytes;
	uint64_t recovered; /* that a recorder which was killed had not finished */
};

/* Makes the folder when it is missing. Returns 0 or an errno with a sentence. */
int window_folder_open(struct window_folder **ret_folder,
	const struct window_folder_options *options, struct errmsg *err);
struct window_folder *window_folder_free(struct window_folder *folder);
/*
 * The path of a new window, malloc'ed. A folder that vanished and came back is taken again. Returns
 * 0 or an errno with a sentence.
 */
int window_folder_next(struct window_folder *folder, uint64_t begin_realtime_ns, char **ret_path,
	struct errmsg *err);
/*
 * The window of this path is complete, or holds what it could get: it gets its name, malloc'ed, or
 * NULL when there is no such file. Returns 0 or an errno with a sentence.
 */
int window_folder_finish(
	struct window_folder *folder, const char *path, char **ret_name, struct errmsg *err);
/* Removes the oldest windows that are too many, beside open ones of so many bytes. */
void window_folder_trim(struct window_folder *folder, uint64_t open_bytes);
const struct window_folder_account *window_folder_account(const struct window_folder *folder);
const char *window_folder_path(const struct window_folder *folder);

/* Is this the name of a complete window? *ret_number: what they are in order by. */
bool window_name_parse(const char *name, uint64_t *ret_number);
/* "500", "20G": windows, or bytes. Returns 0 or -EINVAL with a sentence. */
int window_keep_parse(
	const char *text, uint64_t *ret_bytes, uint64_t *ret_windows, struct errmsg *err);
