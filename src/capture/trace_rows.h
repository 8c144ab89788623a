/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of another tool's trace in a capture. What Perfetto shows is written as its messages
 * (slices of threads, stages of GPUs), everything else of a row in a TraceRow of fields that say
 * how they differ from the row before: see schema/sonde.proto.
 *
 * A trace is written as: the trace, then each of its tracks and the rows of that track. What
 * follows belongs to the last trace that was written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* Numbers of the fields of TraceRow, which say what they are. */
enum capture_row_field {
	ROW_EXTERNAL_ID = 1,
	ROW_RF_ID = 2,
	ROW_EV_IDX = 3,
	ROW_CORRELATION = 4,
	ROW_FILE_INDEX = 5,
	ROW_OTHERS = 6,
	ROW_INPUT_TYPES = 7,
	ROW_CONCRETE_INPUTS = 8,
	ROW_INPUT_DIMS = 9,
	ROW_INPUT_STRIDES = 10,
	ROW_SEQUENCE = 11,
	ROW_FORWARD_THREAD = 12,
	ROW_PYTHON_ID = 13,
	ROW_PYTHON_PARENT_ID = 14,
	ROW_LAYOUT = 15, /* no value of a row: which fields it has */
	ROW_PYTHON_MODULE_ID = 16,
	ROW_CALL_STACK = 17,
	ROW_MODULE_HIERARCHY = 18,
	ROW_DURATION = 19, /* when the slice or stage does not tell it */
	ROW_DEVICE = 20,
	ROW_CONTEXT = 21,
	ROW_STREAM = 22,
	ROW_BYTES = 23,
	ROW_REGISTERS = 24,
	ROW_SHARED_BYTES = 25,
	ROW_GRAPH = 26,
	ROW_GRAPH_NODE = 27,
	ROW_QUEUED = 28,
	ROW_SYNC_KIND = 29,
	ROW_WAIT_STREAM = 30,
	ROW_WAIT_EVENT = 31,
	ROW_WAIT_CORRELATION = 32,
	ROW_GRID = 33,  /* and 34, 35 */
	ROW_BLOCK = 36, /* and 37, 38 */
	ROW_ADDRESS = 39,
	ROW_MEMORY_BYTES = 40,
	ROW_TOTAL_ALLOCATED = 41,
	ROW_TOTAL_RESERVED = 42,
	ROW_DEVICE_TYPE = 43,
	ROW_DEVICE_ID = 44,
	ROW_COLLECTIVE_NAME = 45,
	ROW_DTYPE = 46,
	ROW_IN_ELEMENTS = 47,
	ROW_OUT_ELEMENTS = 48,
	ROW_GROUP_SIZE = 49,
	ROW_GROUP_NAME = 50,
	ROW_GROUP_DESCRIPTION = 51,
	ROW_GROUP_RANKS = 52,
	ROW_IN_SPLIT = 53,
	ROW_OUT_SPLIT = 54,
	ROW_SOURCE = 55,
	ROW_DESTINATION = 56,
	ROW_COLLECTIVE_SEQUENCE = 57,
	ROW_COMMUNICATOR = 58,
	ROW_FLOW = 59, /* category of an arrow that begins or ends with the row */
	ROW_FLOW_ENDS = 60,
	/* These are bits of the layout only. */
	ROW_HAS_COLLECTIVE = 61,
	ROW_HAS_MEMORY = 62,
	ROW_HAS_WORK = 63,
	ROW_HAS_OP = 0, /* there is no field 0 */
	ROW_FIELD_MAX = 64,
	ROW_CATEGORY = 64, /* of stages; of slices it is the TrackEvent's */
};

#define ROW_BIT(field) (1ULL << (field))
/* Fields with values, and those that a stage tells itself. */
#define ROW_VALUES                                                                                 \
	(~(ROW_BIT(ROW_HAS_OP) | ROW_BIT(ROW_HAS_WORK) | ROW_BIT(ROW_HAS_MEMORY) |                 \
		ROW_BIT(ROW_HAS_COLLECTIVE)))
/* Fields that are texts. */
#define ROW_TEXTS                                                                                  \
	(ROW_BIT(ROW_OTHERS) | ROW_BIT(ROW_INPUT_TYPES) | ROW_BIT(ROW_CONCRETE_INPUTS) |           \
		ROW_BIT(ROW_INPUT_DIMS) | ROW_BIT(ROW_INPUT_STRIDES) | ROW_BIT(ROW_CALL_STACK) |   \
		ROW_BIT(ROW_MODULE_HIERARCHY) | ROW_BIT(ROW_SYNC_KIND) |                           \
		ROW_BIT(ROW_COLLECTIVE_NAME) | ROW_BIT(ROW_DTYPE) | ROW_BIT(ROW_GROUP_NAME) |      \
		ROW_BIT(ROW_GROUP_DESCRIPTION) | ROW_BIT(ROW_GROUP_RANKS) |                        \
		ROW_BIT(ROW_IN_SPLIT) | ROW_BIT(ROW_OUT_SPLIT) | ROW_BIT(ROW_FLOW))
#define ROW_GRID_BITS  (7 * ROW_BIT(ROW_GRID))
#define ROW_BLOCK_BITS (7 * ROW_BIT(ROW_BLOCK))

enum capture_row_kind {
	CAPTURE_ROW_BEGIN = 1, /* values of TrackEvent.Type */
	CAPTURE_ROW_END = 2,
	CAPTURE_ROW_MOMENT = 3,
	CAPTURE_ROW_STAGE = 4, /* work of a device: begin and end in one */
};

/*
 * Texts are ids in `strings`. Of ends only time and lane are written: rows of one lane nest, and an
 * end is that of the innermost one that is open.
 */
struct capture_trace_row {
	enum capture_row_kind kind;
	uint64_t time_ns, duration_ns; /* duration: of stages */
	uint64_t lane; /* writing: from 0; reading: something that tells lanes of a track apart */
	uint32_t track;
	uint32_t name, category;
	bool launches; /* writing: work of its correlation is a row, too */
	uint32_t pid;  /* writing: of stages, the process's; 0: unknown */
	/* Writing: arrows that begin and end with the slice, in Perfetto; 0: none. */
	uint64_t flow, ended_flow;
	uint64_t layout; /* ROW_BIT() of what it has */
	uint64_t values[ROW_FIELD_MAX];
	const struct intern *strings; /* reading: the ids' meaning, for the whole read */
};

/* A thread or a stream. Texts "": none; numbers INT64_MIN: none. */
struct capture_trace_track {
	uint32_t number;
	int64_t pid, tid;
	const char *pid_text, *tid_text, *process_name, *thread_name, *process_labels;
	int64_t process_sort, thread_sort;
	int64_t owner_tid; /* 0: `tid`; -1: no thread's */
	bool is_device;
};

struct capture_trace_damage {
	uint64_t skipped_events, skipped_bytes, mended_events, repaired_times, unended_events;
	bool truncated;
};

/* What kind of thing a trace's category means: a number of the model's. */
struct capture_trace_category {
	const char *name;
	uint32_t kind;
};

struct capture_trace {
	const char *path;
	uint64_t origin_ns; /* time in the capture of the trace's 0, modulo 2^64 */
	uint64_t base_ns;
	uint32_t rank; /* UINT32_MAX: not known */
	uint32_t world_size;
	const char *backend;
	const char *header;
	bool has_fractions, arguments_kept;
	struct capture_trace_damage damage;
	uint64_t row_count;
	const struct capture_trace_category *categories;
	size_t category_count;
	uint64_t begin_ns; /* of the first row; needed for writing */
};

struct capture_trace_group {
	const char *name, *description, *backend, *ranks;
	int64_t size;
};

struct capture_trace_flow {
	uint64_t time_ns, id;
	uint32_t track;
	const char *category;
	bool is_end;
};

struct capture_trace_counter {
	uint64_t time_ns;
	uint32_t track;
	uint32_t device; /* its number + 1; 0: no device's, or not known */
	const char *name, *series;
	double value;
};
