/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nvtx_operator.h"

#include <string.h>

#include "base/macros.h"

#define OPERATOR "aten::"
#define SIZES    ", sizes = "

#define MOST_DEPTH 3 /* lists of tensors are lists of lists of lists */

enum place { PLACE_OPENED, PLACE_COMMA, PLACE_NUMBER, PLACE_ZERO, PLACE_ENDED };

/* What stands after a character of a list; false: there can be no such one. */
static bool next_place(enum place *place, char character)
{
	bool wants_item = *place == PLACE_OPENED || *place == PLACE_COMMA;
	bool in_number = *place == PLACE_NUMBER || *place == PLACE_ZERO;

	if (character == ' ') {
		*place = in_number ? PLACE_ENDED : *place;
		return true;
	}
	if (character == ',' || character == ']') {
		bool fits = character == ',' ? !wants_item : *place != PLACE_COMMA;

		*place = character == ',' ? PLACE_COMMA : PLACE_ENDED;
		return fits;
	}
	if (character == '[') {
		*place = PLACE_OPENED;
		return wants_item;
	}
	if (character < '0' || character > '9' || (!wants_item && *place != PLACE_NUMBER))
		return false;
	*place = character == '0' && wants_item ? PLACE_ZERO : PLACE_NUMBER;
	return true;
}

/* Up to the bracket that closes the first one; 0: it is no list of lists of numbers. */
static size_t list_bytes(const char *text)
{
	enum place place = PLACE_COMMA;
	size_t depth = 0;

	for (size_t i = 0; *text == '[' && text[i]; i++) {
		if (!next_place(&place, text[i]))
			return 0;
		depth += text[i] == '[';
		depth -= text[i] == ']';
		if (depth > MOST_DEPTH)
			return 0;
		if (!depth)
			return i + 1;
	}
	return 0;
}

bool nvtx_operator_read(const char *name, struct nvtx_operator *ret_operator)
{
	static const char *const ends[] = {", seq = ", ", op_id = ", SIZES};
	struct nvtx_operator found = {.name_bytes = strlen(name)};
	const char *sizes = strstr(name, SIZES);

	if (strncmp(name, OPERATOR, strlen(OPERATOR)) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		const char *end = strstr(name, ends[i]);

		if (end)
			found.name_bytes = MIN(found.name_bytes, (size_t)(end - name));
	}
	if (sizes)
		found.sizes_bytes = list_bytes(sizes + strlen(SIZES));
	if (found.sizes_bytes)
		found.sizes = sizes + strlen(SIZES);
	*ret_operator = found;
	return true;
}

int nvtx_operator_set(struct trace *trace, const char *range, const struct nvtx_operator *marked,
	struct trace_event *event)
{
	struct trace_op op =
		event->detail == MODEL_NONE ? trace_no_op : trace->ops.items[event->detail];
	int r = MIN(intern_add(&trace->strings, range, marked->name_bytes, &event->name), 0);

	event->category = TRACE_CPU_OP;
	if (r < 0 || !marked->sizes)
		return r;
	event->detail = (uint32_t)trace->ops.count;
	r = MIN(intern_add(&trace->strings, marked->sizes, marked->sizes_bytes, &op.input_dims), 0);
	return r ?: array_append(&trace->ops, op);
}
