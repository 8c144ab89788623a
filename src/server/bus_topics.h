/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bus keeps for clients that come later: of each topic, a type and a key, the latest message
 * where only that counts, and of each key a while of all others.
 */
#pragma once

#include "base/strbuf.h"
#include "server/bus.h"
#include "server/bus_queue.h"

#define BUS_TOPICS_MAX 512

struct bus_topic {
	char type[BUS_TYPE_BYTES];
	char key[BUS_KEY_BYTES];
};

struct bus_history {
	char key[BUS_KEY_BYTES];
	struct bus_queue messages;
};

struct bus_topics {
	struct bus_topic names[BUS_TOPICS_MAX]; /* type "": free */
	unsigned count;                         /* of names that were ever used */
	struct bus_message *latest[BUS_TOPICS_MAX];
	ARRAY_OF(struct bus_history) histories;
};

/* Its number, a new one where there is none. Returns 0 or -E2BIG: there are too many. */
int bus_topics_find(
	struct bus_topics *topics, const char *type, const char *key, unsigned *ret_topic);
/* Where memory runs out, it is not kept. */
void bus_topics_keep(
	struct bus_topics *topics, struct bus_message *message, const struct bus_limits *limits);
void bus_topics_forget(struct bus_topics *topics, const char *key);
/* The envelopes of a key, with commas between them. */
void bus_topics_write_history(struct bus_topics *topics, const char *key,
	const struct bus_limits *limits, struct strbuf *out, uint64_t now_ns);
void bus_topics_done(struct bus_topics *topics);
