/* SPDX-License-Identifier: Apache-2.0 */
#include "live/follower.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define CHUNK ((size_t)1 << 20)
/* A recorder that is looked at writes every 250 ms: each of its writes is due. */
#define OFTEN_NS  (240 * NS_PER_MS)
#define SELDOM_NS NS_PER_S
#define LOOK_MS   50
/* While it is stalled. */
#define STALLED_LOOK_MS 1000

struct follower {
	const struct live_setup *setup;
	struct live_figures *figures;
	struct capture_stream *stream;
	uint8_t *chunk;
	uint64_t offset, grown_ns, often_ns, seldom_ns; /* when it last did */
	bool has_news, has_table_news, is_stalled, is_final;
	struct errmsg err;
};

/* ---- messages ---- */

static int send_all(int socket, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t sent = send(socket, at, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		at += sent;
		length -= (size_t)sent;
	}
	return 0;
}

static int emit(void *context, enum live_message message, const struct live_data *data)
{
	const struct follower *follower = context;
	const struct live_packet packet = {.message = (uint16_t)message,
		.is_final = follower->is_final,
		.length = (uint32_t)data->length,
		.columns_length = (uint32_t)data->columns_length};
	int socket = follower->setup->socket;
	int r = send_all(socket, &packet, sizeof(packet));

	if (r == 0)
		r = send_all(socket, data->json, data->length);
	return r ?: send_all(socket, data->columns, data->columns_length);
}

static int emit_due(struct follower *follower, uint64_t now_ns, bool is_last)
{
	unsigned paces = 0;

	if (follower->has_news && (is_last || now_ns - follower->often_ns >= OFTEN_NS)) {
		paces |= LIVE_OFTEN;
		follower->often_ns = now_ns;
		follower->has_news = false;
	}
	if (follower->has_table_news && (is_last || now_ns - follower->seldom_ns >= SELDOM_NS)) {
		paces |= LIVE_SELDOM;
		follower->seldom_ns = now_ns;
		follower->has_table_news = false;
	}
	live_set_bytes(follower->figures, follower->offset);
	return paces ? live_emit(follower->figures, paces, emit, follower) : 0;
}

static int emit_ended(struct follower *follower, const char *reason, const char *sentence)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	live_write_ended(follower->figures, reason, sentence, &text);
	return strbuf_status(&text)
		       ?: emit(follower, LIVE_ENDED,
				  &(struct live_data){.json = text.data, .length = text.length});
}

static int emit_stalled(struct follower *follower)
{
	char sentence[200];

	snprintf(sentence, sizeof(sentence),
		"the capture has not grown for %llu s: the recorder was stopped, or is gone",
		(unsigned long long)(follower->setup->stalled_ns / NS_PER_S));
	follower->is_stalled = true;
	return emit_ended(follower, "stalled", sentence);
}

/* ---- reading ---- */

/* The file is shorter than what was read of it. */
static bool was_cut(struct follower *follower)
{
	struct stat status;

	if (fstat(follower->setup->fd, &status) == 0 &&
		(uint64_t)status.st_size >= follower->offset)
		return false;
	errmsg_set(&follower->err, -EIO,
		"the capture was cut, or written anew, while it was followed");
	return true;
}

/* What there is by now, at most a chunk: 1, 0 at the end, or a negative errno with a sentence. */
static int read_some(struct follower *follower, uint64_t now_ns)
{
	ssize_t got = pread(follower->setup->fd, follower->chunk, CHUNK, (off_t)follower->offset);
	int r;

	if (got < 0 && errno != EINTR)
		return errmsg_set(
			&follower->err, -errno, "the capture cannot be read: %s", strerror(errno));
	if (got <= 0)
		return was_cut(follower) ? -EIO : 0;
	if (follower->is_stalled)
		live_repeat_session(follower->figures);
	follower->is_stalled = false;
	follower->has_news = follower->has_table_news = true;
	follower->grown_ns = now_ns;
	follower->offset += (uint64_t)got;
	r = capture_stream_take(follower->stream, follower->chunk, (size_t)got, &follower->err);
	return r < 0 ? r : 1;
}

/* The other end is open, after a while. */
static bool wait_a_while(const struct follower *follower)
{
	struct pollfd other = {.fd = follower->setup->socket, .events = POLLIN};
	int ready = poll(&other, 1, follower->is_stalled ? STALLED_LOOK_MS : LOOK_MS);

	return ready == 0 || (ready < 0 && errno == EINTR);
}

/* False: there is nothing more to do. */
static bool follow_once(struct follower *follower)
{
	uint64_t now_ns = monotonic_now_ns();
	int more = read_some(follower, now_ns);
	bool has_ended = more == 0 && live_has_ended(follower->figures);

	if (emit_due(follower, now_ns, has_ended || more < 0) < 0)
		return false;
	if (more < 0) {
		/* What is cut may be written anew. */
		follower->is_final = more != -EIO;
		emit_ended(follower, "unreadable", follower->err.text);
		return false;
	}
	if (has_ended) {
		follower->is_final = true;
		emit_ended(follower, "end", NULL);
		return false;
	}
	if (more)
		return true;
	if (!follower->is_stalled && now_ns - follower->grown_ns > follower->setup->stalled_ns &&
		emit_stalled(follower) < 0)
		return false;
	return now_ns - follower->grown_ns < follower->setup->gone_ns && wait_a_while(follower);
}

void live_follow(const struct live_setup *setup)
{
	struct follower follower = {
		.setup = setup, .chunk = malloc(CHUNK), .grown_ns = monotonic_now_ns()};
	int r = follower.chunk ? 0 : -ENOMEM;

	if (r == 0)
		r = live_figures_new(
			&follower.figures, setup->capture, setup->name, setup->generation);
	if (r == 0)
		r = capture_stream_open(
			&follower.stream, setup->name, &live_visitor, follower.figures);
	while (r == 0 && follow_once(&follower))
		;
	capture_stream_close(follower.stream);
	live_figures_free(follower.figures);
	free(follower.chunk);
}
