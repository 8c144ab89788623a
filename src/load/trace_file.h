/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of file a path is: load.h and the commands ask it first. It looks at how the file
 * begins, and asks the importers (importer_of() of importers/importer.h) whose it is.
 */
#pragma once

#include <stdbool.h>

/* What a file is, by how it begins. */
enum trace_file {
	TRACE_FILE_OTHER,    /* cannot be read: readers of captures say what is wrong */
	TRACE_FILE_FOREIGN,  /* another tool's trace: its importer reads it, or says why not */
	TRACE_FILE_LOG,      /* another tool's log: its importer makes a capture of it */
	TRACE_FILE_IMPORTED, /* a capture that traces were imported into */
	TRACE_FILE_CAPTURE,  /* any other capture */
	TRACE_FILE_FOLDER,
};

struct importer;

/* `ret_importer`: whose file it is, of TRACE_FILE_FOREIGN and TRACE_FILE_LOG; of others NULL. */
enum trace_file trace_file_identify(const char *path, const struct importer **ret_importer);

static inline enum trace_file trace_file_of(const char *path)
{
	const struct importer *importer;

	return trace_file_identify(path, &importer);
}

/* Will load_model() make a model of rows alone of it, or say why it cannot? */
static inline bool trace_file_is_trace(enum trace_file file)
{
	return file == TRACE_FILE_FOREIGN || file == TRACE_FILE_IMPORTED ||
	       file == TRACE_FILE_FOLDER;
}
