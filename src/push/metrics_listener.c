/* SPDX-License-Identifier: Apache-2.0 */
#include "push/metrics_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"

#define CLIENTS          8
#define MOST_REQUEST     4096
#define MOST_REQUEST_NS  (5 * NS_PER_S)
#define LOOPBACK_NETWORK 127

struct client {
	int fd; /* -1: free */
	uint64_t begin_ns;
	size_t length, sent;
	struct strbuf answer; /* empty: the request is not complete */
	char request[MOST_REQUEST];
};

struct metrics_listener {
	int fd;
	unsigned port;
	struct client clients[CLIENTS];
};

/* ---- requests ---- */

/* The value of a header in the lines after the first; its length, or -1. */
static ssize_t find_header(
	const char *bytes, const char *end, const char *name, const char **ret_value)
{
	size_t length = strlen(name);

	for (const char *line = bytes; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop : end;
		if ((size_t)(stop - line) > length && strncasecmp(line, name, length) == 0) {
			line += length;
			while (line < stop && (*line == ' ' || *line == '\t'))
				line++;
			while (stop > line && (stop[-1] == '\r' || stop[-1] == ' '))
				stop--;
			*ret_value = line;
			return stop - line;
		}
		line = stop + 1;
	}
	return -1;
}

/* A page elsewhere may have its own name point to loopback; it cannot choose this header. */
static bool is_own_host(const char *headers, const char *end, unsigned port)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost"};
	const char *value = NULL;
	ssize_t length = find_header(headers, end, "Host:", &value);
	char own[32];

	for (size_t i = 0; length >= 0 && i < ARRAY_SIZE(hosts); i++) {
		int own_length = snprintf(own, sizeof(own), "%s:%u", hosts[i], port);

		if (length == own_length && strncasecmp(value, own, (size_t)length) == 0)
			return true;
	}
	return false;
}

static bool begins_with(const char *bytes, size_t length, const char *text)
{
	return length >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

enum metrics_request metrics_request_parse(const char *bytes, size_t length, unsigned port)
{
	const char *end = memmem(bytes, length, "\r\n\r\n", 4), *line;

	if (!end)
		return length >= MOST_REQUEST ? METRICS_REQUEST_BAD : METRICS_REQUEST_PARTIAL;
	line = memchr(bytes, '\n', (size_t)(end + 2 - bytes));
	if (!line || memchr(bytes, '\0', (size_t)(end - bytes)))
		return METRICS_REQUEST_BAD;
	if (!is_own_host(line + 1, end, port))
		return METRICS_REQUEST_HOST;
	if (!begins_with(bytes, length, "GET "))
		return METRICS_REQUEST_METHOD;
	return begins_with(bytes, length, "GET /metrics ") ||
			       begins_with(bytes, length, "GET /metrics?")
		       ? METRICS_REQUEST_GET
		       : METRICS_REQUEST_OTHER;
}

/* ---- clients ---- */

static void close_client(struct client *client)
{
	closep(&client->fd);
	strbuf_done(&client->answer);
	client->fd = -1;
}

static void accept_clients(struct metrics_listener *listener)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &listener->clients[i];

		if (client->fd >= 0)
			continue;
		client->fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client->fd < 0)
			return;
		client->begin_ns = monotonic_now_ns();
		client->length = client->sent = 0;
	}
}

static void make_answer(struct client *client, const char *status, const struct strbuf *body)
{
	strbuf_addf(&client->answer,
		"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n",
		status, body->length);
	strbuf_add_bytes(&client->answer, strbuf_cstr(body), body->length);
}

static void answer_request(struct client *client, enum metrics_request request,
	void (*write)(void *context, struct strbuf *out), void *context)
{
	static const char *const statuses[] = {
		[METRICS_REQUEST_GET] = "200 OK",
		[METRICS_REQUEST_OTHER] = "404 Not Found",
		[METRICS_REQUEST_METHOD] = "405 Method Not Allowed",
		[METRICS_REQUEST_HOST] = "421 Misdirected Request",
		[METRICS_REQUEST_BAD] = "400 Bad Request",
	};
	_cleanup_strbuf_ struct strbuf body = {0};

	if (request == METRICS_REQUEST_GET)
		write(context, &body);
	else
		strbuf_addf(&body, "%s: only GET /metrics is here\n", statuses[request]);
	make_answer(client, statuses[request], &body);
}

static void read_request(struct metrics_listener *listener, struct client *client,
	void (*write)(void *context, struct strbuf *out), void *context)
{
	ssize_t got = recv(client->fd, client->request + client->length,
		sizeof(client->request) - client->length, MSG_DONTWAIT);
	enum metrics_request request;

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		close_client(client);
		return;
	}
	client->length += got > 0 ? (size_t)got : 0;
	request = metrics_request_parse(client->request, client->length, listener->port);
	if (request != METRICS_REQUEST_PARTIAL)
		answer_request(client, request, write, context);
}

static void send_answer(struct client *client)
{
	ssize_t sent = send(client->fd, client->answer.data + client->sent,
		client->answer.length - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	client->sent += sent > 0 ? (size_t)sent : 0;
	if (sent < 0 || client->sent == client->answer.length) {
		shutdown(client->fd, SHUT_WR);
		close_client(client);
	}
}

void metrics_listener_run(struct metrics_listener *listener,
	void (*write)(void *context, struct strbuf *out), void *context)
{
	accept_clients(listener);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &listener->clients[i];

		if (client->fd >= 0 && !client->answer.length)
			read_request(listener, client, write, context);
		if (client->fd >= 0 && client->answer.length)
			send_answer(client);
		if (client->fd >= 0 && monotonic_now_ns() - client->begin_ns > MOST_REQUEST_NS)
			close_client(client);
	}
}

/* ---- the socket ---- */

static int parse_address(const char *address, struct sockaddr_in *ret_address, struct errmsg *err)
{
	const char *colon = strrchr(address, ':');
	_cleanup_free_ char *host = colon ? strndup(address, (size_t)(colon - address)) : NULL;
	struct sockaddr_in parsed = {.sin_family = AF_INET};
	char *end = NULL;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;

	if (!host || end == colon + 1 || *end || port > UINT16_MAX ||
		inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
			&parsed.sin_addr) != 1)
		return errmsg_set(err, -EINVAL,
			"--metrics %s is not an address and a port: give, for example, --metrics "
			"127.0.0.1:9477",
			address);
	if (ntohl(parsed.sin_addr.s_addr) >> 24 != LOOPBACK_NETWORK)
		return errmsg_set(err, -EINVAL,
			"--metrics %s would be open to other machines: give an address of "
			"loopback, and put a proxy with TLS in front of it, or use --metrics-file",
			address);
	parsed.sin_port = htons((uint16_t)port);
	*ret_address = parsed;
	return 0;
}

static int bind_socket(struct metrics_listener *listener, const char *address, struct errmsg *err)
{
	struct sockaddr_in own = {0};
	socklen_t length = sizeof(own);
	int on = 1, r = parse_address(address, &own, err);

	if (r < 0)
		return r;
	listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0 ||
		setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(listener->fd, (struct sockaddr *)&own, sizeof(own)) < 0 ||
		listen(listener->fd, CLIENTS) < 0 ||
		getsockname(listener->fd, (struct sockaddr *)&own, &length) < 0)
		return errmsg_set(
			err, -errno, "cannot listen on --metrics %s: %s", address, strerror(errno));
	listener->port = ntohs(own.sin_port);
	return 0;
}

int metrics_listener_open(
	struct metrics_listener **ret_listener, const char *address, struct errmsg *err)
{
	struct metrics_listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	listener->fd = -1;
	for (size_t i = 0; i < CLIENTS; i++)
		listener->clients[i].fd = -1;
	r = bind_socket(listener, address, err);
	if (r < 0)
		metrics_listener_free(listener);
	else
		*ret_listener = listener;
	return r;
}

struct metrics_listener *metrics_listener_free(struct metrics_listener *listener)
{
	if (!listener)
		return NULL;
	for (size_t i = 0; i < CLIENTS; i++)
		close_client(&listener->clients[i]);
	closep(&listener->fd);
	free(listener);
	return NULL;
}
