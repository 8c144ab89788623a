/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/module_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/modules.h"
#include "analyses/program/range_fields.h"

#define WATCH_DOMAIN "sonde.model"

/* ---- names ---- */

const char *module_of_python(const char *name)
{
	static const char beginning[] = "nn.Module: ";

	if (strncmp(name, beginning, strlen(beginning)) != 0 || !name[strlen(beginning)])
		return NULL;
	return name + strlen(beginning);
}

size_t module_class_length(const char *instance)
{
	size_t length = strlen(instance), digits = length;

	while (digits && isdigit((unsigned char)instance[digits - 1]))
		digits--;
	return digits > 1 && digits < length && instance[digits - 1] == '_' ? digits - 1 : length;
}

/* Of "Linear.forward" 6; 0: it is no such function. PyTorch's own wrappers are no class. */
static size_t forward_class_length(const char *function)
{
	static const char end[] = ".forward";
	size_t length = strlen(function);

	if (length <= strlen(end) || strcmp(function + length - strlen(end), end) != 0)
		return 0;
	return length - strlen(end);
}

/* ---- ranges of a recording ---- */

/* "layer_3", or the role alone: of "self_attn" there is one in each layer. */
static int name_range(struct module_names *names, const struct model_range *range, uint32_t row)
{
	const struct model *model = names->trace->recorded;
	const char *role = range_text(model, range, "role");
	_cleanup_strbuf_ struct strbuf text = {0};
	uint64_t layer;
	uint32_t id = 0;
	int r;

	strbuf_add(&text, *role ? role : range->name);
	if (strcmp(role, "layer") == 0 && range_u64(model, range, "layer", &layer))
		strbuf_addf(&text, "_%llu", (unsigned long long)layer);
	r = strbuf_status(&text);
	if (r == 0)
		r = intern_add(&names->texts, strbuf_cstr(&text), text.length, &id);
	if (r < 0)
		return r;
	names->by_row[row] = intern_get(&names->texts, id);
	return 0;
}

static int name_watched(struct module_names *names, const struct model_range *range, size_t row)
{
	if (row >= names->trace->events.count || range->is_mark ||
		strcmp(range->domain, WATCH_DOMAIN) != 0)
		return 0;
	return name_range(names, range, (uint32_t)row);
}

/* Rows of a recording begin with its steps; its ranges follow, then those that are there for
 * replays of graphs alone (model/trace_capture.c). */
static int name_ranges(struct module_names *names)
{
	const struct model *model = names->trace->recorded;
	size_t row = model->steps.count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < model->ranges.count; i++)
		r = name_watched(names, &model->ranges.items[i], row++);
	for (size_t i = 0; r == 0 && i < model->capture_ranges.count; i++) {
		const struct model_range *range = &model->capture_ranges.items[i];

		if (range->is_elsewhere)
			r = name_watched(names, range, row++);
	}
	return r;
}

int module_names_init(struct module_names *names, const struct trace *trace)
{
	names->trace = trace;
	if (!trace->recorded)
		return 0;
	names->by_row = calloc(trace->events.count + 1, sizeof(*names->by_row));
	names->stack_entries =
		calloc(trace->recorded->stacks.count + 1, sizeof(*names->stack_entries));
	if (!names->by_row || !names->stack_entries)
		return -ENOMEM;
	return name_ranges(names);
}

void module_names_done(struct module_names *names)
{
	free(names->by_row);
	free(names->stack_entries);
	intern_done(&names->texts);
	array_done(&names->found);
	array_done(&names->firsts);
}

const char *module_names_get(const struct module_names *names, uint32_t row)
{
	const struct trace_event *event = &names->trace->events.items[row];

	if (names->by_row)
		return names->by_row[row];
	if (event->category != TRACE_PYTHON_FUNCTION || event->duration_ns == TRACE_NO_DURATION)
		return NULL;
	return module_of_python(trace_text(names->trace, event->name));
}

/* ---- stacks of a recording ---- */

static int add_function(struct module_names *names, const struct model_function *function)
{
	size_t length = function->kind == CAPTURE_FRAME_INTERPRETED
				? forward_class_length(function->name)
				: 0;
	uint32_t id;
	int r;

	if (!length)
		return 0;
	r = intern_add(&names->texts, function->name, length, &id);
	return r < 0 ? r : array_append(&names->found, intern_get(&names->texts, id));
}

static int look_for_modules(struct module_names *names, uint32_t stack)
{
	const struct model *model = names->trace->recorded;
	const struct model_stack *frames = &model->stacks.items[stack];
	size_t first = names->found.count;
	int r = 0;

	names->stack_entries[stack] = (uint32_t)names->firsts.count + 1;
	for (uint32_t i = 0; r == 0 && i < frames->count; i++) {
		uint32_t frame = model->stack_frames.items[frames->first + i];

		r = add_function(
			names, &model->functions.items[model->frames.items[frame].function]);
	}
	return r ?: array_append(&names->firsts, first);
}

int module_names_of_stack(struct module_names *names, uint32_t work_row,
	const char *const **ret_names, size_t *ret_count)
{
	const struct trace *trace = names->trace;
	const struct trace_work *work = trace_work(trace, &trace->events.items[work_row]);
	uint32_t stack = MODEL_NONE;
	size_t entry, first, end;
	int r = 0;

	*ret_count = 0;
	if (trace->recorded && work && work->recorded)
		stack = trace->recorded->device_works.items[work->recorded - 1].stack;
	if (stack == MODEL_NONE)
		return 0;
	if (!names->stack_entries[stack])
		r = look_for_modules(names, stack);
	if (r < 0)
		return r;
	entry = names->stack_entries[stack] - 1;
	first = names->firsts.items[entry];
	end = entry + 1 < names->firsts.count ? names->firsts.items[entry + 1] : names->found.count;
	*ret_names = names->found.items + first;
	*ret_count = end - first;
	return 0;
}
