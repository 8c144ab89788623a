/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waited for what, by the rows of a trace that say so ("cuda_sync"): the host for a device, a
 * stream or an event, and a stream for an event that another stream recorded. The work that a wait
 * was for is what had been given to that stream or device, or before the event was recorded, and
 * ended last.
 *
 * A stream waits for a function of the program, in between its work, as long as that runs, which
 * the rows say; what it waited for is no work.
 *
 * The host waits as long as its call takes. A stream waits from when it had work to do and nothing
 * else ran before it, until what it waited for has ended: no time, where that had ended already, or
 * where no work came to the stream.
 */
#pragma once

#include "analyses/trace_view.h"

enum device_sync_kind {
	DEVICE_SYNC_STREAM_WAIT, /* a stream, for an event */
	DEVICE_SYNC_EVENT,       /* the host, for an event; likewise the next ones */
	DEVICE_SYNC_STREAM,
	DEVICE_SYNC_DEVICE,        /* for all streams of a context */
	DEVICE_SYNC_HOST_FUNCTION, /* a stream, for a function of the program that it has run */
	/* The host, in calls of which no row says what they waited for: not among the syncs. */
	DEVICE_SYNC_COPY, /* for a copy or fill of its own */
	DEVICE_SYNC_CALL,
	DEVICE_SYNC_KIND_MAX,
};

/* "stream_wait_event" …, for JSON; for a table: "Stream waits for event". */
const char *device_sync_kind_name(enum device_sync_kind kind);
const char *device_sync_kind_title(enum device_sync_kind kind);

struct device_sync {
	int64_t start_ns, end_ns; /* end >= start */
	uint32_t row;             /* in trace.events */
	uint32_t call;            /* its call, a row; MODEL_NONE: not known */
	uint32_t waited; /* in view.works: what it waited for; MODEL_NONE: none, or not known */
	uint32_t next;   /* of a stream, in view.works: the work that waited; else MODEL_NONE */
	uint32_t target; /* in device_syncs.targets */
	uint8_t kind;    /* enum device_sync_kind */
	bool is_known;   /* how long it waited */
};

struct device_syncs {
	ARRAY_OF(struct device_sync) items; /* in the file's order */
	struct intern targets;   /* texts: "stream 7", "event of stream 7", a device's name */
	struct map_u64 of_calls; /* row of the call → index: the one that ends last */
	struct map_u64 of_works; /* work that waited → index, likewise */
};

/* Of all rows of waits that count. Returns 0 or -ENOMEM. */
int device_syncs_init(struct device_syncs *syncs, const struct trace_view *view);
void device_syncs_done(struct device_syncs *syncs);
#define _cleanup_device_syncs_ _cleanup_(device_syncs_done)

/* NULL: there is none. `work`: index in view.works. */
const struct device_sync *device_syncs_of_call(const struct device_syncs *syncs, uint32_t call);
const struct device_sync *device_syncs_of_work(const struct device_syncs *syncs, uint32_t work);
/* What it waited for, as a text. */
const char *device_syncs_target(const struct device_syncs *syncs, const struct device_sync *sync);
