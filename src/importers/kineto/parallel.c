/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long list of events, parsed by several threads. The text is cut into parts where an event seems
 * to begin. Each is parsed by itself, and merged in the file's order when it turns out that it
 * ended where it was cut, as had the one before; otherwise, and where events depend on others, the
 * file's own parser reads it once more. So the rows are the same as without threads.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "importers/kineto/parser.h"

#define PART_BYTES  ((size_t)1024 * 1024)
#define MAX_THREADS 8U /* more wait for the merging */
#define SPARE_PARTS 2U /* one is filled and one merged meanwhile */
#define MAX_PARTS   (MAX_THREADS + SPARE_PARTS)
/* Of a part's strings: then they are forgotten, since the file's parser has them, too. */
#define MAX_KNOWN_BYTES ((size_t)4 * 1024 * 1024)
/* In a row: then threads are of no use for this file. */
#define MAX_REFUSALS 8

enum part_state { PART_WAITS, PART_IS_PARSED, PART_IS_WHOLE, PART_IS_REFUSED, PART_FAILED };

struct part {
	struct kineto_parser parser;
	struct kineto_known known;
	bool has_parser;
	char *text;
	size_t length, capacity;
	bool is_last;
	enum part_state state;
};

/* Parts go round: number `filled` is filled next, `begun` parsed, `merged` merged. */
struct parts {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned filled, begun;
	bool stop;

	struct kineto_parser *parser;
	const struct kineto_source *source;
	struct errmsg *err;
	unsigned merged, refusals;
	struct strbuf rest; /* that the file's parser wants to see again with what follows */
	size_t tried;       /* so many bytes of it were not enough */
	pthread_t threads[MAX_THREADS];
	unsigned thread_count, count;
	struct part items[MAX_PARTS];
};

static struct part *part_at(struct parts *parts, unsigned number)
{
	return &parts->items[number % parts->count];
}

/* ---- the threads ---- */

static enum part_state parse(const struct parts *parts, struct part *part)
{
	int r = 0;

	if (!part->has_parser) {
		part->has_parser = true;
		r = kineto_parser_init(&part->parser, "", parts->parser->keep_arguments);
	}
	if (r == 0)
		r = kineto_parse_part(&part->parser, part->text, part->length);
	if (r < 0)
		return PART_FAILED;
	return r ? PART_IS_WHOLE : PART_IS_REFUSED;
}

static void *run(void *argument)
{
	struct parts *parts = argument;

	pthread_mutex_lock(&parts->lock);
	for (;;) {
		struct part *part = part_at(parts, parts->begun);
		enum part_state state;

		if (parts->stop)
			break;
		if (parts->begun == parts->filled) {
			pthread_cond_wait(&parts->changed, &parts->lock);
			continue;
		}
		parts->begun++;
		if (part->state != PART_WAITS)
			continue;
		part->state = PART_IS_PARSED;
		pthread_mutex_unlock(&parts->lock);
		state = parse(parts, part);
		pthread_mutex_lock(&parts->lock);
		part->state = state;
		pthread_cond_broadcast(&parts->changed);
	}
	pthread_mutex_unlock(&parts->lock);
	return NULL;
}

/* Signals are for the program's other threads. */
static void start_threads(struct parts *parts, unsigned wanted)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (parts->thread_count < MIN(wanted, MAX_THREADS) &&
		pthread_create(&parts->threads[parts->thread_count], NULL, run, parts) == 0)
		parts->thread_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_threads(struct parts *parts)
{
	pthread_mutex_lock(&parts->lock);
	parts->stop = true;
	pthread_cond_broadcast(&parts->changed);
	pthread_mutex_unlock(&parts->lock);
	for (unsigned i = 0; i < parts->thread_count; i++)
		pthread_join(parts->threads[i], NULL);
}

/* ---- filling ---- */

/* What is left of the part before, and PART_BYTES more. */
static int fill(struct parts *parts, struct part *part, const char *left, size_t left_length)
{
	size_t wanted = left_length + PART_BYTES;
	ssize_t got = 1;

	if (part->capacity < wanted) {
		free(part->text);
		part->capacity = wanted + wanted / 8;
		part->text = malloc(part->capacity);
		if (!part->text)
			return -ENOMEM;
	}
	memcpy(part->text, left, left_length);
	for (part->length = left_length; got > 0 && part->length < wanted;
		part->length += (size_t)got) {
		got = kineto_source_read(parts->source, part->text + part->length,
			wanted - part->length, parts->err);
		if (got < 0)
			return (int)got;
	}
	part->is_last = got == 0;
	return 0;
}

/* The last part has the end of the list in it, and is no thread's. */
static void submit(struct parts *parts, struct part *part)
{
	pthread_mutex_lock(&parts->lock);
	part->state =
		part->is_last || parts->refusals >= MAX_REFUSALS ? PART_IS_REFUSED : PART_WAITS;
	parts->filled++;
	pthread_cond_broadcast(&parts->changed);
	pthread_mutex_unlock(&parts->lock);
}

/* ---- merging ---- */

static enum part_state wait_for(struct parts *parts, const struct part *part)
{
	enum part_state state;

	pthread_mutex_lock(&parts->lock);
	while (part->state <= PART_IS_PARSED)
		pthread_cond_wait(&parts->changed, &parts->lock);
	state = part->state;
	pthread_mutex_unlock(&parts->lock);
	return state;
}

static void forget_parser(struct part *part)
{
	if (part->has_parser)
		kineto_parser_done(&part->parser);
	kineto_known_done(&part->known);
	part->has_parser = false;
}

/* By the file's own parser. */
static int parse_again(struct parts *parts, struct part *part)
{
	struct strbuf *rest = &parts->rest;
	struct text_window window = {
		.bytes = part->text, .length = part->length, .is_last = part->is_last};
	size_t used;
	int r;

	if (rest->length) {
		strbuf_add_bytes(rest, part->text, part->length);
		if (strbuf_status(rest) < 0)
			return -ENOMEM;
		/* Looking at a long event again with each part would take long. */
		if (rest->length < 2 * parts->tried && !part->is_last)
			return 0;
		window.bytes = rest->data;
		window.length = rest->length;
	}
	window.is_full = window.length >= TEXT_WINDOW_MAX;
	r = kineto_parse(parts->parser, &window, &used);
	if (r < 0)
		return r;
	parts->tried = used ? 0 : MIN(window.length, TEXT_WINDOW_MAX / 2);
	if (rest->length) {
		rest->length -= used;
		memmove(rest->data, rest->data + used, rest->length);
	} else {
		strbuf_add_bytes(rest, window.bytes + used, window.length - used);
	}
	return strbuf_status(rest);
}

static int merge_next(struct parts *parts)
{
	struct part *part = part_at(parts, parts->merged++);
	enum part_state state = wait_for(parts, part);
	int r;

	if (state == PART_FAILED)
		return -ENOMEM;
	if (state == PART_IS_WHOLE && !parts->rest.length &&
		kineto_is_between_events(parts->parser)) {
		parts->refusals = 0;
		r = kineto_merge(parts->parser, &part->parser, &part->known);
		if (part->parser.text_bytes > MAX_KNOWN_BYTES)
			forget_parser(part);
		return r;
	}
	parts->refusals++;
	/* What it knows was never merged. */
	forget_parser(part);
	return parse_again(parts, part);
}

static int merge(struct parts *parts)
{
	int r = merge_next(parts);

	return r < 0 ? r : kineto_source_check(parts->source, parts->parser, parts->err);
}

/* ---- all ---- */

static int read_all(struct parts *parts, const char *left, size_t left_length)
{
	bool is_last = false;
	int r = 0;

	while (r == 0 && !is_last) {
		struct part *part = part_at(parts, parts->filled);
		size_t cut;

		if (parts->filled - parts->merged == parts->count)
			r = merge(parts);
		if (r == 0)
			r = fill(parts, part, left, left_length);
		if (r < 0)
			return r;
		is_last = part->is_last;
		cut = is_last ? 0 : kineto_last_event(part->text, part->length);
		cut = cut ? cut : part->length;
		left = part->text + cut;
		left_length = part->length - cut;
		part->length = cut;
		submit(parts, part);
	}
	while (r == 0 && parts->merged < parts->filled)
		r = merge(parts);
	return r;
}

int kineto_read_parts(struct kineto_parser *parser, const struct kineto_source *source,
	const char *text, size_t length, unsigned thread_count, struct errmsg *err)
{
	struct parts *parts = calloc(1, sizeof(*parts));
	int r;

	if (!parts)
		return -ENOMEM;
	parts->parser = parser;
	parts->source = source;
	parts->err = err;
	parts->count = MIN(thread_count, MAX_THREADS) + SPARE_PARTS;
	pthread_mutex_init(&parts->lock, NULL);
	pthread_cond_init(&parts->changed, NULL);
	start_threads(parts, thread_count);
	if (!parts->thread_count)
		parts->refusals = MAX_REFUSALS;
	r = read_all(parts, text, length);
	stop_threads(parts);
	for (unsigned i = 0; i < parts->count; i++) {
		forget_parser(&parts->items[i]);
		free(parts->items[i].text);
	}
	strbuf_done(&parts->rest);
	pthread_cond_destroy(&parts->changed);
	pthread_mutex_destroy(&parts->lock);
	free(parts);
	return r;
}
