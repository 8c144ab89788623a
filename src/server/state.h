/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share. */
#pragma once

#include "base/strbuf.h"
#include "server/bus.h"
#include "server/captures.h"
#include "server/followers.h"
#include "server/guard.h"
#include "server/jobs/jobs.h"
#include "server/lws.h"
#include "server/server.h"

/* Of one answer to the network. */
#define SERVER_CHUNK           32768
#define SERVER_CONNECTIONS_MAX 512
#define SERVER_SOCKETS_MAX     256
#define SERVER_HEADER_BYTES    8192

struct http_connection;

struct server {
	const struct server_options *options;
	struct loop loop;
	struct loop_watch ticks, signals;
	struct loop_watch hold; /* the timer of messages that wait to be joined */
	bool holds;             /* it runs */
	struct captures *captures;
	struct answers *answers;
	struct bus *bus;
	struct jobs *jobs;
	uint64_t descriptors; /* their limit before it was lowered: for what jobs start */
	struct followers *followers;
	struct lws_context *context;
	struct lws_vhost *vhost;
	struct guard guard;
	char token[GUARD_TOKEN_BYTES], cookie_name[32], address[300];
	char host[128]; /* of --listen, without brackets */
	int port;
	uint64_t started_ns, started_unix_ms, now_ns;
	struct bus_limits bus_limits;
	unsigned connections, sockets;
	size_t body_bytes; /* that requests of now have, or will have sent */
	unsigned children; /* of connections: processes that answer, or whose answer is sent */
	struct http_connection *active; /* that wait for an answer, or are WebSockets */
	struct strbuf frame;            /* of a WebSocket, with room for its header */
	double requests_left;           /* of the limit of their rate */
	uint64_t requests_counted_ns;
	bool had_socket; /* the page was there */
	uint64_t socket_left_ns;
	bool ends;
	unsigned char chunk[LWS_PRE + SERVER_CHUNK];
};

static inline struct server *server_of(struct lws *wsi)
{
	return lws.lws_context_user(lws.lws_get_context(wsi));
}

/* The callback of all connections: http.c, which hands WebSockets to socket.c. */
int http_callback(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length);
extern const size_t http_connection_size;
