/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept while an export of Nsight Systems is read: device.c, host.c and nsys.c share it. */
#pragma once

#include "importers/nsys/database.h"
#include "importers/rows.h"

struct nsys_gpu {
	int64_t pid, ordinal; /* of CUDA in that process */
	int64_t gpu;
};

/* An event that was recorded, under each of the two keys that a wait may name it by. */
struct nsys_event {
	int64_t pid;
	int64_t context; /* -1: `id` is its eventSyncId, which no other record has */
	int64_t id;
	int64_t correlation, device, stream;
};

struct nsys {
	struct nsys_database database;
	struct import_rows rows;
	struct map_u64 strings;   /* StringIds.id → string */
	struct map_u64 processes; /* pid → string: its name */
	struct map_u64 threads;   /* globalTid without the machine → string: its name */
	struct map_u64 domains;   /* of NVTX: process and domain → string */
	ARRAY_OF(struct nsys_gpu) gpus;
	ARRAY_OF(struct nsys_event) events; /* by compare_events() when all are there */
};

/* The process and thread of a globalTid or globalPid. */
#define NSYS_ID_BITS 24
static inline int64_t nsys_pid(uint64_t global)
{
	return (int64_t)(global >> NSYS_ID_BITS & ((1U << NSYS_ID_BITS) - 1));
}

static inline int64_t nsys_tid(uint64_t global)
{
	return (int64_t)(global & ((1U << NSYS_ID_BITS) - 1));
}

/* The string of an id in that column; 0: there is none. */
uint32_t nsys_string(const struct nsys *nsys, sqlite3_stmt *statement, int column);
/* Reads a table: `take` is called for each row. Returns 0 or a negative errno. */
int nsys_read_table(struct nsys *nsys, const char *table, const char *const *columns,
	int (*take)(struct nsys *nsys, sqlite3_stmt *row));
/* Begin and duration, of columns 0 and 1. */
void nsys_times(sqlite3_stmt *row, struct trace_event *event);

/* Names of devices, and which of them a process calls by which number. */
int nsys_read_gpus(struct nsys *nsys);
/* Kernels, copies, fills, graphs, waits, memory. */
int nsys_read_device(struct nsys *nsys);
/* Calls of CUDA, ranges of NVTX. */
int nsys_read_host(struct nsys *nsys);
