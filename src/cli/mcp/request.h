/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of JSON-RPC 2.0 as an assistant sends it (modelcontextprotocol.io, transport stdio). The
 * line is foreign: nothing of it is trusted but what is checked here.
 */
#pragma once

#include "base/errmsg.h"
#include "base/json.h"
#include "base/json_reader.h"

/* JSON-RPC's codes, and one of MCP's. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_UNKNOWN_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_UNSUPPORTED_VERSION = -32022, /* of 2026-07-28 */
};

/* Of the revisions with a handshake, newest first; NULL-ended. */
extern const char *const mcp_handshake_versions[];
/* Of those where every request says its version. */
#define MCP_STATELESS_VERSION "2026-07-28"

#define MCP_ID_MAX 256 /* bytes of an id */

/* Texts point into the line. */
struct mcp_request {
	struct json_text id;     /* a number or a string; length 0: a notification */
	struct json_text method; /* without quotes */
	struct json_text params; /* an object; length 0: none */
	/* Of params._meta: without it, the request is one of a session with a handshake. */
	bool is_stateless;
	struct json_text version; /* without quotes */
};

/*
 * One request, an object. Returns 0 or an enum mcp_code with a sentence; then `ret_request` has the
 * id if that could be read.
 */
int mcp_request_parse(
	struct mcp_request *ret_request, const struct json_text *text, struct errmsg *err);

/*
 * The member of an object, as json_reader_value() gives it. False: it is not there, or this is no
 * object.
 */
bool mcp_member(const struct json_text *object, const char *key, struct json_text *ret_value);

/* ---- answers: each is one line ---- */

/* Begins {"jsonrpc", "id", "result": {…; end it with mcp_end_result(). */
void mcp_begin_result(struct json_writer *json, const struct mcp_request *request);
void mcp_end_result(struct json_writer *json, const struct mcp_request *request);
/* `requested`: the version that a stateless request asked for and there is not; else NULL. */
void mcp_write_error(struct json_writer *json, const struct mcp_request *request, int code,
	const char *sentence, const struct json_text *requested);
