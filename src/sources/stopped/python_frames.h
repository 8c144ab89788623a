/* SPDX-License-Identifier: Apache-2.0 */
/* The Python frames of a thread that does not run, read from its process's memory by the walk that
 * the BPF programs compile (unwind/python_walk.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/python_layout.h"
#include "wire/sample.h"

/* Room for all frames that a sample keeps. */
#define PYTHON_FRAMES_MAX_BYTES (WIRE_MAX_PYTHON_FRAMES * sizeof(struct wire_python_frame))

struct python_thread {
	uint32_t pid;
	uint64_t thread_pointer; /* the register */
	uint64_t system_call;    /* that it waits in; -1: none */
	uint64_t first_argument;
};

/*
 * Fills the sample's Python frames, which its memory has room for, their counts, and what the
 * thread does with the interpreter lock. Returns 0 or -ENOMEM.
 */
int python_frames_take(const struct python_image_facts *facts, const struct python_thread *thread,
	struct wire_sample *sample);

/*
 * The thread pointer of the thread with this id in the process's PID namespace, by the
 * interpreter's own list. 0: it is not there, or this version (before 3.11) has no ids.
 */
uint64_t python_frames_thread_pointer(
	const struct python_image_facts *facts, uint32_t pid, uint32_t tid);
bool python_frames_has_ids(const struct python_image_facts *facts);
