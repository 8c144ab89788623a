/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace as rows: what the threads of a program and the streams of its devices did, and when.
 * Importers fill it from other tools' files, trace_capture.h from a recording,
 * builder/traces.c from a capture that traces were imported into. Analyses read it through a view
 * (analyses/trace_view.h); Chakra's linker and converter, and exporters, as it is. Names and
 * meanings are Kineto's.
 *
 * Rows are in the file's order. Strings are ids in `strings`; id 0 is "".
 *
 * To fill one:
 *   1. trace_new();
 *   2. tracks, one for each thread and stream; texts by intern_add() to `strings`;
 *   3. events, in the file's order; of those with a detail, it in ops, works or memory, and its
 *      index in trace_event.detail, else MODEL_NONE;
 *   4. flows, counters, groups, and devices by trace_name_device(), where there are any;
 *   5. trace_finish(), after which rows are sorted by track, and launches known.
 * What is not known has the value that its comment gives, mostly not 0. tests/unit/toy-importer.c
 * fills one.
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "base/id_map.h"
#include "base/json_reader.h"
#include "model/model.h"

/* Kineto's "cat"; one that is not here is TRACE_OTHER, its name is kept. */
enum trace_category {
	TRACE_OTHER,
	TRACE_CPU_OP,
	TRACE_USER_ANNOTATION,
	TRACE_PYTHON_FUNCTION,
	TRACE_RUNTIME, /* cuda_runtime, and HIP's, XPU's, MTIA's … */
	TRACE_DRIVER,  /* cuda_driver … */
	TRACE_KERNEL,
	TRACE_MEMCPY,
	TRACE_MEMSET,
	TRACE_GPU_ANNOTATION,
	TRACE_SYNC, /* cuda_sync */
	TRACE_OVERHEAD,
	TRACE_CPU_INSTANT, /* "[memory]" and others: no duration */
	TRACE_CATEGORY_MAX,
};

#define TRACE_NO_DURATION INT64_MIN
#define TRACE_NO_ID       UINT64_MAX
#define TRACE_NO_NUMBER   INT64_MIN

struct trace_event {
	int64_t start_ns;     /* as the file has it, which is since trace.base_ns */
	int64_t duration_ns;  /* TRACE_NO_DURATION: a moment */
	uint64_t correlation; /* of a launch and its work; 0: none */
	uint64_t external_id; /* TRACE_NO_ID: none */
	uint32_t name;
	uint32_t category_name; /* "cuda_runtime" */
	uint32_t track;         /* index */
	uint32_t detail;        /* index in ops, works or memory, by category; MODEL_NONE: none */
	uint32_t file_index;    /* position in traceEvents */
	uint8_t category;       /* enum trace_category */
	bool is_capture;        /* lies outside of what is shown: here for its work only, see
				 * work.captured_by
				 */
};

/* A thread, or the stream of a device. */
struct trace_track {
	int64_t pid, tid; /* TRACE_NO_NUMBER: not a number, see the texts */
	uint32_t pid_text, tid_text;
	uint32_t process_name, thread_name, process_labels;
	int64_t process_sort, thread_sort; /* TRACE_NO_NUMBER: not known */
	/* Whose rows these are: 0: thread `tid`; another thread of the process, which has lines of
	 * several kinds in a file that sonde wrote; TRACE_OF_PROCESS: no thread's. */
	int64_t owner_tid;
	bool is_device;    /* some of its rows are a device's */
	uint32_t recorded; /* the model's thread, its index + 1; 0: of no recording, or no thread */
	/* Its rows by start, longer ones first, then the file's order: trace.rows.items[first] … */
	uint32_t first, count;
};

/* The category of annotations; and the argument of those whose category is the domain that a
 * program put its range into, as sonde writes them. */
#define TRACE_ANNOTATION_CATEGORY "user_annotation"
#define TRACE_RANGE_DOMAIN        "range domain"
/* The category of windows of a recording, and where PyTorch's profiler writes the time that it
 * traced. */
#define TRACE_WINDOW_CATEGORY   "recording_window"
#define TRACE_PROFILER_CATEGORY "Trace"
/* A row of TRACE_SYNC, in a recording: a stream waits while a function of the program runs. */
#define TRACE_HOST_FUNCTION "Host Function"
/* The category of what happened to pages of unified memory, in a recording. */
#define TRACE_UNIFIED_CATEGORY "unified_memory"
/* The argument of a step or range of a recording whose end is not known, and what it says. */
#define TRACE_END         "end"
#define TRACE_END_CUT     "cut off"
#define TRACE_END_UNKNOWN "not known"
/* The argument of a track's name that is its owner, and what it is where a process is. */
#define TRACE_OWNER      "owner tid"
#define TRACE_OF_PROCESS (-1)

/* Of a CPU operator, an annotation or a Python function. */
struct trace_op {
	uint64_t rf_id;         /* "Record function id"; TRACE_NO_ID: the file has none */
	int64_t sequence;       /* TRACE_NO_NUMBER: none, as for the next ones */
	int64_t forward_thread; /* "Fwd thread id" */
	int64_t ev_idx;
	int64_t python_id, python_parent_id, python_module_id;
	/* JSON text of the file; 0: none. */
	uint32_t input_dims, input_types, input_strides, concrete_inputs;
	uint32_t call_stack, module_hierarchy; /* with trace_read_options.keep_arguments */
	uint32_t kernel; /* of a call: what it launches; 0: the file does not say */
	/* All other arguments: members of an object, without its braces. Of annotations that
	 * sonde wrote they are kept in any case. */
	uint32_t others;
	uint32_t collective; /* index; MODEL_NONE: none */
};

/* Of device work, and of what waits for it. */
struct trace_work {
	int64_t device, context, stream; /* TRACE_NO_NUMBER: not known */
	uint64_t bytes;                  /* of copies and fills */
	double bandwidth_gbps; /* "memory bandwidth (GB/s)": finer than the times of old files; 0:
				  not known */
	uint32_t grid[3], block[3]; /* 0: not known */
	uint32_t registers, shared_bytes;
	uint64_t graph, graph_node; /* 0: of none */
	int64_t queued_ns;          /* TRACE_NO_NUMBER: not known */
	/* Of cuda_sync. */
	uint32_t sync_kind;              /* string: "Stream Wait Event" … */
	int64_t wait_stream, wait_event; /* TRACE_NO_NUMBER: not known */
	uint64_t wait_correlation;       /* of the call that recorded the event; 0: not known */
	/* Of a recording, of an event that another device recorded: numbers + 1; else 0. */
	uint32_t far_device, far_stream;
	uint32_t collective;  /* index; MODEL_NONE: none */
	uint32_t others;      /* as in struct trace_op */
	uint32_t recorded;    /* the model's device work, its index + 1; 0: of no recording */
	uint32_t captured_by; /* of a graph's node: the row of the call, + 1; 0: see trace_graphs.h
			       */
};

/* What a communication kernel, or its operator, moves among whom. Strings 0: not known. */
struct trace_collective {
	uint32_t name, dtype;
	int64_t in_elements, out_elements, group_size;       /* TRACE_NO_NUMBER: not known */
	uint32_t group_name, group_description, group_ranks; /* ranks: "[0, 1]" */
	uint32_t in_split, out_split;
	int64_t source, destination, sequence;
	uint64_t communicator; /* "Comms Id" */
};

#define TRACE_DEVICE_CUDA 1 /* PyTorch's type of device; 0 is the CPU */

/* The member of trace_memory.others that is the stack of an allocation: frames from the outermost
 * on, each "name (file:line)", with ';' between. */
#define TRACE_STACK           "stack"
#define TRACE_STACK_SEPARATOR ';'

/* "[memory]": of events of TRACE_CPU_INSTANT. TRACE_NO_NUMBER: not known. */
struct trace_memory {
	uint64_t address;
	int64_t bytes; /* negative: released */
	int64_t total_allocated, total_reserved;
	int64_t device_type, device_id;
	uint32_t others;   /* as in struct trace_op */
	uint32_t recorded; /* the model's stack of its call, its index + 1; 0: of no recording, or
			      not known */
};

/* Details in which nothing is known. */
extern const struct trace_op trace_no_op;
extern const struct trace_work trace_no_work;
extern const struct trace_memory trace_no_memory;

/* Category of arrows from an operator to the one of its gradient: of all arrows analyses need
 * these, since what launched work is known by its correlation. */
#define TRACE_FLOW_TO_BACKWARD "fwdbwd"

struct trace_flow {
	int64_t time_ns;
	uint64_t id;
	uint32_t track, category_name;
	bool is_end;
};

struct trace_counter {
	int64_t time_ns;
	uint32_t track, name, series;
	uint32_t device; /* of what a GPU counted, its number + 1; 0: no device's, or not known */
	double value;
};

/* The series of a counter that has but one, as sonde writes it. */
#define TRACE_COUNTER_SERIES "value"

struct trace_group {
	uint32_t name, description, backend;
	int64_t size;
	uint32_t ranks; /* JSON text */
};

/* A device, by its number in struct trace_work. */
struct trace_device {
	int64_t number;
	uint32_t name;
};

/* Of a damaged file, in numbers. */
struct trace_damage {
	uint64_t skipped_events; /* not understood */
	uint64_t skipped_bytes;
	uint64_t mended_events;  /* missing commas, control characters, invalid UTF-8 */
	uint64_t repaired_times; /* negative and wrapped durations, which became 0 */
	uint64_t unended_events; /* began ("B") and did not end: moments */
	bool truncated;
};

/* Why it is not known which calls captured a replay's nodes. */
enum trace_replay_unknown {
	TRACE_REPLAY_NO_CAPTURE, /* no capture before it in the trace */
	TRACE_REPLAY_NO_FIT,     /* none has its nodes in their order */
	TRACE_REPLAY_SEVERAL,    /* several fit, and their operators differ */
	TRACE_REPLAY_STREAMS,    /* its nodes ran side by side, and the calls name no kernels */
	TRACE_REPLAY_UNKNOWN_MAX,
};

/* What trace_join_graphs() made of the replays that have their launch in the trace. */
struct trace_replays {
	uint64_t captures, replays, nodes, known_nodes;
	uint64_t alike;         /* known, but for which of several captures of the same operators */
	uint64_t unclear_nodes; /* of known replays: of either of several calls */
	uint64_t unknown[TRACE_REPLAY_UNKNOWN_MAX];
};

struct trace {
	const char *path;             /* a copy */
	uint64_t base_ns;             /* baseTimeNanoseconds: added to all times; 0: none */
	const struct model *recorded; /* the recording that the rows are made of, which outlives
					 them where it is needed; NULL: another tool's, or gone */
	uint64_t recorded_from_ns;    /* the model's time of 0; of a recording */
	uint32_t rank;                /* MODEL_NONE: not known */
	uint32_t world_size;          /* 0: not known */
	uint32_t backend;             /* string */
	bool is_simulated;            /* by a simulator: see trace_take_kinds() */
	bool is_narrowed;             /* filters left some rows out */
	uint32_t capture_rows;        /* those that are there for their work only: is_capture */
	int64_t first_row_ns;         /* then: the start of the first of all */
	bool has_fractions;           /* times finer than a microsecond */
	bool arguments_kept;          /* details beyond what analyses need */
	uint32_t header; /* with arguments_kept: members of the file's object besides traceEvents */
	ARRAY_OF(struct trace_event) events;
	ARRAY_OF(struct trace_track) tracks;
	ARRAY_OF(struct trace_op) ops;
	ARRAY_OF(struct trace_work) works;
	ARRAY_OF(struct trace_collective) collectives;
	ARRAY_OF(struct trace_memory) memory;
	/* Of a recording, by file_index: see trace_call_stack(). */
	ARRAY_OF(uint32_t) call_stacks;
	ARRAY_OF(struct trace_flow) flows; /* without arguments_kept only TRACE_FLOW_TO_BACKWARD */
	ARRAY_OF(struct trace_counter) counters;
	ARRAY_OF(struct trace_group) groups;
	ARRAY_OF(struct trace_device) devices; /* those whose names are known */
	ARRAY_OF(uint32_t) rows;               /* of all tracks: see struct trace_track */
	struct id_map launches;                /* correlation → row of the call: the last one */
	uint64_t repeated_correlations;        /* calls with the correlation of another */
	struct trace_damage damage;
	struct trace_replays replays;
	struct trace_parents *parents; /* see trace_parents() */
	ARRAY_OF(uint32_t) notes; /* strings: sentences on what is in the file and not in rows */
	struct intern strings;
};

/* An empty one; NULL when memory ran out. */
struct trace *trace_new(const char *path);
struct trace *trace_free(struct trace *trace);
void trace_freep(struct trace **trace);
#define _cleanup_trace_ _cleanup_(trace_freep)

/* Sorts the rows of tracks and joins launches: when all rows are there. Returns 0 or -ENOMEM. */
int trace_finish(struct trace *trace);

/*
 * Puts the rows of a thread that has several lines (trace_track.owner_tid) on one track, as those
 * of a recording are, and likewise those of a process: on the thread's own line, else on the first.
 * After trace_finish(); what writes the trace again wants its lines. Returns 0 or -ENOMEM.
 */
int trace_join_lines(struct trace *trace);

static inline const char *trace_text(const struct trace *trace, uint32_t string)
{
	return intern_get(&trace->strings, string);
}

/* At most INT64_MAX: a file may say anything. */
static inline int64_t trace_end_ns(const struct trace_event *event)
{
	int64_t end_ns;

	if (event->duration_ns == TRACE_NO_DURATION)
		return event->start_ns;
	return __builtin_add_overflow(event->start_ns, event->duration_ns, &end_ns) ? INT64_MAX
										    : end_ns;
}

/* The recording's work that a row is made of; NULL: none. */
static inline const struct model_device_work *trace_recorded_work(
	const struct trace *trace, const struct trace_work *work)
{
	return trace->recorded && work->recorded
		       ? &trace->recorded->device_works.items[work->recorded - 1]
		       : NULL;
}

/* Of a call, by the recording that the rows are made of: its stack there; MODEL_NONE: not known. */
static inline uint32_t trace_call_stack(const struct trace *trace, const struct trace_event *event)
{
	return trace->recorded && event->file_index < trace->call_stacks.count
		       ? trace->call_stacks.items[event->file_index]
		       : MODEL_NONE;
}

/* Is it work of a device: a kernel, a copy or a fill? */
static inline bool trace_is_work(const struct trace_event *event)
{
	return event->category >= TRACE_KERNEL && event->category <= TRACE_MEMSET;
}

/* Is it a trace of XLA (JAX, TensorFlow)? By the names of its processes: see
 * importers/kineto/xla.c. */
bool trace_is_xla(const struct trace *trace);

/*
 * Gives rows of a simulation, whose log has names and no kinds, the kinds that rows of their names
 * have in a trace: those of an operator, an annotation, or device work. trace_kinds.c. Returns 0 or
 * -ENOMEM.
 */
int trace_take_kinds(struct trace *simulated, const struct trace *from);

/* NULL when there is none. */
const struct trace_work *trace_work(const struct trace *trace, const struct trace_event *event);
const struct trace_op *trace_op(const struct trace *trace, const struct trace_event *event);
/*
 * Calls `take` for each member of `others`, a string of the trace (see struct trace_op), until one
 * is damaged or `take` returns less than 0, which is returned. Strings have their quotes. Returns
 * 0, -ENOMEM, or what `take` did.
 */
int trace_others_each(const struct trace *trace, uint32_t others,
	int (*take)(void *userdata, const struct json_text *key, const struct json_text *value),
	void *userdata);

/* Which of several values of its name a counter is; "": there is one, whose name is the counter's.
 */
const char *trace_counter_series(const struct trace *trace, const struct trace_counter *counter);

/* "" when it is not known. */
const char *trace_device_name(const struct trace *trace, int64_t number);
/* Returns 0 or -ENOMEM. */
int trace_name_device(struct trace *trace, int64_t number, const char *name, size_t length);
/* The same of all that JSON text says: the value of Kineto's "deviceProperties". */
int trace_read_devices(struct trace *trace, const struct json_text *properties);
/* The same of "deviceProperties" in trace.header. */
int trace_read_header_devices(struct trace *trace);

/* The call that launched this work: a row, or MODEL_NONE. */
uint32_t trace_launch(const struct trace *trace, const struct trace_event *work);
/* The call that the work comes from: of a graph's node the one that captured it, where that is
 * known, else the launch. */
uint32_t trace_origin(const struct trace *trace, const struct trace_event *work);

/*
 * For each row the row of its thread that encloses it most closely (of operators, annotations and
 * calls; with `python` of Python functions, too), or MODEL_NONE. Rows that overlap without lying in
 * one another have no such relation. The trace keeps it: any thread may ask. NULL when memory ran
 * out.
 */
const uint32_t *trace_parents(const struct trace *trace, bool python);
