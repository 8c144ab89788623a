/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written as it is made: a piece of it in memory, the rest beside its place, where
 * it is moved in the end, so that a failure leaves the file of before. Pipes and devices are
 * written to; "-" is standard output.
 */
#pragma once

#include <stdbool.h>

#include "base/errmsg.h"
#include "base/output_place.h"
#include "base/strbuf.h"

#define OUTPUT_FILE_FLUSH ((size_t)1 << 20)

struct output_file {
	struct strbuf out; /* append here, then output_file_keep_small() */
	uint64_t bytes;    /* written so far */
	int error;         /* the first error */
	char *path;        /* NULL: not open, what is appended stays in memory */
	struct output_place place;
};

/* Returns 0 or a negative errno with a sentence. */
int output_file_open(struct output_file *file, const char *path, struct errmsg *err);
/* Writes what is there. A failure is remembered until the end. */
void output_file_flush(struct output_file *file);
/* All is there, or a sentence that says why not. */
int output_file_close(struct output_file *file, struct errmsg *err);
/* Throws away what was written, unless it was closed before. */
void output_file_done(struct output_file *file);
#define _cleanup_output_file_ _cleanup_(output_file_done)

/* Between pieces: writes what is there once it is much. */
static inline void output_file_keep_small(struct output_file *file)
{
	if (file->out.length >= OUTPUT_FILE_FLUSH)
		output_file_flush(file);
}
