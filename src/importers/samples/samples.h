/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples with stacks of other profilers, into a capture: what perf_script.c, folded.c and pprof.c
 * have in common. A capture's samples count one each: files whose samples have weights are written
 * by as many as the weights are worth, SAMPLES_MOST of them at most.
 */
#pragma once

#include "importers/importer.h"

#define SAMPLES_MOST       1000000
#define SAMPLES_FRAMES     512 /* of a stack: those further out are left out */
#define SAMPLES_NAME_BYTES 4096

struct samples_frame {
	const char *name; /* NULL: not known */
	size_t name_length;
	const char *module; /* NULL or "": not known */
	size_t module_length;
	const char *file; /* NULL: not known */
	size_t file_length;
	uint64_t address;
	uint32_t line;
};

struct samples {
	const struct import_input *input;
	struct capture_writer *writer;
	struct import_result *result;
	uint64_t written, time_ns, step_ns;
	bool has_no_times;
	uint64_t lines_left_out, frames_left_out;
	capture_id frames[SAMPLES_FRAMES]; /* innermost first */
	size_t frame_count;
	capture_id stack;
};

/* Each returns 0 or a negative errno. `period_ns` 0: what a sample is worth in time is not known.
 */
int samples_begin(struct samples *samples, uint64_t period_ns, uint64_t start_realtime_ns);
int samples_add_task(struct samples *samples, uint32_t pid, uint32_t tid, const char *name);
/* One more frame of the stack, from the innermost on. */
int samples_add_frame(struct samples *samples, const struct samples_frame *frame);
/* The frames become a stack, and none is left. */
int samples_end_stack(struct samples *samples);
/* `count` samples of the last stack, one period after the other where time_ns is 0. */
int samples_add(struct samples *samples, struct capture_sample sample, uint64_t count);
/* -ENODATA with a sentence where there is no sample: `what` would have been there. */
int samples_end(struct samples *samples, int r, const char *what, struct errmsg *err);
/* What one sample has to be worth, so that all are not too many: 1, or what a note says. */
uint64_t samples_unit(struct samples *samples, uint64_t total);
