/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a builder's raw tables to the model: every frame becomes one or, with inlined functions,
 * several frames; stacks and samples follow; what nobody described gets a placeholder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge_pages.h"
#include "base/sort_runs.h"
#include "base/strbuf.h"
#include "model/builder/internal.h"
#include "model/classify.h"

#define RAW_SAMPLES_KEPT ((size_t)1 << 18)

/* Where a raw frame went: model->frames.items[first] … [first + count - 1]. */
struct expanded_frame {
	uint32_t first, count;
};

/* "[unknown] libfoo.so": all of a module's addresses without a symbol are one function. */
static int unnamed_text(
	struct model_builder *builder, const struct raw_frame *raw, uint32_t *ret_name)
{
	_cleanup_strbuf_ struct strbuf text = {0};

	strbuf_add(&text, "[unknown]");
	if (raw->module != MODEL_NONE)
		strbuf_addf(&text, " %s", builder->model->modules.items[raw->module].name);
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	return builder_text(builder, strbuf_cstr(&text), ret_name);
}

/* A function of a stripped file, named by where it begins. */
static bool is_start_name(const struct model_builder *builder, uint32_t name)
{
	return strncmp(intern_get(&builder->model->strings, name), CAPTURE_UNNAMED_PREFIX,
		       strlen(CAPTURE_UNNAMED_PREFIX)) == 0;
}

/* Finds or adds the function; `name` MODEL_NONE means that there is no symbol. */
static int resolve_function(struct model_builder *builder, const struct raw_frame *raw,
	uint32_t name, const char *source_file, uint32_t *ret_function)
{
	struct model *model = builder->model;
	bool nameless = name == MODEL_NONE;
	uint64_t key, known;
	int r = nameless ? unnamed_text(builder, raw, &name) : 0;

	if (r < 0)
		return r;
	key = (uint64_t)name << 32 | raw->module;
	if (map_u64_get(&builder->functions, key, &known)) {
		struct model_function *function = &model->functions.items[known];

		if (!*function->source_file)
			function->source_file = source_file;
		*ret_function = (uint32_t)known;
		return 0;
	}
	known = model->functions.count;
	*ret_function = (uint32_t)known;
	r = r ?: map_u64_set(&builder->functions, key, known);
	if (r == 0)
		r = array_append(&model->functions,
			(struct model_function){
				.name = intern_get(&model->strings, name),
				.module = raw->module,
				.source_file = source_file,
				.kind = raw->kind,
				.unnamed = nameless || is_start_name(builder, name),
				.start_known = !nameless,
			});
	return r;
}

static int add_frame(struct model_builder *builder, const struct raw_frame *raw,
	const struct raw_line *line, bool inlined)
{
	struct model *model = builder->model;
	struct model_frame frame = {
		.line = line->line,
		.source_file = line->source_file == MODEL_NONE
				       ? ""
				       : intern_get(&model->strings, line->source_file),
		.rel_pc = raw->rel_pc,
		.inlined = inlined,
	};
	int r = resolve_function(builder, raw, line->name, frame.source_file, &frame.function);

	return r < 0 ? r : array_append(&model->frames, frame);
}

/* The symbolised lines of a frame, or its own name and line when there are none. */
static const struct raw_line *frame_lines(struct model_builder *builder,
	const struct raw_frame *raw, struct raw_line *fallback, uint32_t *ret_count)
{
	struct site_key key = {.rel_pc = raw->rel_pc, .module = raw->module};
	uint32_t id;

	*fallback = (struct raw_line){raw->name, raw->source_file, raw->line};
	*ret_count = 1;
	if (!intern_find(&builder->sites, &key, sizeof(key), &id) ||
		!builder->site_lines.items[id].count)
		return fallback;
	*ret_count = builder->site_lines.items[id].count;
	return builder->lines.items + builder->site_lines.items[id].first;
}

static int expand_frame(struct model_builder *builder, const struct raw_frame *raw,
	struct expanded_frame *ret_expanded)
{
	struct raw_line fallback, outermost;
	uint32_t count;
	const struct raw_line *lines = frame_lines(builder, raw, &fallback, &count);
	uint32_t first = (uint32_t)builder->model->frames.count;
	int r;

	outermost = lines[count - 1];
	if (outermost.name == MODEL_NONE)
		outermost.name = raw->name;
	r = add_frame(builder, raw, &outermost, false);
	for (uint32_t i = count - 1; r == 0 && i-- > 0;) {
		if (lines[i].name != MODEL_NONE)
			r = add_frame(builder, raw, &lines[i], true);
	}
	*ret_expanded = (struct expanded_frame){
		.first = first,
		.count = (uint32_t)builder->model->frames.count - first,
	};
	return r;
}

static int expand_frames(struct model_builder *builder, struct expanded_frame **ret_expanded)
{
	_cleanup_free_ struct expanded_frame *expanded =
		calloc(builder->frames.count + 1, sizeof(*expanded));

	if (!expanded)
		return -ENOMEM;
	for (size_t i = 1; i < builder->frames.count; i++) {
		int r = expand_frame(builder, &builder->frames.items[i], &expanded[i]);

		if (r < 0)
			return r;
	}
	*ret_expanded = TAKE_PTR(expanded);
	return 0;
}

static int expand_stack(struct model_builder *builder, const struct raw_stack *raw,
	const struct expanded_frame *expanded)
{
	struct model *model = builder->model;
	struct model_stack stack = {
		.first = (uint32_t)model->stack_frames.count,
		.stop = raw->stop,
		.python = raw->python,
	};
	const uint32_t *frames = builder->stack_frames.items + raw->first;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < raw->count; i++) {
		for (uint32_t k = 0; r == 0 && k < expanded[frames[i]].count; k++)
			r = array_append(&model->stack_frames, expanded[frames[i]].first + k);
	}
	if (r < 0 || model->stack_frames.count > UINT32_MAX)
		return -ENOMEM;
	stack.count = stack.whole_count = (uint32_t)model->stack_frames.count - stack.first;
	return array_append(&model->stacks, stack);
}

/* By index: the raw stacks of samples from `from_ns` on; 0: all. */
static int mark_used_stacks(const struct model_builder *builder, uint64_t from_ns, bool **ret_used)
{
	bool *used = calloc(builder->stacks.count + 1, sizeof(*used));

	if (!used)
		return -ENOMEM;
	memset(used, from_ns == 0, builder->stacks.count);
	array_foreach (&builder->samples, sample) {
		if (sample->time_ns >= from_ns && sample->callstack < builder->stacks.count)
			used[sample->callstack] = true;
	}
	*ret_used = used;
	return 0;
}

/* Model stack i is raw stack i + 1; one that is not used is left empty. */
static int expand_stacks(struct model_builder *builder, uint64_t from_ns)
{
	_cleanup_free_ struct expanded_frame *expanded = NULL;
	_cleanup_free_ bool *used = NULL;
	int r = expand_frames(builder, &expanded);

	r = r ?: mark_used_stacks(builder, from_ns, &used);
	for (size_t i = 1; r == 0 && i < builder->stacks.count; i++) {
		struct raw_stack raw = builder->stacks.items[i];

		if (!used[i])
			raw.count = 0;
		r = expand_stack(builder, &raw, expanded);
	}
	return r;
}

static int resolve_sample(struct model_builder *builder, const struct raw_sample *raw)
{
	struct model_sample sample = {
		.time_ns = raw->time_ns,
		.stack = raw->callstack && raw->callstack < builder->stacks.count
				 ? raw->callstack - 1
				 : MODEL_NONE,
		.cpu = raw->cpu,
		.mode = raw->mode,
		.gil = raw->gil,
		.gil_holder = MODEL_NONE,
		.wait = raw->wait,
		.wait_is_open = raw->wait_is_open,
		.wait_count = raw->wait_count,
		.count = 1,
		.duration_ns = raw->duration_ns,
		.cycles = raw->cycles,
		.instructions = raw->instructions,
	};
	uint32_t process;
	int r = 0;

	if (sample.wait != WIRE_WAIT_NONE) /* it may have begun before the window did */
		sample.duration_ns = model_recorded_ns(builder->model,
			raw->time_ns - MIN(raw->duration_ns, raw->time_ns), raw->time_ns);
	r = r ?: builder_process_at(builder, raw->pid, raw->time_ns, &process);
	r = r ?: builder_thread(builder, process, raw->tid, &sample.thread);
	if (raw->gil_holder_tid)
		r = r ?: builder_thread(builder, process, raw->gil_holder_tid, &sample.gil_holder);
	r = r ?: array_append(&builder->model->samples, sample);
	return r;
}

/* Without a moment to begin with it is the last time: memory of raw samples goes as they are read.
 */
static int resolve_samples(struct model_builder *builder, uint64_t from_ns)
{
	const struct raw_sample *items = builder->samples.items;
	size_t count = builder->samples.count, kept = 0;
	int r = array_reserve(&builder->model->samples, count);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (items[i].time_ns >= from_ns && builder_is_chosen(builder, items[i].time_ns))
			r = resolve_sample(builder, &items[i]);
		if (from_ns == 0 && i - kept == RAW_SAMPLES_KEPT) {
			give_pages_back(
				&builder->samples.items[kept], RAW_SAMPLES_KEPT * sizeof(*items));
			kept = i;
		}
	}
	if (from_ns == 0)
		array_done(&builder->samples);
	return r;
}

static int compare_samples(const void *left, const void *right)
{
	const struct model_sample *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static bool is_sample_before(const void *samples, uint32_t a, uint32_t b)
{
	const struct model_sample *items = samples;

	return compare_samples(&items[a], &items[b]) < 0;
}

/* Each recording has them in order, nearly. */
static int sort_samples(struct model *model)
{
	struct model_sample *items = model->samples.items;
	size_t count = model->samples.count, sorted = MIN(count, (size_t)1);
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ uint32_t *room = NULL;

	while (sorted < count && items[sorted - 1].time_ns <= items[sorted].time_ns)
		sorted++;
	if (sorted == count)
		return 0;
	if (count > UINT32_MAX)
		return -ENOMEM;
	order = malloc(count * sizeof(*order));
	room = malloc(count * sizeof(*room));
	if (!order || !room)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	sort_runs(order, count, room, is_sample_before, items);
	sort_move_items(items, sizeof(*items), order, count);
	return 0;
}

static int name_process(struct model_builder *builder, struct model_process *process)
{
	char name[32];

	if (*process->name)
		return 0;
	snprintf(name, sizeof(name), process->pid ? "pid %u" : "swapper", process->pid);
	return builder_keep(builder, name, &process->name);
}

/* A main thread without a name is called as its process. */
static int name_thread(struct model_builder *builder, struct model_thread *thread)
{
	const struct model_process *process = &builder->model->processes.items[thread->process];
	char name[32];

	if (*thread->name)
		return 0;
	if (thread->tid == process->pid) {
		thread->name = process->name;
		return 0;
	}
	snprintf(name, sizeof(name), "tid %u", thread->tid);
	return builder_keep(builder, name, &thread->name);
}

static int name_placeholders(struct model_builder *builder)
{
	int r;

	array_foreach (&builder->model->processes, process) {
		r = name_process(builder, process);
		if (r < 0)
			return r;
	}
	array_foreach (&builder->model->threads, thread) {
		r = name_thread(builder, thread);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Undoes what earlier snapshots made, and what model_weigh() added. */
static void clear_resolved(struct model_builder *builder)
{
	struct model *model = builder->model;

	model->unit_ns = 0;
	model->counts_energy = model->counts_bytes = false;
	model->modules.count = builder->module_keys.entries.count;
	model->functions.count = 0;
	model->frames.count = 0;
	model->stack_frames.count = 0;
	model->stacks.count = 0;
	model->samples.count = 0;
	model->device_works.count = 0;
	model->device_waits.count = 0;
	model->ranges.count = 0;
	model->capture_ranges.count = 0;
	model->captured_calls.count = 0;
	model->collectives.count = 0;
	model->counters.count = 0;
	model->energy_intervals.count = 0;
	model->energy_states.count = 0;
	model->windows.count = 0;
	model->steps.count = 0;
	map_u64_clear(&builder->functions);
}

static int resolve(struct model_builder *builder, uint64_t from_ns)
{
	int r = expand_stacks(builder, from_ns);

	r = r ?: builder_resolve_windows(builder);
	r = r ?: resolve_samples(builder, from_ns);
	r = r ?: builder_resolve_traces(builder);
	r = r ?: builder_resolve_device(builder);
	r = r ?: builder_resolve_ranges(builder);
	r = r ?: builder_resolve_collectives(builder);
	r = r ?: builder_resolve_counters(builder);
	r = r ?: builder_resolve_energy(builder, from_ns);
	r = r ?: name_placeholders(builder);
	r = r ?: model_classify(builder->model);
	return r ?: sort_samples(builder->model);
}

int model_builder_snapshot(
	struct model_builder *builder, uint64_t from_ns, struct model **ret_model)
{
	int r;

	clear_resolved(builder);
	r = resolve(builder, from_ns);
	if (r == 0)
		*ret_model = builder->model;
	return r;
}

int model_builder_finish(struct model_builder *builder,
	const struct capture_read_result *completeness, struct model **ret_model)
{
	int r = resolve(builder, 0);

	r = r ?: builder_resolve_cut_off(builder);
	if (r < 0)
		return r;
	if (completeness)
		builder->model->completeness = *completeness;
	*ret_model = TAKE_PTR(builder->model);
	return 0;
}
