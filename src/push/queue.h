/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What still has to be delivered: below the folder of windows, queue/ID/ has an empty file of the
 * name of each window that waits (of a receiver of metrics, with those of that time in it), and
 * `format`, which says of which version it is and what it is
 * for. The windows themselves stay where they are, so that their folder bounds the queue, too: a
 * window that was removed is dropped. Whoever adds and who delivers may be two processes. No link
 * is followed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"

/* The queue of a receiver, by its kind and address. */
struct push_queue {
	char *folder; /* of the windows */
	char id[32];
};

#define PUSH_QUEUE_NONE ((struct push_queue){0})

/*
 * Makes the queue, or takes the one that is there. Returns 0 or an errno with a sentence: also when
 * it is of another version.
 */
int push_queue_open(struct push_queue *ret_queue, const char *folder, const char *kind,
	const char *address, struct errmsg *err);
void push_queue_done(struct push_queue *queue);

/* The window has to be delivered, or with it these bytes (NULL: none). Returns 0 or a negative
 * errno.
 */
int push_queue_add(const struct push_queue *queue, const char *window, const struct strbuf *bytes);
/* It was delivered, or is given up. */
void push_queue_remove(const struct push_queue *queue, const char *window);
/*
 * The oldest window that waits, malloc'ed, and how many wait. Returns 1, 0 when none does, or a
 * negative errno.
 */
int push_queue_first(const struct push_queue *queue, char **ret_window, uint64_t *ret_count);
/* The window's file, to read. Returns a descriptor, or a negative errno: -ENOENT: it was removed.
 */
int push_queue_open_window(const struct push_queue *queue, const char *window);
/* The bytes that were added with it, likewise. */
int push_queue_open_bytes(const struct push_queue *queue, const char *window);
