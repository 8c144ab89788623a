/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_held.h"

#include <errno.h>
#include <string.h>

#include "analyses/memory/held_spans.h"

struct finding {
	struct trace_held *held;
	struct trace_stacks *stacks;
	const struct trace_view *view;
	const struct trace_memory_use *use;
	const uint32_t *parents; /* by row */
	struct map_u64 known;    /* in use->stacks → place */
};

/* ---- the stack of a block ---- */

/* As the file has it: frames from the outermost on. */
static int find_given(struct finding *finding, uint32_t stack, uint32_t *ret_place)
{
	const char *at = intern_get(&finding->use->stacks, stack), *end;
	uint64_t known;
	uint32_t frame;
	int r = 0;

	if (map_u64_get(&finding->known, stack, &known)) {
		*ret_place = (uint32_t)known;
		return 0;
	}
	for (; r == 0 && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, TRACE_STACK_SEPARATOR);
		r = trace_frames_find_text(
			&finding->stacks->frames, at, (size_t)(end - at), &frame);
		if (r == 0)
			r = trace_stacks_enter(finding->stacks, *ret_place, frame, ret_place);
	}
	return r < 0 ? r : map_u64_set(&finding->known, stack, *ret_place);
}

static int find_place(
	struct finding *finding, const struct trace_memory_block *block, uint32_t *ret_place)
{
	const uint32_t *by_row = finding->stacks->by_row;
	uint32_t row = block->row;

	*ret_place = MODEL_NONE;
	if (block->is_given)
		return find_given(finding, block->stack, ret_place);
	while (*ret_place == MODEL_NONE && (row = finding->parents[row]) != MODEL_NONE)
		*ret_place = by_row[row];
	return 0;
}

/* ---- parts ---- */

static int add_block(
	struct finding *finding, const struct trace_memory_block *block, uint32_t device)
{
	const struct trace_event *event = &finding->view->trace->events.items[block->row];
	struct trace_held_part part = {
		.time_ns = trace_view_start_ns(finding->view, event),
		.bytes = block->bytes,
		.track = event->track,
		.device = device,
	};
	int r = find_place(finding, block, &part.place);

	if (part.place == MODEL_NONE)
		part.leaf = HELD_WITHOUT_STACK;
	return r < 0 ? r : array_append(&finding->held->parts, part);
}

/* The rest of the peak. */
static int add_unseen(
	struct finding *finding, const struct trace_memory_device *from, uint32_t device)
{
	const struct trace_held_part part = {
		.time_ns = from->peak_ns,
		.bytes = from->peak_unseen,
		.track = MODEL_NONE,
		.device = device,
		.place = MODEL_NONE,
		.leaf = finding->view->trace->is_narrowed ? "[allocated before the time shown]"
							  : "[allocated before the trace]",
	};

	return part.bytes ? array_append(&finding->held->parts, part) : 0;
}

static int add_device(struct finding *finding, const struct trace_memory_device *from)
{
	uint32_t number = (uint32_t)finding->held->devices.count;
	struct trace_held_device device;
	int r;

	held_device_frame(from, device.frame, sizeof(device.frame));
	r = array_append(&finding->held->devices, device);
	for (size_t i = 0; r == 0 && i < from->blocks.count; i++)
		r = add_block(finding, &from->blocks.items[i], number);
	return r < 0 ? r : add_unseen(finding, from, number);
}

int trace_held_find(
	struct trace_held *held, struct trace_stacks *stacks, const struct trace_view *view)
{
	_cleanup_trace_memory_ struct trace_memory_use use = {0};
	struct finding finding = {.held = held, .stacks = stacks, .view = view, .use = &use};
	int r = trace_memory_init(&use, view->trace);

	*held = (struct trace_held){0};
	if (r < 0)
		return r;
	finding.parents = trace_parents(view->trace, true);
	if (!finding.parents)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < use.devices.count; i++) {
		if (!trace_memory_is_host(use.devices.items[i].type))
			r = add_device(&finding, &use.devices.items[i]);
	}
	map_u64_done(&finding.known);
	if (r < 0)
		trace_held_done(held);
	return r;
}

bool trace_held_has_any(const struct trace_view *view, bool *ret_only_host)
{
	const struct trace *trace = view->trace;

	array_foreach (&trace->events, event) {
		const struct trace_memory *memory;

		if (event->category != TRACE_CPU_INSTANT || event->detail == MODEL_NONE)
			continue;
		memory = &trace->memory.items[event->detail];
		if (memory->bytes == TRACE_NO_NUMBER)
			continue;
		*ret_only_host = trace_memory_is_host(memory->device_type);
		if (!*ret_only_host)
			return true;
	}
	return false;
}

void trace_held_done(struct trace_held *held)
{
	array_done(&held->parts);
	array_done(&held->devices);
}
