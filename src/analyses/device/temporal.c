/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/temporal.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/trace_order.h"
#include "model/windows.h"

/* Work of one kind that follows or overlaps without a gap. */
struct group {
	int64_t start_ns, end_ns;
	bool is_open;
};

/* Of a device: one for each kind, and one for all of them together. */
enum { ALL_KINDS = TRACE_OTHER_KIND, GROUPS };

/* A group of a kind begins (change 1) or ends (-1). */
struct edge {
	uint32_t device;
	uint8_t kind;
	int8_t change;
};

struct edges {
	const struct trace *trace;
	ARRAY_OF(int64_t) times_ns;
	ARRAY_OF(struct edge) items;
};

static int add_edge(struct edges *edges, int64_t time_ns, struct edge edge)
{
	int r = array_append(&edges->times_ns, time_ns);

	return r ?: array_append(&edges->items, edge);
}

static int close_group(struct temporal *temporal, struct edges *edges, uint32_t device_index,
	uint8_t kind, struct group *group)
{
	struct temporal_device *device = &temporal->devices.items[device_index];
	int64_t time_ns = trace_recorded_ns(edges->trace, group->start_ns, group->end_ns);
	struct edge edge = {.device = device_index, .kind = kind, .change = 1};
	int r;

	if (!group->is_open)
		return 0;
	group->is_open = false;
	if (kind == ALL_KINDS) {
		device->busy_ns += time_ns;
		return 0;
	}
	device->by_kind_ns[kind] += time_ns;
	r = add_edge(edges, group->start_ns, edge);
	edge.change = -1;
	return r ?: add_edge(edges, group->end_ns, edge);
}

static int extend_group(struct temporal *temporal, struct edges *edges, uint32_t device,
	uint8_t kind, struct group *group, const struct trace_view_work *work)
{
	int r;

	if (group->is_open && work->start_ns <= group->end_ns) {
		group->end_ns = MAX(group->end_ns, work->end_ns);
		return 0;
	}
	/* Between its work of one window and that of the next nobody knows what a device did. */
	if (kind == ALL_KINDS && group->is_open &&
		trace_is_continuous(edges->trace, group->end_ns, work->start_ns))
		temporal->devices.items[device].idle_ns += work->start_ns - group->end_ns;
	r = close_group(temporal, edges, device, kind, group);
	*group = (struct group){work->start_ns, work->end_ns, .is_open = true};
	return r;
}

/* Joins work to groups, by start. */
static int find_groups(
	struct temporal *temporal, struct edges *edges, const struct trace_view *view)
{
	size_t count = view->works.count, devices = view->devices.count;
	_cleanup_free_ struct group *groups = calloc(devices * GROUPS + 1, sizeof(*groups));
	_cleanup_free_ int64_t *starts = malloc((count + 1) * sizeof(*starts));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r;

	if (!groups || !starts || !order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		starts[i] = view->works.items[i].start_ns;
	r = trace_order_stable(starts, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct trace_view_work *work = &view->works.items[order[i]];
		uint32_t device = view->streams.items[work->stream].device;
		struct group *own = &groups[(size_t)device * GROUPS];

		r = extend_group(temporal, edges, device, ALL_KINDS, &own[ALL_KINDS], work);
		if (r == 0 && work->kind < TRACE_OTHER_KIND)
			r = extend_group(
				temporal, edges, device, work->kind, &own[work->kind], work);
	}
	for (uint32_t i = 0; r == 0 && i < devices * GROUPS; i++)
		r = close_group(temporal, edges, i / GROUPS, i % GROUPS, &groups[i]);
	return r;
}

/* What runs on a device: the sum of the bits of its kinds, and of compute and communication. */
struct running {
	int64_t since_ns;
	int set, pair;
};

static void pass_time(struct temporal_device *device, const struct running *running,
	const struct trace *trace, int64_t time_ns)
{
	const int both = 1 << TRACE_COMPUTE | 1 << TRACE_COMMUNICATION;
	int64_t passed_ns = trace_recorded_ns(trace, running->since_ns, time_ns);

	/* A group that ends before it begins, which rounding makes, takes its bit away. */
	if (running->set > 0 && running->set < TEMPORAL_SETS)
		device->by_set_ns[running->set] += passed_ns;
	if (running->pair == both)
		device->communication_beside_compute_ns += passed_ns;
}

static int find_sets(struct temporal *temporal, const struct edges *edges)
{
	size_t count = edges->items.count;
	_cleanup_free_ struct running *devices =
		calloc(temporal->devices.count + 1, sizeof(*devices));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r;

	if (!devices || !order)
		return -ENOMEM;
	r = trace_order_stable(edges->times_ns.items, order, count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct edge *edge = &edges->items.items[order[i]];
		struct running *running = &devices[edge->device];
		int64_t time_ns = edges->times_ns.items[order[i]];

		pass_time(&temporal->devices.items[edge->device], running, edges->trace, time_ns);
		running->since_ns = time_ns;
		running->set += edge->change * (1 << edge->kind);
		if (edge->kind != TRACE_MEMORY)
			running->pair += edge->change * (1 << edge->kind);
	}
	return r;
}

int temporal_init(struct temporal *temporal, const struct trace_view *view)
{
	struct edges edges = {.trace = view->trace};
	int r = 0;

	*temporal = (struct temporal){0};
	for (size_t i = 0; r == 0 && i < view->devices.count; i++)
		r = array_append(&temporal->devices, (struct temporal_device){0});
	r = r ?: find_groups(temporal, &edges, view);
	r = r ?: find_sets(temporal, &edges);
	array_done(&edges.times_ns);
	array_done(&edges.items);
	if (r < 0)
		temporal_done(temporal);
	return r;
}

void temporal_done(struct temporal *temporal)
{
	array_done(&temporal->devices);
}

int64_t temporal_ns(const struct temporal_device *device, unsigned kinds)
{
	int64_t time_ns = 0;

	for (unsigned set = 1; set < TEMPORAL_SETS; set++) {
		if ((set & kinds) == kinds)
			time_ns += device->by_set_ns[set];
	}
	return time_ns;
}
