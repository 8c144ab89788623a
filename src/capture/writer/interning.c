/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/writer/interning.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "capture/fields.h"
#include "capture/protobuf.h"

/* Mapping iid 1 stands for "no mapping": versions of Perfetto before 55 drop a stack without one.
 */
#define PLACEHOLDER_IID 1

void interning_done(struct interning *interning)
{
	intern_done(&interning->function_names);
	intern_done(&interning->source_paths);
	intern_done(&interning->mapping_paths);
	intern_done(&interning->build_ids);
	intern_done(&interning->mappings);
	intern_done(&interning->frames);
	intern_done(&interning->callstacks);
	intern_done(&interning->tasks);
	intern_done(&interning->executions);
	intern_done(&interning->specifications);
	intern_done(&interning->contexts);
	intern_done(&interning->event_categories);
	intern_done(&interning->event_names);
	intern_done(&interning->annotation_names);
	strbuf_done(&interning->pending);
}

/* Ends an entry begun at `start` in pending: all of it, or nothing. */
static int finish_entry(struct interning *interning, size_t start)
{
	if (strbuf_status(&interning->pending) == 0)
		return 0;
	pb_cut(&interning->pending, start);
	return -ENOMEM;
}

/* The iid of a string in the InternedData list `list`, put there when it is new. */
static int intern_bytes(struct interning *interning, struct intern *table, uint32_t list,
	const void *bytes, size_t length, uint64_t *ret_iid)
{
	struct strbuf *pending = &interning->pending;
	size_t start = pending->length, begin;
	uint32_t id;
	int added = intern_add(table, bytes, length, &id);

	if (added < 0)
		return added;
	*ret_iid = (uint64_t)id + 1;
	if (!added)
		return 0;
	begin = pb_begin(pending, list);
	pb_put_u64(pending, STRING_IID, *ret_iid);
	pb_put_bytes(pending, STRING_BYTES, bytes, length);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

/* The same for a `string`, with a category that 0 leaves out. */
static int intern_name(struct interning *interning, struct intern *table, uint32_t list,
	const char *name, uint64_t category, uint64_t *ret_iid)
{
	struct strbuf *pending = &interning->pending;
	size_t start = pending->length, begin;
	uint32_t id;
	int added = intern_add(table, name, strlen(name), &id);

	if (added < 0)
		return added;
	*ret_iid = (uint64_t)id + 1;
	if (!added)
		return 0;
	begin = pb_begin(pending, list);
	pb_put_u64(pending, STRING_IID, *ret_iid);
	pb_put_text(pending, STRING_BYTES, name);
	if (category)
		pb_put_u64(pending, SPECIFICATION_CATEGORY, category);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

/* Devices do few things, again and again: what was read at this address last is looked at first. */
int interning_specification(struct interning *interning, const char *name, uint64_t *ret_iid)
{
	struct known_name *known =
		&interning->known_names[(uintptr_t)name / 16 % ARRAY_SIZE(interning->known_names)];
	int result;

	if (known->name == name &&
		strcmp(intern_get(&interning->specifications, known->id), name) == 0) {
		*ret_iid = (uint64_t)known->id + 1;
		return 0;
	}
	result = intern_name(interning, &interning->specifications, INTERNED_SPECIFICATIONS, name,
		CATEGORY_COMPUTE, ret_iid);
	if (result == 0)
		*known = (struct known_name){.name = name, .id = (uint32_t)*ret_iid - 1};
	return result;
}

int interning_event_category(struct interning *interning, const char *name, uint64_t *ret_iid)
{
	return intern_name(interning, &interning->event_categories, INTERNED_EVENT_CATEGORIES, name,
		0, ret_iid);
}

int interning_event_name(struct interning *interning, const char *name, uint64_t *ret_iid)
{
	return intern_name(
		interning, &interning->event_names, INTERNED_EVENT_NAMES, name, 0, ret_iid);
}

int interning_annotation_name(struct interning *interning, const char *name, uint64_t *ret_iid)
{
	return intern_name(interning, &interning->annotation_names, INTERNED_ANNOTATION_NAMES, name,
		0, ret_iid);
}

/* As intern_bytes() for a text that may be NULL: iid 0, which is "not set". */
static int intern_text(struct interning *interning, struct intern *table, uint32_t list,
	const char *text, uint64_t *ret_iid)
{
	*ret_iid = 0;
	if (!text)
		return 0;
	return intern_bytes(interning, table, list, text, strlen(text), ret_iid);
}

/* Interns the path's components and appends their iids to the mapping that is being written. */
static int put_path_components(
	struct interning *interning, const char *path, struct strbuf *mapping)
{
	const char *component = is_plain_path(path) ? path + 1 : path;

	if (!path[0])
		return 0;
	for (;;) {
		size_t length = strcspn(component, "/");
		uint64_t iid;
		int result = intern_bytes(interning, &interning->mapping_paths,
			INTERNED_MAPPING_PATHS, component, length, &iid);

		if (result < 0)
			return result;
		pb_put_u64(mapping, MAPPING_PATH, iid);
		if (!component[length])
			return 0;
		component += length + 1;
	}
}

/*
 * Whether a reader that guesses from the first component would guess wrongly how to join the path:
 * names like "[vdso]" are taken as they are, others get a slash before them.
 */
static bool needs_verbatim_mark(const char *path)
{
	return is_plain_path(path) ? path[1] == '[' : path[0] && path[0] != '[';
}

static int put_mapping(
	struct interning *interning, const struct capture_mapping *mapping, uint64_t iid)
{
	_cleanup_strbuf_ struct strbuf message = {0};
	size_t start;
	uint64_t build_id;
	int result;

	pb_put_u64(&message, MAPPING_IID, iid);
	if (mapping->build_id_length) {
		result = intern_bytes(interning, &interning->build_ids, INTERNED_BUILD_IDS,
			mapping->build_id, mapping->build_id_length, &build_id);
		if (result < 0)
			return result;
		pb_put_u64(&message, MAPPING_BUILD_ID, build_id);
	}
	result = put_path_components(interning, mapping->path, &message);
	if (result < 0)
		return result;
	if (needs_verbatim_mark(mapping->path))
		pb_put_u64(&message, MAPPING_VERBATIM_PATH, !is_plain_path(mapping->path));
	if (strbuf_status(&message) < 0)
		return -ENOMEM;
	start = interning->pending.length;
	pb_put_bytes(&interning->pending, INTERNED_MAPPINGS, message.data, message.length);
	return finish_entry(interning, start);
}

/* Key of a mapping: the build id's length, the build id, the path. */
int interning_mapping(
	struct interning *interning, const struct capture_mapping *mapping, capture_id *ret_id)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t id;
	int added;

	strbuf_add_char(&key, (char)mapping->build_id_length);
	strbuf_add_bytes(&key, mapping->build_id, mapping->build_id_length);
	strbuf_add(&key, mapping->path);
	if (strbuf_status(&key) < 0)
		return -ENOMEM;
	added = intern_add(&interning->mappings, key.data, key.length, &id);
	if (added < 0)
		return added;
	*ret_id = id + 1;
	return added ? put_mapping(interning, mapping, PLACEHOLDER_IID + 1 + (uint64_t)id) : 0;
}

const char *interning_mapping_path(const struct interning *interning, capture_id mapping,
	const uint8_t **ret_build_id, size_t *ret_build_id_length)
{
	const char *key;

	*ret_build_id = NULL;
	*ret_build_id_length = 0;
	if (mapping == 0)
		return NULL;
	assert(mapping <= interning->mappings.entries.count);
	key = intern_get(&interning->mappings, mapping - 1);
	*ret_build_id_length = (uint8_t)key[0];
	*ret_build_id = (const uint8_t *)key + 1;
	return key + 1 + *ret_build_id_length;
}

static int put_placeholder(struct interning *interning)
{
	struct strbuf *pending = &interning->pending;
	size_t start, begin;
	uint64_t path;
	int result;

	if (interning->has_placeholder)
		return 0;
	result = intern_text(
		interning, &interning->mapping_paths, INTERNED_MAPPING_PATHS, "[unknown]", &path);
	if (result < 0)
		return result;
	start = pending->length;
	begin = pb_begin(pending, INTERNED_MAPPINGS);
	pb_put_u64(pending, MAPPING_IID, PLACEHOLDER_IID);
	pb_put_u64(pending, MAPPING_PATH, path);
	pb_put_u64(pending, MAPPING_PLACEHOLDER, true);
	pb_end(pending, begin);
	result = finish_entry(interning, start);
	interning->has_placeholder = result == 0;
	return result;
}

/* A frame as it is compared and written: no padding, zeroed. */
struct frame_key {
	uint64_t rel_pc, function, source_path;
	uint32_t mapping, line;
	uint64_t kind;
};

static int put_frame(struct interning *interning, const struct frame_key *frame, uint64_t iid)
{
	struct strbuf *pending = &interning->pending;
	size_t start = pending->length, begin = pb_begin(pending, INTERNED_FRAMES);

	pb_put_u64(pending, FRAME_IID, iid);
	if (frame->function)
		pb_put_u64(pending, FRAME_FUNCTION, frame->function);
	pb_put_u64(pending, FRAME_MAPPING, (uint64_t)PLACEHOLDER_IID + frame->mapping);
	pb_put_u64(pending, FRAME_REL_PC, frame->rel_pc);
	if (frame->source_path)
		pb_put_u64(pending, FRAME_SOURCE_PATH, frame->source_path);
	if (frame->line)
		pb_put_u64(pending, FRAME_LINE, frame->line);
	if (frame->kind != CAPTURE_FRAME_NATIVE)
		pb_put_u64(pending, FRAME_KIND, frame->kind);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

int interning_frame(
	struct interning *interning, const struct capture_frame *frame, capture_id *ret_id)
{
	struct frame_key key = {.rel_pc = frame->rel_pc,
		.mapping = frame->mapping,
		.line = frame->line,
		.kind = frame->kind ? frame->kind : CAPTURE_FRAME_NATIVE};
	uint32_t id;
	int result;

	assert(frame->mapping <= interning->mappings.entries.count);
	result = intern_text(interning, &interning->function_names, INTERNED_FUNCTION_NAMES,
		frame->function, &key.function);
	if (result == 0)
		result = intern_text(interning, &interning->source_paths, INTERNED_SOURCE_PATHS,
			frame->source_file, &key.source_path);
	if (result == 0 && frame->mapping == 0)
		result = put_placeholder(interning);
	if (result == 0)
		result = intern_add(&interning->frames, &key, sizeof(key), &id);
	if (result < 0)
		return result;
	*ret_id = id + 1;
	return result ? put_frame(interning, &key, *ret_id) : 0;
}

uint64_t interning_frame_place(
	const struct interning *interning, capture_id frame, capture_id *ret_mapping)
{
	struct frame_key key;

	assert(frame && frame <= interning->frames.entries.count);
	memcpy(&key, intern_get(&interning->frames, frame - 1), sizeof(key));
	*ret_mapping = key.mapping;
	return key.rel_pc;
}

static int put_callstack(struct interning *interning, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, uint64_t iid)
{
	struct strbuf *pending = &interning->pending;
	size_t start = pending->length, begin = pb_begin(pending, INTERNED_CALLSTACKS);

	pb_put_u64(pending, CALLSTACK_IID, iid);
	for (size_t i = 0; i < count; i++)
		pb_put_u64(pending, CALLSTACK_FRAMES, frames[i]);
	if (stop != WIRE_STOP_COMPLETE)
		pb_put_u64(pending, CALLSTACK_STOP, stop);
	if (python != WIRE_PYTHON_NONE)
		pb_put_u64(pending, CALLSTACK_PYTHON, python);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

/*
 * Stacks are remembered by 128 bits of hash, not by content: a long recording has millions of them,
 * and with ten million the chance that any two collide is below 10^-24.
 */
int interning_callstack(struct interning *interning, const capture_id *frames, size_t count,
	enum wire_stop stop, enum wire_python python, capture_id *ret_id)
{
	size_t length = count * sizeof(*frames);
	uint64_t seed = (uint64_t)python << 32 | stop;
	uint64_t key[2] = {hash_bytes(frames, length, seed),
		hash_bytes(frames, length, 0x9e3779b97f4a7c15ULL ^ seed)};
	uint32_t id;
	int added = intern_add(&interning->callstacks, key, sizeof(key), &id);

	if (added < 0)
		return added;
	*ret_id = id + 1;
	return added ? put_callstack(interning, frames, count, stop, python, *ret_id) : 0;
}

int interning_context(struct interning *interning, uint32_t pid, bool is_cuda)
{
	struct strbuf *pending = &interning->pending;
	size_t start = pending->length, begin;
	uint32_t id;
	int added = intern_add(&interning->contexts, &pid, sizeof(pid), &id);

	if (added <= 0)
		return added;
	begin = pb_begin(pending, INTERNED_CONTEXTS);
	pb_put_u64(pending, CONTEXT_IID, pid);
	pb_put_u64(pending, CONTEXT_PID, pid);
	pb_put_u64(pending, CONTEXT_API, is_cuda ? CONTEXT_API_CUDA : CONTEXT_API_OPENCL);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

/* An entry of two numbers, distinguished by both. */
static int intern_pair(struct interning *interning, struct intern *table, uint32_t list,
	uint32_t first, uint32_t second, uint64_t *ret_iid)
{
	struct strbuf *pending = &interning->pending;
	uint32_t key[2] = {first, second}, id;
	size_t start = pending->length, begin;
	int added = intern_add(table, key, sizeof(key), &id);

	if (added < 0)
		return added;
	*ret_iid = (uint64_t)id + 1;
	if (!added)
		return 0;
	begin = pb_begin(pending, list);
	pb_put_u64(pending, 1, *ret_iid);
	pb_put_u64(pending, 2, first);
	pb_put_u64(pending, 3, second);
	pb_end(pending, begin);
	return finish_entry(interning, start);
}

_Static_assert(TASK_IID == 1 && TASK_PID == 2 && TASK_TID == 3, "as intern_pair() writes it");
_Static_assert(EXECUTION_IID == 1 && EXECUTION_CPU == 2 && EXECUTION_MODE == 3, "likewise");

int interning_task(struct interning *interning, uint32_t pid, uint32_t tid, uint64_t *ret_iid)
{
	return intern_pair(interning, &interning->tasks, INTERNED_TASK_CONTEXTS, pid, tid, ret_iid);
}

int interning_execution(
	struct interning *interning, uint32_t cpu, enum capture_cpu_mode mode, uint64_t *ret_iid)
{
	return intern_pair(interning, &interning->executions, INTERNED_EXECUTION_CONTEXTS, cpu,
		mode == CAPTURE_MODE_KERNEL ? STACK_MODE_KERNEL : STACK_MODE_USER, ret_iid);
}
