/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket: carries what the bus has for its client. Clients send nothing but pings. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "server/http.h"

/* Then the connection of a client that takes nothing is cut. */
#define ENDING_NS (5 * NS_PER_S)
/* Frames in one go; then other clients have their turn. */
#define FRAMES_AT_ONCE 16

static void wake(void *context)
{
	struct http_connection *connection = context;

	lws.lws_callback_on_writable(connection->wsi);
}

static void write_hello(struct strbuf *out, const struct server *server)
{
	struct api_hello_message hello = {
		.version = SONDE_VERSION,
		.started_unix_ms = server->started_unix_ms,
		.budget_bytes = server->bus_limits.budget_bytes,
		.read_only = server->options->read_only,
		.is_view = server->options->is_view,
	};
	struct json_writer json = {.out = out};

	bus_range(server->bus, &hello.oldest_seq, &hello.newest_seq);
	api_write_hello(&json, &hello);
}

/* The handshake was checked by handle_request(); its headers are still there. */
static int parse_resume(
	struct http_connection *connection, struct api_open_socket_parameters *parameters)
{
	union {
		struct api_open_socket_parameters socket;
		char bytes[API_PARAMETERS_BYTES];
	} parsed;
	const struct api_path_values none = {0};

	if (http_take_request(connection, "/ws", "GET") < 0 ||
		api_parse(API_OPEN_SOCKET, &connection->request, &none, &parsed, NULL) < 0)
		return -1;
	*parameters = parsed.socket;
	return 0;
}

int socket_established(struct http_connection *connection)
{
	struct api_open_socket_parameters parameters;
	_cleanup_strbuf_ struct strbuf hello = {0};
	struct server *server = connection->server;

	if (parse_resume(connection, &parameters) < 0)
		return -1;
	write_hello(&hello, server);
	if (strbuf_status(&hello) ||
		bus_add(server->bus, &connection->client, strbuf_cstr(&hello),
			parameters.has_epoch ? parameters.epoch : NULL, parameters.seq, wake,
			connection, monotonic_now_ns()) < 0)
		return -1;
	server->sockets++;
	server->had_socket = true;
	http_set_active(connection, true);
	return 0;
}

int socket_received(struct http_connection *connection, const char *bytes, size_t length)
{
	(void)bytes;
	if (!length)
		return 0;
	lws.lws_close_reason(connection->wsi, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, NULL, 0);
	return -1;
}

static int send_frame(struct http_connection *connection, const struct bus_frame *frame)
{
	struct strbuf *room = &connection->server->frame;

	strbuf_clear(room);
	if (!strbuf_extend(room, LWS_PRE))
		return -1;
	strbuf_add_bytes(room, frame->bytes, frame->length);
	if (strbuf_status(room))
		return -1;
	return lws.lws_write(connection->wsi, (unsigned char *)room->data + LWS_PRE, frame->length,
		       frame->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < 0
		       ? -1
		       : 0;
}

int socket_writable(struct http_connection *connection)
{
	struct bus_frame frame;

	if (connection->closes)
		return -1;
	for (int i = 0; i < FRAMES_AT_ONCE; i++) {
		if (!bus_next(connection->client, &frame, monotonic_now_ns()))
			return 0;
		if (send_frame(connection, &frame) < 0)
			return -1;
		if (frame.is_last) {
			/* When it was sent. */
			lws.lws_close_reason(
				connection->wsi, (enum lws_close_status)frame.close_code, NULL, 0);
			connection->closes = true;
			break;
		}
		/* What did not fit goes first; asking whether more would fit costs a call. */
		if (lws.lws_partial_buffered(connection->wsi))
			break;
	}
	lws.lws_callback_on_writable(connection->wsi);
	return 0;
}

void socket_tick(struct http_connection *connection)
{
	uint64_t now_ns = connection->server->now_ns;

	if (!bus_is_ending(connection->client))
		return;
	if (!connection->ending_since_ns)
		connection->ending_since_ns = now_ns;
	else if (now_ns - connection->ending_since_ns > ENDING_NS)
		lws.lws_set_timeout(connection->wsi, PENDING_TIMEOUT_CLOSE_SEND, LWS_TO_KILL_ASYNC);
}

void socket_closed(struct http_connection *connection)
{
	struct server *server = connection->server;

	if (!connection->client)
		return;
	connection->client = bus_remove(connection->client);
	server->sockets--;
	server->socket_left_ns = monotonic_now_ns();
}
