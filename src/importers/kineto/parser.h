/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of kineto.h share. Text comes in windows; the parser says how much of one it has
 * understood, and sees the rest again with what follows.
 *
 * kineto.c opens the file, and has one parser read it, or for large files parallel.c several, whose
 * rows merge.c puts behind one another. parser.c reads the list of events, event.c each of them.
 */
#pragma once

#include "base/text_input.h"
#include "importers/kineto/arguments.h"
#include "importers/kineto/kineto.h"

/* A text of the file that was looked up last: the next event mostly has the same. */
struct kineto_last_text {
	char bytes[24];
	uint8_t length; /* 0: none */
};

static inline bool kineto_is_last(const struct kineto_last_text *last, const struct json_text *text)
{
	return last->length == text->length && text->length &&
	       memcmp(last->bytes, text->bytes, text->length) == 0;
}

static inline void kineto_set_last(struct kineto_last_text *last, const struct json_text *text)
{
	last->length = text->length <= sizeof(last->bytes) ? (uint8_t)text->length : 0;
	if (last->length)
		memcpy(last->bytes, text->bytes, last->length);
}

struct kineto_process {
	uint32_t name, labels;
	int64_t sort; /* TRACE_NO_NUMBER: not known */
};

/* pid and tid → index of the track; pid → process. */
struct kineto_tracks {
	struct intern keys, process_keys; /* their ids are the indices */
	ARRAY_OF(struct kineto_process) processes;
	ARRAY_OF(uint32_t) process_of; /* track → process */
	struct kineto_last_text last_pid, last_tid;
	uint32_t last; /* track of these */
};

/* Rows that began ("B") and have not ended ("E"), by track. */
struct kineto_open_row {
	uint32_t row, outer; /* outer: index of the one around it, or MODEL_NONE */
};

#define KINETO_EVENT_MEMBERS 11 /* kinds of them, see event.c */

enum kineto_state {
	KINETO_START,
	KINETO_HEADER, /* between members of the file's object */
	KINETO_SEARCH, /* for traceEvents, behind a member that was not understood */
	KINETO_EVENTS, /* between items of traceEvents */
	KINETO_END,
};

struct kineto_parser {
	struct trace *trace;
	bool keep_arguments;
	bool keep_others; /* of the event that is read */
	struct kineto_arguments arguments;
	struct kineto_guesses guesses[KINETO_EVENT_MEMBERS + 1]; /* by the member before */
	struct kineto_tracks tracks;
	ARRAY_OF(struct kineto_open_row) open_rows;
	struct map_u64 innermost; /* track → index in open_rows + 1 */
	struct strbuf scratch, header;
	struct map_u64 cleaned;  /* string as the file has it → string without damage */
	uint64_t text_bytes;     /* of new strings */
	uint32_t first_category; /* string */
	struct kineto_last_text last_category_text;
	uint32_t last_category; /* string of this one */
	uint32_t position;      /* in traceEvents */
	bool event_mended;
	bool is_tied; /* an event is about others: names, the end of one that began */

	enum kineto_state state;
	struct json_reader reader; /* in the window that is being parsed */
	bool is_array;             /* the file is the array of events */
	bool has_events;           /* traceEvents was there */
	bool is_skipping;          /* to the next event, after one that was not understood */
	bool is_cut;               /* that one goes on to the end of the text */
	bool is_closed;            /* the end of the file's object or array was there */
	bool goes_on;              /* behind its end is more than space */
	/*
	 * So many events are read with a look at where the next one begins first, so that one that
	 * is not closed does not take those behind it. More after each failure.
	 */
	uint32_t careful, next_careful;
	const char *next_event; /* in the window: of the last look; its end: none */
};

int kineto_parser_init(struct kineto_parser *parser, const char *path, bool keep_arguments);
void kineto_parser_done(struct kineto_parser *parser);

/*
 * Takes in what it can of the window. *ret_used is how much that was: all of a last window, less
 * than all, perhaps nothing, of another. Returns 0 or -ENOMEM.
 */
int kineto_parse(struct kineto_parser *parser, const struct text_window *window, size_t *ret_used);
/* After the last window. Takes the trace out, finished. -ENODATA when it is none. */
int kineto_parser_finish(struct kineto_parser *parser, struct trace **ret_trace);
/* About the bytes of memory that the rows take. */
uint64_t kineto_parser_bytes(const struct kineto_parser *parser);

/* Between two events, behind the comma: those that follow can be read by another parser. */
bool kineto_is_between_events(const struct kineto_parser *parser);
/*
 * Of text that should begin and end so: false when it does not, or when its events say something of
 * others. What was understood can then not be merged. Returns 1, 0 or -ENOMEM.
 */
int kineto_parse_part(struct kineto_parser *parser, const char *text, size_t length);
/* Where the last event of the text begins, by its looks; 0: not known. */
size_t kineto_last_event(const char *text, size_t length);

/* kineto.c: a file, and what its reader asked for. */
struct kineto_source {
	struct text_input *input;
	const char *path;
	const struct trace_read_options *options;
};

/* As text_input_read(), with news of the progress. */
ssize_t kineto_source_read(
	const struct kineto_source *source, char *room, size_t length, struct errmsg *err);
/* Have the rows room? 0 or -EFBIG, with a sentence. */
int kineto_source_check(
	const struct kineto_source *source, const struct kineto_parser *parser, struct errmsg *err);

/*
 * parallel.c: this text, which was read already, and the rest of the file, by so many
 * threads. Returns 0 or a negative errno; without a sentence where memory ran out.
 */
int kineto_read_parts(struct kineto_parser *parser, const struct kineto_source *source,
	const char *text, size_t length, unsigned thread_count, struct errmsg *err);

/* merge.c: what strings and tracks of another parser are in this one. */
struct kineto_known {
	ARRAY_OF(uint32_t) strings, tracks;
};

/* Moves the rows of a part behind those of the parts before it. Returns 0 or -ENOMEM. */
int kineto_merge(struct kineto_parser *to, struct kineto_parser *from, struct kineto_known *known);
void kineto_known_done(struct kineto_known *known);

/*
 * event.c: one event, which it appends to parser->trace: a row, a flow or a counter; or what the
 * event says of tracks. JSON_OK, JSON_MORE, JSON_BAD or -ENOMEM.
 */
int kineto_read_event(struct kineto_parser *parser, struct json_reader *reader);

/* category.c: the names that are known are the first strings. */
int kineto_add_categories(struct kineto_parser *parser);
int kineto_add_category(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string);
enum trace_category kineto_category(const struct kineto_parser *parser, uint32_t name);

/* detail.c: from parser->arguments. */
int kineto_add_detail(struct kineto_parser *parser, struct trace_event *event);

/* header.c: a member of the file's object. */
int kineto_read_header(
	struct kineto_parser *parser, const struct json_text *key, const struct json_text *value);

/* tracks.c: pid and tid as the event has them. */
int kineto_find_track(struct kineto_parser *parser, const struct json_text *pid,
	const struct json_text *tid, uint32_t *ret_track);
/* process_name, thread_name and the like. Returns 1 when it was none of them. */
int kineto_read_metadata(struct kineto_parser *parser, const struct json_text *name,
	const struct json_text *pid, const struct json_text *tid);
/* Finds or adds the one with these numbers and texts. Returns 1 when it was added, 0 or -ENOMEM. */
int kineto_add_track(
	struct kineto_parser *parser, const struct trace_track *track, uint32_t *ret_track);
/* What is known of processes, into their tracks. */
void kineto_finish_tracks(struct kineto_parser *parser);
void kineto_tracks_done(struct kineto_tracks *tracks);

/* xla.c: when tracks have their names. Returns 0 or -ENOMEM. */
int kineto_find_xla(struct kineto_parser *parser);

/*
 * text.c: strings of the trace. Bytes that are no UTF-8 become U+FFFD; that, and control
 * characters as the file may not have them, set parser->event_mended.
 */
int kineto_add_string(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string);
/* The same of JSON text, which stays JSON text. */
int kineto_add_json(
	struct kineto_parser *parser, const struct json_text *value, uint32_t *ret_string);
/* Of another parser, those that are not known yet. */
int kineto_merge_strings(
	struct kineto_parser *to, const struct kineto_parser *from, struct kineto_known *known);
