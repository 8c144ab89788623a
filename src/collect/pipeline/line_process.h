/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines of many addresses, read in a child process. Debug information is foreign: libdw maps
 * it, unpacks it to any size and follows it for any time. The child may have so much memory and
 * time, and when a file ends it, that file is left out and another child goes on with the next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "symbols/lines.h"

#define LINE_PROCESS_DEPTH 32 /* inlined functions in one another that are asked for */

/* The addresses of one file: `count` from `first` on. */
struct line_file {
	uint32_t file; /* the caller's name for it */
	size_t first, count;
};

struct line_request {
	const struct line_file *files;
	size_t file_count;
	const uint64_t *addresses; /* virtual addresses in their files */
	/* In the child: opens the file; NULL when it has no lines. */
	struct line_table *(*open)(void *context, uint32_t file);
	/* In the caller's process: the chain at addresses[index], as of line_table_find(). */
	void (*found)(void *context, size_t index, const struct source_line *lines, size_t count);
	/* The path of a file for messages. */
	const char *(*name)(void *context, uint32_t file);
	void *context;
	uint64_t memory_bytes; /* what a child may have more than this process has */
	uint64_t deadline_ns;  /* of all files, CLOCK_MONOTONIC */
	/* Looked at several times a second; may be NULL. */
	bool (*given_up)(void *context);
	void *given_up_context;
};

struct line_account {
	uint64_t addresses_left_out; /* of files that were left out, and since the time was over */
	uint64_t files_left_out;     /* for a reason of their own */
	struct errmsg example;       /* "source lines of X were left out: why" of the first */
};

/* Blocks until all is read, the deadline, or given up. Returns 0, or -errno when no child starts.
 */
int line_process_run(const struct line_request *request, struct line_account *ret_account);
