/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/vllm_log/line.h"

#include <math.h>
#include <string.h>

#include "base/macros.h"

/* A prefix, a level and a time are no longer. */
#define HEAD_BYTES_MAX 256
#define DIGITS_MAX     15 /* of a number: it stays exact in a double */

/* What is left of a line. */
struct cursor {
	const char *at, *end;
};

static bool take_char(struct cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

static bool take_text(struct cursor *cursor, const char *wanted)
{
	size_t length = strlen(wanted);

	if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, wanted, length) != 0)
		return false;
	cursor->at += length;
	return true;
}

static bool is_digit(char character)
{
	return character >= '0' && character <= '9';
}

static bool take_number(struct cursor *cursor, uint64_t *ret_number)
{
	const char *begin = cursor->at;
	uint64_t number = 0;

	while (cursor->at < cursor->end && is_digit(*cursor->at) && cursor->at - begin < DIGITS_MAX)
		number = number * 10 + (uint64_t)(*cursor->at++ - '0');
	*ret_number = number;
	return cursor->at > begin;
}

/* Exactly so many digits. */
static bool take_digits(struct cursor *cursor, int count, int *ret_number)
{
	int number = 0;

	if (cursor->end - cursor->at < count)
		return false;
	for (int i = 0; i < count; i++) {
		if (!is_digit(cursor->at[i]))
			return false;
		number = number * 10 + (cursor->at[i] - '0');
	}
	cursor->at += count;
	*ret_number = number;
	return true;
}

static bool take_decimal(struct cursor *cursor, double *ret_number)
{
	uint64_t whole, part = 0;
	double scale = 1;

	if (!take_number(cursor, &whole))
		return false;
	if (cursor->at + 1 < cursor->end && *cursor->at == '.' && is_digit(cursor->at[1])) {
		const char *begin = ++cursor->at;

		take_number(cursor, &part);
		scale = pow(10, (double)(cursor->at - begin));
	}
	*ret_number = (double)whole + (double)part / scale;
	return true;
}

/* ---- the head of a line ---- */

static void take_fraction(struct cursor *cursor, struct vllm_log_time *time)
{
	struct cursor ahead = *cursor;
	uint32_t digits = 0, unit = 1000000000;

	if (!take_char(&ahead, '.') && !take_char(&ahead, ','))
		return;
	if (ahead.at == ahead.end || !is_digit(*ahead.at))
		return;
	for (; ahead.at < ahead.end && is_digit(*ahead.at) && unit > 1; ahead.at++) {
		digits = digits * 10 + (uint32_t)(*ahead.at - '0');
		unit /= 10;
	}
	time->nanosecond = digits * unit;
	time->has_fraction = true;
	*cursor = ahead;
}

/* "11-21 13:24:53", "2026-11-21 13:24:53,250", "2026-11-21T13:24:53.250". */
static bool take_time(struct cursor *cursor, struct vllm_log_time *ret_time)
{
	struct vllm_log_time time = {0};
	struct cursor ahead = *cursor, year = *cursor;

	if (take_digits(&year, 4, &time.year) && take_char(&year, '-'))
		ahead = year;
	else
		time.year = 0;
	if (!take_digits(&ahead, 2, &time.month) || !take_char(&ahead, '-') ||
		!take_digits(&ahead, 2, &time.day) ||
		(!take_char(&ahead, ' ') && !take_char(&ahead, 'T')) ||
		!take_digits(&ahead, 2, &time.hour) || !take_char(&ahead, ':') ||
		!take_digits(&ahead, 2, &time.minute) || !take_char(&ahead, ':') ||
		!take_digits(&ahead, 2, &time.second))
		return false;
	if (time.month < 1 || time.month > 12 || time.day < 1 || time.day > 31 || time.hour > 23 ||
		time.minute > 59 || time.second > 60)
		return false;
	take_fraction(&ahead, &time);
	*ret_time = time;
	*cursor = ahead;
	return true;
}

static void skip_colour(struct cursor *cursor)
{
	while (take_text(cursor, "\033[")) {
		while (cursor->at < cursor->end && *cursor->at++ != 'm')
			;
	}
}

/* "(EngineCore_DP0 pid=4711) ". */
static void take_process(struct cursor *cursor, struct vllm_log_line *line)
{
	struct cursor ahead = *cursor;
	const char *begin, *end;
	uint64_t pid;

	if (!take_char(&ahead, '('))
		return;
	begin = ahead.at;
	end = memchr(begin, ' ', (size_t)(ahead.end - begin));
	if (!end)
		return;
	ahead.at = end;
	if (!take_text(&ahead, " pid=") || !take_number(&ahead, &pid) || !take_char(&ahead, ')') ||
		pid > INT32_MAX)
		return;
	line->process = (struct vllm_log_text){begin, (size_t)(end - begin)};
	line->pid = (uint32_t)pid;
	*cursor = ahead;
}

/* "[core.py:381] ", until release 0.9 "core.py:381] ". */
static void skip_place(struct cursor *cursor)
{
	const char *space;

	while (take_char(cursor, ' '))
		;
	space = memchr(cursor->at, ' ', (size_t)(cursor->end - cursor->at));
	if (space && space > cursor->at && space[-1] == ']')
		cursor->at = space + 1;
	skip_colour(cursor);
}

/* Up to the message. */
static bool take_head(struct cursor *cursor, struct vllm_log_line *line)
{
	const char *limit = cursor->at + MIN(cursor->end - cursor->at, HEAD_BYTES_MAX);

	skip_colour(cursor);
	take_process(cursor, line);
	while (cursor->at < limit && !take_time(cursor, &line->time))
		cursor->at++;
	if (cursor->at >= limit)
		return false;
	skip_colour(cursor);
	skip_place(cursor);
	return true;
}

/* ---- messages ---- */

static bool take_iteration(struct cursor *cursor, struct vllm_log_iteration *ret_iteration)
{
	struct vllm_log_iteration iteration;
	double elapsed_ms;

	if (!take_text(cursor, "Iteration(") || !take_number(cursor, &iteration.number) ||
		!take_text(cursor, "): ") || !take_number(cursor, &iteration.context_requests) ||
		!take_text(cursor, " context requests, ") ||
		!take_number(cursor, &iteration.context_tokens) ||
		!take_text(cursor, " context tokens, ") ||
		!take_number(cursor, &iteration.generation_requests) ||
		!take_text(cursor, " generation requests, ") ||
		!take_number(cursor, &iteration.generation_tokens) ||
		!take_text(cursor, " generation tokens, iteration elapsed time: ") ||
		!take_decimal(cursor, &elapsed_ms) || elapsed_ms > 1e9)
		return false;
	iteration.elapsed_ns = (uint64_t)llround(elapsed_ms * 1e6);
	*ret_iteration = iteration;
	return true;
}

static void skip_engine(struct cursor *cursor)
{
	struct cursor ahead = *cursor;
	uint64_t number;

	if (take_text(&ahead, "Engine ") && take_number(&ahead, &number) && take_text(&ahead, ": "))
		*cursor = ahead;
}

/* "Avg prompt throughput: 12.3 tokens/s, Running: 3 reqs, …": a name and a value each. */
static bool take_metrics(struct cursor *cursor, struct vllm_log_metrics *ret_metrics)
{
	struct vllm_log_metrics metrics = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	const struct {
		const char *name;
		double *value;
	} known[] = {
		{"Avg prompt throughput: ", &metrics.prompt_tokens_per_s},
		{"Avg generation throughput: ", &metrics.generation_tokens_per_s},
		{"Running: ", &metrics.running_requests},
		{"Waiting: ", &metrics.waiting_requests},
		{"Pending: ", &metrics.waiting_requests},
		{"Preemptions: ", &metrics.preemptions},
		{"GPU KV cache usage: ", &metrics.kv_cache_percent},
		{"Prefix cache hit rate: ", &metrics.prefix_cache_hit_percent},
	};

	skip_engine(cursor);
	while (cursor->at < cursor->end) {
		const char *comma;

		for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
			if (take_text(cursor, known[i].name)) {
				take_decimal(cursor, known[i].value);
				break;
			}
		}
		if (isnan(metrics.prompt_tokens_per_s))
			return false;
		comma = memchr(cursor->at, ',', (size_t)(cursor->end - cursor->at));
		cursor->at = comma ? comma + 1 : cursor->end;
		while (take_char(cursor, ' '))
			;
	}
	*ret_metrics = metrics;
	return !isnan(metrics.prompt_tokens_per_s);
}

/* A request's id has no spaces, and none of the characters that follow one. */
static bool take_request(struct cursor *cursor, struct vllm_log_text *ret_request)
{
	const char *begin = cursor->at;
	size_t length = 0;

	while (begin + length < cursor->end && begin[length] != ' ')
		length++;
	cursor->at += length;
	if (cursor->at == cursor->end || take_char(cursor, ' ')) {
		while (length && (begin[length - 1] == ':' || begin[length - 1] == '.'))
			length--;
	}
	*ret_request = (struct vllm_log_text){begin, length};
	return length > 0;
}

/* "Request ID aborted.", "Request ID failed (engine dead)." */
static enum vllm_log_kind take_outcome(struct cursor *cursor, struct vllm_log_text *ret_request)
{
	if (!take_request(cursor, ret_request))
		return VLLM_LOG_OTHER;
	if (take_text(cursor, "aborted"))
		return VLLM_LOG_ABORTED;
	return take_text(cursor, "failed") ? VLLM_LOG_FAILED : VLLM_LOG_OTHER;
}

/* "Generated response ID: …" or "ID (streaming complete): …"; a "(streaming delta)" is no end. */
static enum vllm_log_kind take_response(struct cursor *cursor, struct vllm_log_text *ret_request)
{
	if (!take_request(cursor, ret_request) || take_text(cursor, "(streaming delta)"))
		return VLLM_LOG_OTHER;
	return VLLM_LOG_FINISHED;
}

static enum vllm_log_kind take_message(struct cursor *cursor, struct vllm_log_line *line)
{
	static const struct {
		const char *text;
		enum vllm_log_kind kind;
	} messages[] = {
		{"Received request ", VLLM_LOG_RECEIVED},
		{"Added request ", VLLM_LOG_ADDED},
		{"Finished request ", VLLM_LOG_FINISHED},
		{"Aborted request(s) ", VLLM_LOG_ABORTED},
		{"Aborted request ", VLLM_LOG_ABORTED},
	};
	struct cursor ahead = *cursor;

	if (take_iteration(&ahead, &line->iteration))
		return VLLM_LOG_ITERATION;
	ahead = *cursor;
	if (take_metrics(&ahead, &line->metrics))
		return VLLM_LOG_METRICS;
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (take_text(cursor, messages[i].text))
			return take_request(cursor, &line->request) ? messages[i].kind
								    : VLLM_LOG_OTHER;
	}
	if (take_text(cursor, "Generated response "))
		return take_response(cursor, &line->request);
	return take_text(cursor, "Request ") ? take_outcome(cursor, &line->request)
					     : VLLM_LOG_OTHER;
}

bool vllm_log_parse(const char *text, size_t length, struct vllm_log_line *ret_line)
{
	struct cursor cursor = {text, text + length};
	struct vllm_log_line line = {0};

	if (length && text[length - 1] == '\r')
		cursor.end--;
	if (!take_head(&cursor, &line))
		return false;
	line.kind = take_message(&cursor, &line);
	*ret_line = line;
	return true;
}
