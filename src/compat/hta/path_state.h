/* SPDX-License-Identifier: Apache-2.0 */
/* Of path.c and path_devices.c: HTA's critical path while it is made. */
#pragma once

#include "base/map.h"
#include "compat/hta/internal.h"

/* What a row's name says; flags. */
enum {
	HTA_PATH_BLOCKING = 1 << 0,  /* a call that waits for a device */
	HTA_PATH_LOCKING = 1 << 1,   /* calls that take turns, whatever their thread */
	HTA_PATH_LAUNCHING = 1 << 2, /* calls that count for the length of queues */
	HTA_PATH_FORWARD = 1 << 3,   /* on the thread of the forward pass */
	HTA_PATH_BACKWARD = 1 << 4,  /* on that of the backward pass */
};

/* A row of the window that is on no stream. */
struct hta_path_row {
	int64_t start_ns, end_ns;
	uint32_t event;
};

/* A call that launched, in the order of calls. */
struct hta_path_launch {
	int64_t pid, tid; /* of what it is looked up by: its thread, or the process of its work */
	int64_t stream;   /* of its work */
	int64_t start_ns;
	uint32_t order, call;
};

struct hta_path_launches {
	ARRAY_OF(struct hta_path_launch) items;
};

struct hta_path {
	const struct trace_view *view;
	const struct trace *trace;
	struct critical_paths *paths; /* where waits are counted */
	uint8_t *names;               /* flags of each string */
	ARRAY_OF(struct hta_path_row) rows;
	ARRAY_OF(uint32_t) works; /* rows of the window's work, smallest first */
	struct trace_path_graph graph;
	struct map_u64 edge_of_nodes;
	/* path_devices.c, of all rows: */
	struct map_u64 device_rows; /* correlation → the last row of a device */
	struct map_u64 calls;       /* correlation → the last other row */
	struct map_u64 records; /* correlation of cudaEventRecord() → a row that waits for it */
	struct hta_path_launches by_thread;  /* by thread, stream, start */
	struct hta_path_launches by_process; /* by process of the work, stream, start */
	int32_t *queue_lengths;              /* of rows; INT32_MIN: none */
	uint32_t stream_wait, event_sync, context_sync, record, stream_wait_call; /* names */
};

static inline const struct trace_event *hta_path_event(const struct hta_path *path, uint32_t row)
{
	return &path->trace->events.items[row];
}

static inline bool hta_path_name_is(const struct hta_path *path, uint32_t row, unsigned flag)
{
	return path->names[hta_path_event(path, row)->name] & flag;
}

/* The edge from one node to another, which takes the time between them or none. */
int hta_path_connect(struct hta_path *path, uint32_t from, uint32_t to, enum trace_path_kind kind,
	bool takes_time, uint32_t event);

/* Is it a device's row? */
bool hta_path_is_of_device(const struct hta_path *path, uint32_t row);
/* The work of a call, or the call of work: HTA's index_correlation; MODEL_NONE: none. */
uint32_t hta_path_partner(const struct hta_path *path, uint32_t row);
/* For qsort(): row numbers, smallest first. */
int hta_path_compare_rows(const void *left, const void *right);

int hta_path_devices_init(struct hta_path *path);
void hta_path_devices_done(struct hta_path *path);
/* Adds the edges of work and of waits. */
int hta_path_add_works(struct hta_path *path);
