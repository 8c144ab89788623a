/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request of an assistant, and its arguments for each tool. */
#include <stdlib.h>

#include "cli/mcp/request.h"
#include "cli/mcp/tools.h"
#include "target.h"

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void set_arguments(const struct mcp_tool *tool, const struct json_text *arguments)
{
	_cleanup_mcp_call_ struct mcp_call call = {.tool = tool, .options = QUERY_OPTIONS_DEFAULT};
	struct errmsg err;

	check(mcp_call_set_all(&call, arguments, &err) <= 0);
	for (int i = 0; i < MCP_ARGUMENT_MAX; i++)
		check(!call.arguments[i] || (tool->arguments & 1U << i));
}

/* The answer is one line of JSON. */
static void check_answer(const struct mcp_request *request, int code, const char *sentence)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	if (code < 0)
		mcp_write_error(&json, request, code, sentence, &request->version);
	else
		mcp_begin_result(&json, request);
	if (code == 0)
		mcp_end_result(&json, request);
	check(strbuf_status(&out) == 0 && json.depth == 0);
	check(!memchr(out.data, '\n', out.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const struct json_text text = {.bytes = (const char *)bytes, .length = length};
	struct mcp_request request;
	struct json_text arguments;
	struct errmsg err = {0};
	int code = mcp_request_parse(&request, &text, &err);

	check(code == 0 || (code < 0 && err.text[0]));
	check(request.id.length <= MCP_ID_MAX);
	check_answer(&request, code, err.text);
	if (code < 0 || !mcp_member(&request.params, "arguments", &arguments))
		return 0;
	for (const struct mcp_tool *tool = mcp_tools; tool->name; tool++)
		set_arguments(tool, &arguments);
	return 0;
}
