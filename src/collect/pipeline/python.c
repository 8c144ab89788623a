/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/pipeline/python.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "symbols/python_code.h"
#include "unwind/python_find.h"

#define CHECK_PERIOD_NS (20 * NS_PER_MS)
/* An interpreter that has not started by then is one that never will. */
#define CHECK_FOR_NS (60 * NS_PER_S)

/* What a file was found to be. */
struct python_file {
	bool is_interpreter, unknown;
	struct python_interpreter interpreter;
};

/*
 * An interpreter in memory, shared by a process and the children that it forked. Kept to the end:
 * samples outlive processes.
 */
struct python_image {
	struct python_image_facts facts; /* addresses in the process */
	bool known;                      /* its layout holds */
	bool validated;
	uint64_t first_seen_ns;
};

struct code_key {
	uint64_t code;
	uint32_t check, interpreter;
};

struct python_registry {
	struct file_store *files;
	struct source_unwinder unwinder;
	struct capture_writer *writer;
	struct map_u64 by_file;   /* mapped_file.index → struct python_file * */
	struct map_u64 processes; /* pid → index in images */
	struct map_u64 unchecked; /* pids whose interpreter is to be validated */
	uint64_t last_check_ns;
	ARRAY_OF(struct python_image *) images; /* by interpreter number, from 1 */
	struct intern code_keys;                /* struct code_key → index in codes */
	ARRAY_OF(struct python_code) codes;
	struct map_u64 frames;    /* code index << 32 | line → capture frame */
	capture_id unnamed_frame; /* of code objects that nobody could read; 0: not written */
	struct python_account account;
};

int python_registry_new(struct python_registry **ret_registry, struct file_store *files,
	const struct source_unwinder *unwinder, struct capture_writer *writer)
{
	struct python_registry *registry = calloc(1, sizeof(*registry));

	if (!registry)
		return -ENOMEM;
	registry->files = files;
	if (unwinder)
		registry->unwinder = *unwinder;
	registry->writer = writer;
	*ret_registry = registry;
	return 0;
}

struct python_registry *python_registry_free(struct python_registry *registry)
{
	uint64_t key, value;
	size_t position = 0;

	if (!registry)
		return NULL;
	while (map_u64_next(&registry->by_file, &position, &key, &value))
		free((struct python_file *)(uintptr_t)value);
	array_foreach (&registry->images, image)
		free(*image);
	array_done(&registry->images);
	array_foreach (&registry->codes, code)
		python_code_done(code);
	array_done(&registry->codes);
	map_u64_done(&registry->by_file);
	map_u64_done(&registry->processes);
	map_u64_done(&registry->unchecked);
	map_u64_done(&registry->frames);
	intern_done(&registry->code_keys);
	free(registry);
	return NULL;
}

static struct python_image *image_of_number(
	const struct python_registry *registry, uint32_t interpreter)
{
	return interpreter && interpreter <= registry->images.count
		       ? registry->images.items[interpreter - 1]
		       : NULL;
}

static struct python_image *image_of(const struct python_registry *registry, uint32_t pid)
{
	uint64_t interpreter;

	return map_u64_get(&registry->processes, pid, &interpreter)
		       ? image_of_number(registry, (uint32_t)interpreter)
		       : NULL;
}

/* ---- files ---- */

/* Interpreters are executables, or shared objects that say so: others are not opened. */
static bool may_be_interpreter(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return strstr(name, "python") || strstr(name, "pypy") || !strstr(name, ".so");
}

static int examine_file(
	struct python_registry *registry, uint32_t index, const char *path, struct python_file *out)
{
	_cleanup_elf_file_ struct elf_file *elf = NULL;
	struct errmsg reason = {0};
	int result;

	if (!may_be_interpreter(path) || file_store_open_elf(registry->files, index, &elf) < 0)
		return 0;
	result = python_find(&out->interpreter, elf, path, &reason);
	out->is_interpreter = result == 1;
	out->unknown = result == -ENOTSUP;
	if (out->unknown && !registry->account.unknown.text[0])
		registry->account.unknown = reason;
	return result == -ENOMEM ? result : 0;
}

/* NULL without memory. */
static const struct python_file *file_of(
	struct python_registry *registry, uint32_t index, const char *path)
{
	struct python_file *file;
	uint64_t value;

	if (map_u64_get(&registry->by_file, index, &value))
		return (struct python_file *)(uintptr_t)value;
	file = calloc(1, sizeof(*file));
	if (file && (examine_file(registry, index, path, file) < 0 ||
			    map_u64_set(&registry->by_file, index, (uintptr_t)file) < 0)) {
		free(file);
		return NULL;
	}
	return file;
}

/* ---- processes ---- */

/* image NULL: there is no Python to be looked for any more. */
static void set_python(
	struct python_registry *registry, uint32_t pid, const struct python_image *image)
{
	if (registry->unwinder.set_python)
		registry->unwinder.set_python(
			registry->unwinder.state, pid, image ? &image->facts : NULL);
}

static int set_image(
	struct python_registry *registry, uint32_t pid, const struct python_image *image)
{
	int result = map_u64_set(&registry->processes, pid, image->facts.target.interpreter);

	if (result == 0 && image->known && !image->validated)
		result = map_u64_set(&registry->unchecked, pid, 1);
	return result;
}

static struct python_image *new_image(
	struct python_registry *registry, const struct python_file *file, uint64_t bias)
{
	struct python_image *image = calloc(1, sizeof(*image));

	if (!image || array_append(&registry->images, image) < 0) {
		free(image);
		return NULL;
	}
	image->known = file->is_interpreter;
	image->first_seen_ns = monotonic_now_ns();
	image->facts.target.layout = file->interpreter.layout;
	image->facts.target.runtime = bias + file->interpreter.runtime;
	image->facts.target.interpreter = (uint32_t)registry->images.count;
	for (uint32_t i = 0; i < file->interpreter.eval_count; i++)
		image->facts.eval[i] = (struct python_range){
			.start = bias + file->interpreter.eval[i].start,
			.end = bias + file->interpreter.eval[i].end,
		};
	return image;
}

int python_registry_mapping(struct python_registry *registry, const struct process *process,
	const struct mapping *mapping, const char *path)
{
	const struct python_image *known = image_of(registry, process->pid);
	const struct python_file *file;
	struct python_image *image;
	uint64_t bias;
	int result;

	if (mapping->kind != MAPPING_FILE || !file_store_bias(registry->files, mapping, &bias))
		return 0;
	file = file_of(registry, mapping->file, path);
	if (!file)
		return -ENOMEM;
	/* An unknown interpreter does not hide a known one. */
	if (!file->is_interpreter && !(file->unknown && !known))
		return 0;
	if (known && known->facts.target.runtime == bias + file->interpreter.runtime)
		return 0;
	image = new_image(registry, file, bias);
	if (!image)
		return -ENOMEM;
	result = set_image(registry, process->pid, image);
	if (result == 0 && image->known)
		set_python(registry, process->pid, image);
	return result;
}

int python_registry_fork(
	struct python_registry *registry, const struct process *parent, const struct process *child)
{
	const struct python_image *image = image_of(registry, parent->pid);

	python_registry_clear(registry, child->pid);
	return image ? set_image(registry, child->pid, image) : 0;
}

void python_registry_clear(struct python_registry *registry, uint32_t pid)
{
	map_u64_remove(&registry->processes, pid);
	map_u64_remove(&registry->unchecked, pid);
}

/* ---- validation ---- */

static int read_process(void *context, uint64_t address, void *buffer, size_t length)
{
	const pid_t *pid = context;
	struct iovec local = {.iov_base = buffer, .iov_len = length};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = length};
	ssize_t got = process_vm_readv(*pid, &local, 1, &remote, 1, 0);

	return got == (ssize_t)length ? 0 : -EFAULT;
}

/* True when there is nothing more to find out about this process. */
static bool check_process(struct python_registry *registry, pid_t pid, struct python_image *image)
{
	const struct python_layout *layout = &image->facts.target.layout;
	struct errmsg reason = {0};
	int result;
	uint32_t key;

	if (image->validated)
		return true; /* by a process that shares it */
	result = python_validate(
		layout, image->facts.target.runtime, pid, read_process, &pid, &reason);
	if (result == 0)
		return monotonic_now_ns() - image->first_seen_ns > CHECK_FOR_NS;
	image->validated = true;
	if (result < 0) {
		/* What does not fit is not shown: wrong frames are worse than none. */
		if (!registry->account.unknown.text[0])
			registry->account.unknown = reason;
		image->known = false;
		set_python(registry, (uint32_t)pid, NULL);
		return true;
	}
	key = python_find_key(layout, image->facts.target.runtime, read_process, &pid);
	if (key && key != image->facts.target.tss_key) {
		image->facts.target.tss_key = key;
		set_python(registry, (uint32_t)pid, image);
	}
	return true;
}

void python_registry_check(struct python_registry *registry)
{
	uint64_t now_ns = monotonic_now_ns(), pid, value;
	size_t position = 0;

	if (!registry->unchecked.count || now_ns - registry->last_check_ns < CHECK_PERIOD_NS)
		return;
	registry->last_check_ns = now_ns;
	while (map_u64_next(&registry->unchecked, &position, &pid, &value)) {
		struct python_image *image = image_of(registry, (uint32_t)pid);

		if (!image || check_process(registry, (pid_t)pid, image)) {
			map_u64_remove(&registry->unchecked, pid);
			position = 0;
		}
	}
}

/* ---- look-ups ---- */

enum wire_python python_registry_reason(const struct python_registry *registry, uint32_t pid)
{
	const struct python_image *image = image_of(registry, pid);

	if (!image)
		return WIRE_PYTHON_NONE;
	if (!image->known)
		return WIRE_PYTHON_UNKNOWN;
	return registry->unwinder.set_python ? WIRE_PYTHON_TOO_EARLY : WIRE_PYTHON_USER_MODE;
}

enum wire_launch_python python_registry_target(
	const struct python_registry *registry, uint32_t pid, struct python_target *ret_target)
{
	const struct python_image *image = image_of(registry, pid);

	if (!image)
		return WIRE_LAUNCH_PYTHON_NONE;
	if (!image->known || !image->validated)
		return WIRE_LAUNCH_PYTHON_UNKNOWN;
	*ret_target = image->facts.target;
	return WIRE_LAUNCH_PYTHON_TARGET;
}

bool python_registry_is_eval(
	const struct python_registry *registry, uint32_t interpreter, uint64_t address)
{
	const struct python_image *image = image_of_number(registry, interpreter);

	for (uint32_t i = 0; image && i < PYTHON_MAX_EVAL_RANGES; i++) {
		if (address >= image->facts.eval[i].start && address < image->facts.eval[i].end)
			return true;
	}
	return false;
}

/* ---- code objects ---- */

/* Takes the code. Returns its index or a negative errno. */
static int64_t keep_code(
	struct python_registry *registry, const struct code_key *key, struct python_code *code)
{
	uint32_t id;
	int result = intern_add(&registry->code_keys, key, sizeof(*key), &id);

	if (result == 1)
		result = array_append(&registry->codes, *code);
	else
		python_code_done(code); /* known: the sampler may send one again */
	if (result < 0)
		return result;
	registry->account.codes = registry->codes.count;
	return id;
}

/* A code object that the sampler could not read is known by its contents. */
static struct code_key key_of_contents(uint32_t interpreter, const struct python_code *code)
{
	uint64_t hash = hash_bytes(code->line_table, code->line_table_length, code->first_line);

	if (code->file_name)
		hash = hash_bytes(code->file_name, strlen(code->file_name), hash);
	if (code->name)
		hash = hash_bytes(code->name, strlen(code->name), hash);
	return (struct code_key){.code = hash, .interpreter = interpreter};
}

int python_registry_add_code(
	struct python_registry *registry, const struct wire_python_code *record)
{
	const struct python_image *image = image_of_number(registry, record->interpreter);
	const struct code_key key = {record->code, record->check, record->interpreter};
	struct python_code code = {0}, whole = {0};
	int64_t kept;
	int result;

	if (!image)
		return 0;
	result = python_code_from_record(&image->facts.target.layout, record, &code);
	if (result < 0)
		return result == -ENOMEM ? result : 0;
	/* Longer than a record holds, or not in memory just then: the process may still have it. */
	if ((code.cut || !code.name || !code.file_name) &&
		python_code_read(&image->facts.target.layout, record->pid, record->code,
			record->check, &whole) == 0) {
		python_code_done(&code);
		code = whole;
	}
	kept = keep_code(registry, &key, &code);
	return kept < 0 ? (int)kept : 0;
}

/* The index of a frame's code object; -ENOENT when nobody could read it. */
static int64_t code_of(struct python_registry *registry, uint32_t pid, uint32_t interpreter,
	const struct wire_python_frame *frame)
{
	const struct python_image *image = image_of_number(registry, interpreter);
	struct code_key key = {frame->code, frame->check, interpreter};
	struct python_code code = {0};
	uint32_t id;
	int result;

	if (!image)
		return -ENOENT;
	if (frame->check && intern_find(&registry->code_keys, &key, sizeof(key), &id))
		return id;
	result = python_code_read(
		&image->facts.target.layout, pid, frame->code, frame->check, &code);
	if (result == -ENOMEM)
		return result;
	registry->account.frames_stale += result == -ESTALE;
	registry->account.frames_unread += result < 0 && result != -ESTALE;
	if (result < 0)
		return -ENOENT;
	registry->account.read_late++;
	if (!frame->check)
		key = key_of_contents(interpreter, &code);
	return keep_code(registry, &key, &code);
}

static int unnamed_frame(struct python_registry *registry, capture_id *ret_frame)
{
	struct capture_frame frame = {
		.kind = CAPTURE_FRAME_INTERPRETED, .function = "[unknown Python function]"};
	struct capture_mapping mapping = {.path = "[python]"};
	int result = 0;

	if (!registry->unnamed_frame)
		result = capture_writer_mapping(registry->writer, &mapping, &frame.mapping);
	if (result == 0 && !registry->unnamed_frame)
		result = capture_writer_frame(registry->writer, &frame, &registry->unnamed_frame);
	*ret_frame = registry->unnamed_frame;
	return result;
}

static int write_frame(struct python_registry *registry, const struct python_code *code,
	uint32_t line, capture_id *ret_frame)
{
	struct capture_frame frame = {
		.kind = CAPTURE_FRAME_INTERPRETED,
		.function = code->name,
		.source_file = code->file_name,
		.line = line,
		.rel_pc = line,
	};
	struct capture_mapping mapping = {.path = code->file_name ? code->file_name : "[python]"};
	int result = capture_writer_mapping(registry->writer, &mapping, &frame.mapping);

	return result < 0 ? result : capture_writer_frame(registry->writer, &frame, ret_frame);
}

int python_registry_frame(struct python_registry *registry, uint32_t pid, uint32_t interpreter,
	const struct wire_python_frame *frame, capture_id *ret_frame)
{
	const struct python_image *image = image_of_number(registry, interpreter);
	int64_t index = code_of(registry, pid, interpreter, frame);
	const struct python_code *code;
	uint64_t key, known;
	uint32_t line;
	int result;

	if (index == -ENOENT || !image)
		return unnamed_frame(registry, ret_frame);
	if (index < 0)
		return (int)index;
	code = &registry->codes.items[index];
	line = python_code_line(&image->facts.target.layout, code, frame->offset);
	key = (uint64_t)index << 32 | line;
	if (map_u64_get(&registry->frames, key, &known)) {
		*ret_frame = (capture_id)known;
		return 0;
	}
	result = write_frame(registry, code, line, ret_frame);
	return result < 0 ? result : map_u64_set(&registry->frames, key, *ret_frame);
}

void python_registry_account(
	const struct python_registry *registry, struct python_account *ret_account)
{
	*ret_account = registry->account;
}
