/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that kernels of other graphs launched have no call of their own. They are charged to the
 * latest launch of their launcher, in the same process and on the same GPU, that began before them,
 * or at the same moment: to that of the host, or, where the device launched that one, too, to what
 * it is charged to.
 */
#include <stdlib.h>

#include "model/builder/internal.h"

struct graph_key {
	uint32_t pid, gpu, graph;
};

/* A launch of a graph that is timed as a whole. */
struct graph_launch {
	uint64_t start_ns;
	bool is_of_device;
	size_t work; /* index in device_works */
};

/* By graph_key. */
struct newest_launches {
	struct intern keys;
	ARRAY_OF(uint64_t) correlations; /* of the host's launch; 0: not known */
};

static bool is_whole(const struct capture_device_work *work)
{
	return work->kind == WIRE_DEVICE_GRAPH && work->graph;
}

static bool has_device_graphs(const struct model_builder *builder)
{
	array_foreach (&builder->device_works, work) {
		if (work->launcher)
			return true;
	}
	return false;
}

static int compare(const void *left, const void *right)
{
	const struct graph_launch *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->is_of_device != b->is_of_device)
		return a->is_of_device ? 1 : -1;
	return a->work < b->work ? -1 : a->work > b->work;
}

static struct graph_key key_of(const struct capture_device_work *work, uint32_t graph)
{
	return (struct graph_key){.pid = work->pid, .gpu = work->gpu, .graph = graph};
}

static void charge(const struct newest_launches *newest, struct capture_device_work *work)
{
	const struct graph_key key = key_of(work, work->launcher);
	uint32_t id;

	if (work->launcher && !work->correlation &&
		intern_find(&newest->keys, &key, sizeof(key), &id) &&
		id < newest->correlations.count)
		work->correlation = newest->correlations.items[id];
}

static int add_launch(struct newest_launches *newest, const struct capture_device_work *work)
{
	const struct graph_key key = key_of(work, work->graph);
	uint32_t id;
	int r = intern_add(&newest->keys, &key, sizeof(key), &id);

	if (r > 0)
		return array_append(&newest->correlations, work->correlation);
	if (r == 0 && id < newest->correlations.count)
		newest->correlations.items[id] = work->correlation;
	return r;
}

int builder_charge_device_graphs(struct model_builder *builder)
{
	ARRAY_OF(struct graph_launch) launches = {0};
	struct newest_launches newest = {0};
	int r = 0;

	if (!has_device_graphs(builder))
		return 0;
	for (size_t i = 0; r == 0 && i < builder->device_works.count; i++) {
		const struct capture_device_work *work = &builder->device_works.items[i];

		if (is_whole(work))
			r = array_append(&launches,
				(struct graph_launch){work->start_ns, work->launcher != 0, i});
	}
	if (launches.count)
		qsort(launches.items, launches.count, sizeof(*launches.items), compare);
	for (size_t i = 0; r == 0 && i < launches.count; i++) {
		struct capture_device_work *work =
			&builder->device_works.items[launches.items[i].work];

		charge(&newest, work);
		r = add_launch(&newest, work);
	}
	intern_done(&newest.keys);
	array_done(&newest.correlations);
	array_done(&launches);
	return r;
}
