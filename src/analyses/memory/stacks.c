/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/memory/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"

#define DEEPEST 256 /* rows of a stack: those further out are left out */

int memory_stacks_init(
	struct memory_stacks *stacks, const struct trace *trace, struct intern *texts)
{
	uint32_t none;

	*stacks = (struct memory_stacks){.trace = trace, .texts = texts};
	if (intern_add(texts, "", 0, &none) < 0)
		return -ENOMEM;
	if (!trace->memory.count)
		return 0;
	stacks->parents = trace_parents(trace, true);
	stacks->around = calloc(trace->events.count + 1, sizeof(*stacks->around));
	return stacks->parents && stacks->around ? 0 : -ENOMEM;
}

void memory_stacks_done(struct memory_stacks *stacks)
{
	map_u64_done(&stacks->given);
	free(stacks->around);
	map_u64_done(&stacks->inner);
	array_done(&stacks->frames);
	array_done(&stacks->path);
}

/* ---- as the file has it ---- */

static int take_stack(void *userdata, const struct json_text *key, const struct json_text *value)
{
	const struct json_text text = json_text_inside(value);
	struct strbuf *stack = userdata;

	if (stack->length || !json_text_equals(key, TRACE_STACK) || !json_text_is_string(value))
		return 0;
	json_text_unescape(stack, &text);
	return strbuf_status(stack);
}

static int find_given(struct memory_stacks *stacks, uint32_t others, uint32_t *ret_stack)
{
	_cleanup_strbuf_ struct strbuf stack = {0};
	uint64_t known;
	int r;

	/* In a capture these are all arguments that nobody took, other ones for each row. */
	if (!strstr(trace_text(stacks->trace, others), TRACE_STACK))
		return 0;
	if (map_u64_get(&stacks->given, others, &known)) {
		*ret_stack = (uint32_t)known;
		return 0;
	}
	r = trace_others_each(stacks->trace, others, take_stack, &stack);
	if (r < 0)
		return r;
	if (stack.length &&
		intern_add(stacks->texts, strbuf_cstr(&stack), stack.length, ret_stack) < 0)
		return -ENOMEM;
	return map_u64_set(&stacks->given, others, *ret_stack);
}

/* ---- the rows around it ---- */

/* The frame of this name in another one. */
static int find_inner(
	struct memory_stacks *stacks, uint32_t outer, uint32_t name, uint32_t *ret_frame)
{
	const struct memory_frame frame = {.outer = outer, .name = name, .text = MODEL_NONE};
	uint64_t key = (uint64_t)outer << 32 | name, known;
	int r;

	if (map_u64_get(&stacks->inner, key, &known)) {
		*ret_frame = (uint32_t)known;
		return 0;
	}
	*ret_frame = (uint32_t)stacks->frames.count;
	r = map_u64_set(&stacks->inner, key, *ret_frame);
	return r < 0 ? r : array_append(&stacks->frames, frame);
}

/* Up to a row whose frame is known, and down again. */
static int find_frame(struct memory_stacks *stacks, uint32_t row, uint32_t *ret_frame)
{
	uint32_t frame = MODEL_NONE;
	int r = 0;

	array_clear(&stacks->path);
	for (; r == 0 && row != MODEL_NONE; row = stacks->parents[row]) {
		frame = stacks->around[row] - 1;
		if (frame != MODEL_NONE)
			break;
		r = array_append(&stacks->path, row);
	}
	while (r == 0 && stacks->path.count) {
		row = stacks->path.items[--stacks->path.count];
		r = find_inner(stacks, frame, stacks->trace->events.items[row].name, &frame);
		stacks->around[row] = frame + 1;
	}
	*ret_frame = frame;
	return r;
}

static int write_stack(struct memory_stacks *stacks, uint32_t frame, uint32_t *ret_text)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t names[DEEPEST], count = 0;

	for (; frame != MODEL_NONE && count < DEEPEST; frame = stacks->frames.items[frame].outer)
		names[count++] = stacks->frames.items[frame].name;
	while (count-- > 0) {
		if (text.length)
			strbuf_add_char(&text, TRACE_STACK_SEPARATOR);
		for (const char *at = trace_text(stacks->trace, names[count]); *at; at++)
			strbuf_add_char(&text, *at == TRACE_STACK_SEPARATOR ? ',' : *at);
	}
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return MIN(intern_add(stacks->texts, strbuf_cstr(&text), text.length, ret_text), 0);
}

int memory_stacks_find(
	struct memory_stacks *stacks, uint32_t row, uint32_t *ret_stack, bool *ret_is_given)
{
	const struct trace_event *event = &stacks->trace->events.items[row];
	uint32_t others = stacks->trace->memory.items[event->detail].others, frame;
	int r = others ? find_given(stacks, others, ret_stack) : 0;

	*ret_is_given = *ret_stack != 0;
	if (r < 0 || *ret_stack || stacks->parents[row] == MODEL_NONE)
		return r;
	r = find_frame(stacks, stacks->parents[row], &frame);
	if (r == 0 && stacks->frames.items[frame].text == MODEL_NONE)
		r = write_stack(stacks, frame, &stacks->frames.items[frame].text);
	if (r == 0)
		*ret_stack = stacks->frames.items[frame].text;
	return r;
}
