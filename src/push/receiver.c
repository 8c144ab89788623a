/* SPDX-License-Identifier: Apache-2.0 */
#include "push/receiver.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/http.h"
#include "base/new_file.h"
#include "base/strbuf.h"
#include "push/convert.h"

#define MOST_TOKEN_BYTES 8192
#define TIMEOUT_MS       30000
#define COPY_BYTES       ((size_t)1 << 20)

const char *receiver_kind_name(enum receiver_kind kind)
{
	static const char *const names[] = {
		[RECEIVER_FOLDER] = "folder",
		[RECEIVER_PUT] = "put",
		[RECEIVER_OTLP] = "otlp",
		[RECEIVER_OTLP_METRICS] = "otlp-metrics",
		[RECEIVER_PPROF] = "pprof",
	};

	return names[kind];
}

bool receiver_takes_metrics(const struct receiver *receiver)
{
	return receiver->kind == RECEIVER_OTLP_METRICS;
}

static int open_destination(const struct receiver *receiver, struct stat *status)
{
	_cleanup_close_ int fd = open(receiver->address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fstat(fd, status) < 0 ? -errno : TAKE_FD(fd);
}

/* For slow lines; tests have it shorter. */
static uint64_t timeout_ms(void)
{
	const char *text = getenv("SONDE_PUSH_TIMEOUT_MS");
	unsigned long value = text ? strtoul(text, NULL, 10) : 0;

	return value ? value : TIMEOUT_MS;
}

int receiver_parse_upload(struct receiver *ret_receiver, const char *address, struct errmsg *err)
{
	struct receiver receiver = {
		.name = address, .address = address, .timeout_ms = timeout_ms()};
	struct stat status = {0};
	int r;

	if (strstr(address, "://")) {
		receiver.kind = RECEIVER_PUT;
		r = http_check_url(address, err);
		if (r == 0)
			r = http_load(err);
	} else {
		_cleanup_close_ int fd = open_destination(&receiver, &status);

		r = fd < 0 ? errmsg_set(err, fd,
				     "cannot upload to %s: %s; make the folder first, or mount it",
				     address, strerror(-fd))
			   : 0;
		if (r == 0)
			receiver.device = status.st_dev;
	}
	if (r == 0)
		*ret_receiver = receiver;
	return r;
}

static int parse_format(const char *text, enum receiver_kind *ret_kind)
{
	static const enum receiver_kind kinds[] = {
		RECEIVER_OTLP, RECEIVER_OTLP_METRICS, RECEIVER_PPROF};
	size_t length = strcspn(text, "=");

	for (size_t i = 0; text[length] && i < ARRAY_SIZE(kinds); i++) {
		const char *name = receiver_kind_name(kinds[i]);

		if (strlen(name) == length && strncmp(name, text, length) == 0) {
			*ret_kind = kinds[i];
			return 0;
		}
	}
	return -EINVAL;
}

int receiver_parse_push(struct receiver *ret_receiver, const char *text, struct errmsg *err)
{
	struct receiver receiver = {.name = text, .timeout_ms = timeout_ms()};
	int r = parse_format(text, &receiver.kind);

	if (r < 0)
		return errmsg_set(err, r,
			"%s names no format: give otlp=URL or otlp-metrics=URL, such as "
			"otlp=http://127.0.0.1:4318, or pprof=URL, such as "
			"pprof=http://127.0.0.1:4040",
			text);
	receiver.address = strchr(text, '=') + 1;
	r = http_check_url(receiver.address, err);
	if (r == 0 && strpbrk(receiver.address, "?#"))
		r = errmsg_set(err, -EINVAL,
			"%s has a query: give the URL that the path of the receiver follows", text);
	if (r == 0)
		r = http_load(err);
	if (r == 0)
		*ret_receiver = receiver;
	return r;
}

int receiver_parse(struct receiver *ret_receiver, const char *text, struct errmsg *err)
{
	enum receiver_kind kind;

	if (parse_format(text, &kind) < 0)
		return receiver_parse_upload(ret_receiver, text, err);
	if (kind == RECEIVER_OTLP_METRICS)
		return errmsg_set(err, -EINVAL,
			"%s: metrics are of a recording that goes on: give it to 'sonde record "
			"--continuous --push'",
			text);
	return receiver_parse_push(ret_receiver, text, err);
}

/* ---- to a folder ---- */

static int copy(int from, int to)
{
	_cleanup_free_ char *room = malloc(COPY_BYTES);
	off_t at = 0;
	ssize_t got;
	int r = room ? 0 : -ENOMEM;

	while (r == 0 && (got = pread(from, room, COPY_BYTES, at)) != 0) {
		if (got < 0)
			return -errno;
		r = write_all(to, room, (size_t)got);
		at += got;
	}
	return r < 0 ? r : fsync(to) < 0 ? -errno : 0;
}

/* What a killed sender left is written anew. */
static int copy_into(int folder, const char *name, int fd)
{
	_cleanup_strbuf_ struct strbuf temporary = {0};
	_cleanup_close_ int to = -1;
	int r;

	strbuf_addf(&temporary, ".%s.part", name);
	unlinkat(folder, strbuf_cstr(&temporary), 0);
	to = new_file_at(folder, strbuf_cstr(&temporary), O_WRONLY, 0600);
	if (to < 0)
		return to;
	r = copy(fd, to);
	if (r == 0 && renameat(folder, strbuf_cstr(&temporary), folder, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(folder, strbuf_cstr(&temporary), 0);
	return r;
}

static enum delivery deliver_to_folder(
	const struct receiver *receiver, const char *name, int fd, struct errmsg *err)
{
	struct stat status = {0};
	_cleanup_close_ int folder = open_destination(receiver, &status);
	int r = folder < 0 ? folder : 0;

	/* Below a mount point lies a folder of another disk, which is not meant. */
	if (r == 0 && status.st_dev != receiver->device)
		r = -ESTALE;
	if (r == 0)
		r = copy_into(folder, name, fd);
	if (r == 0)
		return DELIVERY_DONE;
	errmsg_set(err, r, "%s: %s", receiver->address,
		r == -ESTALE ? "another disk is there than before: mount it again" : strerror(-r));
	return DELIVERY_LATER;
}

/* ---- by HTTP ---- */

/* What will be the same the next time: the content is not wanted. */
static bool is_rejected(long status)
{
	return status == 400 || status == 413 || status == 415 || status == 422;
}

static enum delivery send_request(const struct receiver *receiver, struct http_request *request,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	struct http_answer answer = {0};
	struct errmsg reason = {""};

	request->token = receiver->token;
	request->timeout_ms = receiver->timeout_ms;
	if (http_send(request, &answer, &reason) < 0) {
		errmsg_set(err, -EIO, "%s: %s", receiver->address, reason.text);
		return DELIVERY_LATER;
	}
	if (answer.status >= 200 && answer.status < 300)
		return DELIVERY_DONE;
	*ret_wait_s = answer.retry_after_s;
	errmsg_set(err, -EIO, "%s answers %ld%s%s", receiver->address, answer.status,
		answer.text[0] ? ": " : "", answer.text);
	return is_rejected(answer.status) ? DELIVERY_REJECTED : DELIVERY_LATER;
}

static enum delivery put(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf url = {0};
	struct stat status;
	struct http_request request = {
		.method = "PUT", .content_type = "application/octet-stream", .fd = fd};

	strbuf_addf(&url, "%s%s%s", receiver->address,
		text_ends_in(receiver->address, "/") ? "" : "/", name);
	request.url = strbuf_cstr(&url);
	if (fstat(fd, &status) < 0 || strbuf_status(&url) < 0) {
		errmsg_set(err, -EIO, "%s: %s", name, strerror(errno));
		return DELIVERY_LATER;
	}
	request.length = (uint64_t)status.st_size;
	return send_request(receiver, &request, ret_wait_s, err);
}

/* ---- in other formats ---- */

static void add_address(const struct receiver *receiver, struct strbuf *url)
{
	size_t length = strlen(receiver->address);

	while (length && receiver->address[length - 1] == '/')
		length--;
	strbuf_add_bytes(url, receiver->address, length);
}

static enum delivery post_protobuf(const struct receiver *receiver, const char *path, int fd,
	uint64_t length, uint64_t *ret_wait_s, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf url = {0};
	struct http_request request = {
		.method = "POST",
		.content_type = "application/x-protobuf",
		.fd = fd,
		.length = length,
	};

	add_address(receiver, &url);
	strbuf_add(&url, path);
	request.url = strbuf_cstr(&url);
	return send_request(receiver, &request, ret_wait_s, err);
}

static enum delivery post_metrics(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	struct stat status;

	if (fstat(fd, &status) < 0) {
		errmsg_set(err, -errno, "the metrics of %s: %s", name, strerror(errno));
		return DELIVERY_LATER;
	}
	return post_protobuf(
		receiver, "/v1/metrics", fd, (uint64_t)status.st_size, ret_wait_s, err);
}

/* What a label may have without being escaped. */
static void add_plain(struct strbuf *url, const char *text)
{
	for (const char *c = text; *c; c++)
		strbuf_add_char(url, isalnum((unsigned char)*c) || strchr("-._", *c) ? *c : '_');
}

static void make_ingest_url(
	const struct receiver *receiver, const struct converted *converted, struct strbuf *url)
{
	uint64_t end_ns = converted->begin_realtime_ns + converted->duration_ns;

	add_address(receiver, url);
	strbuf_add(url, "/ingest?name=sonde%7Bhost%3D");
	add_plain(url, converted->host[0] ? converted->host : "unknown");
	strbuf_addf(url, "%%7D&from=%llu&until=%llu&format=pprof&spyName=sonde",
		(unsigned long long)(converted->begin_realtime_ns / NS_PER_S),
		(unsigned long long)((end_ns + NS_PER_S - 1) / NS_PER_S));
}

/* A form of one file. Compressed bytes may have any content: the boundary is by chance. */
static int make_form(const struct converted *converted, const char *boundary, struct strbuf *form)
{
	char *room;
	ssize_t got;

	strbuf_addf(form,
		"--%s\r\nContent-Disposition: form-data; name=\"profile\"; "
		"filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n",
		boundary);
	room = strbuf_extend(form, converted->length);
	if (!room)
		return -ENOMEM;
	got = pread(converted->fd, room, converted->length, 0);
	strbuf_addf(form, "\r\n--%s--\r\n", boundary);
	return got == (ssize_t)converted->length ? strbuf_status(form) : -EIO;
}

static enum delivery post_pprof(const struct receiver *receiver, const struct converted *converted,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	_cleanup_strbuf_ struct strbuf url = {0}, form = {0}, type = {0};
	struct http_request request = {.method = "POST", .fd = -1};
	uint64_t random[2] = {0};
	char boundary[48];

	if (getrandom(random, sizeof(random), 0) < 0)
		random[0] = monotonic_now_ns();
	snprintf(boundary, sizeof(boundary), "sonde%016llx%016llx", (unsigned long long)random[0],
		(unsigned long long)random[1]);
	make_ingest_url(receiver, converted, &url);
	strbuf_addf(&type, "multipart/form-data; boundary=%s", boundary);
	if (make_form(converted, boundary, &form) < 0) {
		errmsg_set(err, -ENOMEM, "out of memory");
		return DELIVERY_LATER;
	}
	request.url = strbuf_cstr(&url);
	request.content_type = strbuf_cstr(&type);
	request.bytes = form.data;
	request.length = form.length;
	return send_request(receiver, &request, ret_wait_s, err);
}

static enum delivery convert_and_post(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	_cleanup_(converted_done) struct converted converted = CONVERTED_NONE;
	struct errmsg reason = {""};
	int r = convert_capture(fd, receiver_kind_name(receiver->kind), &converted, &reason);

	if (r < 0) {
		errmsg_set(err, r, "%s cannot be converted: %s", name, reason.text);
		return r == -ENOMEM ? DELIVERY_LATER : DELIVERY_REJECTED;
	}
	return receiver->kind == RECEIVER_OTLP
		       ? post_protobuf(receiver, "/v1development/profiles", converted.fd,
				 converted.length, ret_wait_s, err)
		       : post_pprof(receiver, &converted, ret_wait_s, err);
}

enum delivery receiver_deliver(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	*ret_wait_s = 0;
	switch (receiver->kind) {
	case RECEIVER_FOLDER:
		return deliver_to_folder(receiver, name, fd, err);
	case RECEIVER_PUT:
		return put(receiver, name, fd, ret_wait_s, err);
	case RECEIVER_OTLP_METRICS:
		return post_metrics(receiver, name, fd, ret_wait_s, err);
	case RECEIVER_OTLP:
	case RECEIVER_PPROF:
		return convert_and_post(receiver, name, fd, ret_wait_s, err);
	}
	return DELIVERY_REJECTED;
}

/* ---- the token ---- */

static bool is_token(const char *token)
{
	for (const char *c = token; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return false;
	return *token;
}

int receiver_token(const char *path, char **ret_token, struct errmsg *err)
{
	const char *variable = getenv("SONDE_TOKEN");
	_cleanup_strbuf_ struct strbuf text = {0};
	int r = 0;

	if (path)
		r = read_whole_file(path, MOST_TOKEN_BYTES, &text);
	else if (variable)
		strbuf_add(&text, variable);
	unsetenv("SONDE_TOKEN");
	if (r < 0)
		return errmsg_set(err, r, "cannot read --token-file %s: %s", path, strerror(-r));
	while (text.length && strchr("\r\n", text.data[text.length - 1]))
		text.data[--text.length] = '\0';
	if (!text.length && !path)
		return 0;
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	if (!is_token(strbuf_cstr(&text)))
		return errmsg_set(err, -EINVAL,
			"the token in %s is empty, or has characters that no header can have",
			path ?: "$SONDE_TOKEN");
	*ret_token = TAKE_PTR(text.data);
	return 0;
}
