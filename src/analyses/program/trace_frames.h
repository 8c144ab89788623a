/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of another tool's trace as frames of a model: functions with a module, a class, and where
 * the name says it a file and a line ("train.py(12): main" of PyTorch's profiler). Names that
 * differ by a number alone are one function: steps of the profiler, and built-in functions, whose
 * names hold an address.
 */
#pragma once

#include "base/map.h"
#include "base/strbuf.h"
#include "model/shown.h"
#include "model/trace.h"

/* Modules of rows that are no Python functions. */
#define TRACE_FRAME_OPERATOR   MODEL_FRAMES_OPERATOR
#define TRACE_FRAME_ANNOTATION MODEL_FRAMES_ANNOTATION
#define TRACE_FRAME_MODULE     MODEL_FRAMES_MODULE
#define TRACE_FRAME_RUNTIME    "[runtime]"
#define TRACE_FRAME_DRIVER     "[driver]"
#define TRACE_FRAME_PYTHON     "[python]" /* Python functions without a file */
#define TRACE_FRAME_NATIVE     "[native]" /* likewise native ones */

/* Zero-initialise but for the model, which has no functions but these, and outlives it. */
struct trace_frames {
	struct model *model;
	struct intern modules, functions, frames; /* keys; their ids are the model's indices */
	struct map_u64 known; /* of one trace: category << 32 | name → frame */
};

/* The names that follow are of another trace. */
void trace_frames_next_trace(struct trace_frames *frames);
/* Of a row of a thread. Returns 0 or -ENOMEM. */
int trace_frames_find(struct trace_frames *frames, const struct trace *trace,
	const struct trace_event *event, uint32_t *ret_frame);
/* Of a text as TRACE_STACK has them, "name (file:line)". Returns 0 or -ENOMEM. */
int trace_frames_find_text(
	struct trace_frames *frames, const char *text, size_t length, uint32_t *ret_frame);
/* "[backward]": below a module what runs for its gradient. */
int trace_frames_backward(struct trace_frames *frames, uint32_t *ret_frame);
/* Is it a module of the model? */
bool trace_frames_is_module(const struct trace_frames *frames, uint32_t frame);
/* Is it the name of a Python function of the user's own, with a file: no library's or framework's?
 */
bool trace_frames_is_own_python(const char *name);
/* "main (train.py:12)" of "train.py(12): main"; of other names the name. */
void trace_frames_describe_python(const char *name, struct strbuf *out);
void trace_frames_done(struct trace_frames *frames);
