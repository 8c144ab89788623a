/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that unwinds stacks by itself, in the kernel: what the collector tells it of address
 * spaces and of files. Without one the collector unwinds copies of stacks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sources/process/address_space.h"
#include "unwind/python_layout.h"

/* The unwind table of a file; `words` NULL: it has none, follow frame pointers. */
struct unwinder_table {
	uint32_t file_index;
	const uint64_t *words;
	uint64_t word_count;
};

/* `state` NULL: there is none, and neither are the functions. One thread, but for add_tables. */
struct source_unwinder {
	void *state; /* the first argument of each function */
	/* address - bias = virtual address in the file; `frame_pointer`: no table will come, follow
	 * frame pointers. */
	int (*map)(void *state, uint32_t pid, const struct mapping *mapping, uint64_t bias,
		bool frame_pointer);
	void (*unmap)(void *state, uint32_t pid, const struct mapping *mapping);
	void (*clear_space)(void *state, uint32_t pid);
	/* The child shares the parent's mappings until one of them changes. */
	int (*fork_space)(void *state, uint32_t parent_pid, uint32_t child_pid);
	/*
	 * The process (whose mappings are known) runs this interpreter; called again when more is
	 * known of it, with NULL to take it back. Children that fork have it too; an exec forgets
	 * it. -ESRCH: no mappings are known; -ENOSPC: too many interpreters at once.
	 */
	int (*set_python)(void *state, uint32_t pid, const struct python_image_facts *facts);
	/* The words are copied. May be called from another thread. */
	int (*add_tables)(void *state, const struct unwinder_table *tables, size_t count);
};
