/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The captures and traces that a server offers: those of its command line, and those in the folder
 * that it was given. A request names one by an id that is made here, never by a path.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

#define CAPTURE_ID_BYTES 17
/* Of a folder; more are not listed, and the server warns. */
#define CAPTURES_MAX 10000

/* Which bytes a path stands for: another one after the file was written again. */
struct capture_identity {
	uint64_t device, inode, size;
	int64_t modified_ns, changed_ns;
};

struct capture {
	char id[CAPTURE_ID_BYTES];
	char *path, *name;
	char **paths; /* of all its files; the first one is `path` */
	size_t path_count;
	bool is_folder; /* of a file for each rank, or several files */
	bool is_gone;   /* since the folder was last read */
	bool is_listed; /* of a folder, in which others may write: no link is followed */
	struct capture_identity identity;
};

struct captures;

/*
 * `lists_folder`: `path` is a folder, whose files are the captures, and whose folders are captures
 * of several ranks; it is read again when it is asked. Else `path` is one capture. NULL is none.
 * Returns 0 or a negative errno with a sentence.
 */
int captures_open(
	struct captures **ret_captures, const char *path, bool lists_folder, struct errmsg *err);
/* These files are one capture with the only one that there is, under the names of all. Returns 0 or
 * a negative errno with a sentence. */
int captures_join(
	struct captures *captures, const char *const *paths, size_t count, struct errmsg *err);
struct captures *captures_close(struct captures *captures);

/* Looks again, at most once a second of `now_ns`. */
void captures_refresh(struct captures *captures, uint64_t now_ns);
/* At once. */
void captures_refresh_now(struct captures *captures);
/* In order of their names. Pointers stay until captures_close(). */
size_t captures_count(const struct captures *captures);
struct capture *captures_get(const struct captures *captures, size_t index);
/* NULL: there is none, or no longer. */
struct capture *captures_find(const struct captures *captures, const char *id);
/* The file of this name in the folder. NULL: it was not there when the folder was read. */
struct capture *captures_find_name(const struct captures *captures, const char *name);
/* What is there now. Returns 0 or a negative errno. */
int capture_identify(const struct capture *capture, struct capture_identity *ret_identity);
/* A capture by name and path of the file; -1 and errno. No link is followed, no device opened. */
int capture_open_file(const struct capture *capture);

static inline bool capture_identity_equals(
	const struct capture_identity *left, const struct capture_identity *right)
{
	return left->device == right->device && left->inode == right->inode &&
	       left->size == right->size && left->modified_ns == right->modified_ns &&
	       left->changed_ns == right->changed_ns;
}

static inline bool capture_identity_same_file(
	const struct capture_identity *left, const struct capture_identity *right)
{
	return left->device == right->device && left->inode == right->inode;
}

/* Was the file only made longer? */
static inline bool capture_identity_grows(
	const struct capture_identity *before, const struct capture_identity *now)
{
	return capture_identity_same_file(before, now) && now->size > before->size;
}

/* A number for a capture as it is; another one when it changes. */
uint64_t capture_version(const struct capture_identity *identity);
