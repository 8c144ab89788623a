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

struct http_request {
	const char *method; /* "PUT", "POST" */
	const char *url;
	const char *content_type;
	const char *token; /* goes as "Authorization: Bearer"; NULL: none */
	int fd;            /* the body, from its begin; -1: `bytes` */
	const void *bytes;
	uint64_t length;
	uint64_t timeout_ms; /* without an answer, or without progress */
};

struct http_answer {
	long status;
	uint64_t retry_after_s; /* 0: it was not said */
	char text[200];         /* the begin of what it says */
};

/* Can requests be made? Returns 0, or -ENOENT with a sentence that says what to install. */
int http_load(struct errmsg *err);
/*
 * Returns 0 when there was an answer, whatever its status; a negative errno with a sentence
 * otherwise. One thread.
 */
int http_send(
	const struct http_request *request, struct http_answer *ret_answer, struct errmsg *err);
/* Returns 0, or -EINVAL with a sentence: another scheme, or a user name and password in it. */
int http_check_url(const char *url, struct errmsg *err);
