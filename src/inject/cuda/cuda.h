/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA door: libcuda loads the library and calls InitializeInjection() (cuda.c), CUPTI calls
 * back at every launch (call.c) and whenever a graph changes (graph.c), and gives the
 * device's records in buffers (buffer.c). One thread of ours (writer.c) flushes, turns
 * the records into wire records (record.c) and tells the notes (note.c).
 *
 * What runs on the program's threads never waits, allocates or calls CUDA. No lock exists: graph
 * events go to the writer through a queue, buffers through the state of their slot.
 *
 * From the environment, beside SONDE_SESSION:
 *   SONDE_CUPTI            a libcupti to prefer to those that are found
 *   SONDE_CUDA_FLUSH_MS    how often records are asked for, 100
 *   SONDE_CUDA_RECLAIM_MS  after so long the device activity is taken back from
 *                          another tool, 30000; 0: never
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cuda/cupti.h"
#include "inject/inject.h"

/* Ids of devices, queues and names. */
#define CUDA_ID_BASE WIRE_DEVICE_IDS_OF(8)

/* What a call of CUPTI_*_CALLS is; those below CUDA_ROLE_CAPTURE_BEGIN are enum wire_device_kind.
 */
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
	CUDA_ROLE_CAPTURE_BEGIN = 64,
	CUDA_ROLE_CAPTURE_END,
	CUDA_ROLE_INSTANTIATE,
	CUDA_ROLE_UPDATE,
};

struct cuda {
	struct cupti cupti;
	bool subscribed;
	bool graph_level;  /* one record for each launch of a graph, not for each node */
	bool is_tracing;   /* the writer's: the gate was open when last looked at */
	_Atomic bool dead; /* forked, or at the process's end: CUPTI is not called again */
	sem_t wake;        /* of the writer */
	/* Counted on all threads; the rest of wire_device_counts is the writer's. */
	_Atomic uint64_t launches, captured, lost_graph_events, refused_buffers, foreign_buffers;
	_Atomic uint64_t buffer_requests;
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

/* ---- graph.c ---- */

void cuda_on_resource(uint32_t id, const struct cupti_resource_data *data);
void cuda_enable_graphs(bool on);

/* On the writer: takes over what the callbacks saw. */
void cuda_graph_drain(void);
/* The capture of the node of a record; false: not known. */
bool cuda_graph_capture(uint32_t exec, uint64_t node, uint64_t *ret_correlation);
/* All records of before are sent: graphs destroyed before the last call go. */
void cuda_graph_sweep(void);

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
/* From here on they count anew. */
void cuda_reset_counts(void);

/* ---- ids.c: on the writer ---- */

/* 0: there was no room for the definition, or no memory. */
uint32_t cuda_name_id(const char *name);
uint32_t cuda_device_id(uint32_t ordinal);
uint32_t cuda_queue_id(uint32_t device, uint32_t context, uint32_t stream);
/* The ordinal for work that CUPTI places on no device. */
uint32_t cuda_unplaced_device(void);
void cuda_take_device(const struct cupti_device *record);
/* Sends what the GPUs are that are known and were not sent: a gate that was closed has opened. */
void cuda_send_gpus(void);

/* ---- note.c ---- */

/* A finished sentence for people, sent when the gate is open. */
void cuda_note(unsigned note, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What the libcupti in use is known to do wrong. */
void cuda_note_faults(enum cupti_when when);
/* The sentence for a refusal of CUPTI; `holder` may be "". */
void cuda_note_refusal(cupti_result result, const char *holder);
/* On the writer, in another session: what the tracer is and does wrong is said again. */
void cuda_repeat_notes(void);
/* On the writer; false while some wait for the gate. */
bool cuda_send_notes(void);

/* ---- writer.c ---- */

bool cuda_writer_start(void);
/* A profiler of the program's starts, or has stopped: the writer gives CUPTI away, and takes it. */
void cuda_writer_meet_profiler(bool runs);
/* Has the writer send what was launched, and waits for that for a bounded time. */
void cuda_writer_flush(void);
/* Flushes, tells all and ends the writer, waiting for a bounded time. */
void cuda_writer_stop(void);
