/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/kineto/arguments.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NAME_MIN 3

struct argument_name {
	const char *text;
	uint8_t length;
};

static const struct argument_name names[] = {
#define X(id, name) [KINETO_##id] = {name, sizeof(name) - 1},
	KINETO_ARGUMENTS(X)
#undef X
};

/* Of the length and the first and last bytes, which is enough to tell the names apart. */
static inline unsigned name_slot(const char *bytes, size_t length)
{
	uint32_t first = 0, last = 0;

	if (length >= sizeof(first)) {
		memcpy(&first, bytes, sizeof(first));
		memcpy(&last, bytes + length - sizeof(last), sizeof(last));
	} else {
		memcpy(&first, bytes, NAME_MIN);
	}
	first = (first ^ (last << 7 | last >> 25) ^ (uint32_t)length) * 0x9e3779b1U;
	return first >> 24;
}

void kineto_arguments_init(struct kineto_arguments *arguments)
{
	memset(arguments, 0, sizeof(*arguments));
	for (unsigned id = 0; id < KINETO_ARGUMENT_MAX; id++) {
		unsigned slot = name_slot(names[id].text, names[id].length);

		assert(names[id].length >= NAME_MIN);
		while (arguments->slots[slot])
			slot = (slot + 1) % KINETO_NAME_SLOTS;
		arguments->slots[slot] = (uint8_t)(id + 1);
	}
}

void kineto_arguments_done(struct kineto_arguments *arguments)
{
	array_done(&arguments->others);
}

void kineto_arguments_clear(struct kineto_arguments *arguments)
{
	arguments->present = 0;
	array_clear(&arguments->others);
}

/* KINETO_ARGUMENT_MAX when the name is none of ours. */
static unsigned find_name(const void *context, const struct json_text *key)
{
	const struct kineto_arguments *arguments = context;
	unsigned slot, id;

	if (key->length < NAME_MIN)
		return KINETO_ARGUMENT_MAX;
	slot = name_slot(key->bytes, key->length);
	for (; (id = arguments->slots[slot]) != 0; slot = (slot + 1) % KINETO_NAME_SLOTS) {
		const struct argument_name *name = &names[id - 1];

		if (name->length == key->length && memcmp(name->text, key->bytes, key->length) == 0)
			return id - 1;
	}
	return KINETO_ARGUMENT_MAX;
}

#define ID_OTHER KINETO_ARGUMENT_MAX
#define ID_NONE  (KINETO_ARGUMENT_MAX + 1) /* before the first member */

/* A plain number is read on the way over it. */
static inline enum json_status read_value(struct json_reader *reader, struct kineto_member *member)
{
	const char *begin = reader->at;

	member->has_number = json_reader_u64(reader, &member->number);
	if (!member->has_number)
		return json_reader_value(reader, &member->value);
	member->value.bytes = begin;
	member->value.length = (size_t)(reader->at - begin);
	member->value.escaped = false;
	return JSON_OK;
}

int kineto_arguments_read(
	struct kineto_arguments *arguments, struct json_reader *reader, bool keep_others)
{
	enum json_status status = json_reader_enter(reader, '{');
	struct kineto_member member;
	unsigned id = ID_NONE;

	while (status == JSON_OK) {
		status = kineto_next_member(
			arguments->guesses, reader, find_name, arguments, &id, &member.begin);
		if (status == JSON_OK)
			status = read_value(reader, &member);
		if (status != JSON_OK)
			break;
		if (id != ID_OTHER) {
			arguments->members[id] = member;
			arguments->present |= KINETO_BIT(id);
		} else if (keep_others && array_append(&arguments->others, member) < 0) {
			return -ENOMEM;
		}
	}
	return status == JSON_DONE ? JSON_OK : (int)status;
}

static bool taken(struct kineto_arguments *arguments, enum kineto_argument id, int result)
{
	if (result == 0)
		arguments->present &= ~KINETO_BIT(id);
	return result == 0;
}

bool kineto_take_text_(struct kineto_arguments *arguments, enum kineto_argument id,
	unsigned decimals, int64_t *ret_value)
{
	const struct json_text text = json_text_inside(&arguments->members[id].value);

	return taken(arguments, id, json_text_fixed(&text, decimals, ret_value));
}

bool kineto_take_u64_text_(
	struct kineto_arguments *arguments, enum kineto_argument id, uint64_t *ret_value)
{
	const struct json_text text = json_text_inside(&arguments->members[id].value);

	return taken(arguments, id, json_text_u64(&text, ret_value));
}

/* One of three numbers, behind it a comma or what ends the list. */
static bool read_dimension(struct json_reader *reader, uint32_t *ret_number)
{
	struct json_text text;
	uint64_t number;

	if (json_reader_item(reader) != JSON_OK)
		return false;
	if (!json_reader_u64(reader, &number) &&
		(json_reader_value(reader, &text) != JSON_OK || json_text_u64(&text, &number) < 0))
		return false;
	*ret_number = (uint32_t)number;
	return number <= UINT32_MAX;
}

bool kineto_double(const struct json_text *value, double *ret_value)
{
	const struct json_text text = json_text_inside(value);
	char digits[64];
	char *end;

	if (!text.length || text.length >= sizeof(digits))
		return false;
	memcpy(digits, text.bytes, text.length);
	digits[text.length] = '\0';
	*ret_value = strtod(digits, &end);
	return *end == '\0';
}

bool kineto_take_dimensions_(
	struct kineto_arguments *arguments, enum kineto_argument id, uint32_t dimensions[3])
{
	const struct json_text *value = &arguments->members[id].value;
	struct json_reader reader = {
		.at = value->bytes, .end = value->bytes + value->length, .is_last = true};
	uint32_t numbers[3];

	if (json_reader_enter(&reader, '[') != JSON_OK || !read_dimension(&reader, &numbers[0]) ||
		!read_dimension(&reader, &numbers[1]) || !read_dimension(&reader, &numbers[2]) ||
		json_reader_item(&reader) != JSON_DONE)
		return false;
	memcpy(dimensions, numbers, sizeof(numbers));
	return taken(arguments, id, 0);
}

static void add_member(struct strbuf *out, const struct kineto_member *member)
{
	if (out->length)
		strbuf_add(out, ", ");
	strbuf_add_bytes(out, member->begin,
		(size_t)(member->value.bytes + member->value.length - member->begin));
}

void kineto_arguments_rest(const struct kineto_arguments *arguments, struct strbuf *out)
{
	for (uint64_t left = arguments->present; left; left &= left - 1)
		add_member(out, &arguments->members[__builtin_ctzll(left)]);
	array_foreach (&arguments->others, member)
		add_member(out, member);
}
