/* SPDX-License-Identifier: Apache-2.0 */
/* What is rare enough in JSON to be no part of the loops that read it: see json_reader.h. */
#include "base/json_reader.h"

/* JSON_OK when this quote may end a string, by what follows it. */
static enum json_status judge_quote(const struct json_reader *reader, const char *quote)
{
	const char *next = quote + 1;
	bool beside = next < reader->end && !json_is_space(*next);

	next = json_find_token(next, reader->end);
	if (next == reader->end)
		return reader->is_last ? JSON_OK : JSON_MORE;
	/* A string may follow where a comma is missing, but hardly without a space. */
	return *next == ',' || *next == ':' || *next == '}' || *next == ']' ||
			       (*next == '"' && !beside)
		       ? JSON_OK
		       : JSON_BAD;
}

enum json_status json_reader_rest_of_string(struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at, *at = begin;
	enum json_status judged;
	bool escaped = false;

	for (;;) {
		at = json_find_quote(at, reader->end);
		if (at == reader->end)
			return JSON_MORE;
		if (*at == '\\') {
			escaped = true;
			if (reader->end - at < 2)
				return JSON_MORE;
			at += 2;
			continue;
		}
		judged = reader->lenient ? judge_quote(reader, at) : JSON_OK;
		if (judged == JSON_MORE)
			return JSON_MORE;
		if (judged == JSON_OK)
			break;
		reader->mended++;
		at++;
	}
	*ret_text = (struct json_text){
		.bytes = begin, .length = (size_t)(at - begin), .escaped = escaped};
	reader->at = at + 1;
	return JSON_OK;
}

enum json_status json_reader_separator(struct json_reader *reader, char closing)
{
	const char *at = reader->at;
	unsigned commas = 0;

	for (; at < reader->end && *at == ','; at = json_find_token(at + 1, reader->end))
		commas++;
	if (at == reader->end)
		return JSON_MORE;
	reader->at = at;
	if (*at == closing) {
		reader->mended += commas;
		reader->fresh = false;
		reader->at++;
		return JSON_DONE;
	}
	if (commas != !reader->fresh)
		reader->mended += commas ? commas - !reader->fresh : 1;
	reader->fresh = false;
	return JSON_OK;
}

/* To the bracket that closes as many as were opened. */
enum json_status json_reader_container(struct json_reader *reader, struct json_text *ret_text)
{
	const char *begin = reader->at, *at = begin;
	bool escaped = false;
	size_t depth = 0;

	do {
		struct json_text text;

		at = json_find_structure(at, reader->end);
		if (at == reader->end)
			return JSON_MORE;
		reader->at = ++at;
		if (at[-1] == '"') {
			if (json_reader_rest_of_string(reader, &text) != JSON_OK)
				return JSON_MORE;
			escaped |= text.escaped;
			at = reader->at;
		} else if ((at[-1] | 0x20) == '{') {
			depth++;
		} else {
			depth--;
		}
	} while (depth);
	reader->fresh = false;
	*ret_text = (struct json_text){
		.bytes = begin, .length = (size_t)(at - begin), .escaped = escaped};
	return JSON_OK;
}
