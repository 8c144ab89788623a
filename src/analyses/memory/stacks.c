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
	return stacks->parents ? 0 : -ENOMEM;
}

void memory_stacks_done(struct memory_stacks *stacks)
{
	free(stacks->parents);
	map_u64_done(&stacks->given);
	map_u64_done(&stacks->around);
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

static int write_around(struct memory_stacks *stacks, uint32_t row, uint32_t *ret_stack)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t rows[DEEPEST], count = 0;

	for (; row != MODEL_NONE && count < DEEPEST; row = stacks->parents[row])
		rows[count++] = row;
	while (count-- > 0) {
		const struct trace_event *event = &stacks->trace->events.items[rows[count]];
		const char *name = trace_text(stacks->trace, event->name);

		if (text.length)
			strbuf_add_char(&text, TRACE_STACK_SEPARATOR);
		for (const char *at = name; *at; at++)
			strbuf_add_char(&text, *at == TRACE_STACK_SEPARATOR ? ',' : *at);
	}
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return MIN(intern_add(stacks->texts, strbuf_cstr(&text), text.length, ret_stack), 0);
}

int memory_stacks_find(struct memory_stacks *stacks, uint32_t row, uint32_t *ret_stack)
{
	const struct trace_event *event = &stacks->trace->events.items[row];
	uint32_t others = stacks->trace->memory.items[event->detail].others;
	uint32_t around = stacks->parents[row];
	uint64_t known;
	int r = others ? find_given(stacks, others, ret_stack) : 0;

	if (r < 0 || *ret_stack || around == MODEL_NONE)
		return r;
	if (map_u64_get(&stacks->around, around, &known)) {
		*ret_stack = (uint32_t)known;
		return 0;
	}
	r = write_around(stacks, around, ret_stack);
	return r < 0 ? r : map_u64_set(&stacks->around, around, *ret_stack);
}
