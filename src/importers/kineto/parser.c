/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From windows of text to events: where the list of events is, and what to do where the text is
 * damaged. An event that cannot be read is read again with quotes inside strings allowed; after
 * that, reading goes on where the next event begins by its looks.
 */
#include "importers/kineto/parser.h"

#include <errno.h>
#include <stdlib.h>

/* An event larger than this is looked into: does another one begin inside of it? */
#define LARGE_EVENT       ((size_t)128 * 1024)
#define CAREFUL_FIRST     64
#define CAREFUL_MAX       (1U << 20)
#define EVENT_START_BYTES 4096 /* what may be needed to tell the beginning of one */

int kineto_parser_init(struct kineto_parser *parser, const char *path, bool keep_arguments)
{
	*parser = (struct kineto_parser){
		.keep_arguments = keep_arguments, .next_careful = CAREFUL_FIRST};
	kineto_arguments_init(&parser->arguments);
	parser->trace = trace_new(path);
	return parser->trace ? kineto_add_categories(parser) : -ENOMEM;
}

void kineto_parser_done(struct kineto_parser *parser)
{
	kineto_arguments_done(&parser->arguments);
	kineto_tracks_done(&parser->tracks);
	array_done(&parser->open_rows);
	map_u64_done(&parser->innermost);
	map_u64_done(&parser->cleaned);
	strbuf_done(&parser->scratch);
	strbuf_done(&parser->header);
	parser->trace = trace_free(parser->trace);
}

static struct json_reader reader_at(const struct kineto_parser *parser, const char *at)
{
	return (struct json_reader){
		.at = at, .end = parser->reader.end, .is_last = parser->reader.is_last};
}

/* Does an event begin at this bracket? Its members have names that no others have first. */
static bool is_event_start(const struct kineto_parser *parser, const char *bracket)
{
	static const char *const first[] = {"ph", "cat", "args", "pid", "tid", "ts", "dur", "bp"};
	struct json_reader reader = reader_at(parser, bracket);
	struct json_text key, value;
	bool named;

	if (json_reader_enter(&reader, '{') != JSON_OK ||
		json_reader_member(&reader, &key) != JSON_OK)
		return false;
	named = json_text_equals(&key, "name");
	if (named && (json_reader_string(&reader, &value) != JSON_OK ||
			     json_reader_member(&reader, &key) != JSON_OK))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		if (json_text_equals(&key, first[i]))
			return true;
	}
	return false;
}

/* NULL when none begins before the end of the window. */
static const char *find_event(const struct kineto_parser *parser, const char *at)
{
	const char *end = parser->reader.end;

	for (; at < end && (at = memchr(at, '{', (size_t)(end - at))); at++) {
		if (is_event_start(parser, at))
			return at;
	}
	return NULL;
}

/* The same behind `at`, remembered: looking again from each event would look far each time. */
static const char *event_after(struct kineto_parser *parser, const char *at)
{
	const char *end = parser->reader.end;

	if (!parser->next_event || parser->next_event <= at) {
		parser->next_event = find_event(parser, at + 1);
		if (!parser->next_event)
			parser->next_event = end;
	}
	return parser->next_event < end ? parser->next_event : NULL;
}

static void skip_bytes(struct kineto_parser *parser, const char *to)
{
	parser->trace->damage.skipped_bytes += (uint64_t)(to - parser->reader.at);
	parser->reader.at = to;
}

/* The event at reader.at is lost, or what is there instead of one. */
static void lose_event(struct kineto_parser *parser)
{
	parser->trace->damage.skipped_events++;
	parser->position++;
	parser->careful = parser->next_careful;
	parser->next_careful = MIN(parser->next_careful * 2, CAREFUL_MAX);
	parser->is_skipping = true;
	skip_bytes(parser, parser->reader.at + 1);
}

/* Looks the last text like the end of a file that was written to its end? */
static bool ends_closed(const struct kineto_parser *parser)
{
	const char *begin = parser->reader.at, *end = parser->reader.end;

	while (end > begin && (unsigned char)end[-1] <= ' ')
		end--;
	return end > begin && (end[-1] == '}' || end[-1] == ']');
}

/* What may be the beginning of an event that the window cuts is left for the next one. */
static enum json_status skip_to_event(struct kineto_parser *parser)
{
	const char *end = parser->reader.end, *next = find_event(parser, parser->reader.at);

	if (!next) {
		size_t left = (size_t)(end - parser->reader.at);

		if (parser->reader.is_last) {
			parser->is_closed = !parser->is_cut && ends_closed(parser);
			skip_bytes(parser, end);
		} else if (left > EVENT_START_BYTES) {
			skip_bytes(parser, end - EVENT_START_BYTES);
		}
		return JSON_MORE;
	}
	skip_bytes(parser, next);
	parser->is_skipping = parser->is_cut = false;
	parser->reader.fresh = true;
	return JSON_OK;
}

/* Strictly, and then with quotes inside strings. */
static int read_event(struct kineto_parser *parser, const char *end)
{
	struct json_reader reader = parser->reader;
	int r;

	reader.end = end;
	reader.is_last = reader.is_last && end == parser->reader.end;
	r = kineto_read_event(parser, &reader);
	if (r == JSON_BAD) {
		reader.at = parser->reader.at;
		reader.mended = parser->reader.mended;
		reader.lenient = true;
		r = kineto_read_event(parser, &reader);
	}
	if (r == JSON_OK) {
		parser->reader.at = reader.at;
		parser->reader.fresh = false;
	}
	return r;
}

/* The reader is at an item of traceEvents. */
static int next_event(struct kineto_parser *parser)
{
	const char *begin = parser->reader.at, *end = parser->reader.end, *next = NULL;
	int r;

	if (parser->careful)
		next = event_after(parser, begin);
	r = read_event(parser, next ? next : end);
	if (r == JSON_MORE && !next &&
		(parser->reader.is_last || (size_t)(end - begin) >= LARGE_EVENT))
		next = event_after(parser, begin);
	if (r == JSON_BAD || (r == JSON_MORE && next)) {
		lose_event(parser);
		return JSON_OK;
	}
	if (r == JSON_OK && parser->careful)
		parser->careful--;
	return r;
}

/* JSON_DONE: the array has ended. */
static int step_events(struct kineto_parser *parser)
{
	int r;

	if (parser->is_skipping)
		return (int)skip_to_event(parser);
	r = (int)json_reader_item(&parser->reader);
	if (r == JSON_DONE) {
		parser->state = parser->is_array ? KINETO_END : KINETO_HEADER;
		parser->is_closed = parser->is_array;
		return JSON_OK;
	}
	r = r == JSON_OK ? next_event(parser) : r;
	parser->reader.mended = 0;
	return r;
}

/* A member of the file's object; inside traceEvents when it is that one. */
static int step_header(struct kineto_parser *parser)
{
	struct json_text key, value;
	int r = (int)json_reader_member(&parser->reader, &key);

	if (r == JSON_DONE) {
		parser->state = KINETO_END;
		parser->is_closed = true;
		return JSON_OK;
	}
	if (r != JSON_OK)
		return r;
	if (json_text_equals(&key, "traceEvents") && json_reader_peek(&parser->reader) == '[') {
		parser->has_events = true;
		parser->state = KINETO_EVENTS;
		parser->reader.mended = 0;
		return (int)json_reader_enter(&parser->reader, '[');
	}
	r = (int)json_reader_value(&parser->reader, &value);
	if (r == JSON_OK)
		r = MIN(kineto_read_header(parser, &key, &value), 0);
	return r;
}

static enum json_status step_search(struct kineto_parser *parser)
{
	static const char name[] = "\"traceEvents\"";
	const char *at = parser->reader.at, *end = parser->reader.end;
	const char *found = memmem(at, (size_t)(end - at), name, sizeof(name) - 1);

	if (found) {
		skip_bytes(parser, found);
		parser->state = KINETO_HEADER;
		parser->reader.fresh = true;
		return JSON_OK;
	}
	/* The name may be cut by the end of the window. */
	if (!parser->reader.is_last && end - at >= (ptrdiff_t)sizeof(name))
		skip_bytes(parser, end - sizeof(name));
	return JSON_MORE;
}

/* An object with traceEvents, or the array alone; after a byte order mark. */
static int step_start(struct kineto_parser *parser)
{
	struct json_reader *reader = &parser->reader;
	char first;

	if (reader->end - reader->at < 3 && !reader->is_last)
		return JSON_MORE;
	if (reader->end - reader->at >= 3 && memcmp(reader->at, "\xef\xbb\xbf", 3) == 0)
		reader->at += 3;
	first = json_reader_peek(reader);
	if (first != '[') {
		parser->state = KINETO_HEADER;
		return (int)json_reader_enter(reader, '{');
	}
	parser->state = KINETO_EVENTS;
	parser->is_array = parser->has_events = true;
	return (int)json_reader_enter(reader, '[');
}

static int step(struct kineto_parser *parser)
{
	switch (parser->state) {
	case KINETO_START:
		return step_start(parser);
	case KINETO_HEADER:
		return step_header(parser);
	case KINETO_SEARCH:
		return (int)step_search(parser);
	case KINETO_EVENTS:
		return step_events(parser);
	default:
		return JSON_DONE;
	}
}

/* The file's object is damaged: its events may be whole, what follows them is given up. */
static void mend_header(struct kineto_parser *parser)
{
	if (!parser->has_events && parser->state != KINETO_SEARCH &&
		parser->reader.at < parser->reader.end) {
		parser->state = KINETO_SEARCH;
		skip_bytes(parser, parser->reader.at + 1);
	} else {
		parser->state = KINETO_END;
	}
}

/* Behind the end, another document for example: not read, but reported. */
static void pass_end(struct kineto_parser *parser)
{
	struct json_reader *reader = &parser->reader;

	if (!parser->goes_on)
		reader->at = json_find_token(reader->at, reader->end);
	parser->goes_on |= reader->at < reader->end;
	skip_bytes(parser, reader->end);
}

/* Space, and a comma, that end the window are done with: they may go on for long. */
static void pass_separators(struct json_reader *reader)
{
	const char *at = json_find_token(reader->at, reader->end);
	bool comma = at < reader->end && *at == ',' && !reader->fresh;

	if (comma)
		at = json_find_token(at + 1, reader->end);
	if (at < reader->end)
		return;
	reader->at = at;
	reader->fresh |= comma;
}

/* Is there more than commas? */
static bool is_at_item(struct json_reader *reader)
{
	while (json_reader_peek(reader) == ',')
		reader->at++;
	return reader->at < reader->end;
}

/*
 * Goes on after a step that failed: false when the rest of the window has to wait for more. `begin`
 * is where the step began.
 */
static bool recover(struct kineto_parser *parser, const struct text_window *window,
	const struct json_reader *begin, enum kineto_state state, int status)
{
	bool no_more = parser->reader.is_last || (window->is_full && begin->at == window->bytes);

	/* What was passed over then stays so. */
	if (status == JSON_MORE && (parser->is_skipping || parser->state == KINETO_SEARCH))
		return false;
	parser->state = state;
	parser->reader.at = begin->at;
	parser->reader.fresh = begin->fresh;
	parser->reader.mended = begin->mended;
	if (status == JSON_MORE && !parser->reader.is_last)
		pass_separators(&parser->reader);
	if (status == JSON_MORE && (!no_more || parser->reader.at == parser->reader.end))
		return false;
	parser->is_cut = status == JSON_MORE && parser->reader.is_last;
	if (state == KINETO_EVENTS && is_at_item(&parser->reader))
		lose_event(parser);
	else
		mend_header(parser);
	return parser->reader.at < parser->reader.end;
}

int kineto_parse(struct kineto_parser *parser, const struct text_window *window, size_t *ret_used)
{
	struct json_reader *reader = &parser->reader;
	int r;

	reader->at = window->bytes;
	reader->end = window->bytes + window->length;
	reader->is_last = window->is_last;
	parser->next_event = NULL;
	do {
		const struct json_reader begin = *reader;
		enum kineto_state state = parser->state;

		r = step(parser);
		if (r == JSON_MORE || r == JSON_BAD) {
			if (!recover(parser, window, &begin, state, r))
				break;
			r = JSON_OK;
		}
	} while (r == JSON_OK);
	if (r < 0)
		return r;
	if (parser->state == KINETO_END)
		pass_end(parser);
	else if (window->is_last)
		reader->at = reader->end;
	*ret_used = (size_t)(reader->at - window->bytes);
	return 0;
}

bool kineto_is_between_events(const struct kineto_parser *parser)
{
	return parser->state == KINETO_EVENTS && parser->reader.fresh && !parser->is_skipping &&
	       !parser->careful;
}

int kineto_parse_part(struct kineto_parser *parser, const char *text, size_t length)
{
	const struct text_window window = {.bytes = text, .length = length};
	size_t used;
	int r;

	parser->state = KINETO_EVENTS;
	parser->has_events = parser->reader.fresh = true;
	parser->is_tied = false;
	r = kineto_parse(parser, &window, &used);
	if (r < 0)
		return r;
	return used == length && kineto_is_between_events(parser) && !parser->is_tied &&
	       parser->next_careful == CAREFUL_FIRST;
}

/* Is the bracket behind a comma, as that of an item? */
static bool is_behind_comma(const char *text, const char *bracket)
{
	while (bracket > text && (unsigned char)bracket[-1] <= ' ')
		bracket--;
	return bracket > text && bracket[-1] == ',';
}

size_t kineto_last_event(const char *text, size_t length)
{
	const struct kineto_parser parser = {.reader.end = text + length};
	const char *at = text + length;

	while ((at = memrchr(text, '{', (size_t)(at - text))) && at > text) {
		if (is_behind_comma(text, at) && is_event_start(&parser, at))
			return (size_t)(at - text);
	}
	return 0;
}

uint64_t kineto_parser_bytes(const struct kineto_parser *parser)
{
	const struct trace *trace = parser->trace;

	/* Of each row, its place in trace.rows, too. */
	return trace->events.count * (sizeof(struct trace_event) + sizeof(uint32_t)) +
	       trace->ops.count * sizeof(struct trace_op) +
	       trace->works.count * sizeof(struct trace_work) +
	       trace->collectives.count * sizeof(struct trace_collective) +
	       trace->memory.count * sizeof(struct trace_memory) +
	       trace->flows.count * sizeof(struct trace_flow) +
	       trace->counters.count * sizeof(struct trace_counter) +
	       trace->tracks.count * sizeof(struct trace_track) +
	       trace->strings.entries.count * sizeof(struct intern_entry) + parser->text_bytes +
	       parser->open_rows.count * sizeof(struct kineto_open_row) + parser->header.length;
}

static int finish_header(struct kineto_parser *parser)
{
	const struct json_text header = {
		.bytes = strbuf_cstr(&parser->header), .length = parser->header.length};

	return kineto_add_json(parser, &header, &parser->trace->header);
}

int kineto_parser_finish(struct kineto_parser *parser, struct trace **ret_trace)
{
	struct trace *trace = parser->trace;
	int r;

	/* "[]" is no more a trace than "{}" is; an empty list of traceEvents is one. */
	if (!parser->has_events || (parser->is_array && !parser->position) ||
		(parser->position && parser->position == trace->damage.skipped_events))
		return -ENODATA;
	/* The bracket at the end of a bare array may be missing. */
	trace->damage.truncated |= !parser->is_closed && (!parser->is_array || parser->is_skipping);
	trace->arguments_kept = parser->keep_arguments;
	kineto_finish_tracks(parser);
	r = kineto_find_xla(parser);
	if (r == 0)
		r = finish_header(parser);
	if (r >= 0)
		r = trace_finish(trace);
	if (r < 0)
		return r;
	*ret_trace = TAKE_PTR(parser->trace);
	return 0;
}
