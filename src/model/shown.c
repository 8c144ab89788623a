/* SPDX-License-Identifier: Apache-2.0 */
#include "model/shown.h"

#include <string.h>

#include "base/text.h"
#include "model/made_frames.h"

static const struct model_function *function_of(const struct model *model, uint32_t frame)
{
	return &model->functions.items[model->frames.items[frame].function];
}

static bool is_python(const struct model_function *function)
{
	return function->kind == CAPTURE_FRAME_INTERPRETED;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length > end_length && strcmp(text + length - end_length, end) == 0;
}

bool model_is_import(const struct model_function *function)
{
	return is_python(function) && begins_with(function->source_file, "<frozen importlib");
}

/* The position of the outermost Python frame; the stack's count when it has none. */
static uint32_t first_python(const struct model *model, const struct model_stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		if (is_python(function_of(model, model->stack_frames.items[stack->first + i])))
			return i;
	}
	return stack->count;
}

static bool is_hidden(const struct model_function *function, bool before_python)
{
	if (function->class == MODEL_CLASS_INTERPRETER)
		return true;
	/* The C library's start of the program or the thread. */
	return before_python &&
	       (function->class == MODEL_CLASS_NATIVE || function->class == MODEL_CLASS_RUNTIME);
}

/*
 * Where the interpreter takes a threading.Lock or RLock. Distributions strip the names: then it is
 * what Python's threading calls to wait for one (Thread.join(), Condition.wait()), of which the
 * function below has a name. A queue.SimpleQueue waits by another.
 */
static void mark_locks_by_name(struct model *model)
{
	array_foreach (&model->functions, function)
		function->takes_lock = function->kind == CAPTURE_FRAME_NATIVE &&
				       function->class == MODEL_CLASS_INTERPRETER &&
				       (begins_with(function->name, "lock_PyThread_acquire_lock") ||
					       begins_with(function->name, "rlock_acquire"));
}

static void mark_locks_in_stack(struct model *model, const struct model_stack *stack)
{
	const uint32_t *frames = model->stack_frames.items + stack->first;
	bool is_threading = false;

	for (uint32_t i = 0; i + 1 < stack->count; i++) {
		uint32_t index = model->frames.items[frames[i]].function;
		struct model_function *function = &model->functions.items[index];

		if (is_python(function))
			is_threading = ends_with(function->source_file, "/threading.py");
		else if (is_threading && function->class == MODEL_CLASS_INTERPRETER &&
			 (!function->unnamed || function->start_known) &&
			 strcmp(function_of(model, frames[i + 1])->name,
				 "PyThread_acquire_lock_timed") == 0)
			function->takes_lock = true;
	}
}

static void hide_in_stack(struct model *model, struct model_stack *stack)
{
	uint32_t python_at = first_python(model, stack), kept = 0;
	uint32_t *frames = model->stack_frames.items + stack->first;

	if (python_at == stack->count)
		return;
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct model_function *function = function_of(model, frames[i]);

		stack->takes_lock =
			!is_python(function) && (stack->takes_lock || function->takes_lock);
		if (!is_hidden(function, i < python_at))
			frames[kept++] = frames[i];
		else
			stack->imports |= model_is_import(function);
	}
	/* Importing, and nothing else: better the interpreter's frames than none. */
	if (kept)
		stack->count = stack->whole_count = kept;
}

void model_hide_interpreter(struct model *model)
{
	mark_locks_by_name(model);
	array_foreach (&model->stacks, stack)
		mark_locks_in_stack(model, stack);
	array_foreach (&model->stacks, stack)
		hide_in_stack(model, stack);
}

/* "clEnqueueNDRangeKernel": what the program called, though sonde's function of that name took it.
 */
static bool is_opencl(const char *name)
{
	return name[0] == 'c' && name[1] == 'l' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Of what sonde puts into programs. Its own program is one like any other. */
static bool is_injected(const struct model *model, const struct model_function *function)
{
	return function->class == MODEL_CLASS_SONDE && !is_opencl(function->name) &&
	       (function->module == MODEL_NONE ||
		       strcmp(model->modules.items[function->module].name, "sonde") != 0);
}

/* What a hook itself calls: not the program's function behind it. */
static bool is_of_hook(const struct model *model, const struct model_function *function)
{
	return is_injected(model, function) || function->class == MODEL_CLASS_NATIVE ||
	       function->class == MODEL_CLASS_RUNTIME || function->class == MODEL_CLASS_KERNEL;
}

/* The position from which on the stack is a hook's. */
static uint32_t hook_position(const struct model *model, const struct model_stack *stack)
{
	uint32_t i = stack->count;

	while (i && is_of_hook(model,
			    function_of(model, model->stack_frames.items[stack->first + i - 1])))
		i--;
	return i;
}

/* `own` is the frame "[sonde]", or MODEL_NONE before it was made. */
static int hide_sonde_in(struct model *model, struct model_stack *stack, uint32_t *own)
{
	uint32_t hook_at = hook_position(model, stack), kept = 0, module;
	bool made = false;
	int r = 0;

	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t *frames = model->stack_frames.items + stack->first, frame = frames[i];

		if (is_injected(model, function_of(model, frame))) {
			if (i < hook_at || made)
				continue;
			if (*own == MODEL_NONE) {
				r = model_make_module(model, MODEL_SONDE_FRAME, &module);
				r = r
					    ?: model_make_frame(model, MODEL_SONDE_FRAME, module,
						       CAPTURE_FRAME_NATIVE, MODEL_CLASS_SONDE,
						       own);
			}
			if (r < 0)
				return r;
			made = true;
			frame = *own;
		}
		frames[kept++] = frame;
	}
	stack->count = stack->whole_count = kept;
	return 0;
}

int model_hide_sonde(struct model *model)
{
	uint32_t own = MODEL_NONE;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->stacks.count; i++)
		r = hide_sonde_in(model, &model->stacks.items[i], &own);
	return r;
}

int64_t model_own_frame(const struct model *model, const struct model_stack *stack)
{
	for (uint32_t i = stack->whole_count; i-- > 0;) {
		const struct model_function *function =
			function_of(model, model->stack_frames.items[stack->first + i]);

		if (function->class == MODEL_CLASS_USER)
			return i;
		if (function->begins_process)
			return -1;
	}
	return -1;
}

void model_fold_libraries(struct model *model, bool fold)
{
	array_foreach (&model->stacks, stack) {
		int64_t own = fold ? model_own_frame(model, stack) : -1;

		stack->count = own < 0 ? stack->whole_count : (uint32_t)own + 1;
	}
}

/* A module of a model, an operator, or an annotation of the program. */
static bool is_of_modules(const struct model *model, const struct model_function *function)
{
	static const char *const modules[] = {
		MODEL_FRAMES_MODULE, MODEL_FRAMES_OPERATOR, MODEL_FRAMES_ANNOTATION};
	const char *path = function->module < model->modules.count
				   ? model->modules.items[function->module].path
				   : "";

	for (size_t i = 0; path[0] == '[' && i < ARRAY_SIZE(modules); i++) {
		if (strcmp(path, modules[i]) == 0)
			return strcmp(function->name, "ProfilerStep") != 0;
	}
	return is_python(function) ? ends_with(function->name, ".forward")
				   : strncmp(function->name, "at::_ops::", 10) == 0 &&
					     ends_with(function->name, "::call");
}

static bool is_of_side(
	const struct model *model, enum model_side side, const struct model_function *function)
{
	bool is_kernel = function->kind == CAPTURE_FRAME_KERNEL;

	if (side == MODEL_SIDE_MODULES)
		return is_of_modules(model, function);
	return is_kernel == (side == MODEL_SIDE_KERNEL);
}

static void show_side_of(
	struct model *model, struct model_stack *stack, enum model_side side, uint32_t otherwise)
{
	uint32_t *frames = model->stack_frames.items + stack->first, kept = 0;

	for (uint32_t i = 0; i < stack->count; i++) {
		if (is_of_side(model, side, function_of(model, frames[i])))
			frames[kept++] = frames[i];
	}
	if (!kept && stack->count)
		frames[kept++] = otherwise;
	stack->count = stack->whole_count = kept;
}

int model_show_side(struct model *model, enum model_side side)
{
	bool kernel = side == MODEL_SIDE_USER; /* is the other side */
	const char *other = kernel                       ? "[kernel]"
			    : side == MODEL_SIDE_MODULES ? "[no module]"
							 : "[user]";
	uint32_t module, frame;
	int r;

	if (side == MODEL_SIDE_BOTH)
		return 0;
	r = model_make_module(model, other, &module);
	if (r < 0)
		return r;
	r = model_make_frame(model, other, module,
		kernel ? CAPTURE_FRAME_KERNEL : CAPTURE_FRAME_NATIVE,
		kernel ? MODEL_CLASS_KERNEL : MODEL_CLASS_NATIVE, &frame);
	if (r < 0)
		return r;
	array_foreach (&model->stacks, stack)
		show_side_of(model, stack, side, frame);
	return 0;
}
