/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers windows while they are recorded, in a process of its own, so that nothing that is sent
 * can hold up the sampler. Each receiver has a queue on the disk (queue.h). What a receiver does
 * not take is tried again, later and later: after one second, two, four … up to five minutes, each
 * time up to a half earlier by chance.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strbuf.h"
#include "push/receiver.h"

#define SENDER_RECEIVERS 8

struct sender;

struct sender_options {
	size_t size;        /* sizeof(struct sender_options) */
	const char *folder; /* of the windows */
	const struct receiver *receivers;
	size_t receiver_count; /* up to SENDER_RECEIVERS */
	bool is_quiet;         /* says nothing on standard error */
};

/* Of one receiver, as of now; the sender's process writes it. */
struct sender_counts {
	_Atomic uint64_t delivered, delivered_bytes, failures;
	_Atomic uint64_t dropped;  /* removed by --keep before they were delivered */
	_Atomic uint64_t rejected; /* not wanted by the receiver */
	_Atomic uint64_t waiting;
};

/* Opens the queues and starts the process: before there are threads. Returns 0 or an errno with a
 * sentence. */
int sender_start(
	struct sender **ret_sender, const struct sender_options *options, struct errmsg *err);
/* A window is complete: it goes into all queues; `metrics`, of now, into those of receivers of
 * metrics (receiver_takes_metrics(); NULL: there is none). Returns 0 or a negative errno. */
int sender_add(struct sender *sender, const char *window, const struct strbuf *metrics);
/*
 * Waits until all windows are delivered, one cannot be, or the time is over; the rest stays in the
 * queues for the next recording in this folder.
 */
void sender_finish(struct sender *sender, uint64_t timeout_ns);
/* Counts of a receiver. */
const struct sender_counts *sender_counts(const struct sender *sender, size_t receiver);
/* How the process ended before sender_finish(), as by a signal, in a sentence; NULL: it did not. */
const char *sender_fault(struct sender *sender);
struct sender *sender_free(struct sender *sender);
