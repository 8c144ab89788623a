/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of live messages, which many clients share: each row holds a reference. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "server/api.h"

struct bus_message {
	unsigned refs;
	unsigned topic; /* of bus_topics.h */
	uint64_t seq;
	uint64_t time_ns; /* when it was published */
	enum api_class class;
	size_t length;      /* of both */
	size_t text_length; /* the envelope; behind it is the same as a binary frame, if there is */
	char bytes[];
};

/* Oldest first. Zero-initialise to start empty. */
struct bus_queue {
	ARRAY_OF(struct bus_message *) items;
	size_t first; /* those before it were taken */
	size_t bytes;
	size_t counts[API_CLASS_DROP_FIRST + 1]; /* by class */
};

struct bus_message *bus_message_ref(struct bus_message *message);
/* Takes NULL. */
void bus_message_unref(struct bus_message *message);

/* Takes a reference. Returns 0 or -ENOMEM. */
int bus_queue_add(struct bus_queue *queue, struct bus_message *message);
size_t bus_queue_count(const struct bus_queue *queue);
/* The oldest, with the queue's reference. There must be one. */
struct bus_message *bus_queue_take(struct bus_queue *queue);
void bus_queue_done(struct bus_queue *queue);
