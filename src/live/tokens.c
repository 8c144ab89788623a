/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens and requests by the marks of sonde_token() and of hooks, counted as in
 * analyses/inference/inference.h. What engines say of their requests (vLLM's scheduler) is in the
 * report only.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "live/columns.h"
#include "live/state.h"

/* That wait for a message; of more the older half is left out. */
#define MOST_WAITING   20000
#define MESSAGE_TOKENS 1000

struct key {
	uint32_t pid;
	char request[WIRE_RANGE_TEXT_BYTES + 1];
};

/* ---- requests ---- */

/* A name, or a number as text. Returns the key's length. */
static size_t make_key(const struct capture_range_event *event, struct key *ret_key)
{
	const struct capture_range_field *field = live_field(event, "request");
	double real;

	*ret_key = (struct key){.pid = event->pid};
	if (field && field->type == WIRE_RANGE_TEXT) {
		snprintf(ret_key->request, sizeof(ret_key->request), "%s", field->text);
	} else if (field && field->type == WIRE_RANGE_DOUBLE) {
		memcpy(&real, &field->value, sizeof(real));
		snprintf(ret_key->request, sizeof(ret_key->request), "%g", real);
	} else if (field && field->type == WIRE_RANGE_I64) {
		snprintf(ret_key->request, sizeof(ret_key->request), "%" PRId64,
			(int64_t)field->value);
	} else if (field) {
		snprintf(ret_key->request, sizeof(ret_key->request), "%" PRIu64, field->value);
	}
	return offsetof(struct key, request) + strlen(ret_key->request);
}

static int add_request(struct live_figures *figures, const struct key *key, uint32_t *ret_request)
{
	struct live_request request = {.pid = key->pid};
	int r = live_keep_text(figures, key->request, &request.id);

	*ret_request = (uint32_t)figures->tokens.requests.count;
	return r ?: array_append(&figures->tokens.requests, request);
}

/* The latest of its name; a new one where there is none. */
static int find_request(struct live_figures *figures, const struct capture_range_event *event,
	uint32_t *ret_name, uint32_t *ret_request)
{
	struct live_tokens *tokens = &figures->tokens;
	struct key key;
	size_t length = make_key(event, &key);
	int r = intern_add(&tokens->keys, &key, length, ret_name);

	if (r < 0)
		return r;
	if (r == 1) {
		r = add_request(figures, &key, ret_request);
		return r ?: array_append(&tokens->latest, *ret_request);
	}
	*ret_request = tokens->latest.items[*ret_name];
	return 0;
}

/* A begin after a token is of the next request that has the same name. */
static int begin_again(struct live_figures *figures, const struct capture_range_event *event,
	uint32_t name, uint32_t *request)
{
	struct key key;
	int r;

	make_key(event, &key);
	r = live_end_request(figures, *request, figures->tokens.requests.items[*request].last_ns);
	if (r == 0)
		r = add_request(figures, &key, request);
	figures->tokens.latest.items[name] = *request;
	return r;
}

static void note_running(struct live_figures *figures, struct live_request *request)
{
	if (request->is_running || request->is_done || !*live_text(figures, request->id))
		return;
	request->is_running = true;
	figures->tokens.running++;
}

int live_end_request(struct live_figures *figures, uint32_t index, uint64_t time_ns)
{
	struct live_tokens *tokens = &figures->tokens;
	struct live_request *request = &tokens->requests.items[index];
	struct live_phase decode = {.id = request->phase, .kind = "phase", .pid = request->pid};
	int r;

	if (request->is_done)
		return 0;
	tokens->running -= request->is_running;
	tokens->done += request->is_running;
	request->is_running = false;
	request->is_done = true;
	r = array_append(&tokens->events,
		(struct live_request_event){request->pid, request->id, time_ns, "done"});
	if (r < 0 || !request->phase)
		return r;
	decode.begin_ns = request->first_ns;
	request->phase = 0;
	r = live_keep_text(figures, "decode", &decode.name);
	return r ?: live_end_phase(figures, &decode, request->last_ns);
}

uint32_t live_generated_request(
	struct live_figures *figures, const struct capture_range_event *event)
{
	uint32_t name, request;

	if (!live_field(event, "request") || find_request(figures, event, &name, &request) < 0)
		return 0;
	return request + 1;
}

/* ---- marks ---- */

/* Of a process without ranges of phases: from the begin to the first token, and on to the last. */
static int begin_decode(struct live_figures *figures, struct live_request *request)
{
	const struct live_process *process = live_process_of(figures, request->pid);
	uint64_t begin_ns = request->prefill_ns ? request->prefill_ns : request->arrival_ns;
	struct live_phase phase;
	int r = 0;

	if (!process)
		return -ENOMEM;
	if (process->has_phases || !*live_text(figures, request->id))
		return 0;
	if (begin_ns && begin_ns < request->first_ns) {
		r = live_begin_phase(figures, "phase", "prefill", request->pid, begin_ns, &phase);
		if (r == 0)
			r = live_end_phase(figures, &phase, request->first_ns);
	}
	if (r == 0)
		r = live_begin_phase(
			figures, "phase", "decode", request->pid, request->first_ns, &phase);
	request->phase = r == 0 ? phase.id : 0;
	return r;
}

static uint64_t count_of(const struct live_request *request)
{
	return request->falls ? request->marks : request->by_index;
}

uint64_t live_token_count(const struct live_figures *figures)
{
	return figures->tokens.count;
}

static int add_token(struct live_figures *figures, struct live_request *request,
	const struct capture_range_event *mark, const char *phase)
{
	struct live_tokens *tokens = &figures->tokens;
	struct live_token token = {
		.pid = mark->pid, .request = request->id, .time_ns = mark->time_ns};
	uint64_t before = count_of(request), after, windows = figures->phases.window_changes;
	bool is_first = request->marks == 0;
	int r = live_keep_text(figures, phase, &token.phase);

	token.has_index = live_field_u64(mark, "index", &token.index);
	token.has_gap = !is_first && *live_text(figures, request->id) &&
			request->last_window == windows && mark->time_ns >= request->last_ns;
	token.gap_ns = mark->time_ns - request->last_ns;
	request->falls |= !is_first && token.index <= request->last_index;
	request->by_index += is_first ? 1 : token.index - request->last_index;
	request->marks++;
	request->last_index = token.index;
	request->last_ns = mark->time_ns;
	request->last_window = windows;
	after = count_of(request);
	tokens->count += after - before;
	if (after > before)
		live_recent_add(
			&tokens->recent, live_second(figures, mark->time_ns), after - before);
	if (r == 0)
		r = array_append(&tokens->tokens, token);
	if (r == 0 && is_first) {
		request->first_ns = mark->time_ns;
		r = begin_decode(figures, request);
	}
	return r;
}

static int add_begin(struct live_figures *figures, struct live_request *request, const char *phase,
	uint64_t time_ns)
{
	bool is_queued = strcmp(phase, "queued") == 0;
	uint64_t *begin_ns = is_queued ? &request->arrival_ns : &request->prefill_ns;

	if (!*begin_ns)
		*begin_ns = time_ns;
	note_running(figures, request);
	return array_append(
		&figures->tokens.events, (struct live_request_event){request->pid, request->id,
						 time_ns, is_queued ? "queued" : "prefill"});
}

static void bound_waiting(struct live_tokens *tokens)
{
	if (tokens->tokens.count >= MOST_WAITING)
		array_drop_first(&tokens->tokens, MOST_WAITING / 2);
	if (tokens->events.count >= MOST_WAITING)
		array_drop_first(&tokens->events, MOST_WAITING / 2);
}

int live_add_token(struct live_figures *figures, const struct capture_range_event *mark)
{
	const char *phase = live_field_text(mark, "phase");
	bool is_begin = strcmp(phase, "queued") == 0 || strcmp(phase, "prefill") == 0;
	struct live_tokens *tokens = &figures->tokens;
	uint32_t name, request;
	int r = find_request(figures, mark, &name, &request);

	bound_waiting(tokens);
	if (r == 0 && is_begin && *live_text(figures, tokens->requests.items[request].id) &&
		(tokens->requests.items[request].marks || tokens->requests.items[request].is_done))
		r = begin_again(figures, mark, name, &request);
	if (r < 0)
		return r;
	if (is_begin)
		return add_begin(figures, &tokens->requests.items[request], phase, mark->time_ns);
	if (strcmp(phase, "done") == 0)
		return live_end_request(figures, request, mark->time_ns);
	note_running(figures, &tokens->requests.items[request]);
	return add_token(figures, &tokens->requests.items[request], mark, phase);
}

/* ---- messages ---- */

bool live_has_tokens(const struct live_figures *figures)
{
	return figures->tokens.tokens.count || figures->tokens.events.count;
}

static void write_token(const struct live_figures *figures, struct json_writer *json,
	const struct live_token *token)
{
	json_begin_object(json);
	json_member_u64(json, "pid", token->pid);
	live_member_text(figures, json, "request", token->request);
	json_member_known(json, "index", token->has_index, token->index);
	live_member_t_ms(figures, json, "t_ms", token->time_ns);
	json_key(json, "gap_ms");
	if (token->has_gap)
		json_double(json, (double)token->gap_ns / (double)NS_PER_MS, 9);
	else
		json_null(json);
	live_member_text(figures, json, "phase", token->phase);
	json_end_object(json);
}

static void write_event(const struct live_figures *figures, struct json_writer *json,
	const struct live_request_event *event)
{
	json_begin_object(json);
	json_member_u64(json, "pid", event->pid);
	live_member_text(figures, json, "request", event->request);
	live_member_t_ms(figures, json, "t_ms", event->time_ns);
	json_member_text(json, "event", event->event);
	json_end_object(json);
}

static int write_token_rows(const struct live_figures *figures, size_t count, struct intern *texts,
	struct strbuf *columns)
{
	_cleanup_free_ struct live_tokens_tokens_row *rows = calloc(count + 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct live_token *token = &figures->tokens.tokens.items[i];
		double gap_ms = (double)token->gap_ns / (double)NS_PER_MS;

		rows[i] =
			(struct live_tokens_tokens_row){.t_ms = live_t_ms(figures, token->time_ns),
				.index = token->has_index ? (double)token->index : NAN,
				.gap_ms = token->has_gap ? (float)gap_ms : NAN,
				.pid = token->pid};
		r = live_place_text(texts, live_text(figures, token->request), &rows[i].request);
		if (r == 0)
			r = live_place_text(
				texts, live_text(figures, token->phase), &rows[i].phase);
	}
	if (r == 0)
		live_write_rows(columns, &live_tokens_tokens_table, rows, count);
	return r;
}

static int write_event_rows(const struct live_figures *figures, size_t count, struct intern *texts,
	struct strbuf *columns)
{
	_cleanup_free_ struct live_tokens_requests_row *rows = calloc(count + 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct live_request_event *event = &figures->tokens.events.items[i];

		rows[i] = (struct live_tokens_requests_row){
			.t_ms = live_t_ms(figures, event->time_ns), .pid = event->pid};
		r = live_place_text(texts, live_text(figures, event->request), &rows[i].request);
		if (r == 0)
			r = live_place_text(texts, event->event, &rows[i].event);
	}
	if (r == 0)
		live_write_rows(columns, &live_tokens_requests_table, rows, count);
	return r;
}

int live_write_tokens(
	struct live_figures *figures, struct json_writer *json, struct strbuf *columns)
{
	struct intern texts = {0};
	int r;

	struct live_tokens *tokens = &figures->tokens;
	size_t count = MIN(tokens->tokens.count, (size_t)MESSAGE_TOKENS);
	size_t events = MIN(tokens->events.count, (size_t)MESSAGE_TOKENS);

	live_begin_message(figures, json);
	json_key(json, "tokens");
	json_begin_array(json);
	for (size_t i = 0; i < count; i++)
		write_token(figures, json, &tokens->tokens.items[i]);
	json_end_array(json);
	json_key(json, "requests");
	json_begin_array(json);
	for (size_t i = 0; i < events; i++)
		write_event(figures, json, &tokens->events.items[i]);
	json_end_array(json);
	json_end_object(json);
	r = write_token_rows(figures, count, &texts, columns);
	if (r == 0)
		r = write_event_rows(figures, events, &texts, columns);
	live_write_texts(columns, &texts);
	intern_done(&texts);
	array_drop_first(&tokens->tokens, count);
	array_drop_first(&tokens->events, events);
	return r;
}

void live_tokens_done(struct live_tokens *tokens)
{
	array_done(&tokens->requests);
	intern_done(&tokens->keys);
	array_done(&tokens->latest);
	array_done(&tokens->tokens);
	array_done(&tokens->events);
}
