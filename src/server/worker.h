/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of the process that has one capture open (resident.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/loop.h"

enum worker_state {
	WORKER_LOADING,
	WORKER_READY,
	WORKER_FAILED, /* the capture cannot be read: worker_sentence() says why */
	WORKER_GONE,   /* it crashed, or used up its memory: the same */
};

struct worker;

struct worker_setup {
	const char *const *paths; /* of one capture; outlive it */
	size_t path_count;
	bool is_listed; /* as of a capture: no link is followed */
	uint64_t memory_bytes, answer_bytes;
	uint64_t version; /* that tracks of its timeline are listed with */
	/* Its state or its progress is another; it may be ended then. */
	void (*changed)(void *context, struct worker *worker);
	void *context;
};

/* Forks. Returns 0 or a negative errno. */
int worker_start(struct worker **ret_worker, struct loop *loop, const struct worker_setup *setup);
/* Ends the process, and those that it forked, at once. */
struct worker *worker_end(struct worker *worker);

enum worker_state worker_state(const struct worker *worker);
/* Of WORKER_LOADING; 0 of 0: not known. */
void worker_progress(const struct worker *worker, uint64_t *ret_done, uint64_t *ret_total);
const char *worker_sentence(const struct worker *worker);

/*
 * Of WORKER_READY: the answer to the text of question.h comes through *ret_fd, the caller's to
 * close. Returns 0 or a negative errno.
 */
int worker_ask(
	struct worker *worker, uint32_t id, const char *question, size_t length, int *ret_fd);
void worker_cancel(struct worker *worker, uint32_t id);
