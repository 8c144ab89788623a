/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/request.h"

#include <errno.h>
#include <string.h>

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"

const char *const mcp_handshake_versions[] = {
	"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL};

static struct json_reader reader_of(const struct json_text *text)
{
	return (struct json_reader){
		.at = text->bytes, .end = text->bytes + text->length, .is_last = true};
}

static bool is_object(const struct json_text *text)
{
	return text->length && text->bytes[0] == '{';
}

static bool is_number(const struct json_text *text)
{
	int64_t value;

	return json_text_i64(text, &value) == 0 && memchr(text->bytes, '.', text->length) == NULL;
}

bool mcp_member(const struct json_text *object, const char *key, struct json_text *ret_value)
{
	struct json_reader reader = reader_of(object);
	struct json_text name, value;

	if (json_reader_enter(&reader, '{') != JSON_OK)
		return false;
	while (json_reader_member(&reader, &name) == JSON_OK &&
		json_reader_value(&reader, &value) == JSON_OK) {
		if (json_text_equals(&name, key)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* ---- a request ---- */

/* Is it one whole object, with nothing behind it, and nothing to mend? */
static bool is_well_formed(const struct json_text *text)
{
	struct json_reader reader = reader_of(text);
	struct json_text name, value;
	enum json_status status = json_reader_enter(&reader, '{');

	while (status == JSON_OK && (status = json_reader_member(&reader, &name)) == JSON_OK)
		status = json_reader_value(&reader, &value);
	return status == JSON_DONE && !reader.mended && json_reader_peek(&reader) == '\0' &&
	       reader.at == reader.end;
}

static int read_id(struct mcp_request *request, const struct json_text *text, struct errmsg *err)
{
	struct json_text id;

	if (!mcp_member(text, "id", &id))
		return 0;
	if (id.length > MCP_ID_MAX || !(json_text_is_string(&id) || is_number(&id))) {
		errmsg_set(err, -EINVAL, "the id is a whole number, or a text of at most %d bytes",
			MCP_ID_MAX);
		return MCP_INVALID_REQUEST;
	}
	request->id = id;
	return 0;
}

static int read_version(
	struct mcp_request *request, const struct json_text *meta, struct errmsg *err)
{
	struct json_text version, capabilities;

	if (!mcp_member(meta, META_VERSION, &version))
		return 0;
	request->is_stateless = true;
	if (!json_text_is_string(&version) || version.length > MCP_ID_MAX) {
		errmsg_set(err, -EINVAL, META_VERSION " is a text, such as " MCP_STATELESS_VERSION);
		return MCP_INVALID_PARAMS;
	}
	request->version = json_text_inside(&version);
	if (!json_text_equals(&request->version, MCP_STATELESS_VERSION)) {
		errmsg_set(err, -EINVAL,
			"this server speaks " MCP_STATELESS_VERSION
			", or an earlier revision after initialize");
		return MCP_UNSUPPORTED_VERSION;
	}
	if (mcp_member(meta, META_CAPABILITIES, &capabilities) && is_object(&capabilities))
		return 0;
	errmsg_set(err, -EINVAL, "params._meta lacks " META_CAPABILITIES ", an object");
	return MCP_INVALID_PARAMS;
}

static int read_params(
	struct mcp_request *request, const struct json_text *text, struct errmsg *err)
{
	struct json_text meta;

	if (!mcp_member(text, "params", &request->params))
		return 0;
	if (!is_object(&request->params)) {
		request->params = (struct json_text){0};
		errmsg_set(err, -EINVAL, "params is an object");
		return MCP_INVALID_PARAMS;
	}
	if (!mcp_member(&request->params, "_meta", &meta))
		return 0;
	return read_version(request, &meta, err);
}

int mcp_request_parse(
	struct mcp_request *ret_request, const struct json_text *text, struct errmsg *err)
{
	struct json_text protocol, method;
	int r;

	*ret_request = (struct mcp_request){0};
	if (!is_well_formed(text)) {
		errmsg_set(err, -EINVAL, "a line is one JSON object, a request of JSON-RPC 2.0");
		return MCP_PARSE_ERROR;
	}
	r = read_id(ret_request, text, err);
	if (r < 0)
		return r;
	if (!mcp_member(text, "jsonrpc", &protocol) || !json_text_equals(&protocol, "\"2.0\"") ||
		!mcp_member(text, "method", &method) || !json_text_is_string(&method)) {
		errmsg_set(err, -EINVAL,
			"a request has \"jsonrpc\": \"2.0\" and a method, which is a text");
		return MCP_INVALID_REQUEST;
	}
	ret_request->method = json_text_inside(&method);
	return read_params(ret_request, text, err);
}

/* ---- answers ---- */

static void write_text(struct json_writer *json, const struct json_text *inside)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	json_text_unescape(&text, inside);
	json_string_n(json, strbuf_cstr(&text), text.length);
	strbuf_inherit_status(json->out, &text);
}

static void begin(struct json_writer *json, const struct mcp_request *request)
{
	int64_t number;

	json_begin_object(json);
	json_member_text(json, "jsonrpc", "2.0");
	json_key(json, "id");
	if (json_text_is_string(&request->id)) {
		struct json_text inside = json_text_inside(&request->id);

		write_text(json, &inside);
	} else if (request->id.length && json_text_i64(&request->id, &number) == 0) {
		json_i64(json, number);
	} else {
		json_null(json);
	}
}

void mcp_begin_result(struct json_writer *json, const struct mcp_request *request)
{
	begin(json, request);
	json_key(json, "result");
	json_begin_object(json);
}

void mcp_end_result(struct json_writer *json, const struct mcp_request *request)
{
	if (request->is_stateless) {
		json_member_text(json, "resultType", "complete");
		json_key(json, "_meta");
		json_begin_object(json);
		json_key(json, META_SERVER);
		json_begin_object(json);
		json_member_text(json, "name", "sonde");
		json_member_text(json, "version", SONDE_VERSION);
		json_end_object(json);
		json_end_object(json);
	}
	json_end_object(json);
	json_end_object(json);
}

void mcp_write_error(struct json_writer *json, const struct mcp_request *request, int code,
	const char *sentence, const struct json_text *requested)
{
	begin(json, request);
	json_key(json, "error");
	json_begin_object(json);
	json_key(json, "code");
	json_i64(json, code);
	json_member_text(json, "message", sentence);
	if (requested) {
		json_key(json, "data");
		json_begin_object(json);
		json_key(json, "supported");
		json_begin_array(json);
		json_string(json, MCP_STATELESS_VERSION);
		json_end_array(json);
		json_key(json, "requested");
		write_text(json, requested);
		json_end_object(json);
	}
	json_end_object(json);
	json_end_object(json);
}
