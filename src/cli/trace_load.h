/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What report, diff, import and chakra share: from the paths of a command line to traces. A path is
 * a Kineto file, a capture (recorded or imported), or a folder with one file for each rank.
 */
#pragma once

#include "cli/command.h"
#include "model/trace.h"

/* What a file is, by how it begins. */
enum trace_file {
	TRACE_FILE_OTHER,     /* cannot be read: readers of captures say what is wrong */
	TRACE_FILE_TEXT,      /* none of the others */
	TRACE_FILE_KINETO,    /* JSON with trace events, plain or compressed */
	TRACE_FILE_EXECUTION, /* JSON with the nodes of an execution trace */
	TRACE_FILE_IMPORTED,  /* a capture that traces were imported into */
	TRACE_FILE_CAPTURE,   /* any other capture */
	TRACE_FILE_FOLDER,
};

enum trace_file trace_file_of(const char *path);

/*
 * Is it for the report of traces, and not for the report of recordings? Execution traces are for
 * neither: load_traces() says what to do with them.
 */
static inline bool trace_file_is_trace(enum trace_file file)
{
	return file == TRACE_FILE_KINETO || file == TRACE_FILE_IMPORTED ||
	       file == TRACE_FILE_FOLDER || file == TRACE_FILE_EXECUTION;
}

struct trace_load_options {
	bool keep_arguments; /* also those that no analysis needs: for importing and exporting */
};

struct trace_list {
	ARRAY_OF(struct trace *) items;
};

void trace_list_done(struct trace_list *list);
#define _cleanup_trace_list_ _cleanup_(trace_list_done)

/*
 * Loads the traces of all paths, ordered by rank where all of them say theirs, else by path. With a
 * bar on a terminal. Warns of what is damaged, of ranks that come twice and of ranks that are
 * missing. `options` may be NULL. Returns 0 or a negative errno with a sentence; then the list is
 * empty.
 */
int load_traces(const char *const *paths, size_t count, const struct trace_load_options *options,
	struct trace_list *ret_list, struct errmsg *err);
