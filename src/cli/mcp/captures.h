/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings and traces that an assistant may ask about: those that the command line names. */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "load/trace_file.h"

struct mcp_capture {
	char *path;
	enum trace_file file;
	uint64_t bytes;
	int64_t modified_s; /* since 1970 */
};

struct mcp_captures {
	ARRAY_OF(struct mcp_capture) items;
};

/*
 * Looks at the paths: files, and in folders the regular files that are captures or traces, by name;
 * at most MCP_CAPTURES_MAX. Later files of a folder are found by looking again. Returns 0 or
 * -ENOMEM.
 */
#define MCP_CAPTURES_MAX 1000
int mcp_captures_find(struct mcp_captures *captures, const char *const *paths, size_t count);
void mcp_captures_done(struct mcp_captures *captures);
#define _cleanup_mcp_captures_ _cleanup_(mcp_captures_done)

/*
 * The one of this path; NULL: the only one there is. -EINVAL with a sentence where there is none,
 * or several and none was named.
 */
int mcp_captures_choose(const struct mcp_captures *captures, const char *path,
	const char **ret_path, struct errmsg *err);
