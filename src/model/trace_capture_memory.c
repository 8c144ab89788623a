/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the allocations and releases of a recording, with the stacks of their calls. */
#include "base/json.h"
#include "model/trace_capture_state.h"

/* "stack":"main (program.c:12);allocate (program.c:30)", as importers have it of a snapshot of
 * PyTorch's memory. */
static int write_stack(struct capture_rows *rows, uint32_t index, uint32_t *ret_others)
{
	const struct model *model = rows->model;
	const struct model_stack *stack = &model->stacks.items[index];
	_cleanup_strbuf_ struct strbuf text = {0}, argument = {0};
	int r;

	for (uint32_t i = 0; i < stack->whole_count; i++) {
		size_t begin = text.length + (i > 0);

		if (i > 0)
			strbuf_add_char(&text, TRACE_STACK_SEPARATOR);
		model_frame_place(model, model->stack_frames.items[stack->first + i], &text);
		if (strbuf_status(&text) < 0)
			return -ENOMEM;
		for (size_t at = begin; at < text.length; at++) {
			if (text.data[at] == TRACE_STACK_SEPARATOR)
				text.data[at] = ',';
		}
	}
	if (!text.length)
		return 0;
	strbuf_add(&argument, "\"" TRACE_STACK "\":\"");
	json_escape(&argument, text.data, text.length);
	strbuf_add_char(&argument, '"');
	r = strbuf_status(&argument);
	return r < 0 ? r : capture_rows_text(rows->trace, strbuf_cstr(&argument), ret_others);
}

static int find_stack(struct capture_rows *rows, uint32_t index, struct trace_memory *memory)
{
	uint64_t known;
	int r;

	if (index == MODEL_NONE)
		return 0;
	memory->recorded = index + 1;
	if (map_u64_get(&rows->stacks, index, &known)) {
		memory->others = (uint32_t)known;
		return 0;
	}
	r = write_stack(rows, index, &memory->others);
	return r < 0 ? r : map_u64_set(&rows->stacks, index, memory->others);
}

/* An allocation as PyTorch's profiler has them. What is in use by then, the reader adds up. */
int capture_rows_add_memory(struct capture_rows *rows, const struct model_device_memory *from)
{
	const struct capture_memory *memory = &from->memory;
	struct trace_event event = {
		.start_ns = capture_rows_time(rows, from->time_ns),
		.duration_ns = TRACE_NO_DURATION,
		.external_id = TRACE_NO_ID,
		.category = TRACE_CPU_INSTANT,
		.category_name = rows->instant,
		.name = rows->memory,
		.detail = (uint32_t)rows->trace->memory.count,
	};
	struct trace_memory detail = {
		.address = memory->address,
		.bytes = (int64_t)(memory->released ? 0 - memory->bytes : memory->bytes),
		.total_allocated = TRACE_NO_NUMBER,
		.total_reserved = TRACE_NO_NUMBER,
		.device_type = TRACE_DEVICE_CUDA,
	};
	uint32_t device = 0;
	int r = capture_rows_device(
		rows, model_gpu_label(rows->model, from->process, memory->gpu), &device);

	detail.device_id = device;
	r = r ?: capture_rows_thread(rows, from->process, from->thread, &event.track);
	r = r ?: find_stack(rows, from->stack, &detail);
	r = r ?: array_append(&rows->trace->memory, detail);
	return r ?: capture_rows_add(rows, &event);
}
