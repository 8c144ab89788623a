/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work as an injected library reports it: what was launched, by whom, and when it ran. A
 * launch, its device activity and the stack that the marker's probe takes (struct wire_sample with
 * WIRE_SAMPLE_LAUNCH) have one correlation id, unique in their process.
 *
 * Work comes in one of two shapes:
 *   - One record for a launch and its work, when the work has ended: struct wire_device_activity,
 *     in which `before_ns` and `after_ns` relate the device's clock to the host's. OpenCL does so.
 *   - Launches and work apart, for runtimes that are traced by a library of their vendor: struct
 *     wire_device_launch for each launch, struct wire_device_gpu_activity for each piece of work,
 *     and struct wire_device_clock for the clocks. CUDA and HIP do so.
 * In both shapes a wait of the host, and a launch whose work will have no times, is a struct
 * wire_device_launch. collect/device/device.h reads all of them.
 */
#pragma once

#include <stdbool.h>

#include "wire/record.h"

/* The values are stored in captures: append only. */
enum wire_device_kind {
	WIRE_DEVICE_NONE = 0,
	WIRE_DEVICE_KERNEL = 1,
	WIRE_DEVICE_READ = 2,  /* device to host */
	WIRE_DEVICE_WRITE = 3, /* host to device */
	WIRE_DEVICE_COPY = 4,
	WIRE_DEVICE_FILL = 5,
	WIRE_DEVICE_MAP = 6,
	WIRE_DEVICE_UNMAP = 7,
	/* The host waits: no device activity follows. */
	WIRE_DEVICE_FINISH = 8,   /* for a queue */
	WIRE_DEVICE_WAIT = 9,     /* for events */
	WIRE_DEVICE_GRAPH = 10,   /* one launch of a whole graph */
	WIRE_DEVICE_MIGRATE = 11, /* memory is brought to another device, or to the host */
	WIRE_DEVICE_FREE = 12,    /* shared memory, in the order of a queue */
	WIRE_DEVICE_MAX
};

/* Where memory lies. The values are stored in captures: append only. */
enum wire_device_memory_kind {
	WIRE_MEMORY_UNKNOWN = 0,
	WIRE_MEMORY_PAGEABLE = 1, /* the host's */
	WIRE_MEMORY_PINNED = 2,   /* the host's, too */
	WIRE_MEMORY_DEVICE = 3,
	WIRE_MEMORY_ARRAY = 4,   /* the device's */
	WIRE_MEMORY_MANAGED = 5, /* moves to where it is used */
	WIRE_MEMORY_DEVICE_STATIC = 6,
	WIRE_MEMORY_MANAGED_STATIC = 7,
};

/* What a node of a graph does; others are a runtime's own. Stored in captures: append only. */
enum wire_device_node_type {
	WIRE_NODE_KERNEL = 0,
	WIRE_NODE_COPY = 1,
	WIRE_NODE_FILL = 2,
	WIRE_NODE_HOST = 3,
	WIRE_NODE_GRAPH = 4,
};

/* Why a launch has no device activity. Append only. */
enum wire_device_untimed {
	WIRE_DEVICE_TIMED = 0,
	WIRE_DEVICE_NO_PROFILING = 1, /* its queue has no times */
	WIRE_DEVICE_NO_CONTEXT = 2,   /* too many were in flight */
	WIRE_DEVICE_FAILED = 3,       /* the launch, or the work, returned an error */
	WIRE_DEVICE_NO_EVENT = 4,     /* the runtime did not report its end */
	WIRE_DEVICE_CAPTURED = 5,     /* it became a node of a graph: nothing ran */
	WIRE_DEVICE_NO_TIMES = 6,     /* it ran, and the driver gave no times */
	WIRE_DEVICE_NOT_ASKED = 7,    /* launches alone are recorded */
	WIRE_DEVICE_AFTER_WINDOW = 8, /* it ran after the window that was recorded */
	WIRE_DEVICE_UNTIMED_MAX
};

/*
 * WIRE_RECORD_DEVICE_LAUNCH: a call of the program: a wait, or a launch. Runtimes that write struct
 * wire_device_activity write it only for launches that get none; those that write struct
 * wire_device_gpu_activity write it for every launch.
 */
struct wire_device_launch {
	struct wire_record record;
	__u64 correlation;       /* of waits 0, or that of a struct wire_device_sync */
	__u64 enter_ns, exit_ns; /* CLOCK_MONOTONIC */
	__u32 tid;
	__u32 queue;  /* id; 0: unknown */
	__u8 kind;    /* enum wire_device_kind */
	__u8 untimed; /* enum wire_device_untimed */
	__u8 reserved[6];
};

_Static_assert(sizeof(struct wire_device_launch) == 48, "wire_device_launch is part of the format");

/*
 * WIRE_RECORD_DEVICE_ACTIVITY: work that ended. The first four times are in the device's clock;
 * `before_ns` and `after_ns` are CLOCK_MONOTONIC around the call that queued it, which makes each
 * activity a pair of clocks, too. A longer record of this type is a struct
 * wire_device_gpu_activity.
 */
struct wire_device_activity {
	struct wire_record record;
	__u64 correlation;
	__u64 queued, submit, start, end;
	__u64 before_ns, after_ns;
	__u64 enter_ns;       /* of the call, before its stack was taken */
	__u64 bytes;          /* of copies and fills */
	__u64 global_size[3]; /* of kernels */
	__u32 local_size[3];  /* 0: the runtime's choice */
	__u32 device, queue;  /* ids */
	__u32 name;           /* id; 0: none */
	__u32 tid;            /* that launched it */
	__u8 kind;            /* enum wire_device_kind */
	__u8 failed;
	__u8 reserved[2];
};

_Static_assert(
	sizeof(struct wire_device_activity) == 136, "wire_device_activity is part of the format");

/*
 * WIRE_RECORD_DEVICE_NAME, _DEVICE, _QUEUE: what an id stands for, in this process. The text
 * follows, padded to 8 bytes, without a terminator.
 */
struct wire_device_definition {
	struct wire_record record;
	__u32 id;
	__u32 device; /* of a queue: the id of its device */
	__u32 text_bytes;
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_device_definition) == 24,
	"wire_device_definition is part of the format");

/*
 * Ids are up to 2^20 beside the bits of their runtime, of which a process may use several. Numbers
 * are up to 15. Taken: OpenCL 0, HIP 4, CUDA 8; the toy of tests/doubles/toy has 1, in tests alone.
 */
#define WIRE_DEVICE_IDS_OF(number) ((__u32)(number) << 28)

#define WIRE_DEVICE_TEXT_BYTES 480
#define WIRE_DEVICE_MAX_BYTES  512 /* the longest of these records */

_Static_assert(
	sizeof(struct wire_device_definition) + WIRE_DEVICE_TEXT_BYTES <= WIRE_DEVICE_MAX_BYTES,
	"definitions fit");

#ifndef __bpf__
/* The stable names, used in reports and JSON; "unknown" when out of range. */
static inline const char *wire_device_kind_name(unsigned kind)
{
	static const char *const names[WIRE_DEVICE_MAX] = {
		[WIRE_DEVICE_NONE] = "none",
		[WIRE_DEVICE_KERNEL] = "kernel",
		[WIRE_DEVICE_READ] = "read",
		[WIRE_DEVICE_WRITE] = "write",
		[WIRE_DEVICE_COPY] = "copy",
		[WIRE_DEVICE_FILL] = "fill",
		[WIRE_DEVICE_MAP] = "map",
		[WIRE_DEVICE_UNMAP] = "unmap",
		[WIRE_DEVICE_FINISH] = "finish",
		[WIRE_DEVICE_WAIT] = "wait",
		[WIRE_DEVICE_GRAPH] = "graph",
		[WIRE_DEVICE_MIGRATE] = "migrate",
		[WIRE_DEVICE_FREE] = "free",
	};

	return kind < WIRE_DEVICE_MAX ? names[kind] : "unknown";
}

/* Else the host waits. */
static inline bool wire_device_is_work(unsigned kind)
{
	return kind > WIRE_DEVICE_NONE && kind < WIRE_DEVICE_MAX && kind != WIRE_DEVICE_FINISH &&
	       kind != WIRE_DEVICE_WAIT;
}

static inline const char *wire_device_untimed_name(unsigned untimed)
{
	static const char *const names[WIRE_DEVICE_UNTIMED_MAX] = {
		[WIRE_DEVICE_TIMED] = "timed",
		[WIRE_DEVICE_NO_PROFILING] = "no_profiling",
		[WIRE_DEVICE_NO_CONTEXT] = "too_many_in_flight",
		[WIRE_DEVICE_FAILED] = "failed",
		[WIRE_DEVICE_NO_EVENT] = "no_event",
		[WIRE_DEVICE_CAPTURED] = "captured",
		[WIRE_DEVICE_NO_TIMES] = "no_times",
		[WIRE_DEVICE_NOT_ASKED] = "not_asked",
		[WIRE_DEVICE_AFTER_WINDOW] = "after_window",
	};

	return untimed < WIRE_DEVICE_UNTIMED_MAX ? names[untimed] : "unknown";
}
#endif

/* ---- of runtimes that are traced by a library of their vendor ---- */

enum wire_device_traced_type {
	WIRE_RECORD_DEVICE_NOTE = 48,      /* struct wire_device_definition; id: the next enum */
	WIRE_RECORD_DEVICE_NAME_PART = 49, /* the same: more text of the name of this id */
	WIRE_RECORD_DEVICE_CLOCK = 50,     /* struct wire_device_clock */
	WIRE_RECORD_DEVICE_GRAPH = 51,     /* struct wire_device_graph */
	WIRE_RECORD_DEVICE_OVERHEAD = 52,  /* struct wire_device_overhead */
	WIRE_RECORD_DEVICE_COUNTS = 53,    /* struct wire_device_counts */
	WIRE_RECORD_DEVICE_GPU = 54,       /* struct wire_device_gpu */
	WIRE_RECORD_DEVICE_MEMORY = 55,    /* struct wire_device_memory */
	WIRE_RECORD_DEVICE_NODE = 56,      /* struct wire_device_node */
	WIRE_RECORD_DEVICE_SYNC = 57,      /* struct wire_device_sync */
	WIRE_RECORD_DEVICE_CALL = 58,      /* struct wire_device_call */
	WIRE_RECORD_DEVICE_PC = 59,        /* struct wire_device_pc */
	WIRE_RECORD_DEVICE_PC_COUNTS = 60, /* struct wire_device_pc_counts */
	WIRE_RECORD_DEVICE_UNIFIED = 61,   /* struct wire_device_unified */
	WIRE_RECORD_DEVICE_PM = 63,        /* struct wire_device_pm */
};

/* What a note is about; its text is a finished sentence. Append only. */
enum wire_device_note {
	WIRE_NOTE_NONE = 0,
	WIRE_NOTE_TRACER = 1,       /* which tracing library of which version is used */
	WIRE_NOTE_NO_TRACER = 2,    /* none was found */
	WIRE_NOTE_NO_DRIVER = 3,    /* it says that there is no usable driver */
	WIRE_NOTE_HELD = 4,         /* another tool holds it */
	WIRE_NOTE_REFUSED = 5,      /* not allowed, or not on this device */
	WIRE_NOTE_FAULTY = 6,       /* this version has a known fault */
	WIRE_NOTE_TAKEN_OVER = 7,   /* another tool receives the device activity */
	WIRE_NOTE_TAKEN_BACK = 8,   /* and we again */
	WIRE_NOTE_CLOCK_STEP = 9,   /* the device clock jumped against CLOCK_MONOTONIC */
	WIRE_NOTE_PROFILER = 10,    /* a profiler of the program's runs, and who has the work now */
	WIRE_NOTE_PC_SAMPLING = 11, /* instructions are not sampled, or their lines not known */
	WIRE_NOTE_PM_SAMPLING = 12, /* counters are not sampled, or not all of them */
	WIRE_NOTE_MAX
};

/*
 * WIRE_RECORD_DEVICE_ACTIVITY with more in it, known by its length. What is of its call is 0
 * (`before_ns`, `after_ns`, `enter_ns`, `tid`): its launches each have a
 * WIRE_RECORD_DEVICE_LAUNCH with the same correlation, which may come later, and one launch of a
 * graph has many activities. `queued` and `submit` are of kernels, 0 where they are not known.
 * WIRE_RECORD_DEVICE_CLOCK gives the pairs of clocks. A graph that the device launched has a
 * `launcher`, and its correlation is 0.
 */
struct wire_device_gpu_activity {
	struct wire_device_activity activity;
	__u64 capture; /* correlation of the call that made the graph node; 0: none, or unknown */
	__u64 graph_node; /* 0: not of a graph */
	__u32 graph;      /* the executable graph's id */
	__u32 context, stream;
	union {
		__u32 registers; /* of one thread of a kernel */
		/* Of a graph: the executable graph whose kernel launched it; 0: the host did. */
		__u32 launcher;
	};
	__u32 static_shared_bytes, dynamic_shared_bytes; /* from here on of kernels */
	__u32 local_bytes;                               /* of one thread */
	__u32 cluster_size[3];
	__u8 untimed;     /* enum wire_device_untimed */
	__u8 from_memory; /* of copies, as `to_memory`: enum wire_device_memory_kind */
	__u8 to_memory;   /* of fills, too */
	__u8 has_priority;
	__s32 priority; /* of the launch; 0 where it is not known */
};

/* The name of such a graph; where it is known by which, " by graph 20, tail" follows. */
#define WIRE_DEVICE_GRAPH_NAME "graph launched on the device"
#define WIRE_LAUNCHER_UNKNOWN  0xffffffffU /* the device launched it, and no more is known */

_Static_assert(sizeof(struct wire_device_gpu_activity) == 200,
	"wire_device_gpu_activity is part of the format");

/* WIRE_RECORD_DEVICE_CLOCK: both clocks at one moment; the error is at most `width_ns`. */
struct wire_device_clock {
	struct wire_record record;
	__u64 monotonic_ns;
	__u64 device; /* the clock of the activities' times */
	__u64 boottime_ns;
	__u32 width_ns;
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_device_clock) == 40, "wire_device_clock is part of the format");

enum wire_device_graph_event {
	WIRE_GRAPH_CAPTURE_BEGIN = 1,
	WIRE_GRAPH_CAPTURE_END = 2,
	WIRE_GRAPH_INSTANTIATE = 3,
	WIRE_GRAPH_UPDATE = 4, /* parameters of nodes changed: captured stacks stay */
	WIRE_GRAPH_DESTROY = 5,
	WIRE_GRAPH_EXEC_DESTROY = 6,
	WIRE_GRAPH_CREATE = 7,
	WIRE_GRAPH_CLONE = 8,
};

/* WIRE_RECORD_DEVICE_GRAPH: what became of a graph. Ids are the tracing library's; 0: unknown. */
struct wire_device_graph {
	struct wire_record record;
	__u64 enter_ns, exit_ns; /* of the call; equal where only the moment is known */
	__u64 correlation;       /* of the call */
	__u32 tid;
	__u32 graph;
	__u32 other; /* of an instantiation the executable graph, of a clone the original */
	__u32 nodes; /* made in this call or capture */
	__u8 event;  /* enum wire_device_graph_event */
	__u8 failed;
	__u8 reserved[6];
};

_Static_assert(sizeof(struct wire_device_graph) == 56, "wire_device_graph is part of the format");

/* WIRE_RECORD_DEVICE_OVERHEAD: time that the tracing library or the driver took. Device clock. */
struct wire_device_overhead {
	struct wire_record record;
	__u64 start, end;
	__u64 correlation; /* 0: unknown */
	__u32 kind;        /* the tracing library's number */
	__u32 tid;         /* 0: not of a thread */
};

_Static_assert(
	sizeof(struct wire_device_overhead) == 40, "wire_device_overhead is part of the format");

/* WIRE_RECORD_DEVICE_COUNTS: so far, in this process. */
struct wire_device_counts {
	struct wire_record record;
	__u64 time_ns;
	__u64 launches; /* calls that an activity must follow */
	__u64 captured; /* calls that became graph nodes */
	__u64 activities;
	__u64 untimed;       /* of them without times */
	__u64 dropped;       /* by the tracing library */
	__u64 unknown_nodes; /* activities of graph nodes whose capture is not known */
	__u64 lost_graph_events;
	__u64 refused_buffers; /* asked for while all were in use */
	__u64 foreign_buffers; /* of another tool, that came to us */
	__u64 repeated;        /* records written again: the ring counts each try as lost */
	__u64 waited_out;      /* records that found no room however long */
};

_Static_assert(
	sizeof(struct wire_device_counts) == 104, "wire_device_counts is part of the format");

/* WIRE_RECORD_DEVICE_GPU: what a device id stands for, beside its name. */
struct wire_device_gpu {
	struct wire_record record;
	__u32 id;
	__u32 ordinal;
	__u8 uuid[16];
	__u64 memory_bytes;
	__u32 capability_major, capability_minor;
	__u32 multiprocessors;
	__u32 warp_threads;
	__u32 multiprocessor_warps, multiprocessor_blocks;
	__u32 multiprocessor_shared_bytes, multiprocessor_registers;
	__u32 block_registers, block_shared_bytes, block_threads;
	__u32 core_clock_khz;
	__u32 is_mig; /* an instance of a partitioned GPU, whose UUID this is */
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_device_gpu) == 96, "wire_device_gpu is part of the format");

/* WIRE_RECORD_DEVICE_MEMORY: an allocation or a release. */
struct wire_device_memory {
	struct wire_record record;
	__u64 time; /* device clock */
	__u64 correlation;
	__u64 address, bytes;
	__u64 pool_bytes, pool_used_bytes; /* of its pool, afterwards; 0: of none */
	__u32 device;
	__u32 context, stream;
	__u8 memory; /* enum wire_device_memory_kind */
	__u8 released;
	__u8 reserved[2];
};

_Static_assert(sizeof(struct wire_device_memory) == 72, "wire_device_memory is part of the format");

/*
 * WIRE_RECORD_DEVICE_NODE: a node of a graph was made, or cloned. Only where graphs are timed as a
 * whole: else each activity has its `capture`. The kernel's name follows, padded to 8 bytes,
 * without a terminator.
 */
struct wire_device_node {
	struct wire_record record;
	__u64 node;
	__u64 original;    /* of a clone; 0: made by a call */
	__u64 correlation; /* of the call; 0: unknown */
	__u32 graph;
	__u32 node_type; /* enum wire_device_node_type, or a number of the runtime's */
	__u32 text_bytes;
	__u32 reserved;
};

_Static_assert(sizeof(struct wire_device_node) == 48, "wire_device_node is part of the format");

/* What waits for what. The values are stored in captures: append only. */
enum wire_device_sync_type {
	WIRE_SYNC_UNKNOWN = 0,
	WIRE_SYNC_EVENT = 1,         /* the host waits for an event */
	WIRE_SYNC_WAIT = 2,          /* a stream waits for an event */
	WIRE_SYNC_STREAM = 3,        /* the host waits for a stream */
	WIRE_SYNC_CONTEXT = 4,       /* the host waits for all streams of a context */
	WIRE_SYNC_RECORD = 5,        /* an event is recorded on a stream */
	WIRE_SYNC_HOST_FUNCTION = 6, /* a stream waits while a function of the program runs */
	WIRE_SYNC_MAX
};

#define WIRE_SYNC_NO_STREAM 0xffffffffU
#define WIRE_SYNC_NO_EVENT  0xffffffffU

/* WIRE_RECORD_DEVICE_SYNC: something waits, or what it can wait for is recorded. */
struct wire_device_sync {
	struct wire_record record;
	__u64 start, end;  /* device clock; 0: not known, as of records of events */
	__u64 correlation; /* of the call */
	__u64 event_sync;  /* one of an event's record and of the waits for it; 0: not known */
	__u32 context, stream;
	__u32 event;
	__u8 sync; /* enum wire_device_sync_type */
	__u8 reserved[3];
};

_Static_assert(sizeof(struct wire_device_sync) == 56, "wire_device_sync is part of the format");

/*
 * WIRE_RECORD_DEVICE_CALL: a call that launches nothing. Its name follows, padded to 8 bytes,
 * without a terminator.
 */
struct wire_device_call {
	struct wire_record record;
	__u64 correlation;
	__u64 enter_ns, exit_ns; /* CLOCK_MONOTONIC */
	__u32 tid;
	__u32 text_bytes;
	__u8 failed;
	__u8 reserved[7];
};

_Static_assert(sizeof(struct wire_device_call) == 48, "wire_device_call is part of the format");

#define WIRE_DEVICE_CALL_NAME_BYTES 80 /* a multiple of 8; longer ones are cut */

/*
 * WIRE_RECORD_DEVICE_PC: samples of one instruction that found a warp there for one reason, since
 * `time_ns`. Texts are WIRE_RECORD_DEVICE_NAMEs.
 */
struct wire_device_pc {
	struct wire_record record;
	__u64 time_ns;   /* CLOCK_MONOTONIC, when counting began */
	__u64 cubin;     /* of the code: the tracing library's checksum */
	__u64 pc_offset; /* in the function */
	__u64 samples;
	__u64 not_issued; /* of them: the scheduler issued no instruction in that cycle */
	__u32 function;   /* ids; 0: not known */
	__u32 reason;
	__u32 file;
	__u32 line; /* of `file`; 0: not known */
};

_Static_assert(sizeof(struct wire_device_pc) == 64, "wire_device_pc is part of the format");

/* WIRE_RECORD_DEVICE_PC_COUNTS: of the samples since `time_ns`. */
struct wire_device_pc_counts {
	struct wire_record record;
	__u64 time_ns; /* as in struct wire_device_pc */
	__u64 samples; /* that the device took, as its tracing library counts them */
	__u64 dropped; /* of them: by the device */
	__u64 foreign; /* of them: in code of which the tracing library gives no instructions */
	__u64 lost;    /* found no room in the process's table */
	__u64 reads, full_reads, failed_reads; /* full: the device's buffer was */
	__u32 period_cycles;                   /* between two samples; 0: not known */
	__u32 reserved;
};

_Static_assert(
	sizeof(struct wire_device_pc_counts) == 80, "wire_device_pc_counts is part of the format");

/* What happens to pages of unified memory. The values are stored in captures: append only. */
enum wire_unified_type {
	WIRE_UNIFIED_UNKNOWN = 0,
	WIRE_UNIFIED_TO_DEVICE = 1, /* pages move from the host */
	WIRE_UNIFIED_TO_HOST = 2,
	WIRE_UNIFIED_HOST_FAULT = 3,   /* the host accesses a page that it does not have */
	WIRE_UNIFIED_DEVICE_FAULT = 4, /* a device does */
	WIRE_UNIFIED_THRASHING = 5,    /* pages go to and fro; the driver has noticed */
	WIRE_UNIFIED_THROTTLING = 6,   /* who accesses them has to wait, against thrashing */
	WIRE_UNIFIED_REMOTE_MAP = 7,   /* they stay, and are accessed from afar */
	WIRE_UNIFIED_BETWEEN_DEVICES = 8,
	WIRE_UNIFIED_MAX
};

/* Why pages moved. Stored in captures, as the next two: append only. */
enum wire_unified_migration {
	WIRE_MIGRATION_UNKNOWN = 0,
	WIRE_MIGRATION_USER = 1,      /* the program called for it: a prefetch */
	WIRE_MIGRATION_COHERENCE = 2, /* they were accessed */
	WIRE_MIGRATION_PREFETCH = 3,  /* the driver expected an access */
	WIRE_MIGRATION_EVICTION = 4,  /* the device was full */
	WIRE_MIGRATION_ACCESS_COUNTERS = 5,
	WIRE_MIGRATION_MAX
};

/* What a device did that faulted. */
enum wire_unified_access {
	WIRE_ACCESS_UNKNOWN = 0,
	WIRE_ACCESS_READ = 1,
	WIRE_ACCESS_WRITE = 2,
	WIRE_ACCESS_ATOMIC = 3,
	WIRE_ACCESS_PREFETCH = 4,
	WIRE_ACCESS_MAX
};

/* Why pages are accessed from afar. */
enum wire_unified_map {
	WIRE_MAP_UNKNOWN = 0,
	WIRE_MAP_COHERENCE = 1,
	WIRE_MAP_THRASHING = 2,
	WIRE_MAP_POLICY = 3,
	WIRE_MAP_OUT_OF_MEMORY = 4,
	WIRE_MAP_EVICTION = 5,
	WIRE_MAP_MAX
};

/* WIRE_RECORD_DEVICE_UNIFIED: something that happened to pages of unified memory. */
struct wire_device_unified {
	struct wire_record record;
	__u64 start, end; /* device clock; end 0: a moment */
	__u64 address;
	/* Bytes; of a fault of the host the address of its instruction; of faults of a device how
	 * many groups of them; of throttling 0. */
	__u64 value;
	__u64 devices;  /* that thrash, a bit for each ordinal up to 63; 0: not known */
	__u32 from, to; /* ids of devices; 0: the host, or of none */
	__u8 type;      /* enum wire_unified_type */
	__u8 cause;     /* of migrations, device faults and maps: the enum above that is of them */
	__u8 on_host;   /* of thrashing and throttling: the host takes part */
	__u8 reserved[5];
};

_Static_assert(
	sizeof(struct wire_device_unified) == 64, "wire_device_unified is part of the format");

/* What a device counts; names are the collector's. Append only. */
enum wire_pm_counter {
	WIRE_PM_SM_BUSY = 0, /* percent of the peak, as those without another unit */
	WIRE_PM_TENSOR_BUSY = 1,
	WIRE_PM_DRAM_READ = 2,
	WIRE_PM_DRAM_WRITE = 3,
	WIRE_PM_DRAM_READ_BYTES = 4, /* bytes a second, as all that follow */
	WIRE_PM_DRAM_WRITE_BYTES = 5,
	WIRE_PM_NVLINK_RECEIVED_BYTES = 6,
	WIRE_PM_NVLINK_SENT_BYTES = 7,
	WIRE_PM_PCIE_READ_BYTES = 8,
	WIRE_PM_PCIE_WRITE_BYTES = 9,
	WIRE_PM_MAX
};

/* WIRE_RECORD_DEVICE_PM: what a device counted from `start` to `end`. */
struct wire_device_pm {
	struct wire_record record;
	__u64 start, end; /* device clock */
	__u32 device;     /* id */
	__u32 reserved;
	__u64 values[WIRE_PM_MAX]; /* by counter: the bits of a double; NaN: not counted */
};

_Static_assert(sizeof(struct wire_device_pm) == 112, "wire_device_pm is part of the format");
