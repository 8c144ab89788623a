/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of NCCL, and the calls that launched them. NCCL opens a range of NVTX in each call, with
 * what it moves among whom: since 2.16 the bytes, since 2.25 the communicator, too. A call launches
 * its kernels before it returns; in a group, the end of the outermost group launches those of all
 * calls. A call that was captured into a graph did the same for the graph's nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "model/builder/nccl_calls.h"

/* A kernel, and when the call that launched or captured it was. */
struct joined {
	uint64_t time_ns;
	uint32_t launch;   /* index in the windows */
	uint32_t captured; /* index of the call, + 1; 0: launched */
	uint32_t work;
};

struct joining {
	struct model *model;
	struct nccl_calls calls;
	ARRAY_OF(struct joined) joined;
	/* Indices in model->collectives, + 1, of those of which no more is known. */
	uint32_t unknown[MODEL_SIZE_MAX];
};

static bool is_kernel(const struct model_device_work *work)
{
	return work->kind == WIRE_DEVICE_KERNEL && strncmp(work->name, "nccl", 4) == 0;
}

static int set_unknown(
	struct joining *joining, struct model_device_work *work, enum model_size_unknown reason)
{
	int r = 0;

	if (!joining->unknown[reason]) {
		r = array_append(&joining->model->collectives,
			(struct model_collective){.name = "", .unknown = (uint8_t)reason});
		joining->unknown[reason] = (uint32_t)joining->model->collectives.count;
	}
	work->collective = joining->unknown[reason];
	return r;
}

/* The moment and thread of the call that launched or captured it; false: not known. */
static bool find_launch(const struct model *model, const struct model_device_work *work,
	struct joined *ret_joined, uint32_t *ret_thread)
{
	const struct model_captured_call *call;

	if (work->capture == MODEL_CAPTURE_KNOWN) {
		call = &model->captured_calls.items[work->captured_call];
		ret_joined->time_ns = call->start_ns;
		ret_joined->captured = work->captured_call + 1;
		*ret_thread = call->thread;
		return true;
	}
	ret_joined->time_ns = work->launch_ns;
	*ret_thread = work->thread;
	return work->capture == MODEL_CAPTURE_NONE && work->launch_ns && work->thread != MODEL_NONE;
}

static int join_work(struct joining *joining, uint32_t index)
{
	struct model *model = joining->model;
	struct model_device_work *work = &model->device_works.items[index];
	uint32_t pid = model->processes.items[work->process].pid, thread;
	struct joined joined = {.work = index};

	if (!nccl_calls_has_process(&joining->calls, pid))
		return set_unknown(joining, work, MODEL_SIZE_NO_RANGES);
	if (!find_launch(model, work, &joined, &thread))
		return set_unknown(joining, work, MODEL_SIZE_NO_LAUNCH);
	if (!nccl_calls_find(&joining->calls, pid, model->threads.items[thread].tid, joined.time_ns,
		    &joined.launch))
		return set_unknown(joining, work, MODEL_SIZE_OUTSIDE);
	return array_append(&joining->joined, joined);
}

static int compare_launches(const struct joined *a, const struct joined *b)
{
	if (a->launch != b->launch)
		return a->launch < b->launch ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->captured < b->captured ? -1 : a->captured > b->captured;
}

static int compare_joined(const void *left, const void *right)
{
	const struct joined *a = left, *b = right;
	int order = compare_launches(a, b);

	return order ? order : a->work < b->work ? -1 : a->work > b->work;
}

/* Replays of a node are of one call; of kernels each has its own. */
static bool is_same_kernel(const struct joined *a, const struct joined *b)
{
	return a->captured && compare_launches(a, b) == 0;
}

/* Kernels of one launch: those from `first` to `end`. */
static int set_launch(struct joining *joining, size_t first, size_t end)
{
	const struct joined *joined = &joining->joined.items[first];
	struct model *model = joining->model;
	struct model_collective collective;
	uint32_t kernels = 1, kernel = 0;
	int r;

	for (size_t i = 1; i < end - first; i++)
		kernels += !is_same_kernel(&joined[i - 1], &joined[i]);
	r = nccl_calls_describe(&joining->calls, joined->launch, kernels, &collective);
	/* Replays come again and again. */
	if (joined->captured)
		collective.sequence = 0;
	for (size_t i = 0; r == 0 && i < end - first; i++) {
		bool is_next = i && !is_same_kernel(&joined[i - 1], &joined[i]);

		if (is_next && collective.sequence)
			collective.sequence =
				nccl_calls_sequence(&joining->calls, joined->launch, ++kernel);
		if (!i || is_next)
			r = array_append(&model->collectives, collective);
		model->device_works.items[joined[i].work].collective =
			(uint32_t)model->collectives.count;
	}
	return r;
}

static int set_joined(struct joining *joining)
{
	const struct joined *joined = joining->joined.items;
	size_t count = joining->joined.count;
	int r = 0;

	if (count)
		qsort(joining->joined.items, count, sizeof(*joined), compare_joined);
	for (size_t first = 0, end; r == 0 && first < count; first = end) {
		for (end = first + 1; end < count && joined[end].launch == joined[first].launch;)
			end++;
		r = set_launch(joining, first, end);
	}
	return r;
}

int builder_resolve_collectives(struct model_builder *builder)
{
	struct joining joining = {.model = builder->model};
	const struct model *model = builder->model;
	size_t first = 0;
	int r;

	while (first < model->device_works.count && !is_kernel(&model->device_works.items[first]))
		first++;
	if (first == model->device_works.count)
		return 0;
	r = nccl_calls_init(&joining.calls, builder);
	for (size_t i = first; r == 0 && i < model->device_works.count; i++) {
		if (is_kernel(&model->device_works.items[i]))
			r = join_work(&joining, (uint32_t)i);
	}
	r = r ?: set_joined(&joining);
	nccl_calls_done(&joining.calls);
	array_done(&joining.joined);
	return r;
}
