/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the calling thread's stack, unwound by the collector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "inject/launch/python.h"
#include "wire/launch.h"

#define LAUNCH_SENT_CODES 1024 /* a power of two */

/* A thread's memory for copies. All of it 0 at first. */
struct launch_copy_memory {
	uint64_t sent_codes[LAUNCH_SENT_CODES]; /* code objects whose names were sent, by hash */
	_Alignas(8) unsigned char record[WIRE_LAUNCH_MAX_BYTES];
	_Alignas(8) unsigned char code[LAUNCH_PYTHON_CODE_BYTES];
};

struct launch_copy {
	uint64_t correlation, time_ns;
	uint64_t stack_end;                 /* the first address that is not of the stack */
	const struct python_target *python; /* NULL: its frames are not known */
	uint64_t python_frame;              /* the innermost one */
	enum wire_python python_reason;     /* why there is none */
};

/* Writes it into the thread's ring. False when there is no room. */
bool launch_copy_write(const struct launch_copy *copy, struct launch_copy_memory *memory);
