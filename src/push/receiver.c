/* SPDX-License-Identifier: Apache-2.0 */
#include "push/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "push/http.h"

#define MOST_TOKEN_BYTES 8192
#define TIMEOUT_MS       30000
#define COPY_BYTES       ((size_t)1 << 20)

const char *receiver_kind_name(enum receiver_kind kind)
{
	return kind == RECEIVER_FOLDER ? "folder" : "put";
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
	struct receiver receiver = {.address = address, .timeout_ms = timeout_ms()};
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
	to = openat(folder, strbuf_cstr(&temporary),
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
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

enum delivery receiver_deliver(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err)
{
	*ret_wait_s = 0;
	switch (receiver->kind) {
	case RECEIVER_FOLDER:
		return deliver_to_folder(receiver, name, fd, err);
	case RECEIVER_PUT:
		return put(receiver, name, fd, ret_wait_s, err);
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
