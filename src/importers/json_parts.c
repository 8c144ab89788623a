/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/json_parts.h"

#include <ctype.h>

static struct json_reader reader_of(const struct json_text *text)
{
	return (struct json_reader){
		.at = text->bytes, .end = text->bytes + text->length, .is_last = true};
}

bool json_part_members(
	const struct json_text *object, const char *const *names, struct json_text *ret_values)
{
	struct json_reader reader = reader_of(object);
	struct json_text key, value;
	enum json_status status;
	size_t count = 0;

	while (names[count])
		ret_values[count++] = (struct json_text){0};
	if (!object->bytes)
		return false;
	status = json_reader_enter(&reader, '{');
	while (status == JSON_OK && (status = json_reader_member(&reader, &key)) == JSON_OK) {
		status = json_reader_value(&reader, &value);
		for (size_t i = 0; status == JSON_OK && i < count; i++) {
			if (!ret_values[i].bytes && json_text_equals(&key, names[i]))
				ret_values[i] = value;
		}
	}
	return status == JSON_DONE;
}

struct json_text json_part_member(const struct json_text *object, const char *name)
{
	const char *const names[] = {name, NULL};
	struct json_text value;

	json_part_members(object, names, &value);
	return value;
}

struct json_reader json_part_begin(const struct json_text *array)
{
	struct json_reader items = {.is_last = true};

	if (!array->bytes)
		return items;
	items = reader_of(array);
	if (json_reader_enter(&items, '[') != JSON_OK)
		items.end = items.at;
	return items;
}

bool json_part_next(struct json_reader *items, struct json_text *ret_item)
{
	return items->at && items->at < items->end && json_reader_item(items) == JSON_OK &&
	       json_reader_value(items, ret_item) == JSON_OK;
}

static bool read_hexadecimal(const struct json_text *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (text->length < 3 || text->length > 18 || text->bytes[0] != '0' ||
		(text->bytes[1] | 0x20) != 'x')
		return false;
	for (size_t i = 2; i < text->length; i++) {
		unsigned char byte = (unsigned char)text->bytes[i];

		if (!isxdigit(byte))
			return false;
		value = value << 4 |
			(uint64_t)(isdigit(byte) ? byte - '0' : (byte | 0x20) - 'a' + 10);
	}
	*ret_value = value;
	return true;
}

uint64_t json_part_u64(const struct json_text *value, uint64_t otherwise)
{
	const struct json_text text = json_text_inside(value);
	uint64_t number;

	if (!text.bytes)
		return otherwise;
	if (read_hexadecimal(&text, &number) || json_text_u64(&text, &number) == 0)
		return number;
	return otherwise;
}

int64_t json_part_i64(const struct json_text *value, int64_t otherwise)
{
	const struct json_text text = json_text_inside(value);
	int64_t number;

	return text.bytes && json_text_i64(&text, &number) == 0 ? number : otherwise;
}
