/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test double: NOT CUPTI. It has as many of libcupti's functions as sonde calls, runs no device,
 * and does what a script (play.c) tells it through the functions below. What it does is what the
 * documentation and other tools say of CUPTI; where hardware shows otherwise, it is wrong.
 *
 * From the environment:
 *   DOUBLE_CUPTI_VERSION    what cuptiGetVersion() answers
 *   DOUBLE_CUPTI_SUBSCRIBE  what subscribing and everything like it answers, 0 if not set
 *   DOUBLE_CUPTI_HOLDER     who holds CUPTI, told by cuptiSubscribe_v2()
 *   DOUBLE_CUPTI_SINGLE     1: its driver knows one subscriber only
 *   DOUBLE_CUPTI_NODE_COST  what timing nodes adds to a replay, in percent, 0 if not set
 *   DOUBLE_CUPTI_STICKY     1: a graph keeps the level of its instantiation
 *   DOUBLE_CUPTI_UNIFIED    what configuring unified memory's counters answers when the driver has
 *                           started, which a script tells by CUPTI_RESOURCE_DRIVER_READY
 *   DOUBLE_CUPTI_LATENCY    what asking for the times of queueing and submitting answers, 0 if not
 *                           set; records of kernels have them only then
 *   DOUBLE_CUPTI_DEVICE_GRAPHS  what asking for graphs that the device launches answers, 0 if not
 *                           set; they have records only then
 *   DOUBLE_CUPTI_LATENCY_NONE  if set, they are 0 all the same
 *
 * The handles of graphs, executable graphs and nodes are their ids.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_abi.h"

/* Kernels that run one after another, each for `node_ns`. */
struct double_replay {
	uint32_t exec, correlation, nodes;
	uint64_t node_ns;
	const char *const *names; /* NULL: all have one */
};

/* A callback of a call, when it is enabled. */
struct double_functions {
	void (*call)(int domain, uint32_t id, uint32_t correlation, int site, int32_t result);
	void (*resource)(uint32_t id, const struct cupti_graph_data *data);
	void (*state)(uint32_t id, cupti_result result, const char *message);
	/* Puts a record of the device into the buffer in use; 0: no buffer was given, it is
	 * dropped. */
	int (*emit)(const void *record, size_t bytes);
	/* The same, but each thread of the caller's has its own buffer: none is given back. */
	int (*request)(void);
	/* Asks for a buffer and gives it back; 0: none was given. */
	int (*request_and_complete)(void);
	/* Another tool registers its own buffer callbacks, as Kineto does. */
	void (*take_over)(void);
	int (*is_taken_over)(void);
	uint32_t (*taken_records)(void); /* that it received */
	/* A buffer of another tool's comes back to whoever is registered now. */
	void (*complete_foreign)(void);
	/* How often functions of CUPTI were called in a process that is not the first. */
	uint32_t (*calls_in_children)(void);
	uint32_t (*enabled_callbacks)(int domain);
	int (*kind_enabled)(int kind);
	void (*step_clock)(int64_t by_ns);
	int (*is_subscribed)(void);
	uint32_t (*flushes)(void);         /* how many cuptiActivityFlushAll() calls have ended */
	int (*times_whole)(uint32_t exec); /* and not its nodes; 0: a graph that is made now */
	void (*replay)(const struct double_replay *replay); /* its records */
	/* A resource event that is none of graphs. */
	void (*resource_of)(uint32_t id, cupti_handle context, const void *descriptor);
};

/* ---- pc.c ---- */

/* Found by the device while a context is sampled. */
struct double_pc_sample {
	uint64_t cubin, pc_offset;
	const char *function; /* stays */
	uint32_t function_index;
	uint32_t reason; /* its number */
	uint32_t samples;
};

struct double_pc_functions {
	void (*sample)(cupti_handle context, const struct double_pc_sample *sample);
	/* Samples that the device drops, and those in code that is not the program's. */
	void (*lose)(cupti_handle context, uint64_t dropped, uint64_t foreign);
	uint32_t (*faults)(void); /* calls that are not allowed, so far */
	int (*is_started)(cupti_handle context);
};

/* What stands for the checksum of a cubin. */
static inline uint64_t double_pc_crc(const void *cubin, size_t bytes)
{
	uint64_t crc = 1469598103934665603ULL;

	for (size_t i = 0; i < bytes; i++)
		crc = (crc ^ ((const uint8_t *)cubin)[i]) * 1099511628211ULL;
	return crc;
}

/* ---- pm.c ---- */

struct double_pm_value {
	const char *metric; /* as CUPTI calls it, without what is behind its first dot */
	double value;
};

/* Counted by a GPU while it is sampled. */
struct double_pm_sample {
	uint64_t start, end;
	const struct double_pm_value *values; /* which stay; 0 of others */
	size_t count;
};

struct double_pm_functions {
	/* False: the GPU is not sampled. */
	int (*sample)(uint32_t gpu, const struct double_pm_sample *sample);
	uint32_t (*faults)(void);   /* calls that are not allowed, so far */
	uint32_t (*refusals)(void); /* calls that were answered with what DOUBLE_CUPTI_PM says */
	int (*is_enabled)(uint32_t gpu);
	int (*is_started)(uint32_t gpu);
	uint64_t (*interval)(uint32_t gpu);
};

/* A context whose GPU is this. */
static inline cupti_handle double_pm_context(uint32_t gpu)
{
	return (cupti_handle)(uintptr_t)(0x1000 + 0x100 * gpu);
}

/* The only symbols of its own: "double_cupti", "double_pc", "double_pm". */
