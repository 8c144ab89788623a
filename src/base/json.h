/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON: commas, escaping and nesting are kept right here, so callers only say what there
 * is. Output is valid UTF-8 whatever the input bytes: invalid sequences become U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define JSON_MAX_DEPTH 64

struct json_writer {
	struct strbuf *out; /* not owned */
	unsigned depth;
	bool pretty; /* two-space indentation, one member a line */
	bool has_items[JSON_MAX_DEPTH];
	bool after_key;
};

void json_begin_object(struct json_writer *json);
void json_end_object(struct json_writer *json);
void json_begin_array(struct json_writer *json);
void json_end_array(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_string(struct json_writer *json, const char *text);
void json_string_n(struct json_writer *json, const char *bytes, size_t length);
void json_u64(struct json_writer *json, uint64_t value);
void json_i64(struct json_writer *json, int64_t value);
void json_bool(struct json_writer *json, bool value);
void json_null(struct json_writer *json);
/* Shortest form with up to `digits` significant digits; NaN and infinities become null. */
void json_double(struct json_writer *json, double value, int digits);

/* ---- members: a key and its value ---- */

/* Null for NULL and "". */
void json_member_text(struct json_writer *json, const char *key, const char *text);
void json_member_u64(struct json_writer *json, const char *key, uint64_t value);
/* Null when it is not known. */
void json_member_known(struct json_writer *json, const char *key, bool known, uint64_t value);
/* With nine significant digits. */
void json_member_double(struct json_writer *json, const char *key, double value);

/* ---- text ---- */

/* Appends the text as the inside of a JSON string, without quotes. */
void json_escape(struct strbuf *out, const char *bytes, size_t length);

/*
 * Length in bytes of the valid UTF-8 sequence at `bytes` (1 to 4), or 0 when it is not one.
 */
size_t utf8_sequence_length(const char *bytes, size_t length);
