/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture in memory, typed and indexed: what analyses and exporters read. Everything refers to
 * everything else by index into these arrays. Read-only once built; strings live in the model.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "capture/capture.h"
#include "capture/reader/reader.h"
#include "model/captured.h"
#include "model/measured_energy.h"
#include "model/nccl.h"
#include "model/pc.h"
#include "model/unified.h"

#define MODEL_NONE UINT32_MAX

struct trace;

struct model_process {
	uint32_t pid, parent_pid;
	uint64_t start_time_ns;
	const char *name;
	const char *command_line; /* argv joined by spaces, "" when unknown */
	const char *cgroup;       /* "" when unknown */
	uint32_t rank;            /* of a distributed job; MODEL_NONE: not known */
	uint32_t world_size;      /* 0: not known */
	const char *host;         /* that it ran on; "" when unknown */
	uint32_t recording;       /* index; MODEL_NONE: not known */
};

struct model_thread {
	uint32_t tid;
	uint32_t process; /* index */
	const char *name;
};

/*
 * Whose code a function is. Answers "what can I change": costs are charged to the innermost frame
 * of the first class.
 */
enum model_class {
	MODEL_CLASS_USER,        /* the program's own, Python or native */
	MODEL_CLASS_LIBRARY,     /* Python's library, packages, generated code; installed headers */
	MODEL_CLASS_FRAMEWORK,   /* PyTorch, NumPy and their like, Python or native */
	MODEL_CLASS_INTERPRETER, /* CPython itself */
	MODEL_CLASS_NATIVE,      /* other native code */
	MODEL_CLASS_RUNTIME,     /* the C library, loaders and drivers */
	MODEL_CLASS_SONDE,       /* what sonde itself does */
	MODEL_CLASS_KERNEL,
	MODEL_CLASS_MAX,
	MODEL_CLASS_INVALID = -EINVAL,
};

/* "user", "library" … */
const char *model_class_to_string(enum model_class class);

/*
 * A function: the same name in the same file is one function, however many frames. All of a
 * module's addresses without a symbol are one too, "[unknown] libfoo.so": their frames tell them
 * apart.
 */
struct model_function {
	const char *name;        /* "[unknown]" plus file and address when there is no name */
	uint32_t module;         /* index of model_module, MODEL_NONE: unknown */
	const char *source_file; /* of its first line seen; "" when unknown */
	enum capture_frame_kind kind;
	enum model_class class;
	bool unnamed;     /* no symbol: `name` only says which module */
	bool start_known; /* unnamed, but the name says where the function begins */
	/* Where a forked Python process begins: what is outside of it was called in its parent. */
	bool begins_process;
	bool takes_lock; /* a threading.Lock: see model_hide_interpreter() */
};

struct model_module {
	const char *path;
	const char *name; /* last path component */
	struct {
		uint8_t bytes[64];
		uint8_t length;
	} build_id;
};

/*
 * One address of one function. Inlined functions are frames of their own, right after the frame
 * they were inlined into, here and in every stack.
 */
struct model_frame {
	uint32_t function;       /* index */
	uint32_t line;           /* 0: unknown */
	const char *source_file; /* that the line is in, "" when unknown */
	uint64_t rel_pc;
	bool inlined;
};

/*
 * Frames outermost first: model.stack_frames.items[first] … [first + count - 1], of whole_count
 * that there are: see model/shown.h.
 */
struct model_stack {
	uint32_t first, count, whole_count;
	enum wire_stop stop;
	enum wire_python python;
	bool imports; /* frames of Python's import were taken out: see model_hide_interpreter() */
	bool takes_lock; /* so were those of its innermost Python frame taking a threading.Lock */
};

struct model_sample {
	uint64_t time_ns;
	uint32_t thread;     /* index */
	uint32_t stack;      /* index, MODEL_NONE: no stack */
	uint32_t gil_holder; /* thread index, MODEL_NONE: unknown */
	uint16_t cpu;
	uint8_t mode;          /* enum capture_cpu_mode */
	uint8_t gil;           /* enum wire_gil */
	uint8_t wait;          /* enum wire_wait; WIRE_WAIT_NONE: it runs */
	bool wait_is_open;     /* it had not ended when the recording did */
	uint16_t energy_error; /* of energy_j: index in energy_errors */
	uint32_t wait_count;   /* short waits without a stack that it adds up; 0: not counted */
	uint64_t count;        /* what it counts for: 1, or by model_weigh() */
	uint64_t duration_ns;  /* of a waiting sample, which ends at time_ns; of a stretch of a
				  thread in another tool's trace, which begins there */
	uint64_t launch_ns;    /* of device work, by model_weigh(): when it was launched; else 0 */
	uint32_t cycles, instructions; /* of the CPU in the period before it; 0: not counted */
	double energy_j; /* by energy_use_init(): what it is charged with; 0 without a source */
};

/* Why the stack that launched a device's work is not known. */
enum model_unattributed {
	MODEL_ATTRIBUTED,
	MODEL_NO_STACK,           /* it did not come */
	MODEL_STACKS_OFF,         /* recorded without launch stacks */
	MODEL_LAUNCHED_ON_DEVICE, /* by a graph of which no launch by the host is known */
	MODEL_UNATTRIBUTED_MAX,
};

/* "attributed", "no launch record" … */
const char *model_unattributed_to_string(enum model_unattributed reason);

/* Something that a device did: a kernel, a copy, a fill. */
struct model_device_work {
	uint64_t start_ns, end_ns; /* end >= start */
	uint64_t queued_ns; /* with submit_ns as the driver says it, or 0; else when its call ended
			     */
	uint64_t submit_ns; /* handed to the device; 0: not known */
	uint64_t launch_ns, launch_duration_ns; /* of the call; 0: not known */
	uint64_t bytes;
	uint64_t global_size[3];
	const char *name;   /* the kernel's, or the kind's */
	const char *device; /* "" when unknown */
	uint32_t process;   /* index */
	uint32_t thread;    /* that launched it, index; MODEL_NONE: not known */
	/* The stack that it is charged to, index; MODEL_NONE: none. Of a node of a graph that of
	 * the call that made the node, where it is known; else that of the launch, like
	 * `launch_stack`. */
	uint32_t stack, launch_stack;
	uint32_t queue;
	uint8_t kind;         /* enum wire_device_kind */
	uint8_t unattributed; /* enum model_unattributed */
	bool replayed;        /* launched with its graph */
	bool capture_known;   /* and `stack` is that of the call that made its node */
	uint8_t capture;      /* enum model_capture */
	bool is_pageable;     /* a copy from or to memory of the host that is not pinned */
	uint8_t launch_kind;  /* enum wire_device_kind, of the call: HIP fills by kernels */
	/* Of work and launches that come apart: wire/device.h. */
	uint32_t gpu; /* index in gpus; MODEL_NONE: not known */
	uint32_t context, stream;
	uint32_t registers, static_shared_bytes, dynamic_shared_bytes; /* of kernels */
	uint32_t block_size[3];
	uint32_t graph; /* the executable graph, of its process; 0: none */
	uint64_t graph_node;
	uint64_t correlation; /* of its launch; of a graph that the device launched of the
				 launcher's */
	uint32_t launcher;    /* as in struct capture_device_work */
	int32_t priority;     /* of its launch, the lower the more urgent */
	bool has_priority;
	uint32_t captured_call; /* of MODEL_CAPTURE_KNOWN: index */
	double energy_j; /* by energy_use_init(): what it is charged with; 0 without a source */
	uint16_t energy_error; /* of energy_j: index in energy_errors */
	uint32_t collective;   /* of a kernel of NCCL: index in collectives, + 1; else 0 */
};

/* What steps and ranges count of device work. */
struct model_launched {
	uint64_t start_ns, end_ns;
	uint64_t launch_ns;       /* 0: not known */
	const char *device;       /* "" when unknown */
	uint32_t process, thread; /* that launched it, indices; thread MODEL_NONE: not known */
};

/* A GPU as one process has it. */
struct model_gpu {
	const char *label; /* the name and the beginning of the UUID: of device_works, too */
	const char *uuid;  /* "GPU-…"; "" when unknown */
	uint32_t process;
	struct capture_gpu facts;
};

/* A call that makes, changes or destroys a graph. */
struct model_graph_call {
	uint64_t time_ns;
	uint32_t process;
	uint32_t stack; /* MODEL_NONE: not known */
	struct capture_graph_call call;
};

/* A node of a graph that is timed as a whole. */
struct model_graph_node {
	uint32_t process;
	uint32_t stack;   /* of the call that made it; MODEL_NONE: not known */
	const char *name; /* of its kernel; "" when unknown */
	struct capture_graph_node node;
};

struct model_overhead {
	uint64_t time_ns;
	uint32_t process;
	struct capture_overhead overhead;
};

/* An allocation, or a release. */
struct model_device_memory {
	uint64_t time_ns; /* in its call, where that is known */
	uint32_t process;
	uint32_t thread, stack; /* of its call, indices; MODEL_NONE: not known */
	struct capture_memory memory;
};

/* Something waits for a device, or an event is recorded that can be waited for. */
struct model_device_sync {
	uint64_t start_ns, end_ns; /* or of its call; 0: not known */
	uint32_t process;
	/* Of the event that is waited for: what recorded it, where. */
	uint32_t event_stream;      /* WIRE_SYNC_NO_STREAM: not known */
	uint64_t event_correlation; /* 0: not known */
	const char *event_device;   /* as `device` */
	const char *device;         /* as of device_works; "" when unknown */
	struct capture_device_sync sync;
};

/* A call that launches nothing. */
struct model_device_call {
	uint64_t start_ns, end_ns;
	uint32_t process, thread, stack; /* indices; stack MODEL_NONE: not known */
	uint64_t correlation;
	const char *name;
	bool failed;
};

struct model_device_note {
	uint32_t process;
	uint32_t note; /* enum wire_device_note */
	const char *text;
};

/* A call in which a thread waited for a device. */
struct model_device_wait {
	uint64_t start_ns, end_ns;
	uint64_t correlation; /* of device_syncs; 0: not known */
	uint32_t thread;      /* index */
	uint32_t stack;       /* index; MODEL_NONE: not known */
	uint8_t kind;         /* WIRE_DEVICE_FINISH or WIRE_DEVICE_WAIT */
};

/* Something that a range or mark carries. */
struct model_range_field {
	const char *name, *text; /* text: of WIRE_RANGE_TEXT */
	uint64_t value;          /* of a double its bits */
	uint8_t type;            /* enum wire_range_value */
};

/* A range that a program reported, or a mark, which ends when it starts. */
struct model_range {
	uint64_t start_ns, end_ns;            /* end >= start */
	const char *name, *domain, *category; /* "" when there is none */
	uint32_t process;                     /* index */
	uint32_t thread;      /* index; MODEL_NONE: of the whole process, whatever its threads do */
	uint32_t depth;       /* ranges of its track that it lies in */
	uint32_t first_field; /* range_fields.items[first_field] … */
	uint32_t field_count;
	uint32_t capture_range; /* index in capture_ranges, + 1; 0: no captured call lies in it */
	bool is_mark;
	bool is_elsewhere; /* of capture_ranges alone: it is not in `ranges` */
	bool is_open;      /* no end is known: it ends with the last that is known of its process */
};

/* What a counter of a process is from a moment on. */
struct model_counter {
	uint64_t time_ns;
	const char *name;
	uint32_t process; /* index */
	double value;
};

/* Time in which was recorded; without any, all of the time was. */
struct model_window {
	uint32_t number;
	uint64_t begin_ns, end_ns;      /* end >= begin, and at most the next one's begin */
	uint64_t before_ns;             /* how long those before it lasted */
	uint64_t first_step, last_step; /* last < first: none */
	enum capture_window_trigger opened_by;
	enum capture_window_reason closed_by;
	uint32_t leader_pid; /* whose steps were counted; 0: nobody's */
	const char *label;   /* "" when there is none */
};

struct model_step {
	uint64_t start_ns, end_ns; /* end >= start */
	uint64_t number;
	const char *name;
	uint32_t process, thread; /* indices */
	uint32_t window;          /* index; MODEL_NONE: there are none */
	bool is_cut;              /* its end is not known, or lies outside of the window */
};

/* Calls of the programs, as counted while the model was built. */
struct model_launches {
	uint64_t launches;        /* that gave work to a device; not those that were captured */
	uint64_t stacks;          /* of launches; those that came */
	uint64_t complete_stacks; /* of these: reaching the thread's entry */
	/* Of `stacks`: that of an earlier launch, as the program gave it, and how right it was. */
	uint64_t known_stacks;
	uint64_t checked_stacks, wrong_stacks; /* taken all the same; of these: they differed */
	uint64_t without_work[WIRE_DEVICE_UNTIMED_MAX]; /* no device work followed, by reason;
							   TIMED: it should have */
	uint64_t wait_count, wait_ns; /* calls in which the host waited for a device */
};

struct model_session {
	const char *sonde_version, *host, *kernel_release, *architecture;
	const char *command_line; /* "" with -p and -a */
	const char *unwind_mode, *unwind_mode_reason;
	const char *wait_mode;     /* "" when unknown */
	const char *launch_stacks; /* "" when unknown */
	uint64_t start_time_ns, start_realtime_ns, period_ns, wait_period_ns, wait_min_ns;
	uint32_t cpu_count;
	bool whole_machine;
	bool present; /* false: the file has none (a foreign trace) */
};

/* One of the captures that a run is made of, or the only one. */
struct model_recording {
	const char *file; /* its name, where there are several; "" else */
	const char *host; /* "" when unknown */
	struct capture_clock clock;
	uint64_t start_ns, end_ns; /* end 0: it has no account */
	uint64_t samples, samples_lost, wait_samples;
	uint64_t records_lost; /* of device work and ranges */
	uint32_t cpu_count;
	bool is_complete;
};

struct model_stats {
	struct capture_stats values; /* losses and notes pointers are the model's own copies */
	bool present;
};

struct model {
	ARRAY_OF(struct model_process) processes;
	ARRAY_OF(struct model_thread) threads;
	ARRAY_OF(struct model_module) modules;
	ARRAY_OF(struct model_function) functions;
	ARRAY_OF(struct model_frame) frames;
	ARRAY_OF(uint32_t) stack_frames;
	ARRAY_OF(struct model_stack) stacks;
	ARRAY_OF(struct model_sample) samples;           /* sorted by time */
	ARRAY_OF(struct model_device_work) device_works; /* sorted by start */
	/* Of another tool's trace without stacks, in place of device_works, whose items are seven
	 * times as large: model_launched() has either. */
	ARRAY_OF(struct model_launched) launched_works;
	ARRAY_OF(struct model_device_wait) device_waits; /* in the file's order */
	ARRAY_OF(struct model_range) ranges;             /* sorted by start, outer ones first */
	/* Those with calls of captured_calls in them, whatever was chosen and filtered out. */
	ARRAY_OF(struct model_range) capture_ranges;
	ARRAY_OF(struct model_range_field) range_fields;
	ARRAY_OF(struct model_counter) counters;                 /* by process, name and time */
	ARRAY_OF(struct model_energy_domain) energy_domains;     /* in the file's order */
	ARRAY_OF(struct model_energy_interval) energy_intervals; /* by domain, then time */
	ARRAY_OF(struct model_energy_state) energy_states;       /* by domain, then time */
	ARRAY_OF(struct model_energy_absence) energy_absences;
	/* By energy_use_init(); the first is MODEL_ENERGY_UNKNOWN. */
	ARRAY_OF(struct model_energy_error) energy_errors;
	struct model_energy_pool energy_pool;
	ARRAY_OF(struct model_window) windows; /* by begin; of those that were chosen */
	uint32_t whole_window_count;           /* with those that were not */
	uint64_t windows_end_ns;               /* of the last of all; 0: there are none */
	ARRAY_OF(struct model_step) steps;     /* by process, name and start */
	ARRAY_OF(struct model_gpu) gpus;
	ARRAY_OF(struct model_graph_call) graph_calls; /* in the file's order, like these */
	ARRAY_OF(struct model_graph_node) graph_nodes;
	ARRAY_OF(struct model_captured_call) captured_calls;
	ARRAY_OF(struct model_collective) collectives; /* of kernels of NCCL */
	ARRAY_OF(struct model_overhead) overheads;
	ARRAY_OF(struct model_device_memory) device_memory;
	ARRAY_OF(struct model_device_sync) device_syncs; /* waits and records of events */
	ARRAY_OF(struct model_device_call) device_calls;
	ARRAY_OF(struct model_unified_memory) unified_memory; /* by start */
	ARRAY_OF(struct model_device_note) device_notes;
	ARRAY_OF(struct model_pc) pcs;      /* in the file's order */
	struct capture_pc_counts pc_counts; /* of all processes */
	/* Rows, by rank: all there is of another tool's trace; of a recording as model_make_rows()
	 * makes them. See model/trace_capture.h. */
	ARRAY_OF(struct trace *) traces;
	struct capture_device_counts device_counts; /* of all processes */
	struct model_launches launches;
	/* Filters left some events out: what was counted while the model was built, launches and
	 * device_counts, is of all of them. */
	bool is_narrowed;
	ARRAY_OF(struct model_step) chosen_steps; /* of --step: all that there were before */
	unsigned left_out;  /* by enum selection_kind, a bit: a filter does not apply to these */
	uint64_t unit_ns;   /* what a sample's count is in: set by model_weigh(); 0: the period */
	bool counts_energy; /* it is in microjoules, and unit_ns means nothing */
	bool counts_bytes;  /* likewise in bytes */
	struct model_session session;
	ARRAY_OF(struct model_recording) recordings; /* more than one when captures were joined */
	/* Those whose end is missing: sonde was killed, or its disk was full. A sentence on it is
	 * the first of the notes of `stats`. */
	uint32_t cut_off_count;
	uint64_t cut_off_ns; /* the length of the shortest of them */
	struct model_stats stats;
	struct capture_read_result completeness;
	struct intern strings;
};

/* Called with bytes read of the total; may be NULL. */
typedef void model_progress_function(void *context, uint64_t bytes, uint64_t total_bytes);

/*
 * A capture from its file: capture_read() with the visitor of model/builder/builder.h, and then
 * model_builder_finish(). Commands call load_model() (load/load.h), which takes any kind of file.
 * Returns 0 or a negative errno with a sentence.
 */
int model_load(struct model **ret_model, const char *path, model_progress_function *progress,
	void *progress_context, struct errmsg *err);
/*
 * The same of the windows in `choice`: what happened at other times is not in the model, but for
 * what later work needs, such as GPUs and graphs. Fails with -EINVAL and a sentence when the file
 * lacks one of them.
 */
struct window_choice;
int model_load_windows(struct model **ret_model, const char *path,
	const struct window_choice *choice, model_progress_function *progress,
	void *progress_context, struct errmsg *err);
/*
 * model_load() for its rows. Without `keep_arguments`, of traces that were imported, what only
 * exporters need is left out, as importers do: see struct trace_read_options.
 */
int model_load_for_rows(struct model **ret_model, const char *path, bool keep_arguments,
	model_progress_function *progress, void *progress_context, struct errmsg *err);
/* A capture of a run, and what its times become; `read` is filled in. */
struct model_source {
	const char *path;
	struct capture_clock clock;
	struct capture_read_result read;
};
/*
 * Several captures as one model, as if they were one file (capture/join/join.h), likewise.
 * `completeness` is of all of them. `choice` may be NULL.
 */
int model_load_run(struct model **ret_model, struct model_source *sources, size_t count,
	const struct window_choice *choice, model_progress_function *progress,
	void *progress_context, struct errmsg *err);
/* An empty one, of an unknown session; NULL when memory ran out. */
struct model *model_new(void);
struct model *model_free(struct model *model);
void model_freep(struct model **model);
#define _cleanup_model_ _cleanup_(model_freep)

/* What samples are weighed by: time on a CPU, time waiting, or both; the time that devices worked,
 * or were idle; what was in use of their memory at their peaks; time on a CPU and on devices; or
 * the energy that all of it took. */
enum model_weight {
	MODEL_WEIGHT_CPU,
	MODEL_WEIGHT_WAIT,
	MODEL_WEIGHT_WALL,
	MODEL_WEIGHT_GPU,
	MODEL_WEIGHT_GPU_IDLE,
	MODEL_WEIGHT_GPU_BYTES,
	MODEL_WEIGHT_CPU_GPU,
	MODEL_WEIGHT_ENERGY,
	MODEL_WEIGHT_MAX,
	MODEL_WEIGHT_INVALID = -EINVAL,
};

/* "cpu", "wait", "wall", "gpu", "gpu-idle", "gpu-bytes", "cpu+gpu", "energy" */
const char *model_weight_to_string(enum model_weight weight);
enum model_weight model_weight_from_string(const char *name);
/* Samples of running threads. */
uint64_t model_running_samples(const struct model *model);
/* Does a sample count with this weight? */
bool model_sample_counts(const struct model_sample *sample, enum model_weight weight);

/* Time of a count of 1: the session's period, or the unit of model_weigh(). Without a period (a
 * foreign trace) it is 1. */
uint64_t model_sample_weight_ns(const struct model *model);
/* What one sample stands for: the period, how long it waited, or of another tool's trace how long
 * the thread was there. */
uint64_t model_sample_time_ns(const struct model *model, const struct model_sample *sample);
/* False when samples have no known duration, or count energy or bytes: then times are unknown, not
 * 0. */
bool model_has_time(const struct model *model);
/*
 * When the recording began and how long was recorded: its windows together; without windows what
 * the session and its account say, else the span from the first to the last sample.
 */
uint64_t model_start_ns(const struct model *model);
/* 0 for what was before it. */
uint64_t model_since_start_ns(const struct model *model, uint64_t time_ns);
uint64_t model_duration_ns(const struct model *model);
/* False: the samples have neither durations nor times, as those of folded stacks, which importers
 * put one nanosecond apart. Then there is no duration to show. */
bool model_has_duration(const struct model *model);
/* From its beginning to its end, with the time outside of windows. */
uint64_t model_elapsed_ns(const struct model *model);

/* The one rank of all processes that have one, and the size of its job (0: not known); MODEL_NONE:
 * none has, or there are several. */
uint32_t model_only_rank(const struct model *model, uint32_t *ret_world_size);

/* Device work by index, in the order of its starts. */
size_t model_launched_count(const struct model *model);
struct model_launched model_launched(const struct model *model, size_t index);

/* An allocation or release of a device's own memory, or of managed memory; else of the host's. */
bool model_is_device_memory(const struct model_device_memory *memory);
/* What a GPU of a process is called, by its number in struct capture_gpu; "" when unknown. */
const char *model_gpu_label(const struct model *model, uint32_t process, uint32_t number);

/* Names of things by index, also of MODEL_NONE: "[no stack]" for functions, "[unknown]" for
 * modules. */
const char *model_function_name(const struct model *model, uint32_t function);
const char *model_function_module(const struct model *model, uint32_t function);
/*
 * Appends what stands at a frame, at least an address: "read_line", "[unknown] libfoo.so+0x1234".
 */
void model_frame_name(const struct model *model, uint32_t frame, struct strbuf *out);
/* And where: "read_line (reader.py:12)", without the place where no line is known. */
void model_frame_place(const struct model *model, uint32_t frame, struct strbuf *out);
const char *model_module_name(const struct model *model, uint32_t module);
/* The innermost frame of a sample's stack; MODEL_NONE when it has none. */
uint32_t model_stack_leaf(const struct model *model, uint32_t stack);
