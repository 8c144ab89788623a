/* SPDX-License-Identifier: Apache-2.0 */
#include "model/execution_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const match_names[EXECUTION_MATCH_MAX] = {
	[EXECUTION_UNMATCHED] = "none",
	[EXECUTION_BY_RF_ID] = "rf_id",
	[EXECUTION_BY_OFFSET] = "offset",
	[EXECUTION_BY_TREE] = "tree",
};

const char *execution_match_to_string(enum execution_match match)
{
	return match < EXECUTION_MATCH_MAX ? match_names[match] : NULL;
}

enum execution_match execution_match_from_text(struct execution_text text)
{
	for (unsigned match = 0; match < EXECUTION_MATCH_MAX; match++) {
		if (execution_text_equals(text, match_names[match]))
			return (enum execution_match)match;
	}
	return EXECUTION_UNMATCHED;
}

struct execution_trace *execution_trace_new(const char *path)
{
	_cleanup_execution_trace_ struct execution_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->path = strdup(path);
	return trace->path ? TAKE_PTR(trace) : NULL;
}

struct execution_trace *execution_trace_free(struct execution_trace *trace)
{
	if (!trace)
		return NULL;
	if (trace->release)
		trace->release(trace);
	free((char *)trace->path);
	array_done(&trace->nodes);
	array_done(&trace->works);
	array_done(&trace->deps);
	id_map_done(&trace->index);
	array_foreach (&trace->blocks, block)
		free(*block);
	array_done(&trace->blocks);
	free(trace);
	return NULL;
}

void execution_trace_freep(struct execution_trace **trace)
{
	*trace = execution_trace_free(*trace);
}

struct execution_text execution_trace_keep(
	struct execution_trace *trace, const char *bytes, size_t length)
{
	_cleanup_free_ char *copy = malloc(length + 1);

	if (!copy || length > UINT32_MAX)
		return (struct execution_text){NULL, 0};
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	if (array_append(&trace->blocks, copy) < 0)
		return (struct execution_text){NULL, 0};
	return (struct execution_text){TAKE_PTR(copy), (uint32_t)length};
}

struct execution_text execution_trace_schema(const struct execution_trace *trace)
{
	static const char with_ctrl_deps[] = "1.0.2-chakra.0.0.4";

	if (trace->schema.length && memmem(trace->schema.bytes, trace->schema.length, "chakra", 6))
		return trace->schema;
	return (struct execution_text){with_ctrl_deps, sizeof(with_ctrl_deps) - 1};
}

int execution_trace_index(struct execution_trace *trace)
{
	uint64_t first = UINT64_MAX, last = 0;
	int r;

	array_foreach (&trace->nodes, node) {
		first = MIN(first, node->id);
		last = MAX(last, node->id);
	}
	id_map_done(&trace->index);
	trace->repeated_ids = 0;
	r = id_map_init(&trace->index, first, last, trace->nodes.count);
	for (uint32_t i = 0; r == 0 && i < trace->nodes.count; i++) {
		uint64_t id = trace->nodes.items[i].id;

		if (id_map_get(&trace->index, id, NULL))
			trace->repeated_ids++;
		else
			r = id_map_set(&trace->index, id, i);
	}
	return r;
}

const struct execution_node *execution_trace_find(const struct execution_trace *trace, uint64_t id)
{
	uint64_t index;

	return id_map_get(&trace->index, id, &index) ? &trace->nodes.items[index] : NULL;
}
