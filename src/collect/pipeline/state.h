/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the pipeline share: pipeline.c puts records and events in order and keeps
 * samples that wait, sample.c writes one sample, stack.c has its stack,
 * wait.c the waits. Nothing else includes this.
 *
 * The way of a sample:
 *   pipeline_process()           takes records and events in order of time
 *   pipeline_try_sample()        sample.c; once more from pipeline_retry() after -EAGAIN
 *   pipeline_unwind_copy()       stack.c; where the record carries a copy of the stack
 *   pipeline_resolve_stack()     stack.c; merge_stacks() (merge.h), names (resolver.h, python.h)
 *   capture_writer_callstack(), then by the kind of sample
 *   capture_writer_sample(), pipeline_write_wait() or capture_writer_launch_stack()
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "collect/pipeline/merge.h"
#include "collect/pipeline/pipeline.h"

/* An address space as it was when a sample was taken, shared by the samples that wait. */
struct snapshot {
	uint32_t users;
	uint32_t pid;
	uint64_t first_seen_ns, generation; /* pids are given again, with generations from 0 */
	size_t count;
	struct mapping mappings[];
};

struct queued_event {
	struct sideband_event event; /* .name is owned */
	uint64_t order;
};

struct waiting_sample {
	struct wire_sample *sample;
	struct snapshot *snapshot;
};

/* What every queued record begins with. */
struct timed_record {
	struct wire_record record;
	uint64_t time_ns;
};

struct pipeline {
	struct pipeline_parts parts;
	struct pipeline_account account;
	ARRAY_OF(struct timed_record *) records;
	ARRAY_OF(struct queued_event) events;
	uint64_t next_order;
	ARRAY_OF(struct waiting_sample) waiting;
	size_t waiting_bytes;
	struct snapshot *latest_snapshot;
	struct map_u64 known_processes, known_threads; /* → hash of what the capture has */
	/* Said something of their own, and are still without a name in the capture. */
	ARRAY_OF(uint32_t) unnamed;
	struct map_u64 last_waits; /* pid << 32 | tid → index in waits */
	/* The last stack that a thread was seen waiting with: more time may be charged to it. */
	ARRAY_OF(struct capture_sample) waits;
	struct map_u64 thread_pointers; /* hash of pid and thread pointer → tid */
	uint64_t frames[WIRE_MAX_USER_DEPTH];
	struct merged_frame merged[MERGE_MAX_FRAMES(WIRE_MAX_USER_FRAMES, WIRE_MAX_PYTHON_FRAMES)];
	capture_id stack[MERGE_MAX_FRAMES(WIRE_MAX_USER_FRAMES, WIRE_MAX_PYTHON_FRAMES) +
			 WIRE_MAX_KERNEL_FRAMES];
};

/* The mappings that a sample's addresses are looked up in. */
struct space_view {
	const struct mapping *mappings;
	size_t count;
};

#define PYTHON_FRAME_WORDS (sizeof(struct wire_python_frame) / sizeof(uint64_t))

static inline const struct wire_python_frame *python_frames(const struct wire_sample *sample)
{
	return (const void *)(sample->frames + sample->kernel_frame_count);
}

static inline const uint64_t *user_frames(const struct wire_sample *sample)
{
	return (const uint64_t *)sample->frames + sample->kernel_frame_count +
	       sample->python_frame_count * PYTHON_FRAME_WORDS;
}

static inline const struct wire_stack_copy *stack_copy(const struct wire_sample *sample)
{
	return (const void *)(user_frames(sample) + sample->user_frame_count);
}

/* The user frames of a sample, wherever they were unwound. */
struct user_stack {
	const uint64_t *frames; /* innermost first */
	size_t count;
	struct stack_gap gap;
	enum wire_stop stop;
};

/* ---- stack.c ---- */

/* NULL: there is none. */
const struct mapping *pipeline_find_mapping(const struct space_view *view, uint64_t address);
/* Frames go to pipeline->frames. Returns 0, or -EAGAIN while a table is on its way. */
int pipeline_unwind_copy(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, bool give_up, struct user_stack *ret_user);
/* Fills pipeline->stack, outermost first, from user, Python and kernel frames. */
int pipeline_resolve_stack(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, const struct user_stack *user, bool give_up,
	size_t *ret_count, enum wire_python *ret_python);
/*
 * Of the injected library's frames one is left, the function that stands for the launch call and
 * has its name; none when the loader's own function is in the stack. Some runtimes' libraries
 * call us from within: of their frames the outermost is left, which is the call.
 */
void pipeline_skip_injected(
	const struct pipeline *pipeline, const struct space_view *view, struct user_stack *user);

/* ---- wait.c ---- */

/* Those that took no time are left out. */
int pipeline_write_wait(struct pipeline *pipeline, const struct capture_sample *sample);
/* A wait from begin to end: first for what it was for, then, when it was over, for a CPU. */
int pipeline_write_exact_wait(struct pipeline *pipeline, const struct capture_sample *wait,
	uint64_t runnable_ns, uint32_t flags);
/* More time may come for it. */
int pipeline_keep_wait(struct pipeline *pipeline, const struct capture_sample *wait);
/* A thread that waited runs again. */
int pipeline_handle_wake(struct pipeline *pipeline, const struct wire_wake *wake);
/*
 * Cuts a wait, of which `time_ns` is the end, to its window. Of what is cut off at its end the part
 * in which the thread could run again was the last. False: it lies in none.
 */
bool pipeline_cut_wait(
	struct windows *windows, __u64 *time_ns, __u64 *waited_ns, __u64 *runnable_ns);
/* Waits without a stack. */
int pipeline_handle_wait_count(struct pipeline *pipeline, const struct wire_wait_count *counted);

/* ---- sample.c ---- */

/* Once for each thing that there is to say of it; process NULL: it is not known any more. */
int pipeline_write_process(
	struct pipeline *pipeline, uint32_t pid, const char *name, const struct process *process);
/* Those that said something by themselves, as soon as their names are known. */
int pipeline_write_unnamed(struct pipeline *pipeline);
/* Returns 0, -EAGAIN when tables or names are on their way, or another negative errno. */
int pipeline_try_sample(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct process *process, const struct space_view *view, bool give_up);
