/* SPDX-License-Identifier: Apache-2.0 */
/* One answer while it is made and kept: for answers.c, which says who asks what, and when. */
#pragma once

#include "base/array.h"
#include "base/strbuf.h"
#include "server/answers.h"
#include "server/worker.h"

enum answer_state {
	ANSWER_WAITS, /* for its turn, or for the capture to be loaded */
	ANSWER_RUNS,
	ANSWER_DONE,
};

struct room;

struct answer {
	struct loop_watch watch; /* first: of the pipe, while it runs */
	struct answers *answers;
	struct room *room; /* NULL: the capture is another by now; it is no longer found */
	uint32_t id;
	uint64_t hash;
	struct strbuf question;
	struct capture_identity other; /* of a diff */
	uint64_t version;              /* that the capture must have; 0: any */
	enum answer_state state;
	struct answer_waiter *waiters;
	struct strbuf bytes; /* with the head, while it runs */
	int error;
	bool is_failed;
	bool is_old; /* of a file that has grown since */
	enum api_error code;
	char sentence[1024];
	uint64_t started_ns, used_ns, leave_by_ns;
};

/* A capture with the process that has it open. */
struct room {
	struct answers *answers;
	const struct capture *capture;
	struct capture_identity identity;
	struct worker *worker;
	bool has_grown; /* to be read again, once what is being answered is done */
	uint64_t started_ns, used_ns;
	struct capture_progress ended; /* of CAPTURE_FAILED */
	char sentence[1024];
};

struct answers {
	struct loop *loop;
	struct answers_limits limits;
	void (*changed)(void *context, const struct capture *capture);
	void *context;
	ARRAY_OF(struct answer *) items;
	ARRAY_OF(struct room *) rooms;
	uint64_t now_ns;
	uint32_t last_id;
};

void answer_free(struct answer *answer);
/* Its turn: the capture is loaded. */
void answer_start(struct answer *answer);
/* Who waits for it learns it. */
void answer_fail(struct answer *answer, enum api_error code, const char *sentence);
/* Of its watch. */
void answer_readable(struct loop_watch *watch);
/* Begins what can begin now: answers.c. */
void answers_schedule(struct answers *answers);
