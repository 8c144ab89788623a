/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests with a body, by libcurl, which is loaded when the first one is made: who sends nothing
 * pays nothing. Redirects are not followed: a token is for one receiver.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

struct http_header {
	const char *name, *value; /* without control characters; checked when it is sent */
};

/* Bytes of a body. Not 0, a negative errno: the answer is not wanted any more. */
typedef int http_body_function(void *context, const char *bytes, size_t length);

struct http_request {
	const char *method; /* "PUT", "POST" */
	const char *url;
	const char *content_type;
	const char *token; /* goes as "Authorization: Bearer"; NULL: none */
	int fd;            /* the body, from its begin; -1: `bytes` */
	const void *bytes;
	uint64_t length;
	uint64_t timeout_ms;               /* without an answer, or without progress */
	const struct http_header *headers; /* others */
	size_t header_count;
	/* Takes the body of an answer of status 2xx; NULL: only its beginning is kept, as text. */
	http_body_function *take;
	void *context;
};

struct http_answer {
	long status;
	uint64_t retry_after_s; /* 0: none was given */
	char text[400];         /* the begin of what it says */
};

/* Can requests be made? Returns 0, or -ENOENT with a sentence that says what to install. */
int http_load(struct errmsg *err);
/*
 * Returns 0 when there was an answer, whatever its status; a negative errno with a sentence
 * otherwise: -ECONNREFUSED where nothing was sent, -ETIMEDOUT, -EIO, or what `take` returned, then
 * without a sentence. One thread.
 */
int http_send(
	const struct http_request *request, struct http_answer *ret_answer, struct errmsg *err);
/* Returns 0, or -EINVAL with a sentence: another scheme, or a user name and password in it. */
int http_check_url(const char *url, struct errmsg *err);
