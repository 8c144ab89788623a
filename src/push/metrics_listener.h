/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metrics on an address of loopback. It never waits: what is there is read and written in
 * metrics_listener_run(), which the recording calls often. A few clients at a time, small requests
 * only, and none for long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"

struct metrics_listener;

/* "127.0.0.1:9477". Returns 0 or an errno with a sentence: also for addresses that others reach. */
int metrics_listener_open(
	struct metrics_listener **ret_listener, const char *address, struct errmsg *err);
/* `write` makes the text, once for each request that wants it. */
void metrics_listener_run(struct metrics_listener *listener,
	void (*write)(void *context, struct strbuf *out), void *context);
struct metrics_listener *metrics_listener_free(struct metrics_listener *listener);

enum metrics_request {
	METRICS_REQUEST_PARTIAL, /* it goes on */
	METRICS_REQUEST_GET,     /* of /metrics */
	METRICS_REQUEST_OTHER,   /* of another path */
	METRICS_REQUEST_METHOD,  /* another method */
	METRICS_REQUEST_HOST,    /* for another host: a page that had its name point here */
	METRICS_REQUEST_BAD,
};

/* What `length` bytes of a client ask. The bytes need not end in anything. */
enum metrics_request metrics_request_parse(const char *bytes, size_t length, unsigned port);
