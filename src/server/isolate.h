/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a forked process that reads a capture, which may be anybody's: it ends with the
 * server, is bounded in memory, leaves no core file, and has no descriptor of the server's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"

/* First of all in the child. `parent`: pid of the server. `memory_bytes` 0: no limit. */
void isolate_begin(const char *name, int parent, uint64_t memory_bytes);
/* Closes all but standard error and these, which are others then: 3, 4 … */
void isolate_keep(int *descriptors, size_t count);
/* Why a process that answered ended without its answer, of its status of waitpid(): a sentence. */
void isolate_explain_end(int status, struct errmsg *ret_sentence);
/* Of a child's child, too. */
void isolate_end_with_parent(int parent);
