/* SPDX-License-Identifier: Apache-2.0 */
/* What `sonde import` does with traces: see cli/import.c. */
#pragma once

#include "cli/command.h"

struct import_options {
	const char *output; /* NULL: beside each file */
	bool uncompressed;
	bool arguments; /* in words, for viewers */
};

/*
 * Writes one capture of all paths with an output, else one for each path. Says on standard error
 * what is in them. Returns 0 or a negative errno with a sentence.
 */
int import_traces(
	char *const *paths, size_t count, const struct import_options *options, struct errmsg *err);

/* "run.json.gz" becomes "run". */
struct strbuf;
void import_base_name(struct strbuf *path, const char *input);
/* "run.json.gz" becomes "run.pftrace", a folder "FOLDER.pftrace". Returns 0 or -ENOMEM. */
int import_default_output(struct strbuf *path, const char *input);
/* Fails when the output is the input. */
int import_refuse_same_file(const char *input, const char *output, struct errmsg *err);
/* Closes the capture, or after a failure throws it away. Returns 0, or the failure. */
struct capture_writer;
int import_close(struct capture_writer *writer, int result, struct errmsg *err);
