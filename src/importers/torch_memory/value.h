/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document of plain values: dicts, lists, texts, numbers. Made of a pickle or of JSON; texts stay
 * in the bytes that it was made of, which outlive it. A pickle may have a value in several places,
 * even in itself: whoever walks over one bounds how far.
 */
#pragma once

#include "base/array.h"
#include "base/errmsg.h"
#include "base/json_reader.h"

enum value_type { VALUE_NONE, VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_DICT };

struct value {
	enum value_type type;
	uint32_t container; /* of lists and dicts: index in the document */
	int64_t number;     /* of a float, rounded */
	struct json_text text;
};

struct value_list {
	ARRAY_OF(struct value) items; /* of a dict: keys and values by turns */
};

struct value_document {
	ARRAY_OF(struct value_list) containers;
	struct value root;
	uint64_t values, max_bytes;
};

/*
 * Reads the opcodes that plain values are pickled with, of protocols 2 to 5. Nothing is executed:
 * what would import or call something ends the reading. Returns 0; -EBADMSG when it is cut off or
 * damaged; -EPERM when it would call something; -EFBIG, -ENOMEM.
 */
int value_read_pickle(struct value_document *document, const char *bytes, size_t length);
/* Returns 0, -EBADMSG, -EFBIG or -ENOMEM. */
int value_read_json(struct value_document *document, const char *bytes, size_t length);
void value_document_done(struct value_document *document);

/* An empty list or dict, in the document. Returns 0, -EFBIG or -ENOMEM. */
int value_add_container(
	struct value_document *document, enum value_type type, struct value *ret_value);
int value_append(struct value_document *document, uint32_t container, const struct value *item);

/* Of what is none they have no items. */
size_t value_count(const struct value_document *document, const struct value *list);
struct value value_item(const struct value_document *document, const struct value *list, size_t i);
/* VALUE_NONE where it is not there. */
struct value value_member(
	const struct value_document *document, const struct value *dict, const char *name);
static inline int64_t value_number(const struct value *value, int64_t otherwise)
{
	return value->type == VALUE_NUMBER ? value->number : otherwise;
}
static inline bool value_is(const struct value *value, const char *word)
{
	return value->type == VALUE_TEXT && json_text_equals(&value->text, word);
}
