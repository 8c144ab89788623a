/* SPDX-License-Identifier: Apache-2.0 */
/* One item of traceEvents: read whole, then added to the trace by its phase ("ph"). */
#include "importers/kineto/parser.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Times farther from 0 are no times: two of these, and the end of a duration, can be subtracted in
 * 64 bits. Absolute times reach beyond the year 2100.
 */
#define TIME_MIN     (-(INT64_C(1) << 61))
#define TIME_MAX     (INT64_C(1) << 62)
#define DURATION_MAX (INT64_C(1) << 61)

#define NOT_UNDERSTOOD 1

/* Of the members of an event, those that say something to us. */
enum event_member {
	MEMBER_PHASE,
	MEMBER_CATEGORY,
	MEMBER_NAME,
	MEMBER_ID,
	MEMBER_PID,
	MEMBER_TID,
	MEMBER_TIME,
	MEMBER_DURATION,
	MEMBER_DEVICE, /* of counters, as sonde writes it */
	MEMBER_ARGUMENTS,
	MEMBER_OTHER,
	MEMBER_MAX,
};

_Static_assert(MEMBER_MAX == KINETO_EVENT_MEMBERS, "each has its guesses");

/* Values as the file has them; no bytes: not there. */
struct event_texts {
	uint32_t present;     /* bits by member */
	uint32_t has_numbers; /* bits: the value is below; else it may be one by its text */
	struct json_text values[MEMBER_MAX];
	int64_t ns[MEMBER_MAX]; /* of times */
	uint64_t id;
};

static void begin_texts(struct event_texts *texts)
{
	texts->present = texts->has_numbers = 0;
	texts->values[MEMBER_PHASE].bytes = NULL;
	texts->ns[MEMBER_TIME] = texts->ns[MEMBER_DURATION] = 0;
	texts->id = 0;
}

/* Empties what was not there: cheaper than emptying all before. */
static void end_texts(struct event_texts *texts)
{
	uint32_t missing = ~texts->present & ((1U << MEMBER_MAX) - 1);

	for (; missing; missing &= missing - 1)
		texts->values[__builtin_ctz(missing)] = (struct json_text){0};
}

/* Of a key that is as long as the word, which makes this one comparison of integers. */
static inline bool key_is(const struct json_text *key, const char *word)
{
	return memcmp(key->bytes, word, strlen(word)) == 0;
}

static unsigned find_member(const void *context, const struct json_text *key)
{
	switch (key->length) {
	case 2:
		if (key_is(key, "ts"))
			return MEMBER_TIME;
		if (key_is(key, "ph"))
			return MEMBER_PHASE;
		return key_is(key, "id") ? MEMBER_ID : MEMBER_OTHER;
	case 3:
		if (key_is(key, "pid"))
			return MEMBER_PID;
		if (key_is(key, "tid"))
			return MEMBER_TID;
		if (key_is(key, "dur"))
			return MEMBER_DURATION;
		return key_is(key, "cat") ? MEMBER_CATEGORY : MEMBER_OTHER;
	case 4:
		if (key_is(key, "args"))
			return MEMBER_ARGUMENTS;
		return key_is(key, "name") ? MEMBER_NAME : MEMBER_OTHER;
	case 6:
		return key_is(key, "device") ? MEMBER_DEVICE : MEMBER_OTHER;
	default:
		return MEMBER_OTHER;
	}
}

/* Series of counters have any name. Without arguments kept, those of other events are left out but
 * for windows, before whose arguments sonde writes the category. */
static bool wants_others(const struct kineto_parser *parser, const struct event_texts *texts)
{
	return parser->keep_arguments || !texts->values[MEMBER_PHASE].bytes ||
	       json_text_equals(&texts->values[MEMBER_PHASE], "\"C\"") ||
	       json_text_equals(&texts->values[MEMBER_CATEGORY], "\"" TRACE_WINDOW_CATEGORY "\"");
}

/* Times and ids are plain numbers, which are read on the way over them. */
static inline bool read_number(
	struct json_reader *reader, struct event_texts *texts, enum event_member member)
{
	if (member == MEMBER_TIME || member == MEMBER_DURATION)
		return json_reader_thousandths(reader, &texts->ns[member]);
	return member == MEMBER_ID && json_reader_u64(reader, &texts->id);
}

static int read_texts(
	struct kineto_parser *parser, struct json_reader *reader, struct event_texts *texts)
{
	int status = (int)json_reader_enter(reader, '{');
	unsigned member = MEMBER_MAX;
	const char *begin;

	while (status == JSON_OK) {
		status = (int)kineto_next_member(
			parser->guesses, reader, find_member, NULL, &member, &begin);
		if (status != JSON_OK)
			break;
		texts->present |= 1U << member;
		texts->has_numbers &= ~(1U << member);
		if (member == MEMBER_ARGUMENTS && *reader->at == '{')
			status = kineto_arguments_read(
				&parser->arguments, reader, wants_others(parser, texts));
		else if (read_number(reader, texts, member))
			texts->has_numbers |= 1U << member;
		else
			status = (int)json_reader_value(reader, &texts->values[member]);
	}
	return status == JSON_DONE ? JSON_OK : status;
}

/* Microseconds to ns; unsigned numbers beyond int64 were negative once. False: no time. */
static bool read_ns_text(const struct json_text *value, int64_t *ret_ns)
{
	const struct json_text text = json_text_inside(value);
	bool negative = false;
	uint64_t ns;
	int r = json_text_magnitude(&text, 3, &negative, &ns);

	if (r == -ERANGE) {
		uint64_t us;

		if (json_text_u64(&text, &us) < 0 ||
			__builtin_mul_overflow((int64_t)us, INT64_C(1000), (int64_t *)&ns))
			return false;
	} else if (r < 0 || (negative && ns > INT64_MAX)) {
		return false;
	}
	*ret_ns = negative ? -(int64_t)ns : (int64_t)ns;
	return true;
}

static inline bool read_ns(
	const struct event_texts *texts, enum event_member member, int64_t *ret_ns)
{
	if (texts->has_numbers & 1U << member)
		*ret_ns = texts->ns[member];
	else if (!read_ns_text(&texts->values[member], ret_ns))
		return false;
	return *ret_ns >= TIME_MIN && *ret_ns <= TIME_MAX;
}

/* Durations that are negative, too large or wrapped become 0. */
static int64_t read_duration(struct kineto_parser *parser, const struct event_texts *texts)
{
	int64_t duration;

	if (!(texts->present & 1U << MEMBER_DURATION))
		return TRACE_NO_DURATION;
	if (!read_ns(texts, MEMBER_DURATION, &duration) || duration < 0 ||
		duration > DURATION_MAX) {
		parser->trace->damage.repaired_times++;
		return 0;
	}
	return duration;
}

static int find_track(
	struct kineto_parser *parser, const struct event_texts *texts, uint32_t *ret_track)
{
	return kineto_find_track(
		parser, &texts->values[MEMBER_PID], &texts->values[MEMBER_TID], ret_track);
}

static void note_fractions(struct trace *trace, int64_t time_ns)
{
	if (!trace->has_fractions && time_ns != TRACE_NO_DURATION)
		trace->has_fractions = time_ns % 1000 != 0;
}

static int add_row(
	struct kineto_parser *parser, const struct event_texts *texts, struct trace_event *event)
{
	struct trace *trace = parser->trace;
	int r;

	if (!read_ns(texts, MEMBER_TIME, &event->start_ns))
		return NOT_UNDERSTOOD;
	if (trace->events.count >= MODEL_NONE)
		return -ENOMEM;
	event->file_index = parser->position;
	note_fractions(trace, event->start_ns);
	note_fractions(trace, event->duration_ns);
	if (kineto_add_category(parser, &texts->values[MEMBER_CATEGORY], &event->category_name) <
			0 ||
		kineto_add_string(parser, &texts->values[MEMBER_NAME], &event->name) < 0)
		return -ENOMEM;
	event->category = kineto_category(parser, event->category_name);
	if (event->category == TRACE_OTHER &&
		parser->arguments.present & KINETO_BIT(KINETO_RANGE_DOMAIN))
		event->category = TRACE_USER_ANNOTATION;
	r = find_track(parser, texts, &event->track);
	if (r == 0)
		r = kineto_add_detail(parser, event);
	if (r < 0)
		return r;
	if (event->category >= TRACE_KERNEL && event->category <= TRACE_SYNC)
		trace->tracks.items[event->track].is_device = true;
	return array_append(&trace->events, *event);
}

static int add_complete(struct kineto_parser *parser, const struct event_texts *texts)
{
	struct trace_event event = {.duration_ns = read_duration(parser, texts)};

	return add_row(parser, texts, &event);
}

static int add_moment(struct kineto_parser *parser, const struct event_texts *texts)
{
	struct trace_event event = {.duration_ns = TRACE_NO_DURATION};

	return add_row(parser, texts, &event);
}

/* A row that ends with a later event of its track. */
static int begin_row(struct kineto_parser *parser, const struct event_texts *texts)
{
	struct kineto_open_row open = {
		.row = (uint32_t)parser->trace->events.count, .outer = MODEL_NONE};
	uint64_t innermost;
	uint32_t track;
	int r = add_moment(parser, texts);

	if (r != 0)
		return r;
	track = parser->trace->events.items[open.row].track;
	if (map_u64_get(&parser->innermost, track, &innermost))
		open.outer = (uint32_t)innermost;
	parser->trace->damage.unended_events++;
	r = map_u64_set(&parser->innermost, track, parser->open_rows.count);
	return r < 0 ? r : array_append(&parser->open_rows, open);
}

static int end_row(struct kineto_parser *parser, const struct event_texts *texts)
{
	const struct kineto_open_row *open;
	struct trace_event *event;
	uint64_t innermost;
	uint32_t track;
	int64_t end_ns;
	int r;

	if (!read_ns(texts, MEMBER_TIME, &end_ns))
		return NOT_UNDERSTOOD;
	r = find_track(parser, texts, &track);
	if (r < 0)
		return r;
	if (!map_u64_get(&parser->innermost, track, &innermost) || innermost == MODEL_NONE)
		return NOT_UNDERSTOOD;
	open = &parser->open_rows.items[innermost];
	event = &parser->trace->events.items[open->row];
	event->duration_ns = end_ns - event->start_ns;
	if (event->duration_ns < 0 || event->duration_ns > DURATION_MAX) {
		event->duration_ns = 0;
		parser->trace->damage.repaired_times++;
	}
	note_fractions(parser->trace, event->duration_ns);
	parser->trace->damage.unended_events--;
	return map_u64_set(&parser->innermost, track, open->outer);
}

/* Ids are numbers, "0x…" or words; words are distinguished by their string's id. */
static int read_flow_id(
	struct kineto_parser *parser, const struct event_texts *texts, uint64_t *ret_id)
{
	const struct json_text *value = &texts->values[MEMBER_ID];
	struct json_text text;
	uint32_t string;
	char digits[20];
	char *end;

	if (texts->has_numbers & 1U << MEMBER_ID) {
		*ret_id = texts->id;
		return 0;
	}
	text = json_text_inside(value);
	if (json_text_u64(&text, ret_id) == 0)
		return 0;
	if (text.length > 2 && text.length < sizeof(digits) && memcmp(text.bytes, "0x", 2) == 0) {
		memcpy(digits, text.bytes, text.length);
		digits[text.length] = '\0';
		*ret_id = strtoull(digits, &end, 16);
		if (!*end)
			return 0;
	}
	if (!text.length)
		return NOT_UNDERSTOOD;
	if (kineto_add_string(parser, value, &string) < 0)
		return -ENOMEM;
	parser->is_tied = true;
	*ret_id = UINT64_C(1) << 63 | string;
	return 0;
}

static bool leads_to_backward(const struct trace *trace, const struct trace_flow *flow)
{
	return strcmp(trace_text(trace, flow->category_name), TRACE_FLOW_TO_BACKWARD) == 0;
}

static int add_flow(struct kineto_parser *parser, const struct event_texts *texts, bool is_end)
{
	struct trace_flow flow = {.is_end = is_end};
	int r;

	if (!read_ns(texts, MEMBER_TIME, &flow.time_ns))
		return NOT_UNDERSTOOD;
	r = read_flow_id(parser, texts, &flow.id);
	if (r == 0)
		r = kineto_add_category(
			parser, &texts->values[MEMBER_CATEGORY], &flow.category_name);
	if (r >= 0)
		r = find_track(parser, texts, &flow.track);
	if (r || (!parser->keep_arguments && !leads_to_backward(parser->trace, &flow)))
		return r;
	return array_append(&parser->trace->flows, flow);
}

/* One series of a counter. */
static int add_series(struct kineto_parser *parser, struct trace_counter *counter,
	const struct kineto_member *member)
{
	struct json_text key = {.bytes = member->begin + 1};

	key.length = (size_t)(member->value.bytes - key.bytes);
	while (key.bytes[key.length] != '"')
		key.length--;
	key.escaped = memchr(key.bytes, '\\', key.length) != NULL;
	if (!kineto_double(&member->value, &counter->value))
		return NOT_UNDERSTOOD;
	if (kineto_add_string(parser, &key, &counter->series) < 0)
		return -ENOMEM;
	return array_append(&parser->trace->counters, *counter);
}

/* A device's number + 1; 0: there is none. */
static uint32_t read_counter_device(const struct json_text *value)
{
	uint64_t number;

	return value->bytes && json_text_u64(value, &number) == 0 && number < UINT32_MAX
		       ? (uint32_t)number + 1
		       : 0;
}

static int add_counter(struct kineto_parser *parser, const struct event_texts *texts)
{
	struct kineto_arguments *arguments = &parser->arguments;
	struct trace_counter counter = {
		.device = read_counter_device(&texts->values[MEMBER_DEVICE])};
	int r = 0;

	if (!read_ns(texts, MEMBER_TIME, &counter.time_ns))
		return NOT_UNDERSTOOD;
	if (find_track(parser, texts, &counter.track) < 0 ||
		kineto_add_string(parser, &texts->values[MEMBER_NAME], &counter.name) < 0)
		return -ENOMEM;
	for (uint64_t left = arguments->present; left && r == 0; left &= left - 1)
		r = add_series(parser, &counter, &arguments->members[__builtin_ctzll(left)]);
	for (size_t i = 0; i < arguments->others.count && r == 0; i++)
		r = add_series(parser, &counter, &arguments->others.items[i]);
	return r;
}

static int add_metadata(struct kineto_parser *parser, const struct event_texts *texts)
{
	const struct json_text name = json_text_inside(&texts->values[MEMBER_NAME]);

	return kineto_read_metadata(
		parser, &name, &texts->values[MEMBER_PID], &texts->values[MEMBER_TID]);
}

/* 0, NOT_UNDERSTOOD or -ENOMEM. */
static int tell(struct kineto_parser *parser, const struct event_texts *texts)
{
	const struct json_text phase = json_text_inside(&texts->values[MEMBER_PHASE]);

	switch (phase.length == 1 ? phase.bytes[0] : '\0') {
	case 'X':
		return add_complete(parser, texts);
	case 'i':
	case 'I':
	case 'R':
		return add_moment(parser, texts);
	case 'B':
		parser->is_tied = true;
		return begin_row(parser, texts);
	case 'E':
		parser->is_tied = true;
		return end_row(parser, texts);
	case 's':
		return add_flow(parser, texts, false);
	case 'f':
		return add_flow(parser, texts, true);
	case 'C':
		return add_counter(parser, texts);
	case 'M':
		parser->is_tied = true;
		return add_metadata(parser, texts);
	default:
		return NOT_UNDERSTOOD;
	}
}

int kineto_read_event(struct kineto_parser *parser, struct json_reader *reader)
{
	const char *begin = reader->at;
	struct event_texts texts;
	int r;

	kineto_arguments_clear(&parser->arguments);
	begin_texts(&texts);
	r = read_texts(parser, reader, &texts);
	if (r != JSON_OK)
		return r;
	if (reader->at - begin == 2) /* "{}", with which XLA ends its events */
		return JSON_OK;
	end_texts(&texts);
	parser->event_mended = reader->mended != 0;
	r = tell(parser, &texts);
	if (r < 0)
		return r;
	if (r == NOT_UNDERSTOOD) {
		parser->trace->damage.skipped_events++;
		parser->trace->damage.skipped_bytes += (uint64_t)(reader->at - begin);
	}
	parser->trace->damage.mended_events += parser->event_mended;
	parser->position++;
	return JSON_OK;
}
