/* SPDX-License-Identifier: Apache-2.0 */
#include "importers/simulation/line.h"

#include <string.h>

#include "base/macros.h"

struct text {
	const char *at, *end;
};

static bool take(struct text *text, const char *expected)
{
	size_t length = strlen(expected);

	if ((size_t)(text->end - text->at) < length || memcmp(text->at, expected, length) != 0)
		return false;
	text->at += length;
	return true;
}

static bool take_number(struct text *text, uint64_t maximum, uint64_t *ret_number)
{
	const char *begin = text->at;
	uint64_t number = 0;

	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
		if (__builtin_mul_overflow(number, 10U, &number) ||
			__builtin_add_overflow(number, (uint64_t)(*text->at - '0'), &number))
			return false;
	}
	*ret_number = number;
	return text->at > begin && number <= maximum;
}

/* ", tick=12" */
static bool take_member(struct text *text, const char *name, uint64_t maximum, uint64_t *ret_number)
{
	if (!take(text, ","))
		return false;
	take(text, " ");
	return take(text, name) && take_number(text, maximum, ret_number);
}

/* The logger's time, name and level, in brackets. */
static void skip_prefix(struct text *text)
{
	while (text->at < text->end && *text->at == '[') {
		const char *close = memchr(text->at, ']', (size_t)(text->end - text->at));

		if (!close)
			return;
		text->at = close + 1;
		take(text, " ");
	}
}

/* The type ends the line, behind a name of any characters: "a, b, node->type=4". */
static void take_type(struct astra_line *line)
{
	static const char *const members[] = {
		", node->type=", ",node->type=", ",node->node_type=", ", node->node_type="};
	const char *end = line->name + line->name_length;
	const char *digit = end - 1;

	if (digit < line->name || *digit < '1' || *digit > '7')
		return;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		size_t length = strlen(members[i]);

		if ((size_t)(digit - line->name) >= length &&
			memcmp(digit - length, members[i], length) == 0) {
			line->type = (enum astra_node_type)(*digit - '0');
			line->name_length -= length + 1;
			return;
		}
	}
}

/* Names that Chakra's converters for simulators write begin with the type. */
static void type_of_name(struct astra_line *line)
{
	static const struct {
		const char *beginning;
		enum astra_node_type type;
	} types[] = {
		{"MEM_LOAD", ASTRA_MEM_LOAD},
		{"MEM_STORE", ASTRA_MEM_STORE},
		{"COMP_NODE", ASTRA_COMP},
		{"COMM_SEND", ASTRA_COMM_SEND},
		{"COMM_RECV", ASTRA_COMM_RECV},
		{"COMM_COLL", ASTRA_COMM_COLL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct text name = {line->name, line->name + line->name_length};

		if (take(&name, types[i].beginning))
			line->type = types[i].type;
	}
}

bool astra_line_parse(const char *bytes, size_t length, struct astra_line *ret_line)
{
	struct text text = {bytes, bytes + length};
	struct astra_line line = {0};
	uint64_t system, tick;

	while (text.end > text.at && (text.end[-1] == '\r' || text.end[-1] == ' '))
		text.end--;
	skip_prefix(&text);
	line.is_end = take(&text, "callback");
	if (!line.is_end && !take(&text, "issue"))
		return false;
	if (!take_member(&text, "sys->id=", UINT32_MAX, &system) ||
		!take_member(&text, "tick=", INT64_MAX, &tick) ||
		!take_member(&text, "node->id=", UINT64_MAX, &line.node))
		return false;
	line.system = (uint32_t)system;
	line.tick = (int64_t)tick;
	if (take(&text, ","))
		take(&text, " ");
	line.name = text.at;
	if (take(&text, "node->name=")) {
		line.name = text.at;
		line.name_length = (size_t)(text.end - text.at);
		take_type(&line);
	}
	if (line.type == ASTRA_UNKNOWN)
		type_of_name(&line);
	*ret_line = line;
	return true;
}
