/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets captures, and how one is handed over. Kinds:
 *   upload DIR    a copy in a folder, which must be there: written under another name, and renamed
 *   upload URL    PUT URL/NAME
 *   push otlp=URL   profiles by OTLP, POST URL/v1development/profiles
 *   push otlp-metrics=URL   metrics by OTLP, POST URL/v1/metrics
 *   push pprof=URL  a profile of pprof, POST URL/ingest, as Pyroscope takes it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"

enum receiver_kind {
	RECEIVER_FOLDER,
	RECEIVER_PUT,
	RECEIVER_OTLP,
	RECEIVER_OTLP_METRICS,
	RECEIVER_PPROF,
};

struct receiver {
	enum receiver_kind kind;
	const char *name; /* as it was given: "otlp=URL" */
	const char *address;
	const char *token;   /* NULL: none */
	uint64_t timeout_ms; /* of HTTP */
	dev_t device;        /* of the folder, when it was opened */
};

enum delivery {
	DELIVERY_DONE,
	DELIVERY_LATER,    /* it may succeed another time */
	DELIVERY_REJECTED, /* it will not */
};

/* Short, for names and messages: "folder", "put" … */
const char *receiver_kind_name(enum receiver_kind kind);
/* An address as of --upload. Returns 0 or an errno with a sentence. */
int receiver_parse_upload(struct receiver *ret_receiver, const char *address, struct errmsg *err);
/* Does it get metrics, which are made when a window ends, and not the window? */
bool receiver_takes_metrics(const struct receiver *receiver);
/* "otlp=URL", "otlp-metrics=URL" or "pprof=URL", as of --push. Likewise. */
int receiver_parse_push(struct receiver *ret_receiver, const char *text, struct errmsg *err);
/* Either of both, of those that take captures. */
int receiver_parse(struct receiver *ret_receiver, const char *text, struct errmsg *err);
/*
 * Hands the capture, or the metrics, over that `fd` reads from its begin. `err` says why it failed;
 * *ret_wait_s, how long the receiver wants not to be asked, 0 when it did not say so.
 */
enum delivery receiver_deliver(const struct receiver *receiver, const char *name, int fd,
	uint64_t *ret_wait_s, struct errmsg *err);

/*
 * The token of a file or, without one, of $SONDE_TOKEN, which is taken out of the environment, so
 * that no child inherits it; malloc'ed, NULL: there is none. Returns 0 or an errno with a sentence.
 */
int receiver_token(const char *path, char **ret_token, struct errmsg *err);
