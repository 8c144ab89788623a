/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/torch_memory/value.h"

#include <errno.h>

#define DEEPEST 64 /* containers of JSON in one another */

void value_document_done(struct value_document *document)
{
	array_foreach (&document->containers, list)
		array_done(&list->items);
	array_done(&document->containers);
}

static int count_bytes(struct value_document *document, size_t bytes)
{
	document->values += bytes;
	return document->values > document->max_bytes ? -EFBIG : 0;
}

int value_add_container(
	struct value_document *document, enum value_type type, struct value *ret_value)
{
	int r = count_bytes(document, sizeof(struct value_list));

	*ret_value =
		(struct value){.type = type, .container = (uint32_t)document->containers.count};
	return r < 0 ? r : array_append(&document->containers, (struct value_list){0});
}

int value_append(struct value_document *document, uint32_t container, const struct value *item)
{
	int r = count_bytes(document, sizeof(*item));

	return r < 0 ? r : array_append(&document->containers.items[container].items, *item);
}

static bool has_items(const struct value *value)
{
	return value->type == VALUE_LIST || value->type == VALUE_DICT;
}

size_t value_count(const struct value_document *document, const struct value *list)
{
	return list->type == VALUE_LIST ? document->containers.items[list->container].items.count
					: 0;
}

struct value value_item(const struct value_document *document, const struct value *list, size_t i)
{
	return document->containers.items[list->container].items.items[i];
}

struct value value_member(
	const struct value_document *document, const struct value *dict, const char *name)
{
	const struct value_list *list;

	if (dict->type != VALUE_DICT)
		return (struct value){0};
	list = &document->containers.items[dict->container];
	for (size_t i = 0; i + 1 < list->items.count; i += 2) {
		if (value_is(&list->items.items[i], name))
			return list->items.items[i + 1];
	}
	return (struct value){0};
}

/* ---- JSON ---- */

static struct value scalar_of(const struct json_text *text)
{
	struct value value = {0};

	if (json_text_is_string(text)) {
		value.type = VALUE_TEXT;
		value.text = json_text_inside(text);
	} else if (json_text_equals(text, "true") || json_text_equals(text, "false")) {
		value.type = VALUE_NUMBER;
		value.number = text->bytes[0] == 't';
	} else if (json_text_i64(text, &value.number) == 0) {
		value.type = VALUE_NUMBER;
	}
	return value;
}

/* The containers that are open, each in the one before it. */
struct json_walk {
	struct value_document *document;
	struct json_reader reader;
	struct value open[DEEPEST];
	unsigned depth;
};

/* The next value goes into the innermost open container, or is the root. */
static int take_value(struct json_walk *walk)
{
	char first = json_reader_peek(&walk->reader);
	struct json_text text;
	struct value value;
	int r = 0;

	if (first == '{' || first == '[') {
		if (walk->depth == DEEPEST || json_reader_enter(&walk->reader, first) != JSON_OK)
			return -EBADMSG;
		r = value_add_container(
			walk->document, first == '{' ? VALUE_DICT : VALUE_LIST, &value);
	} else if (json_reader_value(&walk->reader, &text) == JSON_OK) {
		value = scalar_of(&text);
	} else {
		return -EBADMSG;
	}
	if (r == 0 && walk->depth)
		r = value_append(walk->document, walk->open[walk->depth - 1].container, &value);
	else if (r == 0)
		walk->document->root = value;
	if (r == 0 && has_items(&value))
		walk->open[walk->depth++] = value;
	return r;
}

static int take_next(struct json_walk *walk)
{
	const struct value *top = &walk->open[walk->depth - 1];
	struct value key = {.type = VALUE_TEXT};
	enum json_status status = top->type == VALUE_DICT
					  ? json_reader_member(&walk->reader, &key.text)
					  : json_reader_item(&walk->reader);
	int r;

	if (status == JSON_DONE) {
		walk->depth--;
		return 0;
	}
	if (status != JSON_OK)
		return -EBADMSG;
	if (top->type == VALUE_DICT) {
		r = value_append(walk->document, top->container, &key);
		if (r < 0)
			return r;
	}
	return take_value(walk);
}

int value_read_json(struct value_document *document, const char *bytes, size_t length)
{
	struct json_walk walk = {
		.document = document,
		.reader = {.at = bytes, .end = bytes + length, .is_last = true},
	};
	int r = take_value(&walk);

	while (r == 0 && walk.depth)
		r = take_next(&walk);
	return r;
}
