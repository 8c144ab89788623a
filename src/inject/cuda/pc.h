/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PC sampling: which instructions of the program's kernels warps stood at, and why. CUPTI samples
 * contexts (pc.c); here samples are added up by instruction and reason (pc_table.c), which get
 * their source lines (pc_lines.c) when they are sent. Nothing else includes this but cuda.h's
 * callers.
 *
 * The one part of the door where the program's threads may wait: one that makes or destroys a
 * context waits while data of contexts is read, for a second at most.
 */
#pragma once

#include "inject/cuda/cuda.h"

#define PC_MAX_NUMBERS 256 /* CUPTI's numbers of reasons are below this */
#define PC_MAX_SLOTS   64
#define PC_NO_SLOT     255

/* A reason by the number that CUPTI gives it. */
struct pc_reason {
	uint8_t slot;       /* where its samples are counted; PC_NO_SLOT: nowhere */
	bool is_not_issued; /* they are those of the slot's that issued nothing */
};

/* An instruction of a function. Samples by slot. */
struct pc_entry {
	uint64_t cubin, pc_offset;
	const char *function; /* CUPTI's, which stays */
	const char *file;     /* of pc_lines.c, which stays; NULL: not known */
	uint32_t function_index;
	uint32_t line;
	uint64_t total; /* 0: the entry is free */
	uint32_t samples[PC_MAX_SLOTS], not_issued[PC_MAX_SLOTS];
};

/* ---- pc_reasons.c ---- */

extern struct pc_reason cuda_pc_reasons[PC_MAX_NUMBERS];
extern char cuda_pc_slots[PC_MAX_SLOTS][CUPTI_PC_REASON_BYTES]; /* the reasons' names */

/* Asks CUPTI once, of the first context; the number of reasons in *ret_count. */
cupti_result cuda_pc_read_reasons(cupti_handle context, size_t *ret_count);

/* ---- pc_table.c: one thread at a time ---- */

/* Adds what was read of a context. */
void cuda_pc_add(const struct cupti_pc_data *data);
/* A read failed, or found the device's buffer full. */
void cuda_pc_count_failed(bool is_full);
/* Little room is left for other instructions. */
bool cuda_pc_is_nearly_full(void);
/* On the writer: sends all since `since_ns`, and forgets it. */
void cuda_pc_send(uint64_t since_ns, uint32_t period_cycles);
void cuda_pc_forget(void);

/* ---- pc_lines.c ---- */

/* On the program's threads: keeps the code if it has lines. */
void cuda_pc_keep_module(const struct cupti_module_data *data);
/* On the writer: finds the lines of some entries, those first that come first, in bounded time. */
void cuda_pc_find_lines(struct pc_entry *const *entries, size_t count);
