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
 *
 * The handles of graphs, executable graphs and nodes are their ids.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/cuda/cupti_abi.h"

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
	uint32_t (*flushes)(void); /* how many cuptiActivityFlushAll() calls have ended */
};

/* The only symbol of its own: "double_cupti". */
