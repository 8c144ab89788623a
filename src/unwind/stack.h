/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinding a whole user stack in user space, with the step function that the BPF programs use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/table.h"
#include "wire/sample.h"

/* Where an address lies: what the walker asks its caller for each frame. */
struct unwind_location {
	const uint64_t
		*table; /* words of the file's table; NULL: not loaded (WIRE_STOP_NO_TABLE) */
	uint64_t table_word_count;
	uint64_t bias;      /* address - bias = virtual address in the file */
	bool frame_pointer; /* anonymous executable memory (JIT): follow frame pointers */
};

/* Target memory and mappings, given by the caller. */
struct unwind_target {
	void *context;
	/* Reads 8 bytes at `address`; 0 on success, negative when out of reach. */
	int (*read_u64)(void *context, uint64_t address, uint64_t *ret_value);
	/* False when the address lies in no executable mapping. */
	bool (*locate)(void *context, uint64_t address, struct unwind_location *ret_location);
};

/*
 * Unwinds from the registers in `registers`. Memory comes from `target`; stack_bytes says how much
 * of the stack it has, from sp on, 0: all of it. Stores at most `capacity` lookup addresses (see
 * wire_sample) and returns the reason of the end.
 */
enum wire_stop unwind_user_stack(const struct unwind_target *target,
	const struct wire_stack_copy *registers, uint64_t *ret_frames, size_t capacity,
	size_t *ret_count);

/* True at the code that ends a signal handler, by the file's table: the kernel made its frame. */
bool unwind_is_signal_return(const uint64_t *table, uint64_t word_count, uint64_t vaddr);
