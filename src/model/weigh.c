/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weigh.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/made_frames.h"

/* The frame of each reason; MODEL_NONE: not made yet. */
struct reasons {
	uint32_t frames[WIRE_WAIT_MAX];
	uint32_t module;
	struct map_u64 stacks; /* stack << 8 | reason → the stack that ends in the reason */
};

static int reason_frame(
	struct model *model, struct reasons *reasons, unsigned wait, uint32_t *ret_frame)
{
	char name[32];
	int r;

	if (reasons->frames[wait] == MODEL_NONE) {
		snprintf(name, sizeof(name), "[waiting: %s]", wire_wait_name(wait));
		r = model_make_frame(model, name, reasons->module, CAPTURE_FRAME_KERNEL,
			MODEL_CLASS_KERNEL, &reasons->frames[wait]);
		if (r < 0)
			return r;
	}
	*ret_frame = reasons->frames[wait];
	return 0;
}

/* The sample's stack with its reason as the innermost frame. */
static int extend_stack(struct model *model, struct reasons *reasons, struct model_sample *sample)
{
	uint64_t key = (uint64_t)sample->stack << 8 | sample->wait, known;
	struct model_stack stack = {.stop = WIRE_STOP_COMPLETE};
	uint32_t frame, first = (uint32_t)model->stack_frames.count;
	int r;

	if (map_u64_get(&reasons->stacks, key, &known)) {
		sample->stack = (uint32_t)known;
		return 0;
	}
	r = reason_frame(model, reasons, sample->wait, &frame);
	if (sample->stack != MODEL_NONE)
		stack = model->stacks.items[sample->stack];
	for (uint32_t i = 0; r == 0 && i < stack.whole_count; i++)
		r = array_append(&model->stack_frames, model->stack_frames.items[stack.first + i]);
	r = r ?: array_append(&model->stack_frames, frame);
	stack.first = first;
	stack.count = ++stack.whole_count;
	r = r ?: map_u64_set(&reasons->stacks, key, model->stacks.count);
	sample->stack = (uint32_t)model->stacks.count;
	return r ?: array_append(&model->stacks, stack);
}

/* ---- device work ---- */

/* What ends the stacks of device work. */
struct device_leaves {
	struct intern names; /* of functions, "[gpu] scale" → frames.items[id] */
	ARRAY_OF(uint32_t) frames;
	struct map_u64 stacks; /* stack << 32 | frame → the stack that ends in it */
	uint32_t module;
};

static int leaf_frame(struct model *model, struct device_leaves *leaves, const char *format,
	const char *name, uint32_t *ret_frame)
{
	_cleanup_strbuf_ struct strbuf text = {0};
	uint32_t id;
	int r;

	strbuf_add(&text, format);
	strbuf_add(&text, name);
	strbuf_add(&text, *name && format[0] == '[' && format[1] == 'u' ? "]" : "");
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	r = intern_add(&leaves->names, text.data, text.length, &id);
	if (r == 0)
		*ret_frame = leaves->frames.items[id];
	if (r <= 0)
		return r;
	r = model_make_frame(model, text.data, leaves->module, CAPTURE_FRAME_NATIVE,
		MODEL_CLASS_NATIVE, ret_frame);
	if (r < 0)
		return r;
	return array_append(&leaves->frames, *ret_frame);
}

/* Appends a frame to a stack, MODEL_NONE being the empty one. */
static int append_leaf(
	struct model *model, struct device_leaves *leaves, uint32_t frame, uint32_t *stack_index)
{
	uint64_t key = (uint64_t)*stack_index << 32 | frame, known;
	struct model_stack stack = {.stop = WIRE_STOP_COMPLETE};
	uint32_t first = (uint32_t)model->stack_frames.count;
	int r = 0;

	if (map_u64_get(&leaves->stacks, key, &known)) {
		*stack_index = (uint32_t)known;
		return 0;
	}
	if (*stack_index != MODEL_NONE)
		stack = model->stacks.items[*stack_index];
	for (uint32_t i = 0; r == 0 && i < stack.count; i++)
		r = array_append(&model->stack_frames, model->stack_frames.items[stack.first + i]);
	r = r ?: array_append(&model->stack_frames, frame);
	stack.first = first;
	stack.whole_count = ++stack.count;
	*stack_index = (uint32_t)model->stacks.count;
	r = r ?: map_u64_set(&leaves->stacks, key, *stack_index);
	return r ?: array_append(&model->stacks, stack);
}

/* A thread that is not known: the process's main thread stands for it. */
static uint32_t thread_of(const struct model *model, const struct model_span *span)
{
	if (span->thread != MODEL_NONE)
		return span->thread;
	for (uint32_t i = 0; i < model->threads.count; i++) {
		if (model->threads.items[i].process == span->process)
			return i;
	}
	return MODEL_NONE;
}

/* A sample of this time, whose stack ends in the frame `prefix` `name`. */
static int add_span(struct model *model, struct device_leaves *leaves,
	const struct model_span *span, const char *prefix)
{
	struct model_sample sample = {
		.time_ns = span->start_ns,
		.thread = thread_of(model, span),
		.stack = span->stack,
		.gil_holder = MODEL_NONE,
		.count = span->end_ns - span->start_ns,
		.duration_ns = span->end_ns - span->start_ns,
		.launch_ns = span->launch_ns,
	};
	uint32_t frame;
	int r;

	if (sample.thread == MODEL_NONE)
		return 0;
	r = leaf_frame(model, leaves, prefix, span->leaf, &frame);
	r = r ?: append_leaf(model, leaves, frame, &sample.stack);
	return r ?: array_append(&model->samples, sample);
}

static int add_work(
	struct model *model, struct device_leaves *leaves, const struct model_device_work *work)
{
	struct model_span span = {
		.start_ns = work->start_ns,
		.end_ns = work->end_ns,
		.launch_ns = work->launch_ns,
		.process = work->process,
		.stack = work->stack,
		.thread = work->thread,
		.leaf = work->name,
	};
	uint32_t frame;
	int r = 0;

	if (work->stack == MODEL_NONE) {
		r = leaf_frame(model, leaves, MODEL_UNATTRIBUTED_LEAF,
			model_unattributed_to_string(work->unattributed), &frame);
		r = r ?: append_leaf(model, leaves, frame, &span.stack);
	}
	if (work->replayed) {
		r = r ?: leaf_frame(model, leaves, "[graph replay]", "", &frame);
		r = r ?: append_leaf(model, leaves, frame, &span.stack);
	}
	return r ?: add_span(model, leaves, &span, MODEL_GPU_LEAF);
}

static int begin_leaves(struct model *model, struct device_leaves *leaves, const char *module)
{
	*leaves = (struct device_leaves){0};
	model->unit_ns = MODEL_UNIT_NS;
	return model_make_module(model, module, &leaves->module);
}

static void end_leaves(struct device_leaves *leaves)
{
	intern_done(&leaves->names);
	array_done(&leaves->frames);
	map_u64_done(&leaves->stacks);
}

/* Adds a sample for each piece of device work. */
static int weigh_device(struct model *model)
{
	struct device_leaves leaves;
	int r = begin_leaves(model, &leaves, "[gpu]");

	for (size_t i = 0; r == 0 && i < model->device_works.count; i++)
		r = add_work(model, &leaves, &model->device_works.items[i]);
	end_leaves(&leaves);
	return r;
}

/* Leaves samples of running threads, by their time. */
static void keep_running(struct model *model)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->samples.count; i++) {
		struct model_sample sample = model->samples.items[i];

		if (sample.wait != WIRE_WAIT_NONE)
			continue;
		sample.count = model_sample_time_ns(model, &sample);
		model->samples.items[kept++] = sample;
	}
	model->samples.count = kept;
}

static int compare_times(const void *left, const void *right)
{
	const struct model_sample *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int weigh_running_and_device(struct model *model)
{
	int r;

	keep_running(model);
	r = weigh_device(model);
	if (r < 0)
		return r;
	if (model->samples.count)
		qsort(model->samples.items, model->samples.count, sizeof(model->samples.items[0]),
			compare_times);
	return 0;
}

/* All samples; those that wait end in the reason. */
static int weigh_waiting(struct model *model)
{
	struct reasons reasons = {0};
	int r = model_make_module(model, "[waiting]", &reasons.module);

	memset(reasons.frames, 0xff, sizeof(reasons.frames)); /* MODEL_NONE */
	for (size_t i = 0; r == 0 && i < model->samples.count; i++) {
		struct model_sample *sample = &model->samples.items[i];

		sample->count = model_sample_time_ns(model, sample);
		if (sample->wait != WIRE_WAIT_NONE)
			r = extend_stack(model, &reasons, sample);
	}
	model->unit_ns = MODEL_UNIT_NS;
	map_u64_done(&reasons.stacks);
	return r;
}

/* ---- energy ---- */

/* In whole microjoules; what is left over goes to the next, so that the sum stays right. */
static uint64_t microjoules(double energy_j, double *carry)
{
	double exact = energy_j * 1e6 + *carry, whole = floor(exact + 0.5);

	whole = whole > 0 ? whole : 0;
	*carry = exact - whole;
	return whole < 1e18 ? (uint64_t)whole : 0;
}

static void keep_charged(struct model *model)
{
	size_t kept = 0;
	double carry = 0;

	for (size_t i = 0; i < model->samples.count; i++) {
		struct model_sample sample = model->samples.items[i];

		if (sample.wait != WIRE_WAIT_NONE)
			continue;
		sample.count = microjoules(sample.energy_j, &carry);
		if (sample.count)
			model->samples.items[kept++] = sample;
	}
	model->samples.count = kept;
}

static int add_charged_works(struct model *model)
{
	struct device_leaves leaves;
	double carry = 0;
	int r = begin_leaves(model, &leaves, "[gpu]");

	for (size_t i = 0; r == 0 && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];
		uint64_t count = microjoules(work->energy_j, &carry);
		size_t before = model->samples.count;

		if (!count)
			continue;
		r = add_work(model, &leaves, work);
		if (r == 0 && model->samples.count > before) {
			model->samples.items[before].count = count;
			model->samples.items[before].energy_error = work->energy_error;
		}
	}
	end_leaves(&leaves);
	return r;
}

/* A process of the domain's name stands for what no program is charged with. */
static int make_domain_thread(struct model *model, struct model_energy_domain *domain)
{
	struct model_process process = {
		.name = domain->name,
		.command_line = "",
		.cgroup = "",
		.rank = MODEL_NONE,
		.host = domain->host,
	};
	struct model_thread thread = {
		.process = (uint32_t)model->processes.count, .name = domain->name};

	if (domain->made_thread != MODEL_NONE)
		return 0;
	domain->made_thread = (uint32_t)model->threads.count;
	return array_append(&model->processes, process) ?: array_append(&model->threads, thread);
}

static int add_rests(struct model *model, const struct model_energy_rest *rests, size_t count)
{
	struct device_leaves leaves;
	double carry = 0;
	int r = begin_leaves(model, &leaves, "[energy]");

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct model_energy_domain *domain = &model->energy_domains.items[rests[i].domain];
		struct model_sample sample = {
			.time_ns = rests[i].time_ns,
			.duration_ns = rests[i].duration_ns,
			.energy_error = rests[i].error,
			.stack = MODEL_NONE,
			.gil_holder = MODEL_NONE,
			.count = microjoules(rests[i].energy_j, &carry),
		};
		uint32_t frame;

		r = make_domain_thread(model, domain);
		r = r ?: leaf_frame(model, &leaves, rests[i].leaf, "", &frame);
		r = r ?: append_leaf(model, &leaves, frame, &sample.stack);
		sample.thread = domain->made_thread;
		if (sample.count)
			r = r ?: array_append(&model->samples, sample);
	}
	end_leaves(&leaves);
	return r;
}

int model_weigh_energy(struct model *model, const struct model_energy_rest *rests, size_t count)
{
	int r;

	keep_charged(model);
	r = add_charged_works(model);
	r = r ?: add_rests(model, rests, count);
	if (model->samples.count)
		qsort(model->samples.items, model->samples.count, sizeof(model->samples.items[0]),
			compare_times);
	model->unit_ns = 1;
	model->counts_energy = true;
	return r;
}

int model_weigh_spans(
	struct model *model, const char *module, const struct model_span *spans, size_t count)
{
	struct device_leaves leaves;
	int r = begin_leaves(model, &leaves, module);

	model->samples.count = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_span(model, &leaves, &spans[i], "");
	end_leaves(&leaves);
	return r;
}

/* ---- memory ---- */

/* The stack with the device as its outermost frame. */
static int add_below_device(struct model *model, struct map_u64 *known, uint32_t device,
	uint32_t inner, uint32_t *ret_stack)
{
	uint64_t key = (uint64_t)device << 32 | inner, found;
	struct model_stack stack = model->stacks.items[inner];
	uint32_t from = stack.first, count = stack.whole_count;
	int r = 0;

	if (map_u64_get(known, key, &found)) {
		*ret_stack = (uint32_t)found;
		return 0;
	}
	stack.first = (uint32_t)model->stack_frames.count;
	stack.count = stack.whole_count = count + 1;
	r = array_append(&model->stack_frames, device);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = array_append(&model->stack_frames, model->stack_frames.items[from + i]);
	*ret_stack = (uint32_t)model->stacks.count;
	r = r ?: map_u64_set(known, key, *ret_stack);
	return r ?: array_append(&model->stacks, stack);
}

/* Bytes count, whatever is known of threads: of those without any one is made. */
static int find_thread(struct model *model, const struct model_span *span, uint32_t *ret_thread)
{
	struct model_thread thread = {.process = span->process};

	*ret_thread = thread_of(model, span);
	if (*ret_thread != MODEL_NONE)
		return 0;
	*ret_thread = (uint32_t)model->threads.count;
	thread.name = model->processes.items[span->process].name;
	return array_append(&model->threads, thread);
}

static int add_bytes(struct model *model, struct device_leaves *frames, struct map_u64 *known,
	const struct model_span *span)
{
	struct model_sample sample = {
		.time_ns = span->start_ns,
		.stack = MODEL_NONE,
		.gil_holder = MODEL_NONE,
		.count = span->bytes,
	};
	uint32_t device = MODEL_NONE, leaf = MODEL_NONE;
	int r = find_thread(model, span, &sample.thread);

	r = r ?: leaf_frame(model, frames, "", span->device, &device);
	if (r < 0)
		return r;
	if (!span->leaf) {
		r = add_below_device(model, known, device, span->stack, &sample.stack);
		return r ?: array_append(&model->samples, sample);
	}
	r = leaf_frame(model, frames, "", span->leaf, &leaf);
	r = r ?: append_leaf(model, frames, device, &sample.stack);
	r = r ?: append_leaf(model, frames, leaf, &sample.stack);
	return r ?: array_append(&model->samples, sample);
}

int model_weigh_bytes(struct model *model, const struct model_span *spans, size_t count)
{
	struct device_leaves frames;
	struct map_u64 known = {0};
	uint64_t left = MODEL_MOST_BYTES;
	int r = begin_leaves(model, &frames, "[memory]");

	model->samples.count = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct model_span span = spans[i];

		span.bytes = MIN(span.bytes, left);
		left -= span.bytes;
		r = add_bytes(model, &frames, &known, &span);
	}
	if (model->samples.count)
		qsort(model->samples.items, model->samples.count, sizeof(model->samples.items[0]),
			compare_times);
	model->unit_ns = 1;
	model->counts_bytes = true;
	map_u64_done(&known);
	end_leaves(&frames);
	return r;
}

int model_weigh(struct model *model, enum model_weight weight)
{
	switch (weight) {
	case MODEL_WEIGHT_WAIT:
	case MODEL_WEIGHT_WALL:
		return weigh_waiting(model);
	case MODEL_WEIGHT_GPU:
		model->samples.count = 0;
		return weigh_device(model);
	case MODEL_WEIGHT_CPU_GPU:
		return weigh_running_and_device(model);
	default:
		return 0;
	}
}

const char *model_weight_noun(enum model_weight weight)
{
	static const char *const nouns[MODEL_WEIGHT_MAX] = {
		[MODEL_WEIGHT_CPU] = "CPU time",
		[MODEL_WEIGHT_WAIT] = "time waited",
		[MODEL_WEIGHT_WALL] = "CPU time and waiting",
		[MODEL_WEIGHT_GPU] = "device time",
		[MODEL_WEIGHT_GPU_IDLE] = "idle time of devices",
		[MODEL_WEIGHT_GPU_BYTES] = "memory in use at the device's peak",
		[MODEL_WEIGHT_CPU_GPU] = "CPU and device time",
		[MODEL_WEIGHT_ENERGY] = "energy",
	};

	return (unsigned)weight < MODEL_WEIGHT_MAX ? nouns[weight] : NULL;
}
