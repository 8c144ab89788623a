/* SPDX-License-Identifier: Apache-2.0 */
#include "server/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"

/* A client that was asked to come back has this time to do it. */
#define COMES_BACK_NS (15 * NS_PER_S)
/* A process is ended when nobody has asked it for so long. */
#define IDLE_NS (900 * NS_PER_S)
/* After a failure a file is tried again, at the earliest. */
#define RETRY_NS (2 * NS_PER_S)

const char *const capture_state_names[CAPTURE_STATE_MAX] = {
	[CAPTURE_CLOSED] = "closed",
	[CAPTURE_LOADING] = "loading",
	[CAPTURE_OPEN] = "open",
	[CAPTURE_FAILED] = "failed",
};

/* ---- answers ---- */

static void remove_answer(struct answers *answers, struct answer *answer)
{
	for (size_t i = 0; i < answers->items.count; i++) {
		if (answers->items.items[i] == answer) {
			answers->items.items[i] = answers->items.items[--answers->items.count];
			break;
		}
	}
	answer_free(answer);
}

/* A client was asked to come back for it, and has time left to do so. */
static bool comes_back(const struct answers *answers, const struct answer *answer)
{
	return answer->leave_by_ns > answers->now_ns;
}

static unsigned count_state(const struct answers *answers, enum answer_state state)
{
	unsigned count = 0;

	for (size_t i = 0; i < answers->items.count; i++)
		count += answers->items.items[i]->state == state;
	return count;
}

/* ---- captures that are open ---- */

static struct room *find_room(const struct answers *answers, const struct capture *capture)
{
	for (size_t i = 0; i < answers->rooms.count; i++) {
		if (answers->rooms.items[i]->capture == capture)
			return answers->rooms.items[i];
	}
	return NULL;
}

static bool is_used(const struct answers *answers, const struct room *room)
{
	for (size_t i = 0; i < answers->items.count; i++) {
		const struct answer *answer = answers->items.items[i];

		if (answer->room == room && answer->state != ANSWER_DONE)
			return true;
	}
	return false;
}

static void tell(const struct room *room)
{
	if (room->answers->changed)
		room->answers->changed(room->answers->context, room->capture);
}

static void close_worker(struct room *room)
{
	if (!room->worker)
		return;
	room->worker = worker_end(room->worker);
	tell(room);
}

/* Of all questions about it that have no answer yet. */
static void fail_all(struct room *room, enum api_error code, const char *sentence)
{
	struct answers *answers = room->answers;

	for (size_t i = 0; i < answers->items.count; i++) {
		struct answer *answer = answers->items.items[i];

		if (answer->room == room && answer->state != ANSWER_DONE)
			answer_fail(answer, code, sentence);
	}
}

static void worker_changed(void *context, struct worker *worker)
{
	struct room *room = context;
	struct answers *answers = room->answers;
	enum worker_state state = worker_state(worker);

	answers->now_ns = monotonic_now_ns();
	if (state == WORKER_FAILED || state == WORKER_GONE) {
		snprintf(room->sentence, sizeof(room->sentence), "%s", worker_sentence(worker));
		room->ended = (struct capture_progress){
			.state = CAPTURE_FAILED, .sentence = room->sentence};
		room->started_ns = answers->now_ns;
		room->worker = worker_end(room->worker);
		fail_all(room,
			state == WORKER_FAILED ? API_ERROR_CAPTURE_UNREADABLE
					       : API_ERROR_WORKER_FAILED,
			room->sentence);
	}
	tell(room);
	answers_schedule(answers);
}

/* Makes place for one more: ends the process that was asked the longest ago. */
static bool has_place(struct answers *answers)
{
	struct room *oldest = NULL;
	unsigned count = 0;

	for (size_t i = 0; i < answers->rooms.count; i++) {
		struct room *room = answers->rooms.items[i];

		count += room->worker != NULL;
		if (room->worker && !is_used(answers, room) &&
			(!oldest || room->used_ns < oldest->used_ns))
			oldest = room;
	}
	if (count < answers->limits.workers)
		return true;
	if (oldest)
		close_worker(oldest);
	return oldest != NULL;
}

static void start_worker(struct room *room)
{
	const struct answers *answers = room->answers;
	const struct worker_setup setup = {
		.paths = (const char *const *)room->capture->paths,
		.path_count = room->capture->path_count,
		.is_listed = room->capture->is_listed,
		.memory_bytes = answers->limits.memory_bytes,
		.answer_bytes = answers->limits.answer_bytes,
		.version = capture_version(&room->identity),
		.changed = worker_changed,
		.context = room,
	};

	room->started_ns = answers->now_ns;
	if (worker_start(&room->worker, answers->loop, &setup) < 0)
		fail_all(room, API_ERROR_BUSY,
			"the server cannot start a process for this capture: ask again later");
	else
		tell(room);
}

static bool has_running(const struct answers *answers, const struct room *room)
{
	for (size_t i = 0; i < answers->items.count; i++) {
		const struct answer *answer = answers->items.items[i];

		if (answer->room == room && answer->state == ANSWER_RUNS)
			return true;
	}
	return false;
}

static const char old_version[] =
	"the capture has changed since its tracks were listed: ask for them again";

/* What was made of the shorter file is only for those who were asked to come back for it. */
static void reload(struct room *room, const struct capture_identity *identity)
{
	struct answers *answers = room->answers;

	close_worker(room);
	for (size_t i = answers->items.count; i-- > 0;) {
		struct answer *answer = answers->items.items[i];

		if (answer->room == room && answer->state == ANSWER_WAITS && answer->version)
			answer_fail(answer, API_ERROR_CONFLICT, old_version);
		if (answer->room != room || answer->state != ANSWER_DONE)
			continue;
		answer->is_old = true;
		if (!answer->waiters && !comes_back(answers, answer))
			remove_answer(answers, answer);
	}
	room->ended.state = CAPTURE_CLOSED;
	room->identity = *identity;
	room->has_grown = false;
}

/* The next that can begin; false: none. */
static bool start_one(struct answers *answers, struct answer *answer)
{
	struct room *room = answer->room;
	struct capture_identity identity;

	if (answer->state != ANSWER_WAITS)
		return false;
	if (room->has_grown && !answer->version) {
		if (has_running(answers, room))
			return false;
		if (capture_identify(room->capture, &identity) < 0)
			identity = room->identity;
		reload(room, &identity);
		/* The list of answers is another one now. */
		return true;
	}
	if (room->ended.state == CAPTURE_FAILED && !room->worker) {
		answer_fail(answer, API_ERROR_CAPTURE_UNREADABLE, room->sentence);
		return true;
	}
	if (!room->worker) {
		if (!has_place(answers))
			return false;
		start_worker(room);
		return true;
	}
	if (worker_state(room->worker) != WORKER_READY ||
		count_state(answers, ANSWER_RUNS) >= answers->limits.questions)
		return false;
	answer_start(answer);
	return true;
}

void answers_schedule(struct answers *answers)
{
	bool has_begun = true;

	/* What begins may change the list. */
	while (has_begun) {
		has_begun = false;
		for (size_t i = 0; !has_begun && i < answers->items.count; i++)
			has_begun = start_one(answers, answers->items.items[i]);
	}
}

static void forget_answers(struct answers *answers, struct room *room)
{
	fail_all(room, API_ERROR_CAPTURE_UNREADABLE,
		"the file has changed while it was read: ask again");
	for (size_t i = answers->items.count; i-- > 0;) {
		struct answer *answer = answers->items.items[i];

		if (answer->room != room)
			continue;
		answer->room = NULL;
		if (!answer->waiters)
			remove_answer(answers, answer);
	}
}

static struct room *make_room(struct answers *answers, const struct capture *capture)
{
	struct room *room = calloc(1, sizeof(*room));

	if (!room || array_append(&answers->rooms, room) < 0) {
		free(room);
		return NULL;
	}
	room->answers = answers;
	room->capture = capture;
	return room;
}

/* The file is another one: nothing that is known of the older one holds. */
static void replace(struct room *room, const struct capture_identity *identity)
{
	forget_answers(room->answers, room);
	close_worker(room);
	room->ended.state = CAPTURE_CLOSED;
	room->identity = *identity;
	room->has_grown = false;
}

/*
 * The file is longer, as recordings become all the time. Who asks while it is read gets what is
 * read. Answers that are being made are finished; only then it is read again.
 */
static void grow(struct room *room, const struct capture_identity *identity)
{
	if (room->worker && worker_state(room->worker) == WORKER_LOADING)
		return;
	if (room->worker && has_running(room->answers, room))
		room->has_grown = true;
	else
		reload(room, identity);
}

/*
 * The capture as it is now: what is known of an older file of its name is forgotten. `version`:
 * or as it was when it had this one; 0.
 */
static int enter(struct answers *answers, const struct capture *capture, uint64_t version,
	struct room **ret_room, struct errmsg *err)
{
	struct room *room = find_room(answers, capture);
	struct capture_identity identity;
	int r = capture_identify(capture, &identity);

	if (r < 0)
		return errmsg_set(err, r, "cannot open %s: %s", capture->name, strerror(-r));
	if (!room)
		room = make_room(answers, capture);
	if (!room)
		return errmsg_set(err, -ENOMEM, "memory ran out in the server");
	if (!capture_identity_equals(&identity, &room->identity) &&
		!(room->worker && capture_version(&room->identity) == version)) {
		if (capture_identity_grows(&room->identity, &identity))
			grow(room, &identity);
		else
			replace(room, &identity);
	}
	if (version && capture_version(&room->identity) != version)
		return errmsg_set(err, -ESTALE, "%s", old_version);
	if (room->ended.state == CAPTURE_FAILED && answers->now_ns - room->started_ns > RETRY_NS)
		room->ended.state = CAPTURE_CLOSED;
	room->used_ns = answers->now_ns;
	*ret_room = room;
	return 0;
}

/* ---- asking ---- */

static bool is_found(const struct answers *answers, const struct answer *answer,
	const struct capture_identity *other)
{
	if (answer->is_failed)
		return false;
	/* What is being made is given, also where a file has grown meanwhile. */
	if (answer->state != ANSWER_DONE || comes_back(answers, answer))
		return capture_identity_same_file(&answer->other, other);
	return !answer->is_old && capture_identity_equals(&answer->other, other);
}

/* An error is made anew for who asks later. */
static struct answer *find_answer(const struct answers *answers, const struct room *room,
	const struct capture_identity *other, const char *question, size_t length)
{
	uint64_t hash = hash_bytes(question, length, 0);

	for (size_t i = 0; i < answers->items.count; i++) {
		struct answer *answer = answers->items.items[i];

		if (answer->room == room && answer->hash == hash &&
			is_found(answers, answer, other) && answer->question.length == length &&
			memcmp(answer->question.data, question, length) == 0)
			return answer;
	}
	return NULL;
}

static struct answer *make_answer(struct answers *answers, struct room *room,
	const struct capture_identity *other, const char *question, size_t length)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->watch = (struct loop_watch){.fd = -1, .ready = answer_readable};
	answer->answers = answers;
	answer->room = room;
	answer->other = *other;
	answer->id = ++answers->last_id;
	answer->hash = hash_bytes(question, length, 0);
	strbuf_add_bytes(&answer->question, question, length);
	if (strbuf_status(&answer->question) || array_append(&answers->items, answer) < 0) {
		answer_free(answer);
		return NULL;
	}
	return answer;
}

int answers_ask(struct answers *answers, const struct answers_question *asked,
	struct answer_waiter *waiter, struct errmsg *err)
{
	const char *question = asked->text;
	size_t length = asked->length;
	struct capture_identity identity = {0};
	struct answer *answer;
	struct room *room = NULL, *second = NULL;
	int r;

	answers->now_ns = monotonic_now_ns();
	r = enter(answers, asked->capture, asked->version, &room, err);
	if (r == 0 && asked->other)
		r = enter(answers, asked->other, 0, &second, err);
	if (r < 0 || !room)
		return r;
	if (second)
		identity = second->identity;
	answer = find_answer(answers, room, &identity, question, length);
	if (!answer && count_state(answers, ANSWER_WAITS) >= answers->limits.waiting)
		return errmsg_set(
			err, -EBUSY, "too many questions wait for their answers: ask again later");
	if (!answer)
		answer = make_answer(answers, room, &identity, question, length);
	if (!answer)
		return errmsg_set(err, -ENOMEM, "memory ran out in the server");
	answer->version = asked->version;
	waiter->answer = answer;
	waiter->next = answer->waiters;
	answer->waiters = waiter;
	answer->used_ns = answers->now_ns;
	if (!answer_is_done(answer))
		answers_schedule(answers);
	return 0;
}

static void cancel(struct answers *answers, struct answer *answer)
{
	if (answer->state == ANSWER_RUNS && answer->room->worker)
		worker_cancel(answer->room->worker, answer->id);
	remove_answer(answers, answer);
}

/* Those that are done and wanted by nobody, the longest ago first. */
static void bound_cache(struct answers *answers)
{
	for (;;) {
		struct answer *oldest = NULL;
		uint64_t bytes = 0;

		for (size_t i = 0; i < answers->items.count; i++) {
			struct answer *answer = answers->items.items[i];

			bytes += answer->bytes.capacity;
			if (answer->state == ANSWER_DONE && !answer->waiters &&
				(!oldest || answer->used_ns < oldest->used_ns))
				oldest = answer;
		}
		if (!oldest ||
			(bytes <= answers->limits.cache_bytes && answers->items.count <= 4096))
			return;
		remove_answer(answers, oldest);
	}
}

void answers_leave(struct answers *answers, struct answer_waiter *waiter, bool asks_again)
{
	struct answer *answer = waiter->answer;
	struct answer_waiter **place;

	if (!answer)
		return;
	waiter->answer = NULL;
	for (place = &answer->waiters; *place; place = &(*place)->next) {
		if (*place == waiter) {
			*place = waiter->next;
			break;
		}
	}
	if (answer->waiters)
		return;
	answer->leave_by_ns = asks_again ? monotonic_now_ns() + COMES_BACK_NS : 0;
	if (answer->state != ANSWER_DONE && !asks_again) {
		cancel(answers, answer);
		answers_schedule(answers);
	} else if (answer->state == ANSWER_DONE &&
		   (answer->is_failed || answer->is_old || !answer->room)) {
		remove_answer(answers, answer);
	} else {
		bound_cache(answers);
	}
}

/* ---- time ---- */

static void check_answer(struct answers *answers, struct answer *answer)
{
	if (answer->state == ANSWER_DONE) {
		if (!answer->waiters &&
			(answer->is_failed || (answer->is_old && !comes_back(answers, answer))))
			remove_answer(answers, answer);
	} else if (!answer->waiters && !comes_back(answers, answer)) {
		cancel(answers, answer);
	} else if (answer->state == ANSWER_RUNS &&
		   answers->now_ns - answer->started_ns > answers->limits.answer_ns) {
		worker_cancel(answer->room->worker, answer->id);
		answer_fail(answer, API_ERROR_TIMED_OUT,
			"the answer took too long: ask for less, such as one section with by, or "
			"some seconds with time");
	}
}

static void check_room(struct answers *answers, struct room *room)
{
	if (!room->worker)
		return;
	if (worker_state(room->worker) == WORKER_LOADING &&
		answers->now_ns - room->started_ns > answers->limits.load_ns) {
		close_worker(room);
		fail_all(room, API_ERROR_TIMED_OUT, "the capture took too long to load");
	} else if (answers->now_ns - room->used_ns > IDLE_NS && !is_used(answers, room)) {
		close_worker(room);
	}
}

void answers_tick(struct answers *answers, uint64_t now_ns)
{
	answers->now_ns = now_ns;
	for (size_t i = answers->items.count; i-- > 0;)
		check_answer(answers, answers->items.items[i]);
	for (size_t i = 0; i < answers->rooms.count; i++)
		check_room(answers, answers->rooms.items[i]);
	answers_schedule(answers);
}

/* ---- what is open ---- */

struct capture_progress answers_progress(
	const struct answers *answers, const struct capture *capture)
{
	const struct room *room = find_room(answers, capture);
	struct capture_progress progress = {0};

	if (!room || !room->worker)
		return room ? room->ended : progress;
	progress.state =
		worker_state(room->worker) == WORKER_READY ? CAPTURE_OPEN : CAPTURE_LOADING;
	worker_progress(room->worker, &progress.done, &progress.total);
	return progress;
}

unsigned answers_open_captures(const struct answers *answers)
{
	unsigned count = 0;

	for (size_t i = 0; i < answers->rooms.count; i++)
		count += answers->rooms.items[i]->worker != NULL;
	return count;
}

int answers_open(struct answers **ret_answers, struct loop *loop,
	const struct answers_limits *limits,
	void (*changed)(void *context, const struct capture *capture), void *context)
{
	struct answers *answers = calloc(1, sizeof(*answers));

	if (!answers)
		return -ENOMEM;
	answers->loop = loop;
	answers->limits = *limits;
	answers->changed = changed;
	answers->context = context;
	*ret_answers = answers;
	return 0;
}

struct answers *answers_close(struct answers *answers)
{
	if (answers) {
		for (size_t i = 0; i < answers->rooms.count; i++)
			worker_end(answers->rooms.items[i]->worker);
		for (size_t i = 0; i < answers->items.count; i++)
			answer_free(answers->items.items[i]);
		for (size_t i = 0; i < answers->rooms.count; i++)
			free(answers->rooms.items[i]);
		array_done(&answers->items);
		array_done(&answers->rooms);
		free(answers);
	}
	return NULL;
}
