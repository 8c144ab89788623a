/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses → frames of the capture: which file, which function. Each address is looked up once.
 *
 * stack.c asks for each frame of a stack and gets the id of a frame that is in the capture. Names
 * come from the mapped file (files.h, which reads symbols/symbols.h on a thread), from perf maps
 * (jit_names.h), and of the kernel from symbols/kernel.h. Source lines come at the end of the
 * recording, from a child process (line_process.h). Python frames are python.h's.
 */
#pragma once

#include <stdint.h>

#include "base/errmsg.h"
#include "capture/writer/writer.h"
#include "collect/pipeline/files.h"
#include "collect/pipeline/jit_names.h"
#include "collect/pipeline/line_process.h"
#include "sources/process/address_space.h"

struct resolver;

/* `spaces`, `files` and `writer` outlive the resolver. */
int resolver_new(struct resolver **ret_resolver, struct address_spaces *spaces,
	struct file_store *files, struct capture_writer *writer);
struct resolver *resolver_free(struct resolver *resolver);
/* Why kernel frames have no names, in a sentence; "": they have, or there were none. */
const char *resolver_kernel_note(const struct resolver *resolver);

/*
 * The frame of a user address that lies in `mapping` (NULL: in none) and was seen at `time_ns`.
 * Returns 0, -EAGAIN while the file's symbols or the process's perf map are on their way (not with
 * `do_not_wait`: then the frame stays nameless for now), or -ENOMEM.
 */
int resolver_user_frame(struct resolver *resolver, uint32_t pid, const struct mapping *mapping,
	uint64_t address, uint64_t time_ns, bool do_not_wait, capture_id *ret_frame);
/*
 * The frame that stands for `count` frames that were left out of a deep stack: "[… 64 to 127 frames
 * left out …]". It has a power of two for its bounds, so that stacks of one recursion stay
 * together. 0: native frames of which not even the number is known.
 */
int resolver_left_out_frame(struct resolver *resolver, uint32_t count, capture_id *ret_frame);
/* Its perf map is read once more: runtimes may write it when they end. */
int resolver_process_ended(struct resolver *resolver, uint32_t pid);
/*
 * At the end: names of generated code that were written late, for all processes. *ret_all_read is
 * false when a map was still being read at the deadline (CLOCK_MONOTONIC).
 */
int resolver_write_late_names(struct resolver *resolver, uint64_t deadline_ns, bool *ret_all_read);
void resolver_jit_account(const struct resolver *resolver, struct jit_names_account *ret_account);
int resolver_kernel_frame(struct resolver *resolver, uint64_t address, capture_id *ret_frame);
/*
 * Of a stack taken by a tracepoint of the scheduler, innermost first: how many frames are the
 * tracepoint's, before __schedule. 0 where there is none.
 */
size_t resolver_above_scheduler(struct resolver *resolver, const uint64_t *frames, size_t count);
/* PERF_RECORD_KSYMBOL. */
void resolver_kernel_symbol(struct resolver *resolver, const struct sideband_event *event);

/*
 * At the end: source lines and inlined functions for every frame whose file has them, and names for
 * those that had none yet. Bounded in time by `deadline_ns` (CLOCK_MONOTONIC) and in memory;
 * `given_up`, which may be NULL, is looked at several times a second.
 */
void resolver_write_lines(struct resolver *resolver, uint64_t deadline_ns,
	bool (*given_up)(void *context), void *context, struct line_account *ret_account);
