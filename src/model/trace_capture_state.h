/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of trace_capture.h share while the rows of a recording are made: trace_capture.c
 * has all but its ranges and the calls that captured graphs, which are in trace_capture_ranges.c,
 * what NCCL's kernels move, which is in trace_capture_collectives.c, allocations, which are in
 * trace_capture_memory.c, and unified memory, in trace_capture_unified.c.
 */
#pragma once

#include "model/trace_capture.h"

struct capture_rows {
	const struct model *model;
	struct trace *trace;
	uint64_t origin_ns;
	struct intern tracks;   /* keys → track */
	struct map_u64 devices; /* interned name → number */
	struct map_u64 calls;   /* correlations whose call is a row */
	struct map_u64 hip;     /* processes that gave work to devices by HIP */
	struct map_u64 syncs;   /* correlations of calls that wait → enum wire_device_sync_type */
	struct map_u64 stacks;  /* the model's, of allocations → string: trace_memory.others */
	struct intern correlations; /* keys → number, where many processes have some */
	uint32_t *captured;         /* by the model's captured calls: the row, + 1; 0: none */
	uint32_t *collectives;      /* by the model's: the trace's, + 1; 0: none yet */
	uint32_t runtime, driver, kernel, memory_copy, memory_fill, annotation, operator, instant,
		memory, sync; /* strings */
	bool many_processes;  /* that gave work to devices */
	int32_t priority; /* of the last work that has one, and the member that says so: string */
	uint32_t priority_member;
};

struct capture_row_call {
	uint32_t process, thread, stack; /* indices; stack MODEL_NONE: not known */
	const char *name;
	uint64_t start_ns, end_ns, correlation;
};

static inline int64_t capture_rows_time(const struct capture_rows *rows, uint64_t time_ns)
{
	return (int64_t)(time_ns - rows->origin_ns);
}

/* They return 0 or -ENOMEM. */
int capture_rows_text(struct trace *trace, const char *text, uint32_t *ret_string);
int capture_rows_thread(
	struct capture_rows *rows, uint32_t process, uint32_t thread, uint32_t *ret_track);
int capture_rows_add(struct capture_rows *rows, struct trace_event *event);
int capture_rows_add_call(struct capture_rows *rows, const struct capture_row_call *call);
/* The number of a device of this name, which is interned. */
int capture_rows_device(struct capture_rows *rows, const char *name, uint32_t *ret_device);
int capture_rows_add_memory(struct capture_rows *rows, const struct model_device_memory *from);
/* Of a kind of what happens to unified memory of a GPU; of none: of the process. */
int capture_rows_unified_track(
	struct capture_rows *rows, const struct model_unified_memory *item, uint32_t *ret_track);
/* In the order of the model's. */
int capture_rows_add_unified(struct capture_rows *rows);
/* As it was recorded; of several processes they are numbered, to differ in one trace. */
int capture_rows_correlation(struct capture_rows *rows, uint32_t process, uint64_t correlation,
	uint64_t *ret_correlation);
int capture_rows_add_annotation(struct capture_rows *rows, uint32_t process, uint32_t thread,
	const char *name, uint64_t start_ns, uint64_t end_ns);
/* Ranges that are shown, then those that are there for replays of graphs alone
 * (trace_event.is_capture): analyses/program/module_names.c goes by that order. */
int capture_rows_add_ranges(struct capture_rows *rows);
/* What a kernel moves among whom: `ret_collective` is set where that is known. */
int capture_rows_collective(
	struct capture_rows *rows, const struct model_device_work *work, uint32_t *ret_collective);
/* The calls that captured nodes of graphs which are there. */
int capture_rows_add_captured(struct capture_rows *rows);
