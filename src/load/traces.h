/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What report, diff, import and chakra share: from the paths of a command line to traces. A path is
 * a Kineto file, a capture (recorded or imported), or a folder with one file for each rank.
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "load/trace_file.h"
#include "model/trace.h"

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
