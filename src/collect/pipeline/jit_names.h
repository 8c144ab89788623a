/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of generated code, from the perf maps of processes. Maps belong to other users, who may
 * make them large and change them all the time: a thread reads them, a piece of each at a time, and
 * who takes much of its time waits longest. A process's names never keep those of others waiting.
 *
 * One thread asks. A process is one that ran one program: `incarnation` tells it from those that
 * had its id before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/errmsg.h"
#include "base/strbuf.h"

enum jit_name_state {
	JIT_NAME_FOUND,
	JIT_NAME_PENDING, /* the map is being read; the announcement says when to ask again */
	JIT_NAME_NONE,    /* the map has none */
	/* There is no map yet, or it takes too long: runtimes may write it when they end. */
	JIT_NAME_LATER,
};

struct jit_process_key {
	uint32_t pid;
	uint64_t incarnation;
};

struct jit_names_account {
	uint64_t refused; /* processes whose map may not be read */
	struct errmsg refused_example;
	uint64_t cut; /* processes whose map is larger than what is read */
	struct errmsg cut_example;
};

struct jit_names;

/* `announce` is called from the thread, whenever a map was read to its end. */
int jit_names_new(struct jit_names **ret_names, void (*announce)(void *context), void *context);
/* Ends the thread after the piece it reads. */
struct jit_names *jit_names_free(struct jit_names *names);

/*
 * The name of the code that the process ran at `address` at `time_ns` (CLOCK_MONOTONIC), in place
 * of what is in `ret_name`. PENDING lasts a fraction of a second.
 */
enum jit_name_state jit_names_find(struct jit_names *names, const struct jit_process_key *key,
	uint64_t address, uint64_t time_ns, struct strbuf *ret_name);

/* The process has ended or runs another program: its map is read once more. */
void jit_names_end_process(struct jit_names *names, uint32_t pid);
/* The same for all of them, at the end of the recording. */
void jit_names_end_all(struct jit_names *names);
/* True when the last maps of all processes that ended were read. */
bool jit_names_idle(struct jit_names *names);

/*
 * Code without a name, to be named from what the process writes at its end. Mapping and frame are
 * the caller's ids. False when nothing was kept for the address; *ret_mapping is what was kept last
 * for the process, 0 at first.
 */
bool jit_names_kept(struct jit_names *names, const struct jit_process_key *key, uint64_t address,
	uint32_t *ret_frame, uint32_t *ret_mapping);
int jit_names_keep(struct jit_names *names, const struct jit_process_key *key, uint64_t address,
	uint32_t frame, uint32_t mapping);
/*
 * Calls `name` for each address that was kept and has a name now, of the processes that ended by
 * then and whose map was read once more, and forgets these processes. Returns 0 or the first error
 * of `name`.
 */
int jit_names_take_late(struct jit_names *names, uint64_t ended_before_ns,
	int (*name)(void *context, uint32_t mapping, uint64_t address, const char *text),
	void *context);

void jit_names_account(struct jit_names *names, struct jit_names_account *ret_account);
