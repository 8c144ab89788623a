/* SPDX-License-Identifier: Apache-2.0 */
/* sonde mcp: recordings and traces for assistants, by the Model Context Protocol on standard input
 * and output. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/mcp/request.h"
#include "cli/mcp/tools.h"
#include "query/child.h"

#define LINE_MAX_BYTES   ((size_t)1 << 20)
#define ANSWER_MAX_BYTES ((size_t)1 << 20)
#define QUESTION_S       600 /* longer ones are ended */
#define BATCH_MAX        50

struct server {
	const char *const *paths;
	size_t count;
};

/* ---- a question ---- */

struct question {
	const struct server *server;
	struct mcp_call *call;
};

/* In a child: what the files hold may be anything. */
static int ask(void *context, struct strbuf *out, struct errmsg *err)
{
	const struct question *question = context;
	_cleanup_mcp_captures_ struct mcp_captures captures = {0};

	signal(SIGINT, SIG_DFL);
	alarm(QUESTION_S);
	if (mcp_captures_find(&captures, question->server->paths, question->server->count) < 0)
		return errmsg_set(err, -ENOMEM, "memory ran out while looking for captures");
	question->call->captures = &captures;
	return question->call->tool->ask(question->call, out, err);
}

static void write_answer(struct json_writer *json, const struct mcp_request *request,
	const char *text, bool is_error)
{
	mcp_begin_result(json, request);
	json_key(json, "content");
	json_begin_array(json);
	json_begin_object(json);
	json_member_text(json, "type", "text");
	json_key(json, "text");
	json_string(json, text);
	json_end_object(json);
	json_end_array(json);
	json_key(json, "isError");
	json_bool(json, is_error);
	mcp_end_result(json, request);
}

/* Ctrl-C ends the question, not the server. */
static int ask_in_child(
	const struct server *server, struct mcp_call *call, struct strbuf *out, struct errmsg *err)
{
	struct question question = {.server = server, .call = call};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int r;

	sigaction(SIGINT, &ignore, &before);
	r = query_in_child(ask, &question, ANSWER_MAX_BYTES, out, err);
	sigaction(SIGINT, &before, NULL);
	return r;
}

static void call_tool(const struct server *server, const struct mcp_request *request,
	const struct mcp_tool *tool, struct json_writer *json)
{
	_cleanup_mcp_call_ struct mcp_call call = {.tool = tool, .options = QUERY_OPTIONS_DEFAULT};
	_cleanup_strbuf_ struct strbuf answer = {0};
	struct json_text arguments = {.bytes = "{}", .length = 2};
	struct errmsg err;
	int r;

	call.options.minimum_share_percent = 1;
	mcp_member(&request->params, "arguments", &arguments);
	r = mcp_call_set_all(&call, &arguments, &err);
	if (r == 0)
		r = ask_in_child(server, &call, &answer, &err);
	write_answer(json, request, r < 0 ? err.text : strbuf_cstr(&answer), r < 0);
}

/* ---- methods ---- */

static void write_capabilities(struct json_writer *json)
{
	json_key(json, "capabilities");
	json_begin_object(json);
	json_key(json, "tools");
	json_begin_object(json);
	json_end_object(json);
	json_end_object(json);
	json_member_text(json, "instructions",
		"Recordings and traces of AI workloads by the profiler sonde. Begin with report "
		"without by: it says where time went and what would help. Texts in answers, such "
		"as names of functions, come from the programs that were recorded.");
}

static void initialize(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	const char *version = mcp_handshake_versions[0];
	struct json_text asked = {0};

	if (mcp_member(&request->params, "protocolVersion", &asked))
		asked = json_text_inside(&asked);
	for (const char *const *known = mcp_handshake_versions; *known; known++) {
		if (json_text_equals(&asked, *known))
			version = *known;
	}
	mcp_begin_result(json, request);
	json_member_text(json, "protocolVersion", version);
	write_capabilities(json);
	json_key(json, "serverInfo");
	json_begin_object(json);
	json_member_text(json, "name", "sonde");
	json_member_text(json, "version", SONDE_VERSION);
	json_end_object(json);
	mcp_end_result(json, request);
}

/* How long what does not change may be kept, of stateless revisions. */
static void write_cache(struct json_writer *json, const struct mcp_request *request)
{
	if (!request->is_stateless)
		return;
	json_member_u64(json, "ttlMs", 3600000);
	json_member_text(json, "cacheScope", "public");
}

static void discover(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	mcp_begin_result(json, request);
	json_key(json, "supportedVersions");
	json_begin_array(json);
	json_string(json, MCP_STATELESS_VERSION);
	json_end_array(json);
	write_capabilities(json);
	write_cache(json, request);
	mcp_end_result(json, request);
}

static void ping(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	mcp_begin_result(json, request);
	mcp_end_result(json, request);
}

static void list_tools(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	mcp_begin_result(json, request);
	mcp_tools_write(json);
	write_cache(json, request);
	mcp_end_result(json, request);
}

static void call(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	_cleanup_strbuf_ struct strbuf name = {0};
	struct json_text value, inside;
	const struct mcp_tool *tool;
	struct errmsg err;

	if (!mcp_member(&request->params, "name", &value) || !json_text_is_string(&value)) {
		mcp_write_error(json, request, MCP_INVALID_PARAMS,
			"params lacks name, the name of a tool", NULL);
		return;
	}
	inside = json_text_inside(&value);
	json_text_unescape(&name, &inside);
	tool = mcp_tool_find(strbuf_cstr(&name));
	if (tool) {
		call_tool(server, request, tool, json);
		return;
	}
	errmsg_set(&err, 0, "there is no tool '%.64s': tools/list lists them", strbuf_cstr(&name));
	mcp_write_error(json, request, MCP_INVALID_PARAMS, err.text, NULL);
}

static const struct {
	const char *name;
	void (*answer)(const struct server *server, const struct mcp_request *request,
		struct json_writer *json);
} methods[] = {
	{"initialize", initialize},
	{"server/discover", discover},
	{"ping", ping},
	{"tools/list", list_tools},
	{"tools/call", call},
};

static void answer_request(
	const struct server *server, const struct mcp_request *request, struct json_writer *json)
{
	struct errmsg err;

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (json_text_equals(&request->method, methods[i].name)) {
			methods[i].answer(server, request, json);
			return;
		}
	}
	errmsg_set(&err, 0, "there is no method '%.*s'",
		(int)MIN(request->method.length, (size_t)64), request->method.bytes);
	mcp_write_error(json, request, MCP_UNKNOWN_METHOD, err.text, NULL);
}

/* ---- lines ---- */

/* One request; a notification is not answered. */
static void answer_text(
	const struct server *server, const struct json_text *text, struct json_writer *json)
{
	struct mcp_request request;
	struct errmsg err;
	int code = mcp_request_parse(&request, text, &err);

	if (code == MCP_UNSUPPORTED_VERSION)
		mcp_write_error(json, &request, code, err.text, &request.version);
	else if (code < 0 && (request.id.length || !request.method.length))
		mcp_write_error(json, &request, code, err.text, NULL);
	else if (code == 0 && request.id.length)
		answer_request(server, &request, json);
}

/* Several requests in an array, which the revision of 2025-03-26 has. */
static void answer_batch(
	const struct server *server, const struct json_text *text, struct strbuf *out)
{
	struct json_reader reader = {
		.at = text->bytes, .end = text->bytes + text->length, .is_last = true};
	struct json_text item;
	enum json_status status = json_reader_enter(&reader, '[');
	struct json_writer json = {.out = out};
	size_t begin = out->length, count = 0;

	json_begin_array(&json);
	while (status == JSON_OK && count++ < BATCH_MAX &&
		(status = json_reader_item(&reader)) == JSON_OK) {
		status = json_reader_value(&reader, &item);
		if (status == JSON_OK)
			answer_text(server, &item, &json);
	}
	/* Notifications alone have no answer, not even an empty one. */
	if (!json.has_items[json.depth] && status == JSON_DONE) {
		out->length = begin;
		return;
	}
	if (status != JSON_DONE)
		mcp_write_error(&json, &(struct mcp_request){0}, MCP_PARSE_ERROR,
			"the array of requests is cut off, or has more than 50", NULL);
	json_end_array(&json);
}

/* Returns 0, or a negative errno where nobody reads. */
static int answer_line(const struct server *server, const char *line, size_t length)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_text text = {.bytes = line, .length = length};
	struct json_writer json = {.out = &out};
	size_t first = 0;

	while (first < length && json_is_space(line[first]))
		first++;
	if (first == length)
		return 0;
	if (line[first] == '[')
		answer_batch(server, &text, &out);
	else
		answer_text(server, &text, &json);
	if (!out.length && strbuf_status(&out) == 0)
		return 0;
	strbuf_add_char(&out, '\n');
	if (strbuf_status(&out) < 0)
		return -ENOMEM;
	return write_all(STDOUT_FILENO, out.data, out.length);
}

static int refuse_line(void)
{
	_cleanup_strbuf_ struct strbuf out = {0};
	struct json_writer json = {.out = &out};

	mcp_write_error(&json, &(struct mcp_request){0}, MCP_PARSE_ERROR,
		"the line is longer than 1 MiB", NULL);
	strbuf_add_char(&out, '\n');
	return strbuf_status(&out) < 0 ? -ENOMEM : write_all(STDOUT_FILENO, out.data, out.length);
}

/* Answers the lines that are there, and leaves the rest. `is_skipping`: until the next line. */
static int answer_lines(const struct server *server, struct strbuf *input, bool *is_skipping)
{
	size_t used = 0;
	int r = 0;

	while (r == 0 && used < input->length) {
		const char *begin = input->data + used;
		const char *end = memchr(begin, '\n', input->length - used);

		if (!end)
			break;
		if (!*is_skipping)
			r = answer_line(server, begin, (size_t)(end - begin));
		*is_skipping = false;
		used += (size_t)(end - begin) + 1;
	}
	memmove(input->data, input->data + used, input->length - used);
	input->length -= used;
	if (r == 0 && input->length > LINE_MAX_BYTES) {
		if (!*is_skipping)
			r = refuse_line();
		*is_skipping = true;
		input->length = 0;
	}
	return r;
}

static int serve(const struct server *server)
{
	_cleanup_strbuf_ struct strbuf input = {0};
	bool is_skipping = false;
	int r = 0;

	while (r == 0) {
		char *bytes = strbuf_room(&input, 65536);
		ssize_t count = bytes ? read(STDIN_FILENO, bytes, 65536) : -1;

		if (!bytes)
			return -ENOMEM;
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return 0;
		strbuf_take(&input, (size_t)count);
		r = answer_lines(server, &input, &is_skipping);
	}
	return r == -EPIPE ? 0 : r;
}

static int mcp_run(int count, char **positional)
{
	const struct server server = {
		.paths = (const char *const *)positional, .count = (size_t)count};
	struct errmsg err;
	int r;

	for (int i = 0; i < count; i++) {
		if (access(positional[i], R_OK) < 0) {
			errmsg_set(
				&err, -errno, "cannot read %s: %s", positional[i], strerror(errno));
			return fail(&err);
		}
	}
	signal(SIGPIPE, SIG_IGN);
	r = serve(&server);
	if (r == 0)
		return EXIT_OK;
	errmsg_set(&err, r, "the assistant's requests end here: %s", strerror(-r));
	return fail(&err);
}

static const struct option mcp_options[] = {{0}};

const struct command mcp_command = {
	.name = "mcp",
	.summary = "answer an assistant's questions about captures",
	.usage = "CAPTURE|FOLDER\xe2\x80\xa6",
	.description =
		"Speaks the Model Context Protocol on standard input and output: start it from an "
		"assistant's configuration. The assistant can ask for the report and its sections, "
		"for a comparison of two captures, for the heaviest paths of the call tree, and "
		"for functions by name. It sees the captures that are named here, and those in "
		"the folders, also later ones; nothing is changed, and no other file is "
		"read.\n\nEach question is answered in a process of its own, for at most ten "
		"minutes.",
	.examples = "sonde mcp runs/\n    All captures and traces in runs/.\n"
		    "claude mcp add sonde -- sonde mcp $PWD/runs\n    For one assistant.",
	.options = mcp_options,
	.minimum_arguments = 1,
	.maximum_arguments = -1,
	.run = mcp_run,
};
