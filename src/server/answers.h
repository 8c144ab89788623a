/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about captures, and their answers: which process answers which question, few at a time;
 * who waits for which; what is kept. One capture costs one loading process (worker.h), one question
 * one answer, however many clients ask it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "server/api.h"
#include "server/captures.h"
#include "server/loop.h"

struct answers;
struct answer;

struct answers_limits {
	uint64_t memory_bytes;       /* of each process; 0: none */
	uint64_t answer_bytes;       /* of one answer */
	uint64_t cache_bytes;        /* of those that are kept */
	unsigned workers;            /* captures that are open at once */
	unsigned questions;          /* that are answered at once */
	unsigned waiting;            /* that may wait for their turn */
	uint64_t load_ns, answer_ns; /* how long each may take */
};

#define ANSWERS_LIMITS_DEFAULT                                                                     \
	{                                                                                          \
		.answer_bytes = 64 << 20, .cache_bytes = 128 << 20, .workers = 4, .questions = 4,  \
		.waiting = 256, .load_ns = 600 * NS_PER_S, .answer_ns = 120 * NS_PER_S             \
	}

/* Embedded by who waits; zero-initialised. */
struct answer_waiter {
	/* The answer is there: answer_bytes(). It leaves later, not in this call. */
	void (*ready)(struct answer_waiter *waiter);
	struct answer *answer; /* what it waits for, or has; else NULL */
	struct answer_waiter *next;
};

/* `changed`: of a capture's state, for live clients; may be NULL. */
int answers_open(struct answers **ret_answers, struct loop *loop,
	const struct answers_limits *limits,
	void (*changed)(void *context, const struct capture *capture), void *context);
struct answers *answers_close(struct answers *answers);

struct answers_question {
	struct capture *capture, *other; /* other: the second of a diff; NULL */
	uint64_t version; /* capture_version(), of the capture as it was; 0: as it is now */
	const char *text;
	size_t length;
};

/*
 * Asks, for `waiter`, which then has the answer (answer_is_done()), or is called when it comes.
 * Returns 0, -EBUSY with a sentence: too many wait already, or -ESTALE: the version is gone.
 */
int answers_ask(struct answers *answers, const struct answers_question *asked,
	struct answer_waiter *waiter, struct errmsg *err);
/*
 * The waiter is no longer there, or has sent the answer. `asks_again`: it will, soon. When
 * nobody waits for a question any more, it is cancelled.
 */
void answers_leave(struct answers *answers, struct answer_waiter *waiter, bool asks_again);
/* Ends what took too long, and processes that nobody asked for long. Now and then. */
void answers_tick(struct answers *answers, uint64_t now_ns);

bool answer_is_done(const struct answer *answer);
/* When it is done: true with the bytes, which stay until answers_leave(); false with the error. */
bool answer_bytes(const struct answer *answer, const char **ret_bytes, size_t *ret_length);
enum api_error answer_error(const struct answer *answer, const char **ret_sentence);

enum capture_state {
	CAPTURE_CLOSED,
	CAPTURE_LOADING,
	CAPTURE_OPEN,
	CAPTURE_FAILED,
	CAPTURE_STATE_MAX,
};

extern const char *const capture_state_names[CAPTURE_STATE_MAX];

struct capture_progress {
	enum capture_state state;
	uint64_t done, total;
	const char *sentence; /* of CAPTURE_FAILED; else NULL */
};

struct capture_progress answers_progress(
	const struct answers *answers, const struct capture *capture);
unsigned answers_open_captures(const struct answers *answers);
