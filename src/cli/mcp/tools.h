/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an assistant can ask. To add a tool: its function and its line in the table of tools.c, a
 * test in tests/e2e/test_mcp.py, docs/mcp.md.
 */
#pragma once

#include "base/json_reader.h"
#include "cli/mcp/captures.h"
#include "query/options.h"

/* Arguments besides those of query_keys. */
enum mcp_argument {
	MCP_CAPTURE,
	MCP_BEFORE,
	MCP_AFTER,
	MCP_TEXT,
	MCP_FORMAT,
	MCP_DIFF_BY,
	MCP_ARGUMENT_MAX,
};

/* A call of a tool, with what was asked for. */
struct mcp_call {
	const struct mcp_tool *tool;
	const struct mcp_captures *captures;
	struct query_options options;      /* initialised with QUERY_OPTIONS_DEFAULT */
	char *arguments[MCP_ARGUMENT_MAX]; /* NULL: not given */
};

struct mcp_tool {
	const char *name, *description;
	unsigned keys;      /* enum query_key_use, bits: those of query_keys that it takes */
	unsigned arguments; /* enum mcp_argument, 1 << each */
	unsigned required;  /* of these */
	/* Appends the answer. Returns 0 or a negative errno with a sentence. */
	int (*ask)(struct mcp_call *call, struct strbuf *out, struct errmsg *err);
};

/* Ended by one without a name. */
extern const struct mcp_tool mcp_tools[];

/* NULL: there is none. */
const struct mcp_tool *mcp_tool_find(const char *name);
/* The member "tools" of the object that is open: names, descriptions, schemas of arguments. */
struct json_writer;
void mcp_tools_write(struct json_writer *json);

/*
 * The arguments of a call, as a stranger wrote them: the value of the request's member. Says, too,
 * if one is missing. Returns 0, or a negative errno with a sentence.
 */
int mcp_call_set_all(struct mcp_call *call, const struct json_text *arguments, struct errmsg *err);
void mcp_call_done(struct mcp_call *call);
#define _cleanup_mcp_call_ _cleanup_(mcp_call_done)
