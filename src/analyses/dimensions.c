/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/dimensions.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"

static int new_keys(size_t count, uint32_t **ret_keys)
{
	*ret_keys = calloc(count + 1, sizeof(**ret_keys));
	return *ret_keys ? 0 : -ENOMEM;
}

static int function_keys(struct breakdown *breakdown, const struct model *model,
	uint32_t **ret_keys, size_t *ret_key_count)
{
	int r = new_keys(model->frames.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		(*ret_keys)[i] = model->frames.items[i].function;
	*ret_key_count = model->functions.count;
	return r;
}

static const char *function_name_of(
	const struct breakdown *breakdown, const struct model *model, uint32_t key)
{
	return model_function_name(model, key);
}

/* Frames outside of every module share a key after the last module's. */
static int module_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->frames.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->frames.count; i++) {
		uint32_t module = model->functions.items[model->frames.items[i].function].module;

		(*ret_keys)[i] = MIN(module, (uint32_t)model->modules.count);
	}
	*ret_key_count = model->modules.count + 1;
	return r;
}

static const char *module_name_of(
	const struct breakdown *breakdown, const struct model *model, uint32_t key)
{
	return model_module_name(model, key < model->modules.count ? key : MODEL_NONE);
}

/* Hashed as bytes; source files are interned, so that equal names are equal pointers. */
struct line_key {
	const char *source_file;
	uint32_t line;
	uint32_t function; /* only where the line is unknown, or of code that was generated */
};

static int line_key_of(struct breakdown *breakdown, struct intern *known,
	const struct model_frame *frame, uint32_t *ret_key)
{
	struct line_key key = {.source_file = frame->source_file, .line = frame->line};
	struct breakdown_line line = {frame->source_file, frame->line, frame->function};
	int r;

	if (!frame->line) {
		key = (struct line_key){.function = frame->function};
		line.source_file = "";
	} else if (frame->source_file[0] == '<') {
		/* "<string>" is what every text is called that a Python program compiles. */
		key.function = frame->function;
	}
	r = intern_add(known, &key, sizeof(key), ret_key);
	return r > 0 ? array_append(&breakdown->lines, line) : r;
}

static int line_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	struct intern known = {0};
	int r = new_keys(model->frames.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		r = line_key_of(breakdown, &known, &model->frames.items[i], &(*ret_keys)[i]);
	intern_done(&known);
	*ret_key_count = breakdown->lines.count;
	return r;
}

static const char *line_name_of(
	const struct breakdown *breakdown, const struct model *model, uint32_t key)
{
	const struct breakdown_line *line = &breakdown->lines.items[key];

	return *line->source_file ? line->source_file : model_function_name(model, line->function);
}

static int process_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->samples.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		(*ret_keys)[i] = model->threads.items[model->samples.items[i].thread].process;
	*ret_key_count = model->processes.count;
	return r;
}

static int thread_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->samples.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		(*ret_keys)[i] = model->samples.items[i].thread;
	*ret_key_count = model->threads.count;
	return r;
}

static int cpu_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->samples.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		(*ret_keys)[i] = model->samples.items[i].cpu;
	*ret_key_count = UINT16_MAX + 1;
	return r;
}

/* The key of each process's cgroup. */
static int cgroups_of_processes(
	struct breakdown *breakdown, const struct model *model, uint32_t **ret_groups)
{
	struct intern known = {0};
	int r = new_keys(model->processes.count, ret_groups);

	for (size_t i = 0; r == 0 && i < model->processes.count; i++) {
		const char *cgroup = model->processes.items[i].cgroup;

		r = intern_add(&known, cgroup, strlen(cgroup), &(*ret_groups)[i]);
		if (r > 0)
			r = array_append(&breakdown->cgroups, cgroup);
	}
	intern_done(&known);
	return r;
}

static int cgroup_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	_cleanup_free_ uint32_t *groups = NULL;
	int r = cgroups_of_processes(breakdown, model, &groups);

	r = r ?: process_keys(breakdown, model, ret_keys, ret_key_count);
	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		(*ret_keys)[i] = groups[(*ret_keys)[i]];
	*ret_key_count = breakdown->cgroups.count;
	return r;
}

static const char *cgroup_name_of(
	const struct breakdown *breakdown, const struct model *model, uint32_t key)
{
	return breakdown->cgroups.items[key];
}

/* A stack's functions, as one string of bytes: stacks that differ in addresses alone are one row.
 */
static int stack_signature(const struct model *model, const struct model_stack *stack,
	struct intern *known, uint32_t *scratch, uint32_t *ret_id)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t frame = model->stack_frames.items[stack->first + i];

		scratch[i] = model->frames.items[frame].function;
	}
	return intern_add(known, scratch, stack->count * sizeof(*scratch), ret_id);
}

/* The first stack with the same functions, for each stack; MODEL_NONE for empty ones. */
static int merge_stacks(const struct model *model, uint32_t *representatives)
{
	_cleanup_free_ uint32_t *scratch = NULL, *first_of_id = NULL;
	struct intern known = {0};
	uint32_t longest = 0, id;
	int r;

	array_foreach (&model->stacks, stack)
		longest = MAX(longest, stack->count);
	r = new_keys(longest, &scratch);
	r = r ?: new_keys(model->stacks.count, &first_of_id);
	for (uint32_t i = 0; r >= 0 && i < model->stacks.count; i++) {
		representatives[i] = MODEL_NONE;
		if (!model->stacks.items[i].count)
			continue;
		r = stack_signature(model, &model->stacks.items[i], &known, scratch, &id);
		if (r > 0)
			first_of_id[id] = i;
		if (r >= 0)
			representatives[i] = first_of_id[id];
	}
	intern_done(&known);
	return MIN(r, 0);
}

static int stack_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	_cleanup_free_ uint32_t *representatives = NULL;
	int r = new_keys(model->stacks.count, &representatives);

	r = r ?: merge_stacks(model, representatives);
	r = r ?: new_keys(model->samples.count, ret_keys);
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		uint32_t stack = model->samples.items[i].stack;

		(*ret_keys)[i] = stack == MODEL_NONE ? MODEL_NONE : representatives[stack];
	}
	*ret_key_count = model->stacks.count;
	return r;
}

static int class_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->frames.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->frames.count; i++)
		(*ret_keys)[i] = model->functions.items[model->frames.items[i].function].class;
	*ret_key_count = MODEL_CLASS_MAX;
	return r;
}

static int gil_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	int r = new_keys(model->samples.count, ret_keys);

	for (size_t i = 0; r == 0 && i < model->samples.count; i++)
		(*ret_keys)[i] = model->samples.items[i].gil;
	*ret_key_count = WIRE_GIL_MAX;
	return r;
}

static int rank_keys(struct breakdown *breakdown, const struct model *model, uint32_t **ret_keys,
	size_t *ret_key_count)
{
	struct intern known = {0};
	int r = new_keys(model->samples.count, ret_keys);

	for (size_t i = 0; r >= 0 && i < model->samples.count; i++) {
		uint32_t process = model->threads.items[model->samples.items[i].thread].process;
		uint32_t rank = model->processes.items[process].rank;

		r = intern_add(&known, &rank, sizeof(rank), &(*ret_keys)[i]);
		if (r > 0)
			r = array_append(&breakdown->ranks, rank);
	}
	intern_done(&known);
	*ret_key_count = breakdown->ranks.count;
	return MIN(r, 0);
}

const struct dimension dimensions[BREAKDOWN_MAX] = {
	[BREAKDOWN_FUNCTION] = {"function", true, function_keys, function_name_of},
	[BREAKDOWN_MODULE] = {"module", true, module_keys, module_name_of},
	[BREAKDOWN_LINE] = {"line", true, line_keys, line_name_of},
	[BREAKDOWN_PROCESS] = {"process", false, process_keys, NULL},
	[BREAKDOWN_THREAD] = {"thread", false, thread_keys, NULL},
	[BREAKDOWN_CPU] = {"cpu", false, cpu_keys, NULL},
	[BREAKDOWN_CGROUP] = {"cgroup", false, cgroup_keys, cgroup_name_of},
	[BREAKDOWN_STACK] = {"stack", false, stack_keys, NULL},
	[BREAKDOWN_CLASS] = {"class", true, class_keys, NULL},
	[BREAKDOWN_GIL] = {"gil", false, gil_keys, NULL},
	[BREAKDOWN_RANK] = {"rank", false, rank_keys, NULL},
};
