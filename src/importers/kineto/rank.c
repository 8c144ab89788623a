/* SPDX-License-Identifier: Apache-2.0 */
/* The rank of a trace, for those that look at many of them: before or behind the events. */
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/text_input.h"
#include "importers/kineto/kineto.h"

static const char key_of_info[] = "\"distributedInfo\"";

/* How far behind the key its object may reach: "pg_config" may name many groups. */
#define INFO_BYTES ((size_t)1024 * 1024)

/* `text` begins behind the key. False, too, when the object's end is not in it. */
static bool read_rank(const char *text, size_t length, uint32_t *ret_rank)
{
	struct json_reader reader = {.at = text, .end = text + length, .is_last = true};
	struct json_text key, value;

	reader.at += strspn(text, " \t\r\n:");
	if (json_reader_enter(&reader, '{') != JSON_OK)
		return false;
	while (json_reader_member(&reader, &key) == JSON_OK &&
		json_reader_value(&reader, &value) == JSON_OK) {
		const struct json_text inside = json_text_inside(&value);
		uint64_t rank;

		if (!json_text_equals(&key, "rank"))
			continue;
		if (json_text_u64(&inside, &rank) < 0 || rank >= UINT32_MAX)
			return false;
		*ret_rank = (uint32_t)rank;
		return true;
	}
	return false;
}

/* Moves the window on until the key is in it. */
static bool find_info(struct text_input *input, struct text_window *window, size_t *ret_at)
{
	struct errmsg err;
	size_t used = 0;

	while (text_input_move(input, used, window, &err) == 0) {
		const char *found =
			memmem(window->bytes, window->length, key_of_info, sizeof(key_of_info) - 1);

		if (found) {
			*ret_at = (size_t)(found - window->bytes) + sizeof(key_of_info) - 1;
			return true;
		}
		if (window->is_last)
			return false;
		used = window->length - MIN(window->length, sizeof(key_of_info));
	}
	return false;
}

bool kineto_rank(const char *path, uint32_t *ret_rank)
{
	_cleanup_text_input_ struct text_input *input = NULL;
	_cleanup_free_ char *text = NULL;
	struct text_window window = {0};
	struct errmsg err;
	size_t at, length;
	ssize_t more = 0;

	if (text_input_open(&input, path, &err) < 0 || !find_info(input, &window, &at))
		return false;
	text = calloc(1, INFO_BYTES + 1);
	if (!text)
		return false;
	length = MIN(window.length - at, INFO_BYTES);
	memcpy(text, window.bytes + at, length);
	while (length < INFO_BYTES && more >= 0) {
		more = text_input_read(input, text + length, INFO_BYTES - length, &err);
		if (more <= 0)
			break;
		length += (size_t)more;
	}
	return read_rank(text, length, ret_rank);
}
