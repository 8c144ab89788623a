/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket: carries what the bus has for its client. Clients send nothing but pings. */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "server/http.h"

/* Then the connection of a client that takes nothing is cut. */
#define ENDING_NS (5 * NS_PER_S)
/* Frames in one go; then other clients have their turn. */
#define FRAMES_AT_ONCE 4
/* A client that was just sent to waits so long for the next frame, so that messages join it. */
#define HOLD_NS (10 * NS_PER_MS)

/* ---- when to send ---- */

static void wake(void *context)
{
	struct http_connection *connection = context;
	struct server *server = connection->server;
	const struct itimerspec once = {.it_value.tv_nsec = HOLD_NS};

	if (monotonic_now_ns() >= connection->hold_until_ns) {
		lws.lws_callback_on_writable(connection->wsi);
		return;
	}
	connection->is_held = true;
	if (!server->holds && timerfd_settime(server->hold.fd, 0, &once, NULL) == 0)
		server->holds = true;
}

/* All that are held, together: one turn of the loop. */
static void hold_is_over(struct loop_watch *watch)
{
	struct server *server = (struct server *)((char *)watch - offsetof(struct server, hold));
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	server->holds = false;
	for (struct http_connection *one = server->active; one; one = one->next) {
		if (one->is_held)
			lws.lws_callback_on_writable(one->wsi);
		one->is_held = false;
	}
}

int sockets_open(struct server *server)
{
	server->hold = (struct loop_watch){
		.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.ready = hold_is_over};
	return server->hold.fd < 0 ? -errno : loop_add(&server->loop, &server->hold);
}

/* ---- one client ---- */

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
	if (parameters.binary)
		bus_take_binary(connection->client);
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

/* 1: sent; 0: there is none; -1: close the connection. */
static int send_next(struct http_connection *connection, struct bus_frame *frame)
{
	struct strbuf *room = &connection->server->frame;

	strbuf_clear(room);
	if (!strbuf_extend(room, LWS_PRE))
		return -1;
	if (!bus_next(connection->client, room, frame, monotonic_now_ns()))
		return strbuf_status(room) < 0 ? -1 : 0;
	return lws.lws_write(connection->wsi, (unsigned char *)room->data + LWS_PRE,
		       room->length - LWS_PRE,
		       frame->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < 0
		       ? -1
		       : 1;
}

int socket_writable(struct http_connection *connection)
{
	struct bus_frame frame;

	if (connection->closes)
		return -1;
	for (int i = 0; i < FRAMES_AT_ONCE; i++) {
		int r = send_next(connection, &frame);

		if (r == 0)
			connection->hold_until_ns = monotonic_now_ns() + HOLD_NS;
		if (r <= 0)
			return r;
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
