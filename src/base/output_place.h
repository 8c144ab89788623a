/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place that output goes to, when others may write in the folder. A file is always a new one:
 * it is made beside its place under a temporary name and renamed, so that it never goes into a file
 * or through a link that was there before. No folder on the way may be a link of another user.
 *
 * A capture replaces what had its name when it was opened, and nothing that came later: with
 * `keeps_others` the file then gets another name, "run.2.pftrace". So does one whose name is that
 * of a file which another place with `keeps_others` still writes: each is locked (flock()) as long
 * as its descriptor is open.
 *
 * Pipes and devices are written in place, pipes of other users excepted. "-", /dev/stdout,
 * /dev/stderr, /dev/fd/N and /proc/self/fd/N are the descriptors that this process has.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/errmsg.h"

enum output_access {
	OUTPUT_PRIVATE,  /* 0600 */
	OUTPUT_BY_UMASK, /* the mode of the file before, if it was the user's own */
	OUTPUT_GROUP,    /* 0640, and output_how.group */
};

struct output_how {
	enum output_access access;
	gid_t group;
	bool make_folders;  /* those on the way that are missing */
	bool keeps_others;  /* see above */
	bool keep_previous; /* what is replaced stays as NAME.old; with keeps_others */
};

struct output_place {
	int fd;             /* to write to */
	int folder;         /* that the file is renamed in; -1: it is written in place */
	char *name;         /* in the folder */
	char *temporary;    /* NULL: it has its name */
	bool is_sudo_users; /* and gets its name with that user's rights */
	bool keeps_others, keep_previous;
	bool is_another; /* its name is not the one that was asked for */
	/* What had the name at the beginning; an inode of 0: nothing that may be replaced. */
	dev_t device;
	ino_t inode;
};

#define OUTPUT_PLACE_NONE ((struct output_place){.fd = -1, .folder = -1})

/* Returns 0 or a negative errno; `err` gets the reason, without path or remedy. */
int output_place_open(struct output_place *ret_place, const char *path,
	const struct output_how *how, struct errmsg *reason);
/* Gives the file its name, in place of what had it; see `is_another`. May be called again. */
int output_place_name(struct output_place *place);
/* All is written: closes the descriptor, then names the file. */
int output_place_close(struct output_place *place);
/* All of these at once: the file has these bytes, or is the one before. As output_place_open(). */
int output_place_write(const char *path, const struct output_how *how, const void *bytes,
	size_t length, struct errmsg *reason);
/* Closes; a file that has no name yet is removed. */
void output_place_done(struct output_place *place);
#define _cleanup_output_place_ _cleanup_(output_place_done)

/* What to try after an error: "make the folder first". */
const char *output_remedy(int error);
