/* SPDX-License-Identifier: Apache-2.0 */
/* Native and Python frames of one stack in their true order: py → C → py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sample.h"

/* Frames that were left out of a deep stack, between the innermost ones and the outermost ones. */
struct stack_gap {
	size_t at;       /* the innermost frame of those beyond */
	size_t left_out; /* 0: there is no gap */
	size_t groups;   /* evaluations or, of Python frames, WIRE_PYTHON_ENTRY among them */
};

/* Both innermost first, as in a sample. */
struct merge_input {
	const uint64_t *native;
	size_t native_count;
	const struct wire_python_frame *python;
	size_t python_count;
	struct stack_gap native_gap, python_gap;
	bool native_complete; /* the stack reaches the thread's entry */
	bool python_complete; /* all Python frames are there */
	bool (*is_eval)(void *context, uint64_t address);
	void *context;
};

enum merged_kind {
	MERGED_NATIVE,
	MERGED_PYTHON,
	MERGED_LEFT_OUT,
};

struct merged_frame {
	uint32_t index; /* in native or python; how many were left out, 0: not known */
	enum merged_kind kind;
};

/*
 * The most frames of a merged stack: native and Python frames may have a gap each, at different
 * places, and of a native stack that was cut a gap may follow each Python frame.
 */
#define MERGE_MAX_FRAMES(native_count, python_count) ((native_count) + 2 * (python_count) + 2)

/*
 * Each native frame of the interpreter's evaluation function is followed inwards by the Python
 * frames that it evaluates: those up to the next WIRE_PYTHON_ENTRY. Fills `ret_frames`, outermost
 * first, up to MERGE_MAX_FRAMES of them; where both gaps meet, they are one frame.
 *
 * The outermost evaluation and the outermost Python frames belong together when both are there; the
 * innermost evaluation may not have its frame yet. Where one end is missing, the innermost ones are
 * matched. Python frames whose evaluation lies beyond the end of a native stack that was cut are
 * followed by a frame that says so: which native frames stood there is not known, and the next
 * frame need not be called directly. Returns WIRE_PYTHON_FRAMES, or WIRE_PYTHON_NOT_MERGED when the
 * numbers do not fit: the order is then a guess.
 */
enum wire_python merge_stacks(
	const struct merge_input *input, struct merged_frame *ret_frames, size_t *ret_count);
