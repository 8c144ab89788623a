/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_overlap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "model/windows.h"

/* Something begins or ends on a device. */
struct edge {
	uint64_t time_ns;
	uint32_t device;
	uint8_t activity; /* its bit's number */
	int8_t change;
};

enum { ACTIVITIES = 3 };

struct edges {
	ARRAY_OF(struct edge) items;
};

/* What runs on a device. */
struct running {
	uint64_t since_ns;
	uint32_t counts[ACTIVITIES];
};

/* What is known of names and stacks: enum communication_evidence. */
struct known {
	struct map_u64 names; /* by address: names are interned */
	uint8_t *stacks;      /* + 1; 0: not asked */
};

static int evidence_of(struct known *known, const struct model *model,
	const struct model_device_work *work, enum communication_evidence *ret_evidence)
{
	uint64_t by_name;
	int r = 0;

	*ret_evidence = COMMUNICATION_NOT;
	if (work->kind != WIRE_DEVICE_KERNEL && work->kind != WIRE_DEVICE_GRAPH)
		return 0;
	if (work->stack != MODEL_NONE) {
		uint8_t *by_stack = &known->stacks[work->stack];

		if (!*by_stack)
			*by_stack = 1 + communication_is_stack(model, work->stack);
		if (*by_stack == 2) {
			*ret_evidence = COMMUNICATION_BY_OPERATOR;
			return 0;
		}
	}
	if (!map_u64_get(&known->names, (uintptr_t)work->name, &by_name)) {
		by_name = communication_of_name(work->name);
		r = map_u64_set(&known->names, (uintptr_t)work->name, by_name);
	}
	*ret_evidence = (enum communication_evidence)by_name;
	return r;
}

static uint8_t activity_number(
	const struct model_device_work *work, enum communication_evidence evidence)
{
	if (work->kind != WIRE_DEVICE_KERNEL && work->kind != WIRE_DEVICE_GRAPH)
		return 1;
	return evidence == COMMUNICATION_NOT ? 0 : 2;
}

/* At one moment, what begins comes before what ends: work that follows without a gap has none. */
static int compare_edges(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return b->change - a->change;
}

static int add_edges(struct device_overlap *overlap, struct edges *edges, struct intern *devices,
	const struct model_device_work *work, enum communication_evidence evidence)
{
	struct edge edge = {.time_ns = work->start_ns,
		.activity = activity_number(work, evidence),
		.change = 1};
	int r = intern_add(devices, &work->device, sizeof(work->device), &edge.device);

	if (r > 0)
		r = array_append(
			&overlap->devices, (struct device_overlap_device){.name = work->device});
	if (r >= 0 && evidence != COMMUNICATION_NOT)
		overlap->devices.items[edge.device].communication_works[evidence]++;
	r = r < 0 ? r : array_append(&edges->items, edge);
	edge.time_ns = work->end_ns;
	edge.change = -1;
	return r < 0 ? r : array_append(&edges->items, edge);
}

static int add_times(
	struct device_overlap *overlap, const struct model *model, const struct edges *edges)
{
	_cleanup_free_ struct running *devices =
		calloc(overlap->devices.count + 1, sizeof(*devices));

	if (!devices)
		return -ENOMEM;
	array_foreach (&edges->items, edge) {
		struct device_overlap_device *device = &overlap->devices.items[edge->device];
		struct running *running = &devices[edge->device];
		uint64_t passed_ns = 0;
		unsigned set = 0;

		for (unsigned i = 0; i < ACTIVITIES; i++)
			set |= (unsigned)(running->counts[i] > 0) << i;
		/* Between its work of one window and that of the next nobody knows what it did. */
		if (running->since_ns &&
			(set || model_is_continuous(model, running->since_ns, edge->time_ns)))
			passed_ns = model_recorded_ns(model, running->since_ns, edge->time_ns);
		device->by_set[set] += passed_ns;
		device->span_ns += passed_ns;
		running->since_ns = edge->time_ns;
		running->counts[edge->activity] += (uint32_t)edge->change;
	}
	return 0;
}

int device_overlap_init(struct device_overlap *overlap, const struct model *model)
{
	struct intern devices = {0};
	struct edges edges = {0};
	struct known known = {.stacks = calloc(model->stacks.count + 1, 1)};
	int r = known.stacks ? 0 : -ENOMEM;

	*overlap = (struct device_overlap){0};
	for (size_t i = 0; r == 0 && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];
		enum communication_evidence evidence;

		r = evidence_of(&known, model, work, &evidence);
		r = r ?: add_edges(overlap, &edges, &devices, work, evidence);
	}
	if (r == 0 && edges.items.count)
		qsort(edges.items.items, edges.items.count, sizeof(*edges.items.items),
			compare_edges);
	r = r ?: add_times(overlap, model, &edges);
	map_u64_done(&known.names);
	free(known.stacks);
	intern_done(&devices);
	array_done(&edges.items);
	if (r < 0)
		device_overlap_done(overlap);
	return r;
}

void device_overlap_done(struct device_overlap *overlap)
{
	array_done(&overlap->devices);
}

static uint64_t sum_of_sets(const struct device_overlap_device *device, unsigned wanted)
{
	uint64_t time_ns = 0;

	for (unsigned set = 0; set < DEVICE_ACTIVITY_SETS; set++) {
		if ((set & wanted) == wanted)
			time_ns += device->by_set[set];
	}
	return time_ns;
}

uint64_t device_overlap_total_ns(
	const struct device_overlap_device *device, enum device_activity activity)
{
	return sum_of_sets(device, activity);
}

uint64_t device_overlap_hidden_ns(
	const struct device_overlap_device *device, enum device_activity activity)
{
	return sum_of_sets(device, activity | DEVICE_COMPUTE);
}
