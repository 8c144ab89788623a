/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/roofline/batches.h"

#include <string.h>

uint32_t roofline_batch_around(const struct trace *trace, const uint32_t *parents, uint32_t row)
{
	struct op_batch batch;
	uint32_t found = 0;

	for (row = parents[row]; row != MODEL_NONE; row = parents[row]) {
		const struct trace_event *event = &trace->events.items[row];

		if (event->category != TRACE_USER_ANNOTATION ||
			!op_batch_read(&batch, trace_text(trace, event->name)))
			continue;
		if (!batch.is_least)
			return event->name;
		found = found ? found : event->name;
	}
	return found;
}

static struct json_text text_of(const struct trace *trace, uint32_t string)
{
	const struct intern_entry *entry = &trace->strings.entries.items[string];

	return (struct json_text){.bytes = entry->bytes, .length = entry->length};
}

/* (keys, values, their caches, …) */
static enum op_dtype written_dtype(const struct trace *trace, const struct trace_op *op)
{
	const struct op_texts texts = {
		.dims = text_of(trace, op->input_dims), .types = text_of(trace, op->input_types)};
	const struct op_tensor *cache = NULL;
	struct op_inputs inputs;

	if (op_inputs_read(&inputs, &texts))
		cache = op_tensor_at(&inputs, 2);
	return cache ? cache->dtype : OP_DTYPE_UNKNOWN;
}

enum op_dtype roofline_cache_dtype(const struct trace *trace)
{
	static const char *const writers[] = {"_C_cache_ops::reshape_and_cache_flash",
		"_C_cache_ops::reshape_and_cache", "sglang::store_cache"};
	enum op_dtype only = OP_DTYPE_UNKNOWN, dtype;

	array_foreach (&trace->events, event) {
		const struct trace_op *op;
		bool is_writer = false;

		if (event->category != TRACE_CPU_OP)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
			is_writer |= strcmp(trace_text(trace, event->name), writers[i]) == 0;
		op = is_writer ? trace_op(trace, event) : NULL;
		if (!op)
			continue;
		dtype = written_dtype(trace, op);
		if (dtype == OP_DTYPE_UNKNOWN || (only != OP_DTYPE_UNKNOWN && dtype != only))
			return OP_DTYPE_UNKNOWN;
		only = dtype;
	}
	return only;
}
