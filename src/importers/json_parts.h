/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a JSON text that is in memory by parts: objects and arrays as the text that they are. */
#pragma once

#include "base/json_reader.h"

/* The values of these members, ended by NULL, in one pass; `bytes` is NULL of one that is not
 * there. Returns false where the text is no object, or is damaged: what stands before is set. */
bool json_part_members(
	const struct json_text *object, const char *const *names, struct json_text *ret_values);
/* One member of it; `bytes` is NULL where it is not there. */
struct json_text json_part_member(const struct json_text *object, const char *name);

/* The items of an array: begin, then next until it is false. An array that is not there has none.
 */
struct json_reader json_part_begin(const struct json_text *array);
bool json_part_next(struct json_reader *items, struct json_text *ret_item);

/* `otherwise` where it is not there, or no number: numbers in quotes are numbers, too, also 0x…. */
uint64_t json_part_u64(const struct json_text *value, uint64_t otherwise);
int64_t json_part_i64(const struct json_text *value, int64_t otherwise);
