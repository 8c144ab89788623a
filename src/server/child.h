/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question that a process of its own answers, which is forked for it: it has what the server has
 * then, and what it waits for, or crashes of, holds nobody up. For the runs database, which another
 * program may have locked. Nothing is kept of an answer: the next who asks has a newer one.
 */
#pragma once

#include <stdbool.h>

#include "query/child.h"
#include "server/loop.h"

struct child;

struct child_setup {
	query_ask answer; /* in the new process; `context` is as it is now */
	void *context;
	uint64_t memory_bytes, answer_bytes; /* at most; memory 0: no limit */
	/* The answer is there, or none will come. It may end the child. */
	void (*ready)(void *owner);
	void *owner;
};

/* Returns 0, or a negative errno with a sentence. */
int child_start(struct child **ret_child, struct loop *loop, const struct child_setup *setup,
	struct errmsg *err);
/* Ends the process, if it still runs. Its answer goes, too. NULL is fine. */
struct child *child_end(struct child *child);

bool child_is_done(const struct child *child);
/* When it is done: 0 with the answer, which stays until child_end(); a negative errno with a
 * sentence, -ECHILD where the process ended without an answer. */
int child_answer(const struct child *child, const char **ret_bytes, size_t *ret_length,
	const char **ret_sentence);
