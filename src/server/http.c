/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "server/child.h"
#include "server/handlers.h"

/* libwebsockets waits so long for a client to take the next piece of an answer. */
#define STALLED_S 30
/* Requests of all clients together; the page asks some ten at once. */
#define REQUESTS_PER_S 500
#define REQUESTS_BURST 1000

const size_t http_connection_size = sizeof(struct http_connection);

/* What every answer says, for browsers: no script but ours, no page around ours. */
static const char security_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
	"font-src 'self'; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; "
	"form-action 'none'; frame-ancestors 'none'";
static const char *const security_headers[][2] = {
	{"x-content-type-options:", "nosniff"},
	{"referrer-policy:", "no-referrer"},
	{"cross-origin-resource-policy:", "same-origin"},
	/* Perfetto's page, which the page may open, answers to it. */
	{"cross-origin-opener-policy:", "same-origin-allow-popups"},
};

/* ---- the request ---- */

/* The header as text in `text`; its offset + 1, 0: it is absent. Where texts are moves. */
static size_t take_header(struct http_connection *connection, enum lws_token_indexes token)
{
	int length = lws.lws_hdr_total_length(connection->wsi, token);
	size_t at = connection->text.length;
	char *room;

	if (length <= 0)
		return 0;
	room = strbuf_extend(&connection->text, (size_t)length + 1);
	if (!room || lws.lws_hdr_copy(connection->wsi, room, length + 1, token) < 0)
		return 0;
	room[length] = '\0';
	return at + 1;
}

static size_t take_fetch_site(struct http_connection *connection)
{
	static const char name[] = "sec-fetch-site:";
	size_t at = connection->text.length;
	char value[32];
	int length = lws.lws_hdr_custom_copy(
		connection->wsi, value, sizeof(value), name, sizeof(name) - 1);

	if (length == -1)
		return 0;
	/* Longer ones are none that a browser sends: they count as foreign. */
	strbuf_add_bytes(
		&connection->text, length < 0 ? "?" : value, length < 0 ? 2 : (size_t)length);
	strbuf_add_char(&connection->text, '\0');
	return at + 1;
}

/* "name=value", which libwebsockets has decoded: their offsets are kept for later. */
static int take_arguments(struct http_connection *connection, size_t at[API_ARGUMENTS_MAX])
{
	struct strbuf *text = &connection->text;
	size_t count = 0;
	char piece[4200];
	int length;

	while ((length = lws.lws_hdr_copy_fragment(connection->wsi, piece, sizeof(piece),
			WSI_TOKEN_HTTP_URI_ARGS, (int)count)) >= 0) {
		if (count == API_ARGUMENTS_MAX)
			return -E2BIG;
		at[count++] = text->length;
		strbuf_add_bytes(text, piece, (size_t)length);
		strbuf_add_char(text, '\0');
	}
	connection->request.argument_count = count;
	return length == -2 ? -E2BIG : 0;
}

/* The token is the guard's, and no parameter. */
static void split_arguments(struct http_connection *connection, const size_t at[])
{
	struct api_request *request = &connection->request;
	size_t count = 0;

	for (size_t i = 0; i < request->argument_count; i++) {
		char *name = connection->text.data + at[i], *equals = strchr(name, '=');
		const char *value = equals ? equals + 1 : "";

		if (equals)
			*equals = '\0';
		if (strcmp(name, "token") == 0)
			connection->guard.token = value;
		else
			connection->arguments[count++] = (struct api_argument){name, value};
	}
	request->arguments = connection->arguments;
	request->argument_count = count;
}

static const char *method_of(int index)
{
	static const char *const names[] = {
		"GET", "POST", "OPTIONS", "PUT", "PATCH", "DELETE", "CONNECT", "HEAD"};

	return index >= 0 && index < (int)ARRAY_SIZE(names) ? names[index] : "?";
}

int http_take_request(struct http_connection *connection, const char *path, const char *method)
{
	struct strbuf *text = &connection->text;
	size_t arguments[API_ARGUMENTS_MAX] = {0}, path_at;
	size_t host = take_header(connection, WSI_TOKEN_HOST);
	size_t origin = take_header(connection, WSI_TOKEN_ORIGIN);
	size_t cookie = take_header(connection, WSI_TOKEN_HTTP_COOKIE);
	size_t authorization = take_header(connection, WSI_TOKEN_HTTP_AUTHORIZATION);
	size_t match = take_header(connection, WSI_TOKEN_HTTP_IF_NONE_MATCH);
	size_t type = take_header(connection, WSI_TOKEN_HTTP_CONTENT_TYPE);
	size_t length = take_header(connection, WSI_TOKEN_HTTP_CONTENT_LENGTH);
	size_t transfer = take_header(connection, WSI_TOKEN_HTTP_TRANSFER_ENCODING);
	size_t site = take_fetch_site(connection);
	int r = take_arguments(connection, arguments);

	path_at = text->length;
	strbuf_add_bytes(text, path, strlen(path) + 1);
	if (strbuf_status(text) < 0)
		return -ENOMEM;
	connection->request.path = text->data + path_at;
	connection->request.method = method;
#define TEXT_AT(at) ((at) ? text->data + (at)-1 : NULL)
	connection->guard = (struct guard_request){.host = TEXT_AT(host),
		.origin = TEXT_AT(origin),
		.cookie = TEXT_AT(cookie),
		.authorization = TEXT_AT(authorization),
		.fetch_site = TEXT_AT(site)};
	connection->if_none_match = TEXT_AT(match);
	connection->body = (struct http_body){.type = TEXT_AT(type),
		.length_text = TEXT_AT(length),
		.transfer = TEXT_AT(transfer)};
	if (r == 0)
		split_arguments(connection, arguments);
	return r;
}

/* ---- the answer ---- */

bool http_is_reading(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

void http_fail(
	struct http_connection *connection, int status, enum api_error code, const char *sentence)
{
	struct http_response *response = &connection->response;
	struct json_writer json = {.out = &response->text};

	strbuf_clear(&response->text);
	response->status = status;
	response->type = "application/json";
	json_begin_object(&json);
	json_key(&json, "error");
	json_begin_object(&json);
	json_member_text(&json, "code", api_error_codes[code]);
	json_member_text(&json, "message", sentence);
	json_end_object(&json);
	json_end_object(&json);
	strbuf_add_char(&response->text, '\n');
	response->bytes = NULL;
	if (code == API_ERROR_TOO_MANY_REQUESTS || code == API_ERROR_BUSY ||
		code == API_ERROR_STORE_BUSY)
		response->retry_s = 1;
}

static uint64_t body_length(const struct http_response *response)
{
	if (response->fd >= 0)
		return response->file_length;
	return response->bytes ? response->length : response->text.length;
}

struct header_text {
	struct lws *wsi;
	unsigned char *at, *end;
	bool is_lost;
};

static void add_header(struct header_text *headers, const char *name, const char *value)
{
	if (lws.lws_add_http_header_by_name(headers->wsi, (const unsigned char *)name,
		    (const unsigned char *)value, (int)strlen(value), &headers->at, headers->end))
		headers->is_lost = true;
}

static void add_optional_headers(struct header_text *headers, const struct http_response *response)
{
	char text[256];

	if (response->etag[0]) {
		snprintf(text, sizeof(text), "\"%s\"", response->etag);
		add_header(headers, "etag:", text);
	}
	if (response->is_gzip)
		add_header(headers, "content-encoding:", "gzip");
	if (response->cookie[0])
		add_header(headers, "set-cookie:", response->cookie);
	if (response->allow[0])
		add_header(headers, "allow:", response->allow);
	if (response->status == 401)
		add_header(headers, "www-authenticate:", "Bearer realm=\"sonde\"");
	if (response->name[0]) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", response->name);
		add_header(headers, "content-disposition:", text);
	}
	if (response->retry_s) {
		snprintf(text, sizeof(text), "%u", response->retry_s);
		add_header(headers, "retry-after:", text);
	}
}

/* Returns their length, or -1: they do not fit. */
static int write_headers(const struct http_connection *connection, unsigned char *room, size_t size)
{
	const struct http_response *response = &connection->response;
	struct header_text headers = {.wsi = connection->wsi, .at = room, .end = room + size - 1};

	if (lws.lws_add_http_header_status(
		    connection->wsi, (unsigned)response->status, &headers.at, headers.end))
		return -1;
	if (response->type)
		add_header(&headers, "content-type:", response->type);
	add_header(&headers,
		"content-security-policy:", response->policy ? response->policy : security_policy);
	for (size_t i = 0; i < ARRAY_SIZE(security_headers); i++)
		add_header(&headers, security_headers[i][0], security_headers[i][1]);
	/* Kept to ask whether it is still the same, or not at all. */
	add_header(&headers,
		"cache-control:", response->may_be_kept ? "private, no-cache" : "no-store");
	if (connection->closes)
		add_header(&headers, "connection:", "close");
	add_optional_headers(&headers, response);
	if (response->status != 304 &&
		lws.lws_add_http_header_content_length(connection->wsi,
			(lws_filepos_t)body_length(response), &headers.at, headers.end))
		return -1;
	if (headers.is_lost ||
		lws.lws_finalize_http_header(connection->wsi, &headers.at, headers.end))
		return -1;
	return (int)(headers.at - room);
}

/* The next bytes of the body; 0: the file was cut, or cannot be read. */
static size_t next_bytes(const struct http_connection *connection, unsigned char *room, size_t size)
{
	const struct http_response *response = &connection->response;
	uint64_t left = body_length(response) - connection->sent;
	size_t count = (size_t)MIN(left, (uint64_t)size);
	const unsigned char *bytes =
		response->bytes ? response->bytes : (const unsigned char *)response->text.data;
	ssize_t got;

	if (response->fd < 0) {
		memcpy(room, bytes + connection->sent, count);
		return count;
	}
	got = pread(response->fd, room, count, (off_t)connection->sent);
	return got > 0 ? (size_t)got : 0;
}

void http_set_active(struct http_connection *connection, bool is_active)
{
	struct http_connection **place = &connection->server->active;

	if (connection->is_active == is_active)
		return;
	connection->is_active = is_active;
	if (is_active) {
		connection->next = *place;
		*place = connection;
		return;
	}
	while (*place != connection)
		place = &(*place)->next;
	*place = connection->next;
}

static void forget(struct http_connection *connection)
{
	connection->server->children -= connection->child != NULL;
	connection->child = child_end(connection->child);
	answers_leave(connection->server->answers, &connection->waiter, false);
	http_set_active(connection, false);
	closep(&connection->response.fd);
	strbuf_done(&connection->text);
	connection->server->body_bytes -= connection->body.length;
	strbuf_done(&connection->body.bytes);
	strbuf_done(&connection->response.text);
}

static void begin(struct http_connection *connection, struct server *server, struct lws *wsi)
{
	*connection = (struct http_connection){.wsi = wsi, .server = server, .response.fd = -1};
}

/* For the next request on the same connection. */
static int complete(struct http_connection *connection)
{
	bool closes = connection->closes;
	struct server *server = connection->server;
	struct lws *wsi = connection->wsi;

	forget(connection);
	begin(connection, server, wsi);
	return closes || lws.lws_http_transaction_completed(wsi) ? -1 : 0;
}

static bool has_body(const struct http_connection *connection)
{
	return connection->response.status != 304 && body_length(&connection->response) &&
	       strcmp(connection->request.method, "HEAD") != 0;
}

static int send_headers(struct http_connection *connection)
{
	unsigned char *room = connection->server->chunk + LWS_PRE;
	int length = write_headers(connection, room, SERVER_CHUNK);
	bool goes_on = has_body(connection);

	if (length < 0)
		return -1;
	connection->has_headers_sent = true;
	if (lws.lws_write(connection->wsi, room, (size_t)length,
		    goes_on ? LWS_WRITE_HTTP_HEADERS
			    : LWS_WRITE_HTTP_HEADERS | LWS_WRITE_H2_STREAM_END) < 0)
		return -1;
	if (!goes_on)
		return complete(connection);
	lws.lws_callback_on_writable(connection->wsi);
	return 0;
}

/* One piece each time, so that a slow client costs no memory. */
static int send_body(struct http_connection *connection)
{
	unsigned char *room = connection->server->chunk + LWS_PRE;
	size_t length = next_bytes(connection, room, SERVER_CHUNK);
	bool is_last = connection->sent + length == body_length(&connection->response);

	if (!length)
		return -1;
	lws.lws_set_timeout(connection->wsi, PENDING_TIMEOUT_HTTP_CONTENT, STALLED_S);
	if (lws.lws_write(connection->wsi, room, length,
		    is_last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < 0)
		return -1;
	connection->sent += length;
	if (is_last)
		return complete(connection);
	lws.lws_callback_on_writable(connection->wsi);
	return 0;
}

static int writable(struct http_connection *connection)
{
	if (connection->client)
		return socket_writable(connection);
	if (!connection->response.status && connection->child && child_is_done(connection->child))
		handle_runs_answer(connection);
	if (!connection->response.status && connection->waiter.answer &&
		answer_is_done(connection->waiter.answer))
		handle_answer(connection);
	if (!connection->response.status)
		return 0;
	return connection->has_headers_sent ? send_body(connection) : send_headers(connection);
}

void http_tick(struct server *server)
{
	struct http_connection *next;

	for (struct http_connection *one = server->active; one; one = next) {
		next = one->next;
		if (one->client) {
			socket_tick(one);
		} else if (one->body.is_awaited) {
			if (server->now_ns >= one->body.until_ns)
				lws.lws_set_timeout(
					one->wsi, PENDING_TIMEOUT_HTTP_CONTENT, LWS_TO_KILL_ASYNC);
		} else if (!one->response.status && server->now_ns >= one->wait_until_ns) {
			if (one->child)
				handle_runs_late(one);
			else
				handle_answer(one);
			lws.lws_callback_on_writable(one->wsi);
		}
	}
}

/* ---- a request comes ---- */

static bool is_too_fast(struct server *server)
{
	uint64_t now = monotonic_now_ns();
	double passed = (double)(now - server->requests_counted_ns) / (double)NS_PER_S;

	server->requests_counted_ns = now;
	server->requests_left =
		MIN(server->requests_left + passed * REQUESTS_PER_S, (double)REQUESTS_BURST);
	if (server->requests_left < 1)
		return true;
	server->requests_left--;
	return false;
}

/* `path` is without its query; the method is that of libwebsockets. */
static void take(struct http_connection *connection, const char *path, const char *method)
{
	int r = http_take_request(connection, path, method);

	if (r == -E2BIG)
		http_fail(connection, 414, API_ERROR_TOO_LARGE,
			"the address is too long, or has too many parameters");
	else if (r < 0)
		http_fail(connection, 503, API_ERROR_OUT_OF_MEMORY, "memory ran out in the server");
	else if (is_too_fast(connection->server))
		http_fail(connection, 429, API_ERROR_TOO_MANY_REQUESTS,
			"too many requests: ask again in a second");
	else
		handle_request(connection);
	/* What such a request carries is not read. */
	if (!http_is_reading(method) && !connection->body.is_awaited)
		connection->closes = true;
}

static int received(struct http_connection *connection, struct lws *wsi, struct server *server)
{
	char *path = NULL, copy[1024];
	int length = 0, method;

	begin(connection, server, wsi);
	method = lws.lws_http_get_uri_and_method(wsi, &path, &length);
	if (method < 0 || !path || length <= 0 || (size_t)length >= sizeof(copy))
		return -1;
	memcpy(copy, path, (size_t)length);
	copy[length] = '\0';
	take(connection, copy, method_of(method));
	if (connection->response.status) {
		/* What comes with it would be read first. */
		if (connection->closes) {
			int r = send_headers(connection);

			return r == 0 && connection->has_headers_sent ? send_body(connection) : -1;
		}
		lws.lws_callback_on_writable(wsi);
	} else if (!connection->body.is_awaited) {
		/* Until the answer is there; http_tick() ends it. */
		lws.lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
	}
	return 0;
}

/*
 * 0: it becomes a WebSocket; 1: it was answered. libwebsockets has no memory for the connection
 * yet: it is checked in one of our own, and its headers are read again in socket.c.
 */
static int confirm_upgrade(struct lws *wsi, struct server *server, const char *protocol)
{
	unsigned char *room = server->chunk + LWS_PRE;
	struct http_connection connection;
	char path[256];
	int length, r = -1;

	begin(&connection, server, wsi);
	connection.is_upgrade = true;
	if (strcmp(protocol, "websocket") != 0 ||
		lws.lws_hdr_copy(wsi, path, sizeof(path), WSI_TOKEN_GET_URI) <= 0)
		return -1;
	take(&connection, path, "GET");
	connection.closes = true;
	length = connection.response.status ? write_headers(&connection, room, SERVER_CHUNK) : 0;
	if (!connection.response.status) {
		r = 0;
	} else if (length > 0 &&
		   next_bytes(&connection, room + length, SERVER_CHUNK - (size_t)length) ==
			   body_length(&connection.response)) {
		length += (int)body_length(&connection.response);
		r = lws.lws_write(wsi, room, (size_t)length, LWS_WRITE_HTTP_FINAL) < 0 ? -1 : 1;
	}
	forget(&connection);
	return r;
}

static void closed(struct http_connection *connection)
{
	struct server *server = connection->server;

	if (!server)
		return;
	socket_closed(connection);
	forget(connection);
	*connection = (struct http_connection){0};
}

/* ---- libwebsockets ---- */

int http_callback(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
	struct http_connection *connection = user;
	struct server *server = server_of(wsi);

	switch (reason) {
	case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
		return server->connections >= SERVER_CONNECTIONS_MAX;
	case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
		server->connections++;
		return 0;
	case LWS_CALLBACK_WSI_DESTROY:
		server->connections -= server->connections > 0;
		return 0;
	case LWS_CALLBACK_HTTP:
		return received(connection, wsi, server);
	case LWS_CALLBACK_HTTP_BODY:
		return http_body_received(connection, in, length);
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return http_body_ended(connection);
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return confirm_upgrade(wsi, server, in);
	case LWS_CALLBACK_ESTABLISHED:
		begin(connection, server, wsi);
		return socket_established(connection);
	case LWS_CALLBACK_RECEIVE:
		return socket_received(connection, in, length);
	case LWS_CALLBACK_HTTP_WRITEABLE:
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return connection->server ? writable(connection) : 0;
	case LWS_CALLBACK_CLOSED:
	case LWS_CALLBACK_CLOSED_HTTP:
	case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
		if (connection)
			closed(connection);
		return 0;
	default:
		return 0;
	}
}
