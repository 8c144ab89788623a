/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP connection, its request and body, and the answer that it gets. */
#pragma once

#include "base/strbuf.h"
#include "server/answers.h"
#include "server/api.h"
#include "server/guard.h"
#include "server/state.h"

#define HTTP_NAME_BYTES 160

struct http_response {
	int status; /* 0: none yet */
	const char *type;
	/* One of them: text of its own, bytes of the program, the answer of `waiter`, a file. */
	struct strbuf text;
	const unsigned char *bytes;
	size_t length;
	int fd; /* -1: none */
	uint64_t file_length;
	char etag[48]; /* without quotes; "": none */
	bool is_gzip, may_be_kept;
	char cookie[GUARD_TOKEN_MAX + 128], name[HTTP_NAME_BYTES], allow[48]; /* "": none */
	const char *policy; /* content-security-policy; NULL: that of all answers */
	unsigned retry_s;   /* 0: no Retry-After */
};

/* What comes behind the header: read only where an operation takes it. */
struct http_body {
	const char *type, *length_text, *transfer; /* headers; NULL: absent */
	bool is_awaited, is_there;
	uint64_t until_ns; /* then who has not sent it is cut off */
	size_t length;     /* that was announced */
	struct strbuf bytes;
};

struct http_connection {
	struct lws *wsi;
	struct server *server;
	/* The request. */
	struct strbuf text; /* that the request's strings lie in */
	struct api_request request;
	struct api_argument arguments[API_ARGUMENTS_MAX];
	struct guard_request guard;
	const char *if_none_match;
	struct http_body body;
	/* The answer. */
	struct http_response response;
	struct answer_waiter waiter;
	struct child *child; /* that answers it; NULL: none */
	uint64_t wait_until_ns;
	const struct capture *capture; /* that it waits for */
	const char *answer_type;
	char answer_name[HTTP_NAME_BYTES]; /* what a browser saves the answer as; "": it shows it */
	struct http_connection *next;      /* of the server's active ones */
	bool is_upgrade, is_active, has_headers_sent, closes;
	uint64_t sent;
	/* Of a WebSocket. */
	struct bus_client *client;
	uint64_t ending_since_ns, hold_until_ns;
	bool is_held;
};

/* GET and HEAD. */
bool http_is_reading(const char *method);
/* A finished answer that is an error: {"error": {code, message}}. */
void http_fail(
	struct http_connection *connection, int status, enum api_error code, const char *sentence);
/*
 * handlers.c: fills in the response, or leaves it to an answer that the connection waits for. Where
 * a body is awaited it is called again with it.
 */
void handle_request(struct http_connection *connection);
/* Of a connection that waits: the answer is there, or the client has waited long enough. */
void handle_answer(struct http_connection *connection);
/* Who has waited long enough is answered; a WebSocket that does not end is ended. */
void http_tick(struct server *server);
/* http_tick() looks at it. */
void http_set_active(struct http_connection *connection, bool is_active);
/* The request's header fields and parameters, again: of a connection that has become a WebSocket.
 */
int http_take_request(struct http_connection *connection, const char *path, const char *method);

/* body.c: true with the body of a route that takes one; else it is awaited, or was refused. */
bool http_body_is_there(struct http_connection *connection, const struct api_route *route);
/* A piece of it, then its end. 0, or -1: close the connection. */
int http_body_received(struct http_connection *connection, const char *bytes, size_t length);
int http_body_ended(struct http_connection *connection);

/* socket.c: WebSockets. Returns 0 or a negative errno. */
int sockets_open(struct server *server);
int socket_established(struct http_connection *connection);
int socket_received(struct http_connection *connection, const char *bytes, size_t length);
int socket_writable(struct http_connection *connection);
/* Ends one that does not take its last message. */
void socket_tick(struct http_connection *connection);
void socket_closed(struct http_connection *connection);
