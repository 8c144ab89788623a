/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a sample: unwound from a copy, put together with its Python frames, and named. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "collect/pipeline/state.h"
#include "unwind/stack.h"

const struct mapping *pipeline_find_mapping(const struct space_view *view, uint64_t address)
{
	size_t low = 0, high = view->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct mapping *mapping = &view->mappings[middle];

		if (address < mapping->start)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

struct eval_lookup {
	const struct python_registry *python;
	uint32_t interpreter;
};

static bool is_eval(void *context, uint64_t address)
{
	const struct eval_lookup *lookup = context;

	return python_registry_is_eval(lookup->python, lookup->interpreter, address);
}

/* ---- unwinding copied stacks ---- */

struct copied_target {
	struct pipeline *pipeline;
	uint32_t pid;
	const struct space_view *view;
	const struct wire_stack_copy *copy;
	const unsigned char *bytes;
	bool beyond_copy; /* a read went past the copied part */
};

/*
 * Instructions around a return address, asked for where there is no rule. Code does not change like
 * a stack does: the process is read as it is now.
 */
static int read_code(const struct copied_target *target, uint64_t address, uint64_t *ret_value)
{
	struct iovec local = {.iov_base = ret_value, .iov_len = sizeof(*ret_value)};
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof(*ret_value)};

	if (process_vm_readv((pid_t)target->pid, &local, 1, &remote, 1, 0) != sizeof(*ret_value))
		return -EFAULT;
	return 0;
}

static int read_copied(void *context, uint64_t address, uint64_t *ret_value)
{
	struct copied_target *target = context;
	uint64_t offset = address - target->copy->sp, length = target->copy->stack_bytes;

	if (pipeline_find_mapping(target->view, address))
		return read_code(target, address, ret_value);
	if (address < target->copy->sp)
		return -EFAULT;
	if (length < sizeof(*ret_value) || offset > length - sizeof(*ret_value)) {
		target->beyond_copy = true;
		return -EFAULT;
	}
	memcpy(ret_value, target->bytes + offset, sizeof(*ret_value));
	return 0;
}

static bool locate_copied(void *context, uint64_t address, struct unwind_location *ret_location)
{
	struct copied_target *target = context;
	const struct mapping *mapping = pipeline_find_mapping(target->view, address);
	struct file_store *files = target->pipeline->parts.files;

	if (!mapping)
		return false;
	*ret_location = (struct unwind_location){0};
	if (!file_store_bias(files, mapping, &ret_location->bias)) {
		ret_location->frame_pointer = true;
		return true;
	}
	if (file_store_table(files, mapping->file, &ret_location->table,
		    &ret_location->table_word_count) == FILE_ABSENT)
		ret_location->frame_pointer = true;
	return true;
}

/* Of a deep stack the same ends are kept as by the sampler. */
static void leave_out_middle(
	struct pipeline *pipeline, uint32_t interpreter, struct user_stack *user)
{
	struct eval_lookup lookup = {pipeline->parts.python, interpreter};
	struct stack_gap *gap = &user->gap;

	if (user->count <= WIRE_MAX_USER_FRAMES)
		return;
	gap->at = WIRE_MAX_USER_FRAMES - WIRE_OUTER_USER_FRAMES;
	gap->left_out = user->count - WIRE_MAX_USER_FRAMES;
	for (size_t i = gap->at; i < gap->at + gap->left_out; i++)
		gap->groups += is_eval(&lookup, pipeline->frames[i]);
	memmove(pipeline->frames + gap->at, pipeline->frames + gap->at + gap->left_out,
		WIRE_OUTER_USER_FRAMES * sizeof(*pipeline->frames));
	user->count = WIRE_MAX_USER_FRAMES;
}

int pipeline_unwind_copy(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, bool give_up, struct user_stack *ret_user)
{
	const struct wire_stack_copy *copy = stack_copy(sample);
	struct copied_target context = {
		.pipeline = pipeline,
		.pid = sample->pid,
		.view = view,
		.copy = copy,
		.bytes = (const unsigned char *)(copy + 1),
	};
	const struct unwind_target target = {
		.context = &context,
		.read_u64 = read_copied,
		.locate = locate_copied,
	};

	*ret_user = (struct user_stack){.frames = pipeline->frames};
	ret_user->stop = unwind_user_stack(
		&target, copy, pipeline->frames, ARRAY_SIZE(pipeline->frames), &ret_user->count);
	if (ret_user->stop == WIRE_STOP_NO_TABLE && !give_up)
		return -EAGAIN;
	if (ret_user->stop == WIRE_STOP_READ_FAULT && context.beyond_copy)
		ret_user->stop = WIRE_STOP_STACK_COPY;
	leave_out_middle(pipeline, sample->python_interpreter, ret_user);
	return 0;
}

/* ---- one stack of all frames ---- */

/* Fills pipeline->merged, outermost first. Returns how that went. */
static enum wire_python merge_user_stack(struct pipeline *pipeline,
	const struct wire_sample *sample, const struct user_stack *user, size_t *ret_count)
{
	struct eval_lookup lookup = {pipeline->parts.python, sample->python_interpreter};
	const struct merge_input input = {
		.native = user->frames,
		.native_count = user->count,
		.python = python_frames(sample),
		.python_count = sample->python_frame_count,
		.native_gap = user->gap,
		.python_gap = {.at = WIRE_MAX_PYTHON_FRAMES - WIRE_OUTER_PYTHON_FRAMES,
			.left_out = sample->python_left_out,
			.groups = sample->entries_left_out},
		.native_complete = user->stop == WIRE_STOP_COMPLETE,
		.python_complete = sample->python == WIRE_PYTHON_FRAMES,
		.is_eval = is_eval,
		.context = &lookup,
	};
	enum wire_python merged = merge_stacks(&input, pipeline->merged, ret_count);

	if (sample->python == WIRE_PYTHON_FRAMES)
		return merged;
	return sample->python != WIRE_PYTHON_NONE
		       ? sample->python
		       : python_registry_reason(pipeline->parts.python, sample->pid);
}

static int resolve_frame(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, const struct user_stack *user,
	const struct merged_frame *frame, bool give_up, capture_id *ret_frame)
{
	switch (frame->kind) {
	case MERGED_PYTHON:
		return python_registry_frame(pipeline->parts.python, sample->pid,
			sample->python_interpreter, &python_frames(sample)[frame->index],
			ret_frame);
	case MERGED_LEFT_OUT:
		return resolver_left_out_frame(pipeline->parts.resolver, frame->index, ret_frame);
	default:
		return resolver_user_frame(pipeline->parts.resolver, sample->pid,
			pipeline_find_mapping(view, user->frames[frame->index]),
			user->frames[frame->index], sample->time_ns, give_up, ret_frame);
	}
}

int pipeline_resolve_stack(struct pipeline *pipeline, const struct wire_sample *sample,
	const struct space_view *view, const struct user_stack *user, bool give_up,
	size_t *ret_count, enum wire_python *ret_python)
{
	size_t count, first_kernel = 0;
	int result = 0;

	*ret_python = merge_user_stack(pipeline, sample, user, &count);
	for (size_t i = 0; i < count && result == 0; i++)
		result = resolve_frame(pipeline, sample, view, user, &pipeline->merged[i], give_up,
			&pipeline->stack[i]);
	if (sample->wait)
		first_kernel = resolver_above_scheduler(pipeline->parts.resolver,
			(const uint64_t *)sample->frames, sample->kernel_frame_count);
	for (size_t i = sample->kernel_frame_count; i-- > first_kernel && result == 0;) {
		/* All but the innermost are return addresses: the call lies before. */
		result = resolver_kernel_frame(pipeline->parts.resolver,
			sample->frames[i] - (i > 0), &pipeline->stack[count++]);
	}
	*ret_count = count;
	return result;
}

/* ---- the stacks of launches ---- */

/* Is the frame in a file whose name begins like this? */
static bool lies_in(const struct pipeline *pipeline, const struct space_view *view,
	uint64_t address, const char *library)
{
	const struct mapping *mapping = pipeline_find_mapping(view, address);
	const char *path =
		mapping ? address_spaces_file(pipeline->parts.spaces, mapping->file)->path : NULL;
	const char *name = path ? strrchr(path, '/') : NULL;

	return name && strncmp(name + 1, library, strlen(library)) == 0;
}

/* In a library that calls the injected one from within a launch. */
static bool lies_in_caller(
	const struct pipeline *pipeline, const struct space_view *view, uint64_t address)
{
	static const char *const libraries[] = {"libcupti", "libcuda.so", "libcudart.so",
		"librocprofiler-sdk", "libamdhip64", "libhsa-runtime64"};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		if (lies_in(pipeline, view, address, libraries[i]))
			return true;
	}
	return false;
}

void pipeline_skip_injected(
	const struct pipeline *pipeline, const struct space_view *view, struct user_stack *user)
{
	static const char library[] = "libsonde-inject.so";
	size_t own = 0;

	while (own < user->count && lies_in(pipeline, view, user->frames[own], library))
		own++;
	if (own && own < user->count && lies_in_caller(pipeline, view, user->frames[own])) {
		while (own + 1 < user->count &&
			lies_in_caller(pipeline, view, user->frames[own + 1]))
			own++;
	} else if (own && !(own < user->count &&
				  lies_in(pipeline, view, user->frames[own], "libOpenCL.so"))) {
		own--;
	}
	user->frames += own;
	user->count -= own;
	user->gap.at -= MIN(own, user->gap.at);
}
