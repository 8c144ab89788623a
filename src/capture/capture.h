/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture holds, as plain C structs: the writer takes them, the reader gives them back. On
 * disk a capture is a Perfetto trace (docs/decisions.md, 1): PerfSample packets, interned
 * callstacks, frames and mappings, track descriptors for processes and threads, and sonde.*
 * extension messages (schema/sonde.proto) for what Perfetto has no field for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/device.h"
#include "wire/energy.h"
#include "wire/python.h"
#include "wire/range.h"
#include "wire/stack.h"
#include "wire/wait.h"

/* Ids of interned things: dense, from 1, per capture; 0 is "none". */
typedef uint32_t capture_id;

enum capture_frame_kind {
	CAPTURE_FRAME_NATIVE = 1, /* values of perfetto.protos.Frame.Kind */
	CAPTURE_FRAME_KERNEL = 2,
	CAPTURE_FRAME_INTERPRETED = 3,
	CAPTURE_FRAME_JIT = 4,
};

/* One file that frames lie in: an executable, a library, "[kernel]", "[vdso]", "[anon]". */
struct capture_mapping {
	const char *path;
	const uint8_t *build_id; /* raw bytes */
	uint8_t build_id_length; /* 0: none */
};

/*
 * A function that has no symbol is named by this, its file's name, "+0x" and the hexadecimal
 * virtual address of its first byte: "[unknown] libgomp.so.1.0.0+0x1f600".
 */
#define CAPTURE_UNNAMED_PREFIX "[unknown] "

/*
 * A Python frame is of kind CAPTURE_FRAME_INTERPRETED: `function` is the qualified name, its
 * mapping is the source file, and rel_pc is the line, so that the lines of a function are different
 * frames.
 */
struct capture_frame {
	const char *function; /* demangled; NULL: no name is known */
	capture_id mapping;   /* 0: unknown */
	uint64_t rel_pc; /* virtual address in the file; the address itself without a mapping */
	enum capture_frame_kind kind;
	const char *source_file; /* NULL: unknown */
	uint32_t line;           /* 0: unknown */
};

/* A function and where in its source an address lies: see capture_writer_symbols(). */
struct capture_symbol_line {
	const char *function, *file; /* file NULL: unknown */
	uint32_t line;               /* 0: unknown */
};

struct capture_process {
	uint32_t pid, parent_pid;   /* parent 0: unknown */
	uint64_t start_time_ns;     /* CLOCK_MONOTONIC, when first seen; 0: unknown */
	const char *name;           /* comm or file name of argv[0] */
	const char *const *cmdline; /* argv */
	uint32_t cmdline_count;
	const char *cgroup; /* path in the cgroup hierarchy; NULL: unknown */
	bool has_rank;
	uint32_t rank, world_size; /* of a distributed job; world_size 0: unknown */
};

struct capture_thread {
	uint32_t pid, tid;
	const char *name;
};

enum capture_cpu_mode {
	CAPTURE_MODE_KERNEL = 1, /* values of perfetto.protos.Profiling.CpuMode */
	CAPTURE_MODE_USER = 2,
};

struct capture_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid, cpu;
	enum capture_cpu_mode mode;
	capture_id callstack; /* 0: no stack at all */
	enum wire_gil gil;
	uint32_t gil_holder_tid; /* with WIRE_GIL_WAITING; 0: unknown */
	/* A thread that waits: for what, and the time up to time_ns that is charged to this stack.
	 * WIRE_WAIT_NONE: it runs, for one sampling period. */
	enum wire_wait wait;
	uint64_t duration_ns;
	uint32_t wait_count; /* short waits, without a stack, that it adds up; 0: not counted */
	bool wait_is_open;   /* it had not ended when the recording did */
	/* Of a thread that runs: what its CPU did in the sampling period. 0: not counted. */
	uint64_t cycles, instructions;
};

/*
 * Work of a device. It and the stack of its launch have one correlation id, unique in their
 * process; each is written as it comes, and the model puts them together.
 */
struct capture_device_work {
	uint64_t start_ns, end_ns;              /* CLOCK_MONOTONIC, like all times here */
	uint64_t queued_ns, submit_ns;          /* 0: not known */
	uint64_t launch_ns, launch_duration_ns; /* of the call that launched it; 0: unknown */
	uint32_t pid, tid;                      /* the launch's; tid 0: unknown */
	uint64_t correlation;
	enum wire_device_kind kind;
	bool failed;
	const char *name;   /* of the kernel; NULL: none, or unknown */
	const char *device; /* its name */
	uint32_t queue;     /* of the process; 0: unknown */
	uint64_t bytes;     /* of copies and fills */
	uint64_t global_size[3];
	uint32_t local_size[3]; /* 0: the runtime's choice */
	/* Of work and launches that come apart (wire/device.h); 0: unknown, or there is none. */
	uint32_t gpu; /* the process's number of its GPU, from 1: see struct capture_gpu */
	uint32_t context, stream;
	uint32_t registers; /* of one thread; from here on of kernels */
	uint32_t static_shared_bytes, dynamic_shared_bytes;
	uint32_t local_bytes; /* of one thread */
	uint32_t cluster_size[3];
	uint32_t from_memory, to_memory; /* of copies: enum wire_device_memory_kind */
	uint32_t graph;                  /* the executable graph that it is a part of */
	uint64_t graph_node;
	uint64_t capture;  /* correlation of the call that made the node */
	uint32_t priority; /* capture_priority() of the launch; 0: not known */
	/* Of a graph that the device launched, whose correlation is 0: the executable graph whose
	 * kernel did, or WIRE_LAUNCHER_UNKNOWN; 0: the host launched it. */
	uint32_t launcher;
};

/* A priority as a number that is never 0, small where it is near 0; and back. */
static inline uint32_t capture_priority(int32_t priority)
{
	uint32_t folded = ((uint32_t)priority << 1) ^ (priority < 0 ? UINT32_MAX : 0);

	return folded == UINT32_MAX ? folded : folded + 1;
}

static inline int32_t capture_priority_value(uint32_t priority)
{
	uint32_t folded = priority - 1;

	return (int32_t)(folded >> 1) ^ -(int32_t)(folded & 1);
}

/* A launch whose work's times are not known, or a call that waited for work (FINISH and WAIT). */
struct capture_launch {
	uint64_t time_ns, duration_ns;
	uint32_t pid, tid;
	uint64_t correlation;
	enum wire_device_kind kind;
	enum wire_device_untimed untimed; /* why no device work follows */
	uint32_t queue;
};

/* What else there is of devices: see struct capture_device_event. */
enum capture_device_event_kind {
	CAPTURE_GPU,
	CAPTURE_GRAPH_CALL,
	CAPTURE_GRAPH_NODE,
	CAPTURE_OVERHEAD,
	CAPTURE_MEMORY,
	CAPTURE_DEVICE_COUNTS,
	CAPTURE_DEVICE_NOTE,
	CAPTURE_DEVICE_CLOCK,
	CAPTURE_DEVICE_SYNC,
	CAPTURE_DEVICE_CALL,
	CAPTURE_PC_TEXT,
	CAPTURE_PC,
	CAPTURE_PC_COUNTS,
	CAPTURE_UNIFIED_MEMORY,
	CAPTURE_DEVICE_EVENT_MAX,
};

/* 0: unknown. */
struct capture_gpu {
	uint32_t number; /* as in struct capture_device_work */
	uint32_t capability_major, capability_minor;
	uint64_t uuid_high, uuid_low;
	uint64_t memory_bytes;
	uint32_t multiprocessors, warp_threads;
	uint32_t multiprocessor_warps, multiprocessor_blocks;
	uint32_t multiprocessor_shared_bytes, multiprocessor_registers;
	uint32_t block_registers, block_shared_bytes, block_threads;
	uint32_t core_clock_khz;
	uint32_t is_mig; /* an instance of a partitioned GPU */
};

/* What became of a graph; ids are of the process, 0: unknown. */
struct capture_graph_call {
	uint64_t duration_ns, correlation;
	uint32_t tid;
	uint32_t event; /* enum wire_device_graph_event */
	uint32_t graph;
	uint32_t other; /* of an instantiation the executable graph, of a clone the original */
	uint32_t nodes; /* made in this call or capture */
	uint32_t failed;
};

/* A node of a graph that is timed as a whole. */
struct capture_graph_node {
	uint64_t node, original;   /* original: of a clone; 0: made by a call */
	uint64_t correlation;      /* of the call */
	uint32_t graph, node_type; /* type: enum wire_device_node_type, or the runtime's own */
};

/* Time that the tracing library or the driver took. */
struct capture_overhead {
	uint64_t duration_ns, correlation;
	uint32_t tid, kind; /* kind: the tracing library's number */
};

/* An allocation or a release. */
struct capture_memory {
	uint64_t correlation, address, bytes;
	uint64_t pool_bytes, pool_used_bytes; /* of its pool, afterwards; 0: of none */
	uint32_t gpu, context, stream;
	uint32_t memory; /* enum wire_device_memory_kind */
	uint32_t released;
};

/* As struct wire_device_counts: so far, in this process. */
struct capture_device_counts {
	uint64_t launches, captured, activities, untimed, dropped, unknown_nodes;
	uint64_t lost_graph_events, refused_buffers, foreign_buffers, repeated, waited_out;
};

struct capture_device_note {
	uint32_t note; /* enum wire_device_note */
};

/* Both clocks at one moment, with the error of at most `width_ns`. */
struct capture_device_clock {
	uint64_t device, boottime_ns;
	uint32_t width_ns;
};

/* Something waits, or an event is recorded. `time_ns` 0: when is not known. */
struct capture_device_sync {
	uint64_t duration_ns;
	uint64_t correlation;
	uint64_t event_sync;      /* one of an event's record and of the waits for it; 0: unknown */
	uint32_t context, stream; /* stream: WIRE_SYNC_NO_STREAM: of none */
	uint32_t event;
	uint32_t type; /* enum wire_device_sync_type */
};

/* A call that launches nothing. */
struct capture_device_call {
	uint64_t duration_ns, correlation;
	uint32_t tid;
	uint32_t failed;
};

/* What an id in the process's struct capture_pc stands for: the event's text. */
struct capture_pc_text {
	uint32_t id;
};

/* Samples of an instruction of a device's function, for one reason, from the event's time on. */
struct capture_pc {
	uint64_t cubin, pc_offset; /* the code's checksum; the place in the function */
	uint64_t samples;
	uint64_t not_issued; /* of them: the scheduler issued no instruction in that cycle */
	uint32_t function, reason, file; /* ids; 0: not known */
	uint32_t line;                   /* 0: not known */
};

/* Of the samples from the event's time on: as in struct wire_device_pc_counts. */
struct capture_pc_counts {
	uint64_t samples, dropped, foreign, lost;
	uint64_t reads, full_reads, failed_reads;
	uint32_t period_cycles;
};

/* What happened to pages of unified memory: see struct wire_device_unified. */
struct capture_unified_memory {
	uint64_t duration_ns; /* 0: a moment */
	uint64_t address, value, devices;
	uint32_t from, to; /* numbers of GPUs; 0: the host, or of none */
	uint32_t type;     /* enum wire_unified_type */
	uint32_t cause, on_host;
};

struct capture_device_event {
	enum capture_device_event_kind kind;
	uint32_t pid;
	uint64_t time_ns; /* CLOCK_MONOTONIC, when it began; 0: of no moment */
	const char *text; /* the GPU's name, the node's kernel, the note's sentence, the
			     call's name; NULL: none */
	union {
		struct capture_gpu gpu;
		struct capture_graph_call graph;
		struct capture_graph_node node;
		struct capture_overhead overhead;
		struct capture_memory memory;
		struct capture_device_counts counts;
		struct capture_device_note note;
		struct capture_device_clock clock;
		struct capture_device_sync sync;
		struct capture_device_call call;
		struct capture_pc_text pc_text;
		struct capture_pc pc;
		struct capture_pc_counts pc_counts;
		struct capture_unified_memory unified;
	};
};

/* Does it belong where its time is? Else it is kept with all that is recorded. */
static inline bool capture_device_event_is_moment(const struct capture_device_event *event)
{
	return event->kind == CAPTURE_OVERHEAD || event->kind == CAPTURE_MEMORY ||
	       event->kind == CAPTURE_DEVICE_CALL || event->kind == CAPTURE_PC ||
	       event->kind == CAPTURE_PC_COUNTS || event->kind == CAPTURE_UNIFIED_MEMORY ||
	       (event->kind == CAPTURE_DEVICE_SYNC && event->time_ns);
}

/* The stack that was taken at a launch, or the launch whose stack it has. */
struct capture_launch_stack {
	uint64_t time_ns;
	uint32_t pid, tid; /* tid 0: that of `same_as` */
	uint64_t correlation;
	capture_id callstack; /* 0: none */
	uint64_t same_as;     /* correlation; 0: the stack was taken */
	bool is_check;        /* of `same_as`: it was taken all the same, and comes by itself */
};

enum capture_range_kind {
	CAPTURE_RANGE_BEGIN = 1, /* values of perfetto.protos.TrackEvent.Type */
	CAPTURE_RANGE_END = 2,
	CAPTURE_RANGE_MARK = 3,
};

/* Something that a range or a mark carries. */
struct capture_range_field {
	const char *name;
	enum wire_range_value type;
	uint64_t value;   /* of a double its bits */
	const char *text; /* of WIRE_RANGE_TEXT */
};

/*
 * A range begins or ends, or a mark. On one track they nest: an end is that of the innermost range
 * that is open there.
 */
struct capture_range_event {
	uint64_t time_ns;
	uint64_t track; /* filled in by the reader: which events nest */
	uint32_t pid, tid;
	uint32_t
		lane; /* 0: of the thread and domain; else of the process, which has many at once */
	enum capture_range_kind kind;
	const char *domain;   /* "": the default one */
	const char *name;     /* "" of ends, and of what has none */
	const char *category; /* "": none */
	const struct capture_range_field *fields;
	uint32_t field_count;
};

/* What a counter of a process is from a moment on. */
struct capture_counter {
	uint64_t time_ns;
	uint32_t pid;
	const char *name;
	double value;
};

/*
 * Counters that a recording has of the process that it is of, beside those of programs: the CPUs
 * that its cgroup may use, how long the cgroup was throttled for that (of all its CPUs together),
 * and how long cores were slowed down since they were hot. Seconds since the recording began.
 */
#define CAPTURE_COUNTER_QUOTA     "cgroup CPU quota"
#define CAPTURE_COUNTER_THROTTLED "cgroup throttled (s)"
#define CAPTURE_COUNTER_HEAT      "CPUs throttled by heat (s)"

/* What opened a window. */
enum capture_window_trigger {
	CAPTURE_TRIGGER_NONE,
	CAPTURE_TRIGGER_MANUAL,
	CAPTURE_TRIGGER_FLAG,
	CAPTURE_TRIGGER_TIME,
	CAPTURE_TRIGGER_SIGNAL,
	CAPTURE_TRIGGER_STEPS,
	CAPTURE_TRIGGER_CALLS,
	CAPTURE_TRIGGER_MAX,
};

/* Why it closed. */
enum capture_window_reason {
	CAPTURE_REASON_NONE, /* it is open */
	CAPTURE_REASON_TRIGGER,
	CAPTURE_REASON_SCHEDULE,
	CAPTURE_REASON_MAX_STEPS,
	CAPTURE_REASON_MAX_DURATION,
	CAPTURE_REASON_LEADER_ENDED,
	CAPTURE_REASON_RECORDING_ENDED,
	CAPTURE_REASON_COLLECTOR_GONE, /* made up by readers: it has no end */
	CAPTURE_REASON_IDLE,
	CAPTURE_REASON_MAX,
};

/* "flag", "steps" …; "trigger", "max-steps" … */
const char *capture_window_trigger_name(enum capture_window_trigger trigger);
const char *capture_window_reason_name(enum capture_window_reason reason);

/*
 * Time in which was recorded: nothing else in the capture has a time outside of [begin_ns, end_ns),
 * but for intervals of energy, of which a part may lie in it. Of one number the last one written
 * counts.
 */
struct capture_window {
	uint32_t number;                /* from 1 */
	uint64_t begin_ns, end_ns;      /* CLOCK_MONOTONIC; end 0: still open */
	uint64_t first_step, last_step; /* last_step < first_step: no steps */
	uint32_t opened_by;             /* enum capture_window_trigger */
	uint32_t closed_by;             /* enum capture_window_reason */
	uint32_t leader_pid;            /* whose steps are counted; 0: nobody's */
	const char *label;              /* NULL or "": none */
};

/*
 * A process begins step `number`. It lasts until the process's next step, or its window's end: the
 * leader's last one is whole where the schedule or the number of steps closed the window, which
 * they do at a step's end; others are cut.
 */
struct capture_step {
	uint64_t time_ns;
	uint32_t pid, tid;
	uint64_t number;
	const char *name;
};

/* How the times of a capture became those of a run that it is a part of. */
enum capture_clock_source {
	CAPTURE_CLOCK_OWN,         /* they are as recorded */
	CAPTURE_CLOCK_HOSTS,       /* by the hosts' clocks when it began */
	CAPTURE_CLOCK_COLLECTIVES, /* and by when collectives and barriers ended */
	CAPTURE_CLOCK_MAX,
};

/* A time T became T + shift_ns + drift × (T - drift_from_ns). */
struct capture_clock {
	enum capture_clock_source source;
	int64_t shift_ns;
	double drift;
	uint64_t drift_from_ns;
	uint64_t error_ns; /* that is left; UINT64_MAX: not known */
};

static inline uint64_t capture_clock_ns(const struct capture_clock *clock, uint64_t time_ns)
{
	double since_ns = (double)(int64_t)(time_ns - clock->drift_from_ns);
	double drift_ns = clock->drift * since_ns;

	/* A file may say anything. */
	if (!(drift_ns > -9e18 && drift_ns < 9e18))
		drift_ns = 0;
	return time_ns + (uint64_t)clock->shift_ns + (uint64_t)(int64_t)drift_ns;
}

/* How the recording was made; written at its start. */
struct capture_session {
	const char *sonde_version;
	const char *host, *kernel_release, *architecture;
	const char *const *command; /* argv; NULL with -p and -a */
	uint32_t command_count;
	const char *unwind_mode;        /* "bpf" or "user" */
	const char *unwind_mode_reason; /* why not bpf, and what would change it; NULL for bpf */
	uint64_t start_time_ns;         /* CLOCK_MONOTONIC */
	uint64_t start_realtime_ns;     /* CLOCK_REALTIME at the same moment */
	uint64_t start_boottime_ns;     /* CLOCK_BOOTTIME at the same moment */
	uint64_t period_ns;             /* between samples of one CPU */
	uint32_t cpu_count;
	const char *wait_mode;     /* "off", "sample", "exact"; NULL: not recorded, off */
	uint64_t wait_period_ns;   /* between two looks at a thread, with "sample" */
	uint64_t wait_min_ns;      /* the stacks of shorter waits are not taken, with "exact" */
	const char *launch_stacks; /* "off", "bpf", "inprocess"; NULL: not recorded, off */
	bool whole_machine;        /* all processes, not a command's or chosen ones */
	/* In a run of several captures: the name of this one's file; NULL: it is the file itself.
	 */
	const char *file;
	struct capture_clock clock; /* its times here are those that came of it */
};

/* Where lost samples went missing. */
struct capture_loss {
	const char *where; /* ring or stage: "sample_ring", "sideband_ring", "stack_copy_limit" … */
	uint32_t cpu;
	uint64_t count;
};

/* Device work in numbers: all uint64_t, in the order of the fields of RecordingStats.Device. */
struct capture_device_stats {
	uint64_t processes;
	uint64_t launches, works, stacks; /* written; launches without waits */
	uint64_t records_lost, records_without_ring, records_damaged;
	uint64_t launches_untimed; /* see enum wire_device_untimed */
	uint64_t stacks_lost;
	uint64_t started_before_launch;
	uint64_t clock_error_ns;
	uint64_t stack_run_count, stack_run_time_ns; /* of the BPF program; 0: not measured */
	uint64_t stacks_known;                       /* launches with the stack of an earlier one */
	uint64_t stacks_checked; /* that could have had one, and whose own was taken */
	uint64_t stacks_copied;  /* of `stacks`: by the program, unwound by sonde */
};

#define CAPTURE_DEVICE_STATS (sizeof(struct capture_device_stats) / sizeof(uint64_t))

/* Ranges in numbers: all uint64_t, in the order of the fields of RecordingStats.Ranges. */
struct capture_range_stats {
	uint64_t events;
	uint64_t ranges, marks;      /* begun; made */
	uint64_t unbalanced_ends;    /* ends of what had not begun */
	uint64_t ends_lost;          /* ranges that ended unseen */
	uint64_t open_at_thread_end; /* pushed, and never popped */
	uint64_t open_at_end;        /* of the program, or the recording */
	uint64_t too_many;           /* not written: more at once than are followed */
	uint64_t names_lost, names_cut;
	uint64_t records_damaged;
	uint64_t calls_dropped; /* in the program: no room for names, or in a signal handler */
};

#define CAPTURE_RANGE_STATS (sizeof(struct capture_range_stats) / sizeof(uint64_t))

/* The account of a recording, written at its end (and each flush, the last one counts). */
struct capture_stats {
	uint64_t end_time_ns;
	uint64_t samples, samples_lost;
	uint64_t stacks_by_stop[WIRE_STOP_MAX];
	uint64_t user_frames, kernel_frames;
	uint64_t bpf_run_count, bpf_run_time_ns; /* 0: not measured (unprivileged mode) */
	uint64_t stacks_unwound_in_user_space;   /* table was not loaded yet */
	uint64_t collector_cpu_ns, collector_peak_rss_bytes;
	/*
	 * Of collector_cpu_ns: until sampling began, and for tables and symbols whenever they were
	 * made; and after sampling had ended. The rest is what went on all the time. A start of 0:
	 * they are not known.
	 */
	uint64_t collector_start_cpu_ns, collector_end_cpu_ns;
	uint64_t tables_built, tables_from_cache, table_build_ns;
	uint64_t bytes_written;
	uint64_t stacks_by_python[WIRE_PYTHON_MAX];
	uint64_t python_frames;
	uint64_t wait_samples, waited_ns;
	uint64_t wait_run_count, wait_run_time_ns; /* of the BPF programs; 0: not measured */
	struct capture_device_stats device;        /* all 0: no process had the library */
	struct capture_range_stats ranges;
	const struct capture_loss *losses;
	uint32_t loss_count;
	const char *const *notes; /* sentences: what was partial and why */
	uint32_t note_count;
	int32_t exit_status; /* of the command, as a shell would give it; -1: none or unknown */
	bool complete;       /* false in flushes before the end */
};
