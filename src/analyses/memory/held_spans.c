/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/memory/held_spans.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/trace_capture.h"

void held_device_frame(const struct trace_memory_device *device, char *frame, size_t size)
{
	char name[64];

	trace_memory_device_name(device, name, sizeof(name));
	snprintf(frame, size, "[memory of %s]", name);
}

/* Rows of memory have the order of what they were made of. */
struct allocations {
	ARRAY_OF(const struct model_device_memory *) items;
};

static int list_allocations(struct allocations *allocations, const struct model *model)
{
	int r = 0;

	array_foreach (&model->device_memory, memory) {
		if (r == 0 && model_is_device_memory(memory))
			r = array_append(&allocations->items, memory);
	}
	return r;
}

static int add_device(struct weight_spans *spans, struct model *model, const struct trace *trace,
	const struct allocations *allocations, const struct trace_memory_device *device)
{
	char frame[96];
	uint32_t name;
	int r;

	assert(allocations->items.items); /* what the device's rows are of */
	held_device_frame(device, frame, sizeof(frame));
	r = MIN(intern_add(&model->strings, frame, strlen(frame), &name), 0);
	for (size_t i = 0; r == 0 && i < device->blocks.count; i++) {
		const struct trace_memory_block *block = &device->blocks.items[i];
		const struct model_device_memory *from =
			allocations->items.items[trace->events.items[block->row].detail];

		struct model_span span = {
			.start_ns = from->time_ns,
			.process = from->process,
			.thread = from->thread,
			.stack = from->stack,
			.leaf = from->stack == MODEL_NONE ? HELD_WITHOUT_STACK : NULL,
			.device = intern_get(&model->strings, name),
			.bytes = block->bytes,
		};

		r = array_append(&spans->items, span);
	}
	return r;
}

static int add_devices(struct weight_spans *spans, struct model *model, const struct trace *trace)
{
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	struct allocations allocations = {0};
	int r = list_allocations(&allocations, model);

	if (r == 0)
		r = trace_memory_init(&use, trace);
	for (size_t i = 0; r == 0 && i < use.devices.count; i++)
		r = add_device(spans, model, trace, &allocations, &use.devices.items[i]);
	array_done(&allocations.items);
	return r;
}

int held_spans_init(struct weight_spans *spans, struct model *model)
{
	_cleanup_trace_ struct trace *trace = NULL;
	int r;

	*spans = (struct weight_spans){0};
	if (!model->device_memory.count || model_is_foreign(model))
		return 0;
	r = trace_of_recording(&trace, model);
	if (r == 0)
		r = add_devices(spans, model, trace);
	if (r < 0)
		weight_spans_done(spans);
	return r;
}
