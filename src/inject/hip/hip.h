/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HIP door: AMD's libraries load rocprofiler-sdk when the program first uses HIP, and that
 * calls rocprofiler_configure() (hip.c). It calls back at every launch, on the program's thread
 * (call.c), and asks for an id for each piece of work that the call gives to a device. Records of
 * work come in buffers on a thread of its own (record.c). One thread of ours (writer.c) follows the
 * gate, flushes, and sends clocks, notes and counts.
 *
 * Written against rocprofiler-sdk's headers and a stand-in: it has never run on an AMD device.
 *
 * What runs on the program's threads never waits or allocates, but where a code object is loaded.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/hip/rocprofiler_abi.h"
#include "inject/inject.h"
#include "inject/note.h"
#include "inject/worker.h"

/* Ids of devices, queues and names. */
#define HIP_ID_BASE WIRE_DEVICE_IDS_OF(4)

struct hip {
	struct rocprofiler_functions call;
	/* Names of kernels are always reported; launches and work while the gate is open. */
	struct rocprofiler_id names, work, buffer;
	bool is_traced;       /* these are there */
	bool has_writer;      /* which has been started */
	_Atomic bool is_over; /* forked, or finalized: rocprofiler-sdk is not called again */
	struct inject_worker writer;
	/* `sending` is held: by rocprofiler-sdk's thread for records, and by the writer. */
	pthread_mutex_t sending;
	struct inject_room room;
	_Atomic uint32_t captures; /* of graphs, that go on, of any thread */
	/* Counted on all threads. */
	_Atomic uint64_t launches, captured;
	_Atomic uint64_t expected, arrived; /* work that got an id, and records */
	_Atomic uint64_t untimed, dropped;
};

extern struct hip hip;

/* ---- call.c: on the program's threads ---- */

/* Callbacks of the calls that launch and wait; ROCPROFILER_OK or why not. */
int hip_trace_calls(void);

/* ---- record.c: on rocprofiler-sdk's thread ---- */

/* The buffer that work is written to. */
int hip_trace_work(void);

/* ---- ids.c ---- */

/* While rocprofiler-sdk is initialized: which GPUs there are. */
int hip_find_gpus(void);
/* When a code object is loaded, on the program's thread. */
void hip_add_kernel(const struct rocprofiler_kernel_symbol *symbol);

/* The rest with `sending` held. Sends what the GPUs are that the session does not know. */
void hip_send_gpus(void);
/* An agent's id; 0: it is no GPU. */
uint32_t hip_device_id(uint64_t agent);
/* A queue of a device, or what copies for it, HIP_COPIES; 0: there was no room, or no memory. */
#define HIP_COPIES UINT64_MAX
uint32_t hip_queue_id(uint32_t device, uint64_t queue);

struct hip_kernel {
	uint32_t registers, group_bytes;
	uint32_t sent_to; /* inject_image() */
	char name[];
};

/* NULL: not known; *ret_name is its id, or 0. */
const struct hip_kernel *hip_find_kernel(uint64_t number, uint32_t *ret_name);

/* ---- writer.c ---- */

/* On the program's thread: the first launch is traced where the gate is open. */
bool hip_writer_start(void);
void hip_writer_flush(void);
/* Sends all that is known and ends the writer, waiting for a bounded time. */
void hip_writer_stop(void);
