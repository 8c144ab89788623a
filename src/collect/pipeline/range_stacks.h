/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges are open: a stack for each thread and domain, and lanes for the ranges that begin
 * and end anywhere in the process. What is written of them nests, whatever comes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/writer/writer.h"
#include "wire/range.h"

struct range_stacks;

/* NULL: no memory. */
struct range_stacks *range_stacks_new(void);
struct range_stacks *range_stacks_free(struct range_stacks *stacks);
/* Is a range of WIRE_RECORD_RANGE_START open? */
bool range_stacks_is_started(const struct range_stacks *stacks, uint32_t pid, uint64_t id);
uint64_t range_stacks_open_count(const struct range_stacks *stacks);
/* Ends all that is open at this moment, which is a window's end. Returns 0 or a negative errno. */
int range_stacks_cut(struct range_stacks *stacks, struct capture_writer *writer, uint64_t time_ns,
	struct capture_range_stats *account);
/*
 * Writes the event: `out` has what it says, but its kind and lane. Events come in the order of
 * time. Counts in `account` what is not as it should be. Returns 0 or a negative errno.
 */
int range_stacks_write(struct range_stacks *stacks, struct capture_writer *writer,
	const struct wire_range_event *event, struct capture_range_event *out,
	struct capture_range_stats *account);
