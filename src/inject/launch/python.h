/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's Python frames, read in place by the layout that the collector has found and
 * validated. The thread is inside a call of the interpreter, or has no frames: what is read here
 * stays as it is meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/python_layout.h"
#include "wire/python.h"

#define LAUNCH_PYTHON_CODES 256 /* a power of two */

/* Code objects that a thread has met, by their addresses, which identify them. */
struct launch_python_codes {
	struct launch_python_code {
		uint64_t code, name, file_name; /* addresses */
		uint32_t first_line;
		uint32_t reserved;
		uint64_t hash; /* of names and lines */
	} known[LAUNCH_PYTHON_CODES];
};

/* Is there an interpreter at this place? Reads through the kernel: whatever `target` says. */
bool launch_python_is_there(const struct python_target *target);

/*
 * The thread's innermost frame, 0 when it has none. Returns WIRE_PYTHON_FRAMES, _NO_FRAMES or
 * _NO_STATE; WIRE_PYTHON_UNKNOWN when its frames cannot be distinguished from here: while the
 * interpreter ends, or where there are several.
 */
enum wire_python launch_python_first_frame(const struct python_target *target, uint64_t *ret_frame);

/*
 * A hash of all frames from this one on: names and lines of their code, and where in it they are.
 * Code objects may be made anew all the time: their addresses are not in it. False when there are
 * more than WIRE_LAUNCH_PYTHON_FRAMES.
 */
bool launch_python_hash(const struct python_target *target, struct launch_python_codes *codes,
	uint64_t frame, uint64_t *ret_hash);

/*
 * All frames from this one on, at most WIRE_LAUNCH_PYTHON_FRAMES; `*ret_reason` says whether there
 * are more. Returns their number.
 */
uint16_t launch_python_frames(const struct python_target *target, uint64_t frame,
	struct wire_python_frame *ret_frames, enum wire_python *ret_reason);

#define LAUNCH_PYTHON_CODE_BYTES                                                                   \
	(sizeof(struct wire_python_code) + 3 * WIRE_PYTHON_TEXT_BYTES + WIRE_PYTHON_LINES_BYTES)

/* Names and lines of a frame's code object, as a record. */
void launch_python_code(const struct python_target *target, const struct wire_python_frame *frame,
	uint64_t time_ns, struct wire_python_code *ret_record);
