/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many clients of live messages in one process: `live-clients PORT TOKEN GOOD STALLED NEWEST` opens
 * so many that read at once, and so many that do not read before a line comes on standard input. It
 * prints "connected", and at the end, when the good ones have the message NEWEST, what they got:
 * how long messages took from sent_ns, which of them came twice, or are in no gap. Then the stalled
 * ones read what is there, or connect again, and each must learn of what it lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"

#define CLIENTS_MAX   256
#define STALLED_BYTES 4096
/* Of the histogram of delays: 0.1 ms each, to a minute. */
#define BIN_NS (100 * 1000ULL)
#define BINS   600000

struct client {
	int fd;
	struct strbuf input;
	bool has_header, has_ended;
	uint64_t last_seq, gaps, gap_from, gap_to, repeated, undeclared;
};

static struct {
	int port;
	const char *token;
	uint64_t newest, messages, frames, bytes, largest_ns;
	unsigned bins[BINS];
	char epoch[40];
} all;

static void fail(const char *what)
{
	fprintf(stderr, "live-clients: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ask(struct client *client, int receive_bytes, const char *resume)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)all.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char head[600];
	int length = snprintf(head, sizeof(head),
		"GET /ws%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
		"Upgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
		"Sec-WebSocket-Version: 13\r\n\r\n",
		resume, all.port, all.token);

	*client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	if (receive_bytes)
		setsockopt(
			client->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	if (connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		write(client->fd, head, (size_t)length) != length)
		fail("cannot connect");
}

/* ---- messages ---- */

/* The number behind the key in what is left of the text, and what follows it; 0: none. */
static uint64_t number_behind(const char **at, const char *end, const char *key)
{
	const char *found = memmem(*at, (size_t)(end - *at), key, strlen(key));

	if (!found)
		return 0;
	*at = found + strlen(key);
	return strtoull(*at, NULL, 10);
}

static uint64_t newest_of(const struct client *client)
{
	return MAX(client->last_seq, client->gap_to);
}

/* Declared gaps as one span: the server has one after the other. */
static void take_gap(struct client *client, const char *at, const char *end)
{
	uint64_t from = number_behind(&at, end, "\"from\":");
	uint64_t to = number_behind(&at, end, "\"to\":");

	client->gap_from = client->gaps ? MIN(client->gap_from, from) : from;
	client->gap_to = MAX(client->gap_to, to);
	client->gaps++;
}

/* Of those between `from` and `to`, how many no gap declares. */
static uint64_t undeclared(const struct client *client, uint64_t from, uint64_t to)
{
	uint64_t begin = MAX(from, client->gap_from), end = MIN(to, client->gap_to);

	if (from > to)
		return 0;
	return to - from + 1 - (client->gaps && begin <= end ? end - begin + 1 : 0);
}

static void take_message(struct client *client, const char *at, const char *end, uint64_t now)
{
	const char *text = at;
	uint64_t seq = number_behind(&at, end, "\"seq\":"), sent, delay;

	if (!seq) {
		if (memmem(text, (size_t)(end - text), "\"type\":\"gap\"", 12))
			take_gap(client, text, end);
		return;
	}
	client->repeated += seq <= client->last_seq;
	if (client->last_seq)
		client->undeclared += undeclared(client, client->last_seq + 1, seq - 1);
	client->last_seq = seq;
	sent = number_behind(&at, end, "\"sent_ns\":");
	if (!sent)
		return;
	delay = now > sent ? now - sent : 0;
	all.messages++;
	all.largest_ns = MAX(all.largest_ns, delay);
	all.bins[MIN(delay / BIN_NS, (uint64_t)BINS - 1)]++;
}

/* A text is one envelope, or an array of them; each begins with its version. */
static void take_text(struct client *client, const char *at, const char *end, uint64_t now)
{
	static const char begin[] = "{\"v\":1,\"epoch\":\"";

	while (at < end && (at = memmem(at, (size_t)(end - at), begin, sizeof(begin) - 1))) {
		const char *behind = at + sizeof(begin) - 1;
		const char *next = memmem(behind, (size_t)(end - behind), begin, sizeof(begin) - 1);

		snprintf(all.epoch, sizeof(all.epoch), "%.32s", behind);
		take_message(client, at, next ? next : end, now);
		at = behind;
	}
}

/* Whole frames; false: more bytes are needed. */
static bool take_frame(struct client *client, size_t *at, uint64_t now)
{
	const unsigned char *bytes = (const unsigned char *)client->input.data + *at;
	size_t left = client->input.length - *at, head = 2;
	uint64_t length;

	if (left < 2)
		return false;
	length = bytes[1] & 127;
	head += length == 126 ? 2 : length == 127 ? 8 : 0;
	if (left < head)
		return false;
	if (head > 2) {
		length = 0;
		for (size_t i = 2; i < head; i++)
			length = length << 8 | bytes[i];
	}
	if (left < head + length)
		return false;
	all.frames++;
	if ((bytes[0] & 15) == 1)
		take_text(client, (const char *)bytes + head, (const char *)bytes + head + length,
			now);
	client->has_ended = client->has_ended || (bytes[0] & 15) == 8;
	*at += head + length;
	return true;
}

static void take_input(struct client *client, uint64_t now)
{
	size_t at = 0;

	if (!client->has_header) {
		const char *end = memmem(client->input.data, client->input.length, "\r\n\r\n", 4);

		if (!end)
			return;
		if (strncmp(client->input.data, "HTTP/1.1 101", 12) != 0)
			fail("the server does not accept a WebSocket");
		client->has_header = true;
		at = (size_t)(end + 4 - client->input.data);
	}
	while (take_frame(client, &at, now))
		;
	memmove(client->input.data, client->input.data + at, client->input.length - at);
	client->input.length -= at;
}

static void receive(struct client *client)
{
	char *room = strbuf_extend(&client->input, 256 << 10);
	ssize_t count = room ? recv(client->fd, room, 256 << 10, MSG_DONTWAIT) : 0;

	client->input.length -= (256 << 10) - (size_t)(count > 0 ? count : 0);
	if (count == 0 || (count < 0 && errno != EAGAIN))
		client->has_ended = true;
	all.bytes += (uint64_t)(count > 0 ? count : 0);
	take_input(client, monotonic_now_ns());
}

/* Until each has the newest message, or its end. */
static void receive_all(struct client *clients, int count)
{
	struct pollfd polls[CLIENTS_MAX];
	int open = count;

	while (open) {
		open = 0;
		for (int i = 0; i < count; i++) {
			bool is_done = clients[i].has_ended || newest_of(&clients[i]) >= all.newest;

			polls[i] = (struct pollfd){
				.fd = is_done ? -1 : clients[i].fd, .events = POLLIN};
			open += !is_done;
		}
		if (!open || poll(polls, (nfds_t)count, 30000) <= 0)
			return;
		for (int i = 0; i < count; i++) {
			if (polls[i].revents)
				receive(&clients[i]);
		}
	}
}

/* ---- figures ---- */

static double delay_ms(double share)
{
	uint64_t wanted = (uint64_t)(share * (double)all.messages), seen = 0;

	for (size_t i = 0; i < BINS; i++) {
		seen += all.bins[i];
		if (seen > wanted)
			return (double)((i + 1) * BIN_NS) / 1e6;
	}
	return (double)all.largest_ns / 1e6;
}

static void print_good(const struct client *clients, int count)
{
	uint64_t gaps = 0, repeated = 0, undeclared = 0, complete = 0;

	for (int i = 0; i < count; i++) {
		gaps += clients[i].gaps;
		repeated += clients[i].repeated;
		undeclared += clients[i].undeclared;
		complete += newest_of(&clients[i]) >= all.newest;
	}
	printf("{\"messages\":%llu,\"frames\":%llu,\"bytes\":%llu,\"p50_ms\":%.1f,"
	       "\"p99_ms\":%.1f,\"max_ms\":%.1f,\"gaps\":%llu,\"repeated\":%llu,"
	       "\"undeclared\":%llu,\"complete\":%llu",
		(unsigned long long)all.messages, (unsigned long long)all.frames,
		(unsigned long long)all.bytes, delay_ms(0.5), delay_ms(0.99),
		(double)all.largest_ns / 1e6, (unsigned long long)gaps,
		(unsigned long long)repeated, (unsigned long long)undeclared,
		(unsigned long long)complete);
}

/* Goes on from its last message, over another connection. */
static void come_back(struct client *client)
{
	struct client before = *client;
	char resume[100];

	close(client->fd);
	strbuf_done(&client->input);
	snprintf(resume, sizeof(resume), "?epoch=%s&seq=%llu", all.epoch,
		(unsigned long long)before.last_seq);
	ask(client, 0, resume);
	client->last_seq = before.last_seq;
	client->gaps = before.gaps;
	client->gap_from = before.gap_from;
	client->gap_to = before.gap_to;
	client->undeclared = before.undeclared;
	receive_all(client, 1);
}

/* What is there still; then, where that was the end, the rest. */
static void wake_stalled(struct client *clients, int count)
{
	unsigned with_gap = 0, unexplained = 0;

	receive_all(clients, count);
	for (int i = 0; i < count; i++) {
		struct client *client = &clients[i];

		if (client->last_seq < all.newest)
			come_back(client);
		with_gap += client->gaps > 0;
		unexplained +=
			client->undeclared || undeclared(client, client->last_seq + 1, all.newest);
	}
	printf(",\"stalled_with_gap\":%u,\"stalled_unexplained\":%u}\n", with_gap, unexplained);
}

int main(int count, char **words)
{
	static struct client clients[CLIENTS_MAX];
	int good, stalled;
	char line[16];

	if (count != 6)
		return 2;
	all.port = atoi(words[1]);
	all.token = words[2];
	good = atoi(words[3]);
	stalled = atoi(words[4]);
	all.newest = strtoull(words[5], NULL, 10);
	if (good < 1 || stalled < 0 || good + stalled > CLIENTS_MAX)
		return 2;
	for (int i = 0; i < good + stalled; i++)
		ask(&clients[i], i < good ? 0 : STALLED_BYTES, "");
	printf("connected\n");
	fflush(stdout);
	receive_all(clients, good);
	print_good(clients, good);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	wake_stalled(clients + good, stalled);
	return 0;
}
