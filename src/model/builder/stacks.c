/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and callstacks of captures, equal ones kept once. */
#include <string.h>

#include "model/builder/internal.h"

static uint64_t hash_frame(const struct raw_frame *frame)
{
	uint64_t hash = hash_u64(frame->rel_pc);

	hash = hash_u64(hash ^ ((uint64_t)frame->name << 32 | frame->source_file));
	hash = hash_u64(hash ^ ((uint64_t)frame->module << 32 | frame->line));
	return hash_u64(hash ^ (uint64_t)frame->kind);
}

static bool is_same_frame(const struct raw_frame *a, const struct raw_frame *b)
{
	return a->rel_pc == b->rel_pc && a->name == b->name && a->source_file == b->source_file &&
	       a->line == b->line && a->module == b->module && a->kind == b->kind;
}

/* One of two different ones with the same hash is kept as often as it comes. */
static int keep_frame(
	struct model_builder *builder, const struct raw_frame *raw, uint32_t *ret_index)
{
	struct map_u64 *hashes = &builder->stacks_seen.frame_hashes;
	uint64_t hash = hash_frame(raw), known;
	int r;

	if (map_u64_get(hashes, hash, &known) &&
		is_same_frame(&builder->frames.items[known], raw)) {
		*ret_index = (uint32_t)known;
		return 0;
	}
	r = reach_id(&builder->frames, 0, (struct raw_frame){0});
	*ret_index = (uint32_t)builder->frames.count;
	r = r ?: map_u64_set(hashes, hash, *ret_index);
	return r ?: array_append(&builder->frames, *raw);
}

int builder_visit_frame(void *context, capture_id id, const struct capture_frame *frame)
{
	struct model_builder *builder = context;
	struct raw_frame raw = {
		.rel_pc = frame->rel_pc,
		.line = frame->line,
		.module = builder_module_of_mapping(builder, frame->mapping),
		.kind = frame->kind ? frame->kind : CAPTURE_FRAME_NATIVE,
	};
	uint32_t index = 0;
	int r = builder_text(builder, frame->function, &raw.name);

	r = r ?: builder_text(builder, frame->source_file, &raw.source_file);
	r = r ?: keep_frame(builder, &raw, &index);
	r = r ?: reach_id(&builder->stacks_seen.frames, id, 0);
	if (r == 0)
		builder->stacks_seen.frames.items[id] = index;
	return r;
}

/* Appends the kept frames of the capture's; unknown ones are left out. */
static int add_frames(struct model_builder *builder, const capture_id *frames, size_t count,
	struct raw_stack *raw)
{
	raw->first = (uint32_t)builder->stack_frames.count;
	if (count > UINT32_MAX - raw->first || array_reserve(&builder->stack_frames, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint32_t frame = frames[i] < builder->stacks_seen.frames.count
					 ? builder->stacks_seen.frames.items[frames[i]]
					 : 0;

		if (frame)
			builder->stack_frames.items[builder->stack_frames.count++] = frame;
	}
	raw->count = (uint32_t)builder->stack_frames.count - raw->first;
	return 0;
}

static uint64_t hash_stack(const struct model_builder *builder, const struct raw_stack *raw)
{
	uint64_t hash = hash_u64((uint64_t)raw->stop << 32 | raw->python);

	for (uint32_t i = 0; i < raw->count; i++)
		hash = hash_u64(hash ^ builder->stack_frames.items[raw->first + i]);
	return hash;
}

static bool is_same_stack(
	const struct model_builder *builder, const struct raw_stack *a, const struct raw_stack *b)
{
	const uint32_t *frames = builder->stack_frames.items;

	return a->count == b->count && a->stop == b->stop && a->python == b->python &&
	       (!a->count || memcmp(frames + a->first, frames + b->first,
				     a->count * sizeof(*frames)) == 0);
}

/* `raw` has the frames that were added last, which go again where they are known. */
static int keep_stack(
	struct model_builder *builder, const struct raw_stack *raw, uint32_t *ret_index)
{
	struct map_u64 *hashes = &builder->stacks_seen.stack_hashes;
	uint64_t hash = hash_stack(builder, raw), known;
	int r;

	if (map_u64_get(hashes, hash, &known) &&
		is_same_stack(builder, &builder->stacks.items[known], raw)) {
		builder->stack_frames.count = raw->first;
		*ret_index = (uint32_t)known;
		return 0;
	}
	r = reach_id(&builder->stacks, 0, (struct raw_stack){0});
	*ret_index = (uint32_t)builder->stacks.count;
	r = r ?: map_u64_set(hashes, hash, *ret_index);
	return r ?: array_append(&builder->stacks, *raw);
}

int builder_visit_callstack(void *context, capture_id id, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python)
{
	struct model_builder *builder = context;
	struct raw_stack raw = {.stop = stop, .python = python};
	uint32_t index = 0;
	int r = add_frames(builder, frames, count, &raw);

	r = r ?: keep_stack(builder, &raw, &index);
	r = r ?: reach_id(&builder->stacks_seen.stacks, id, 0);
	if (r == 0)
		builder->stacks_seen.stacks.items[id] = index;
	return r;
}

uint32_t builder_stack_of(const struct model_builder *builder, capture_id callstack)
{
	return callstack < builder->stacks_seen.stacks.count
		       ? builder->stacks_seen.stacks.items[callstack]
		       : 0;
}

void builder_forget_stacks(struct model_builder *builder)
{
	builder->stacks.count = 0;
	builder->stack_frames.count = 0;
	builder->stacks_seen.stacks.count = 0;
	map_u64_clear(&builder->stacks_seen.stack_hashes);
}

void builder_stacks_done(struct model_builder *builder)
{
	array_done(&builder->frames);
	array_done(&builder->stack_frames);
	array_done(&builder->stacks);
	array_done(&builder->stacks_seen.frames);
	array_done(&builder->stacks_seen.stacks);
	map_u64_done(&builder->stacks_seen.frame_hashes);
	map_u64_done(&builder->stacks_seen.stack_hashes);
}
