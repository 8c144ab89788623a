/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/inference/inference.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/range_fields.h"
#include "base/map.h"
#include "model/windows.h"

#define TOKEN_DOMAIN    "sonde.token"
#define GENERATE_DOMAIN "transformers"
#define GENERATE        "generate"
#define REQUEST_FIELD   "request"

/* A mark of a token, or of where its request is: with the request that it belongs to. */
struct mark {
	uint64_t time_ns, index;
	uint32_t request;
	enum { MARK_TOKEN, MARK_QUEUED, MARK_PREFILL, MARK_DONE } kind;
};

struct work {
	const struct model *model;
	struct inference *inference;
	struct intern keys; /* process and request → its row */
	ARRAY_OF(struct mark) marks;
	struct spread_values values;
};

static const char *const metric_names[INFERENCE_METRIC_MAX] = {
	[INFERENCE_TTFT] = "ttft",
	[INFERENCE_TTST] = "ttst",
	[INFERENCE_TPOT] = "tpot",
	[INFERENCE_E2E] = "e2e",
	[INFERENCE_QUEUE] = "queue",
	[INFERENCE_PREFILL] = "prefill",
	[INFERENCE_DECODE] = "decode",
};

const char *inference_metric_to_string(enum inference_metric metric)
{
	return metric_names[metric];
}

enum inference_metric inference_metric_from_string(const char *name, size_t length)
{
	if (length == 3 && memcmp(name, "itl", 3) == 0)
		return INFERENCE_TPOT;
	for (int i = 0; i < INFERENCE_METRIC_MAX; i++) {
		if (strlen(metric_names[i]) == length && memcmp(name, metric_names[i], length) == 0)
			return (enum inference_metric)i;
	}
	return INFERENCE_METRIC_INVALID;
}

/* ---- durations of a request ---- */

uint64_t inference_begin_ns(const struct inference_request *request)
{
	return request->arrival_ns ? request->arrival_ns : request->prefill_ns;
}

static bool between(uint64_t from_ns, uint64_t to_ns, uint64_t *ret_ns)
{
	if (!from_ns || to_ns < from_ns)
		return false;
	*ret_ns = to_ns - from_ns;
	return true;
}

bool inference_duration(
	const struct inference_request *request, enum inference_metric metric, uint64_t *ret_ns)
{
	uint64_t decode_ns;

	switch (metric) {
	case INFERENCE_TTFT:
		return between(inference_begin_ns(request), request->first_ns, ret_ns);
	case INFERENCE_TTST:
		return between(request->first_ns, request->second_ns, ret_ns);
	case INFERENCE_TPOT:
		if (request->tokens < 2 || request->is_interrupted ||
			!between(request->first_ns, request->last_ns, &decode_ns))
			return false;
		*ret_ns = decode_ns / (request->tokens - 1);
		return true;
	case INFERENCE_E2E:
		return between(inference_begin_ns(request), request->last_ns, ret_ns);
	case INFERENCE_QUEUE:
		return between(request->arrival_ns, request->prefill_ns, ret_ns);
	case INFERENCE_PREFILL:
		return between(request->prefill_ns, request->first_ns, ret_ns);
	default:
		return between(request->first_ns, request->last_ns, ret_ns);
	}
}

int inference_gaps(const struct inference *inference, const struct inference_request *request,
	struct spread *ret_spread)
{
	struct spread_values values = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->gap_count; i++)
		r = array_append(
			&values.items, (double)inference->gaps.items[request->first_gap + i]);
	if (r == 0)
		*ret_spread = spread_of_times(&values);
	array_done(&values.items);
	return r;
}

/* ---- from marks of tokens ---- */

/* A name, or a number as text. */
static void field_text(const struct model_range_field *field, char *out, size_t size)
{
	double real;

	out[0] = '\0';
	if (!field)
		return;
	switch (field->type) {
	case WIRE_RANGE_TEXT:
		snprintf(out, size, "%s", field->text);
		break;
	case WIRE_RANGE_DOUBLE:
		memcpy(&real, &field->value, sizeof(real));
		snprintf(out, size, "%g", real);
		break;
	case WIRE_RANGE_I64:
		snprintf(out, size, "%" PRId64, (int64_t)field->value);
		break;
	default:
		snprintf(out, size, "%" PRIu64, field->value);
	}
}

struct key {
	uint32_t process;
	char request[WIRE_RANGE_TEXT_BYTES + 1];
};

/* Returns its length. */
static size_t make_key(
	const struct model *model, const struct model_range *range, struct key *ret_key)
{
	ret_key->process = range->process;
	field_text(range_field(model, range, REQUEST_FIELD), ret_key->request,
		sizeof(ret_key->request));
	return offsetof(struct key, request) + strlen(ret_key->request);
}

static int find_request(struct work *work, const struct model_range *mark, uint32_t *ret_request)
{
	struct key key;
	size_t length = make_key(work->model, mark, &key);
	uint32_t text;
	int r = intern_add(&work->keys, &key, length, ret_request);

	if (r <= 0)
		return r;
	r = intern_add(&work->inference->texts, key.request, strlen(key.request), &text);
	if (r < 0)
		return r;
	return array_append(&work->inference->requests,
		(struct inference_request){.id = intern_get(&work->inference->texts, text),
			.process = mark->process,
			.tokens_known = true});
}

static int add_mark(struct work *work, const struct model_range *range)
{
	static const struct {
		const char *phase;
		int kind;
	} phases[] = {{"queued", MARK_QUEUED}, {"prefill", MARK_PREFILL}, {"done", MARK_DONE}};
	const char *phase = range_text(work->model, range, "phase");
	struct mark mark = {
		.time_ns = range->start_ns,
		.index = range_u64_or_0(work->model, range, "index"),
		.kind = MARK_TOKEN,
	};
	int r = find_request(work, range, &mark.request);

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		if (strcmp(phase, phases[i].phase) == 0)
			mark.kind = phases[i].kind;
	}
	return r < 0 ? r : array_append(&work->marks, mark);
}

/* Marks lie in the order of time: those of each request stay so. */
static int compare_marks(const void *left, const void *right)
{
	const struct mark *a = left, *b = right;

	if (a->request != b->request)
		return a->request < b->request ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/*
 * A mark stands for the tokens since the one before it, when indices of the request rise all the
 * time, as they are defined to. Else each is one token: the program counts otherwise.
 */
static bool indices_rise(const struct mark *marks, size_t count)
{
	const struct mark *last = NULL;

	for (size_t i = 0; i < count; i++) {
		if (marks[i].kind != MARK_TOKEN)
			continue;
		if (last && marks[i].index <= last->index)
			return false;
		last = &marks[i];
	}
	return true;
}

static int add_chunk(
	struct work *work, struct inference_request *request, uint64_t time_ns, uint64_t tokens)
{
	int r = 0;

	/* What names no request is of many at once: its gaps mean nothing. Nor do those between
	 * two windows, where tokens may have come. */
	if (request->chunks && *request->id &&
		model_is_continuous(work->model, request->last_ns, time_ns)) {
		r = array_append(&work->inference->gaps, time_ns - request->last_ns);
		request->gap_count++;
	}
	if (request->tokens == 0)
		request->first_ns = time_ns;
	if (request->tokens < 2 && request->tokens + tokens >= 2 &&
		(!request->tokens || model_is_continuous(work->model, request->first_ns, time_ns)))
		request->second_ns = time_ns;
	if (request->chunks && !model_is_continuous(work->model, request->last_ns, time_ns))
		request->is_interrupted = true;
	request->last_ns = time_ns;
	request->tokens += tokens;
	request->chunks++;
	request->large_chunks += tokens > 1;
	return r;
}

/* A begin that came after the first token was not its begin; and of one in an earlier window the
 * first token may lie between the windows. */
static bool is_begin(
	const struct work *work, const struct inference_request *request, uint64_t begin_ns)
{
	return !request->chunks ||
	       (begin_ns <= request->first_ns &&
		       model_is_continuous(work->model, begin_ns, request->first_ns));
}

static void check_begins(const struct work *work, struct inference_request *request)
{
	if (!is_begin(work, request, request->prefill_ns))
		request->prefill_ns = 0;
	if (!is_begin(work, request, request->arrival_ns))
		request->arrival_ns = 0;
	if (!*request->id)
		request->arrival_ns = request->prefill_ns = request->first_ns = request->second_ns =
			request->last_ns = 0;
}

/* The marks of one request. */
static int fill_request(struct work *work, struct inference_request *request,
	const struct mark *marks, size_t count)
{
	bool rise = indices_rise(marks, count);
	const struct mark *last = NULL;
	int r = 0;

	request->first_gap = work->inference->gaps.count;
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct mark *mark = &marks[i];

		if (mark->kind == MARK_QUEUED && !request->arrival_ns) {
			request->arrival_ns = mark->time_ns;
		} else if (mark->kind == MARK_PREFILL && !request->prefill_ns) {
			request->prefill_ns = mark->time_ns;
		} else if (mark->kind == MARK_DONE) {
			request->end_reason = "done";
		} else if (mark->kind == MARK_TOKEN) {
			r = add_chunk(work, request, mark->time_ns,
				last && rise ? mark->index - last->index : 1);
			last = mark;
		}
	}
	check_begins(work, request);
	request->is_interrupted &= !rise;
	request->output_tokens = request->tokens;
	work->inference->tokens += request->tokens;
	return r;
}

/* How many marks, of `count`, are of the first request: a begin after a token is of the next one
 * that has the same name. */
static size_t first_of(const struct work *work, const struct mark *marks, size_t count)
{
	bool has_name = *work->inference->requests.items[marks->request].id;
	bool has_tokens = false;

	for (size_t i = 0; i < count; i++) {
		if (marks[i].request != marks->request)
			return i;
		if (marks[i].kind == MARK_TOKEN)
			has_tokens = true;
		else if (marks[i].kind != MARK_DONE && has_tokens && has_name)
			return i;
	}
	return count;
}

static int fill_next(struct work *work, const struct mark *marks, size_t count)
{
	struct inference_request *known = &work->inference->requests.items[marks->request];
	struct inference_request next = {
		.id = known->id, .process = known->process, .tokens_known = true};
	int r;

	if (!known->is_filled) {
		known->is_filled = true;
		return fill_request(work, known, marks, count);
	}
	next.is_filled = true;
	r = fill_request(work, &next, marks, count);
	return r ?: array_append(&work->inference->requests, next);
}

static int fill_requests(struct work *work)
{
	size_t count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *mark = &work->model->ranges.items[i];

		if (mark->is_mark && strcmp(mark->domain, TOKEN_DOMAIN) == 0)
			r = add_mark(work, mark);
	}
	if (r == 0 && work->marks.count)
		qsort(work->marks.items, work->marks.count, sizeof(*work->marks.items),
			compare_marks);
	for (size_t i = 0; r == 0 && i < work->marks.count; i += count) {
		count = first_of(work, &work->marks.items[i], work->marks.count - i);
		r = fill_next(work, &work->marks.items[i], count);
	}
	return r;
}

static int compare_requests(const void *left, const void *right)
{
	const struct inference_request *a = left, *b = right;
	uint64_t of_a = inference_begin_ns(a) ? inference_begin_ns(a) : a->first_ns;
	uint64_t of_b = inference_begin_ns(b) ? inference_begin_ns(b) : b->first_ns;

	if (of_a != of_b)
		return of_a < of_b ? -1 : 1;
	return a->first_gap < b->first_gap ? -1 : a->first_gap > b->first_gap;
}

/* What the call of generate() knows of its request: each of its sequences gets a token at once. */
static void add_generate(struct work *work, const struct model_range *range)
{
	struct inference_request *request;
	uint32_t id;
	struct key key;
	size_t length = make_key(work->model, range, &key);
	uint64_t tokens;

	if (!intern_find(&work->keys, &key, length, &id))
		return;
	request = &work->inference->requests.items[id];
	request->batch = range_u64_or_0(work->model, range, "batch");
	if (request->batch)
		request->output_tokens = request->tokens * request->batch;
	if (range_u64(work->model, range, "prompt_tokens", &tokens)) {
		request->prompt_known = true;
		request->prompt_tokens = tokens * MAX(request->batch, 1ULL);
	}
}

static void add_generates(struct work *work)
{
	array_foreach (&work->model->ranges, range) {
		if (!range->is_mark && range_is(range, GENERATE_DOMAIN, GENERATE) &&
			range_field(work->model, range, REQUEST_FIELD))
			add_generate(work, range);
	}
}

/* ---- of all requests ---- */

static int add_value(struct work *work, bool known, double value)
{
	return known ? array_append(&work->values.items, value) : 0;
}

static int fill_metrics(struct work *work)
{
	struct inference *inference = work->inference;
	uint64_t time_ns;
	int r = 0;

	for (int metric = 0; r == 0 && metric < INFERENCE_METRIC_MAX; metric++) {
		array_clear(&work->values.items);
		for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
			bool known = inference_duration(&inference->requests.items[i],
				(enum inference_metric)metric, &time_ns);

			r = add_value(work, known, known ? (double)time_ns : NAN);
		}
		inference->metrics[metric] = spread_of_times(&work->values);
	}
	array_clear(&work->values.items);
	for (size_t i = 0; r == 0 && i < inference->gaps.count; i++)
		r = array_append(&work->values.items, (double)inference->gaps.items[i]);
	inference->itl = spread_of_times(&work->values);
	return r;
}

/* A rate over no time is not known, rather than infinite. */
static int fill_rates(struct work *work)
{
	struct inference *inference = work->inference;
	uint64_t time_ns;
	int r = 0;

	array_clear(&work->values.items);
	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		bool known =
			inference_duration(&inference->requests.items[i], INFERENCE_TPOT, &time_ns);

		r = add_value(work, known && time_ns, known ? NS_PER_S / (double)time_ns : NAN);
	}
	inference->user_tokens_per_s = spread_of(&work->values);
	array_clear(&work->values.items);
	for (size_t i = 0; r == 0 && i < inference->requests.count; i++) {
		const struct inference_request *request = &inference->requests.items[i];
		bool known = inference_duration(request, INFERENCE_TTFT, &time_ns) && time_ns &&
			     request->prompt_known;

		r = add_value(work, known,
			known ? (double)(request->prompt_tokens - request->cached_tokens) *
					NS_PER_S / (double)time_ns
			      : NAN);
	}
	inference->prefill_tokens_per_s = spread_of(&work->values);
	return r;
}

/* Of requests whose begin was seen: of others tokens would count, and their time would not. */
static void fill_throughput(struct inference *inference)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0, tokens = 0;

	array_foreach (&inference->requests, request) {
		uint64_t from_ns = inference_begin_ns(request);

		inference->output_tokens += request->output_tokens;
		inference->large_chunks += request->large_chunks;
		if (!from_ns || !request->tokens_known || request->last_ns < from_ns)
			continue;
		begin_ns = MIN(begin_ns, from_ns);
		end_ns = MAX(end_ns, request->last_ns);
		tokens += request->output_tokens;
	}
	if (end_ns <= begin_ns)
		return;
	inference->span_ns = end_ns - begin_ns;
	inference->tokens_per_s = (double)tokens * NS_PER_S / (double)inference->span_ns;
}

int inference_init(struct inference *inference, const struct model *model)
{
	struct work work = {.model = model, .inference = inference};
	int r;

	*inference = (struct inference){.tokens_per_s = NAN};
	r = fill_requests(&work);
	if (r == 0)
		add_generates(&work);
	if (r == 0)
		r = inference_add_engine(inference, model);
	r = r ?: fill_metrics(&work);
	r = r ?: fill_rates(&work);
	if (r == 0 && inference->requests.count) {
		fill_throughput(inference);
		qsort(inference->requests.items, inference->requests.count,
			sizeof(*inference->requests.items), compare_requests);
	}
	intern_done(&work.keys);
	array_done(&work.marks);
	array_done(&work.values.items);
	if (r < 0)
		inference_done(inference);
	return r;
}

void inference_done(struct inference *inference)
{
	intern_done(&inference->texts);
	array_done(&inference->requests);
	array_done(&inference->gaps);
}
