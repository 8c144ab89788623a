/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All threads of a process, stopped by ptrace for a moment. Whoever calls tracees_stop() traces
 * them, and must be a thread that ends soon: the kernel lets go of them when it does, whatever
 * happens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "sources/stopped/waiting.h"
#include "wire/sample.h"

struct tracee {
	uint32_t tid;
	struct waiting waiting; /* as it was before it was stopped */
	bool is_left_alone;     /* the caller said so: not stopped */
	bool is_traced, is_stopped;
	int signal; /* that it was to get when it stopped; it gets it when it goes on */
};

struct tracees {
	uint32_t pid;
	ARRAY_OF(struct tracee) threads;
	struct map_u64 known; /* tids of them */
	int error;            /* the first one that kept a thread from being traced */
	/* Is the thread not to be stopped? */
	bool (*leave_alone)(void *context, const struct tracee *tracee);
	void *context;
};

/* May a thread of the process be traced? It is not stopped. 0 or a negative errno. */
int tracees_probe(uint32_t pid);
/*
 * Stops all that it may, also those that are made meanwhile, and returns at this moment at the
 * latest. Returns 0, or a negative errno when no thread could be traced or is left alone.
 */
int tracees_stop(struct tracees *tracees, uint64_t deadline_ns);
/* Registers of one that is stopped, without stack, and its thread pointer. WIRE_STOP_COMPLETE, or
 * why there are none. */
enum wire_stop tracee_registers(const struct tracee *tracee, struct wire_stack_copy *ret_registers,
	uint64_t *ret_thread_pointer);
/* Lets go of all that are stopped. Those that are not are let go when the calling thread ends. */
void tracees_release(struct tracees *tracees);
void tracees_done(struct tracees *tracees);
