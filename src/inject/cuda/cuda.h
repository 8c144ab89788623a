/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA door: libcuda loads the library and calls InitializeInjection() (cuda.c), CUPTI calls
 * back at every launch (call.c) and whenever a graph changes (graph.c), and gives the
 * device's records in buffers (buffer.c). One thread of ours (writer.c) flushes, turns
 * the records into wire records (record.c) and tells the notes (note.c).
 *
 * What runs on the program's threads never waits, allocates or calls CUDA. No lock exists: graph
 * events go to the writer through a queue, buffers through the state of their slot. PC sampling,
 * which is off unless it is asked for, is the exception (pc.h).
 *
 * From the environment, beside SONDE_SESSION:
 *   SONDE_CUPTI            a libcupti to prefer to those that are found
 *   SONDE_CUDA_FLUSH_MS    how often records are asked for, 100
 *   SONDE_CUDA_RECLAIM_MS  after so long the device activity is taken back from
 *                          another tool, 30000; 0: never
 *   SONDE_CUDA_END_MS      so long after the program's end records are no longer written, only
 *                          counted, 3000
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cuda/cupti.h"
#include "inject/inject.h"
#include "inject/note.h"
#include "inject/worker.h"

/* Ids of devices, queues and names. */
#define CUDA_ID_BASE WIRE_DEVICE_IDS_OF(8)

/* What a call of CUPTI_*_CALLS is; those below CUDA_ROLE_ALLOCATE are enum wire_device_kind. */
enum cuda_role {
	CUDA_ROLE_NONE = WIRE_DEVICE_NONE,
	CUDA_ROLE_KERNEL = WIRE_DEVICE_KERNEL,
	CUDA_ROLE_READ = WIRE_DEVICE_READ,
	CUDA_ROLE_WRITE = WIRE_DEVICE_WRITE,
	CUDA_ROLE_COPY = WIRE_DEVICE_COPY,
	CUDA_ROLE_FILL = WIRE_DEVICE_FILL,
	CUDA_ROLE_FINISH = WIRE_DEVICE_FINISH,
	CUDA_ROLE_WAIT = WIRE_DEVICE_WAIT,
	CUDA_ROLE_GRAPH = WIRE_DEVICE_GRAPH,
	CUDA_ROLE_ALLOCATE = 60, /* of CUPTI_OTHER_*_CALLS, as the next two; or frees */
	CUDA_ROLE_OTHER = 61,
	CUDA_ROLE_LOAD = 62,
	CUDA_ROLE_EDGE = 63, /* launches nothing: what waits for it, or it for, needs the call */
	CUDA_ROLE_CAPTURE_BEGIN = 64,
	CUDA_ROLE_CAPTURE_END,
	CUDA_ROLE_INSTANTIATE,
	CUDA_ROLE_UPDATE,
};

struct cuda {
	struct cupti cupti;
	bool subscribed;
	bool graph_level;           /* one record for each launch of a graph, not for each node */
	bool tells_nodes;           /* of graphs, as their replays may have no records of nodes */
	bool is_tracing;            /* the writer's: the gate was open when last looked at */
	bool allocations_are_on;    /* the writer's: callbacks of CUDA_ROLE_ALLOCATE */
	_Atomic bool others_are_on; /* callbacks of the rest of CUPTI_OTHER_*_CALLS */
	_Atomic bool dead;          /* forked, or at the process's end: CUPTI is not called again */
	struct inject_worker writer;
	struct inject_room room; /* the writer's */
	/* Counted on all threads; the rest of wire_device_counts is the writer's. */
	_Atomic uint64_t launches, captured, lost_graph_events, refused_buffers, foreign_buffers;
	_Atomic uint64_t buffer_requests, graph_launches;
	/* When a wait for all work of the device last returned, and the launches until then. */
	_Atomic uint64_t last_wait_ns, last_wait_launches;
};

extern struct cuda cuda;

/* Callbacks of calls and graphs, and our buffers; says why not. Kinds are the writer's to enable.
 */
cupti_result cuda_subscribe(void);

/* ---- call.c: on the program's threads ---- */

/* The correlation id of a CUPTI correlation id: unique also after 2^32 launches. */
uint64_t cuda_correlation(uint32_t id);
void cuda_on_call(int domain, uint32_t id, const struct cupti_call_data *data);
/* Callbacks of all calls of the tables; calls that are under way are forgotten. */
void cuda_enable_calls(bool on);

/* What a graph event belongs to: the call that the thread is in. */
struct cuda_call {
	bool active;
	bool waits_for_all; /* work of the device */
	uint8_t role;       /* enum cuda_role */
	uint32_t id;        /* CUPTI's correlation id */
	uint32_t generation;
	uint64_t correlation, enter_ns;
	const char *symbol;     /* the kernel's, during the call; NULL: none */
	uint32_t nodes;         /* made in this call */
	uint32_t graph, other;  /* for struct wire_device_graph */
	uint64_t instantiation; /* a number of this instantiation; 0: none */
};

/* NULL: it is in none. */
struct cuda_call *cuda_current_call(void);
/* A launch that no call was seen of; its correlation id. */
uint64_t cuda_launch_without_call(unsigned kind);
/* The thread made nodes in a capture. */
void cuda_count_captured_node(uint32_t graph);

/* ---- other.c: calls that launch nothing ---- */

/* One begins; `in_runtime`: the runtime's call that the thread is in is not one of these. */
void cuda_enter_other(
	int domain, unsigned role, const struct cupti_call_data *data, bool in_runtime);
void cuda_leave_other(int domain, const struct cupti_call_data *data);
/* False, and counted, where there was no room. */
bool cuda_write_call(uint64_t correlation, uint64_t enter_ns, uint64_t exit_ns,
	const struct cupti_call_data *data);
/*
 * The stack of a call that launches nothing and was just written: at its end, so that no stack
 * comes without its call, which would be taken for a launch that was lost.
 */
void cuda_stack_of_call(uint64_t correlation, uint64_t enter_ns);
/* Callbacks of these calls, as far as the session wants them. */
void cuda_enable_others(bool on);

/* ---- unified.c: unified memory, where the session wants it ---- */

/* Tries to begin, and if CUPTI is not ready yet, when the driver is. */
void cuda_unified_start(void);
/* The driver is ready. */
void cuda_unified_retry(void);
/* Its records, after cuda_unified_start(). */
void cuda_unified_enable(bool on);
/* At the end: if it never began, a note says so. */
void cuda_unified_check(void);

/* ---- latency.c: when launches were queued and submitted, where the session wants it ---- */

/* Before kinds are enabled. */
void cuda_latency_start(void);
/* On the writer: the times of a kernel's launch. */
void cuda_latency_take(const struct cupti_kernel *record, struct wire_device_activity *activity);
/* At the end: if kernels ran and none had the times, a note says so. */
void cuda_latency_check(void);

/* ---- device_graph.c: graphs that devices launch, where the session wants them ---- */

/* Before kinds are enabled. */
void cuda_device_graphs_start(void);
/* On the writer: its launcher, as in the wire record, and the id of a name that says so. */
uint32_t cuda_device_graph_launcher(const struct cupti_device_graph *record);
uint32_t cuda_device_graph_name(const struct cupti_device_graph *record);

/* ---- graph.c ---- */

void cuda_on_resource(uint32_t id, const struct cupti_resource_data *data);
void cuda_enable_graphs(bool on);

/* On the writer: takes over what the callbacks saw. */
void cuda_graph_drain(void);
/* The capture of the node of a record; false: not known. */
bool cuda_graph_capture(uint32_t exec, uint64_t node, uint64_t *ret_correlation);
/* All records of before are sent: graphs destroyed before the last call go. */
void cuda_graph_sweep(void);

/* ---- level.c: on the writer, but for the first ---- */

/* Says how graphs are timed, once CUPTI was subscribed to and before kinds are enabled. */
void cuda_level_init(void);
/* A replay as a whole, or a node of one, has its times. */
struct cuda_replayed {
	uint32_t exec, correlation;
	uint64_t start, end;
	bool is_whole;
};
void cuda_level_take(const struct cuda_replayed *replayed);
/* With --graph auto: measures, decides, and samples nodes where graphs are timed as a whole. */
void cuda_level_follow(void);
/* A window begins: what was launched before is not waited for. */
void cuda_level_forget(void);
/* A window ends, or CUPTI is given away: no nodes are sampled until there are launches again. */
void cuda_level_rest(void);

/* ---- pc.c: instructions that are sampled ---- */

/* Of contexts and modules, which the program's threads make; false: the event is another. */
bool cuda_pc_on_resource(uint32_t id, const struct cupti_resource_data *data);
/* Callbacks for those, where the session wants samples. */
void cuda_pc_watch(void);
/* On the writer: a window opens, is open, and has ended. */
void cuda_pc_begin(void);
void cuda_pc_read(uint64_t now_ns);
void cuda_pc_end(void);

/* ---- pm.c: counters that are sampled ---- */

/* On the program's threads, of any resource. */
void cuda_pm_on_resource(uint32_t id, const struct cupti_resource_data *data);
/* The callback for contexts, where the session wants samples. */
void cuda_pm_watch(void);
/* On the writer: a window opens, is open, its samples are due, and it has ended. */
void cuda_pm_begin(void);
void cuda_pm_follow(void);
void cuda_pm_read(void);
void cuda_pm_end(void);

/* ---- buffer.c ---- */

extern const struct cupti_buffer_callbacks cuda_buffer_callbacks;
bool cuda_buffers_init(void);
/* Makes the first buffers' memory, on the writer. */
void cuda_buffers_prepare(void);
/* Calls `take` for each completed buffer, which goes back to the pool. True when there was one. */
typedef void cuda_take_buffer(
	uint8_t *buffer, size_t valid_bytes, cupti_handle context, uint32_t stream);
bool cuda_buffers_drain(cuda_take_buffer *take);

/* ---- record.c: on the writer ---- */

/* Both wait for room, but not for a collector that has stopped: false then. */
bool cuda_write(const struct wire_record *record);
bool cuda_define(uint16_t type, uint32_t id, uint32_t device, const char *text);
void cuda_take_records(uint8_t *buffer, size_t valid_bytes, cupti_handle context, uint32_t stream);
uint64_t cuda_activities(void);
/* How many launches they are of; the nodes of a replay count once. */
uint64_t cuda_served_launches(void);
/* A window begins: what was launched before is not waited for. */
void cuda_forget_launches(void);
uint64_t cuda_dropped(void);
void cuda_send_counts(void);
void cuda_send_last_counts(void);
/* From here on they count anew. */
void cuda_reset_counts(void);

/* ---- ids.c: on the writer ---- */

/* Names are read anew from here on: what stands at their places may have changed. */
void cuda_names_begin(void);
/* 0: there was no room for the definition, or no memory. */
uint32_t cuda_name_id(const char *name);
/* The same of a text that is not CUPTI's, and need not stay. */
uint32_t cuda_text_id(const char *text);
uint32_t cuda_device_id(uint32_t ordinal);
uint32_t cuda_queue_id(uint32_t device, uint32_t context, uint32_t stream);
/* The ordinal for work that CUPTI places on no device. */
uint32_t cuda_unplaced_device(void);
void cuda_take_device(const struct cupti_device *record);
/* Sends what the GPUs are that are known and were not sent: a gate that was closed has opened. */
void cuda_send_gpus(void);

/* ---- note.c ---- */

/* What the libcupti in use is known to do wrong. */
void cuda_note_faults(enum cupti_when when);
/* What a refusal of CUPTI means. */
struct cuda_refusal {
	cupti_result result;
	const char *text;
	unsigned note; /* which says it, where that is not always the same */
};
/* The one of the result; NULL: none is. */
const struct cuda_refusal *cuda_find_refusal(
	const struct cuda_refusal *refusals, size_t count, cupti_result result);
/* CUPTI's own word for it, or "unknown". */
const char *cuda_result_name(cupti_result result);
/* The sentence for a refusal of CUPTI; `holder` may be "". */
void cuda_note_refusal(cupti_result result, const char *holder);

/* ---- writer.c ---- */

bool cuda_writer_start(void);
/* A profiler of the program's starts, or has stopped: the writer gives CUPTI away, and takes it. */
void cuda_writer_meet_profiler(bool runs);
/* Has the writer send what was launched, and waits for that for a bounded time. */
void cuda_writer_flush(void);
/* Flushes, tells all and ends the writer, waiting for a bounded time. */
void cuda_writer_stop(void);
