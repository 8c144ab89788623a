/* SPDX-License-Identifier: Apache-2.0 */
#include "server/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/resident.h"

/* ---- one answer ---- */

bool answer_is_done(const struct answer *answer)
{
	return answer->state == ANSWER_DONE;
}

bool answer_bytes(const struct answer *answer, const char **ret_bytes, size_t *ret_length)
{
	if (answer->is_failed)
		return false;
	*ret_bytes = strbuf_cstr(&answer->bytes) + sizeof(struct resident_answer);
	*ret_length = answer->bytes.length - sizeof(struct resident_answer);
	return true;
}

enum api_error answer_error(const struct answer *answer, const char **ret_sentence)
{
	*ret_sentence = answer->sentence;
	return answer->code;
}

static void stop_reading(struct answer *answer)
{
	if (answer->watch.fd < 0)
		return;
	loop_remove(answer->answers->loop, &answer->watch);
	close(answer->watch.fd);
	answer->watch.fd = -1;
}

void answer_free(struct answer *answer)
{
	stop_reading(answer);
	strbuf_done(&answer->question);
	strbuf_done(&answer->bytes);
	free(answer);
}

static void finish(struct answer *answer)
{
	struct answer_waiter *waiter = answer->waiters, *next;

	stop_reading(answer);
	answer->state = ANSWER_DONE;
	answer->used_ns = answer->answers->now_ns;
	for (; waiter; waiter = next) {
		next = waiter->next;
		waiter->ready(waiter);
	}
}

void answer_fail(struct answer *answer, enum api_error code, const char *sentence)
{
	answer->is_failed = true;
	answer->code = code;
	snprintf(answer->sentence, sizeof(answer->sentence), "%s", sentence);
	strbuf_done(&answer->bytes);
	finish(answer);
}

static enum api_error code_of(int error)
{
	switch (error) {
	case -EINVAL:
		return API_ERROR_BAD_REQUEST;
	case -ENODATA:
		return API_ERROR_NO_DATA;
	case -E2BIG:
		return API_ERROR_ANSWER_TOO_LARGE;
	case -ENOMEM:
		return API_ERROR_OUT_OF_MEMORY;
	case -EAGAIN:
		return API_ERROR_BUSY;
	case -ECHILD:
		return API_ERROR_WORKER_FAILED;
	default:
		return API_ERROR_CAPTURE_UNREADABLE;
	}
}

/* ---- answering ---- */

/* Is all there that the head promises? */
static bool is_whole(const struct answer *answer, struct resident_answer *ret_head)
{
	const struct strbuf *bytes = &answer->bytes;

	if (!bytes->data || bytes->length < sizeof(*ret_head))
		return false;
	memcpy(ret_head, bytes->data, sizeof(*ret_head));
	return bytes->length == sizeof(*ret_head) + ret_head->length;
}

static void take_answer(struct answer *answer)
{
	struct resident_answer head;
	struct strbuf *bytes = &answer->bytes;

	if (strbuf_status(bytes) || !is_whole(answer, &head))
		answer_fail(answer, API_ERROR_WORKER_FAILED,
			"the process that answered has ended in the middle of its answer: it was "
			"killed, as the system does when memory runs out, or crashed; ask again");
	else if (head.error)
		answer_fail(answer, code_of(head.error), bytes->data + sizeof(head));
	else
		finish(answer);
}

void answer_readable(struct loop_watch *watch)
{
	struct answer *answer = (struct answer *)watch;
	struct answers *answers = answer->answers;
	size_t most = answers->limits.answer_bytes + sizeof(struct resident_answer);
	struct resident_answer head;
	char *room = strbuf_room(&answer->bytes, 256 << 10);
	ssize_t length = room ? read(watch->fd, room, 256 << 10) : 0;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length > 0)
		strbuf_take(&answer->bytes, (size_t)length);
	/* The end of the pipe may come later: when its process is gone. */
	if (length > 0 && answer->bytes.length <= most && !is_whole(answer, &head))
		return;
	take_answer(answer);
	answers_schedule(answers);
}

void answer_start(struct answer *answer)
{
	int r = worker_ask(answer->room->worker, answer->id, strbuf_cstr(&answer->question),
		answer->question.length, &answer->watch.fd);

	if (r == 0) {
		r = loop_add(answer->answers->loop, &answer->watch);
		answer->state = ANSWER_RUNS;
		answer->started_ns = answer->answers->now_ns;
	}
	if (r < 0)
		answer_fail(answer, API_ERROR_BUSY,
			"the server has no descriptors left for an answer: ask again later");
}
