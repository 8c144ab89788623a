/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of JSON that an execution trace keeps as they are in the file (model/execution_trace.h):
 * elements of lists and members of objects. Pieces may be damaged: what is no JSON has no elements.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json_reader.h"
#include "base/strbuf.h"
#include "model/execution_trace.h"

/* Inside a list or an object. */
struct json_piece {
	struct json_reader reader;
	bool is_open;
};

/* Has no elements when the text is no list or, the other one, no object. */
struct json_piece json_piece_list(struct execution_text text);
struct json_piece json_piece_object(struct execution_text text);
/* For elements with commas between, without brackets. */
struct json_piece json_piece_elements(struct execution_text text);
/* The next element of a list, strings with their quotes. False at the end. */
bool json_piece_next(struct json_piece *piece, struct execution_text *ret_element);
/* The next member of an object; the key without quotes, as it is written. */
bool json_piece_member(
	struct json_piece *piece, struct execution_text *ret_key, struct execution_text *ret_value);

/* The value of an object's member; false when there is none. */
bool json_piece_find(
	struct execution_text object, const char *key, struct execution_text *ret_value);
bool json_piece_is_string(struct execution_text value);
/* False when it is no number, or does not fit. */
bool json_piece_i64(struct execution_text value, int64_t *ret_number);
/* Appends the text: of strings that are in quotes what they mean, always as UTF-8 without NUL. */
void json_piece_add_text(struct strbuf *out, struct execution_text value);
