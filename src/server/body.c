/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request: of a length that was announced, within the bounds of its operation. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "server/http.h"

/* To send it all: this, and a second for each MiB. */
#define BODY_NS (20 * NS_PER_S)
/* Of all clients together. */
#define BODIES_BYTES_MAX ((size_t)256 << 20)

/* Digits alone: libwebsockets also takes signs, and what follows the digits. */
static bool parse_length(const char *text, uint64_t *ret_length)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 18 || text[digits])
		return false;
	*ret_length = strtoull(text, NULL, 10);
	return true;
}

/* "application/json; charset=utf-8" is application/json. */
static bool is_type(const char *given, const char *wanted)
{
	size_t length = strcspn(given ? given : "", "; \t");

	return given && length == strlen(wanted) && strncasecmp(given, wanted, length) == 0;
}

static void refuse(
	struct http_connection *connection, const struct api_route *route, uint64_t length)
{
	char sentence[160];

	if (length > route->body_bytes_max) {
		snprintf(sentence, sizeof(sentence), "the body may have %zu bytes at most",
			route->body_bytes_max);
		http_fail(connection, 413, API_ERROR_TOO_LARGE, sentence);
	} else {
		snprintf(sentence, sizeof(sentence),
			"the body must be of the type %s: send this "
			"header Content-Type",
			route->body_type);
		http_fail(connection, 415, API_ERROR_WRONG_CONTENT_TYPE, sentence);
	}
}

bool http_body_is_there(struct http_connection *connection, const struct api_route *route)
{
	struct http_body *body = &connection->body;
	uint64_t length = 0;

	if (body->is_there || !route->body_bytes_max)
		return true;
	if (body->transfer || !body->length_text || !parse_length(body->length_text, &length)) {
		http_fail(connection, 411, API_ERROR_BAD_REQUEST,
			"this needs a body, with its length in the header Content-Length, and not "
			"in chunks");
		return false;
	}
	if (length > route->body_bytes_max || !is_type(body->type, route->body_type)) {
		refuse(connection, route, length);
		return false;
	}
	if (!length) {
		http_fail(connection, 400, API_ERROR_BAD_REQUEST, "the body is empty");
		return false;
	}
	if (length > BODIES_BYTES_MAX - connection->server->body_bytes) {
		http_fail(connection, 503, API_ERROR_BUSY,
			"the server takes as many bodies as it may: try again later");
		return false;
	}
	connection->server->body_bytes += length;
	body->length = (size_t)length;
	body->is_awaited = true;
	body->until_ns = monotonic_now_ns() + BODY_NS + (length >> 20) * NS_PER_S;
	http_set_active(connection, true);
	return false;
}

int http_body_received(struct http_connection *connection, const char *bytes, size_t length)
{
	struct http_body *body = &connection->body;

	if (!connection->server || !body->is_awaited)
		return 0;
	if (length > body->length - body->bytes.length)
		return -1;
	strbuf_add_bytes(&body->bytes, bytes, length);
	return strbuf_status(&body->bytes) < 0 ? -1 : 0;
}

int http_body_ended(struct http_connection *connection)
{
	struct http_body *body = &connection->body;

	if (!connection->server || !body->is_awaited)
		return 0;
	if (body->bytes.length != body->length)
		return -1;
	http_set_active(connection, false);
	body->is_awaited = false;
	body->is_there = true;
	handle_request(connection);
	if (connection->response.status)
		lws.lws_callback_on_writable(connection->wsi);
	else
		lws.lws_set_timeout(connection->wsi, NO_PENDING_TIMEOUT, 0);
	return 0;
}
