/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

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
