/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept while a result of rocprofv3 is read: names.c fills it, records.c makes rows. */
#pragma once

#include "importers/json_parts.h"
#include "importers/rows.h"

/* A kind of record, and where the names of its operations begin. */
struct rocprof_kind {
	uint32_t name; /* string */
	uint32_t first, count;
};

struct rocprof_agent {
	uint64_t handle;
	int64_t gpu; /* its number among GPUs; -1: it is a CPU */
};

/* Of one process: its part of the file. */
struct rocprof {
	struct import_rows *rows;
	int64_t pid;
	uint32_t process_name;
	ARRAY_OF(struct rocprof_kind) kinds;
	ARRAY_OF(uint32_t) operations; /* strings */
	ARRAY_OF(struct rocprof_agent) agents;
	struct map_u64 kernels; /* kernel_id → string */
	struct map_u64 markers; /* correlation → string: a program's own text */
	struct map_u64 held;    /* address → bytes, of allocations */
	uint64_t left_out;      /* records without rows */
};

/* A string's text. Returns 0 or a negative errno. */
int rocprof_text(struct rocprof *rocprof, const struct json_text *value, uint32_t *ret_string);
/* Returns 0 or a negative errno, as the next one. */
int rocprof_read_names(struct rocprof *rocprof, const struct json_text *tool);
int rocprof_read_records(struct rocprof *rocprof, const struct json_text *records);

/* "" where there is none. */
const char *rocprof_operation(const struct rocprof *rocprof, uint64_t kind, uint64_t operation);
const char *rocprof_kind_name(const struct rocprof *rocprof, uint64_t kind);
/* -1: no GPU. */
int64_t rocprof_gpu(const struct rocprof *rocprof, uint64_t handle);
