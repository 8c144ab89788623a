/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/trace_order.h"

/* Work with a launch that counts. */
struct launched {
	uint32_t op;     /* row of the operator; MODEL_NONE: none encloses the call */
	uint32_t replay; /* what launched the graph that it is of; MODEL_NONE: it is of none */
	uint32_t work;
	int64_t launch_ns;
};

struct collector {
	const struct trace_view *view;
	const struct trace_ops_definition *definition;
	ARRAY_OF(struct launched) items;
	struct intern keys; /* of rows: the operator's name, then those of its work */
	ARRAY_OF(uint32_t) key;
};

static bool is_operator(const struct collector *collector, const struct trace_event *event)
{
	bool (*is_named)(const char *name) = collector->definition->is_operator;

	return event->category == TRACE_CPU_OP &&
	       (!is_named || is_named(trace_text(collector->view->trace, event->name)));
}

/* The operator that encloses the call; MODEL_NONE: none. */
static uint32_t find_operator(
	const struct collector *collector, const uint32_t *parents, uint32_t row)
{
	const struct trace_event *events = collector->view->trace->events.items;

	for (row = parents[row]; row != MODEL_NONE; row = parents[row]) {
		if (is_operator(collector, &events[row]))
			return row;
	}
	return MODEL_NONE;
}

static int collect(struct collector *collector)
{
	bool (*is_launch)(const char *name) = collector->definition->is_launch;
	const struct trace_view *view = collector->view;
	const uint32_t *parents = trace_parents(view->trace, false);
	const struct trace_event *events = view->trace->events.items;
	int r = parents ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		uint32_t call = work->origin;
		struct launched item = {.work = i, .replay = MODEL_NONE};

		if (call == MODEL_NONE)
			continue;
		item.op = find_operator(collector, parents, call);
		if (item.op != MODEL_NONE && work->origin != work->launch)
			item.replay = work->launch;
		/* Captured in no operator: it is the launch's. */
		if (item.op == MODEL_NONE && work->launch != MODEL_NONE) {
			call = work->launch;
			item.op = find_operator(collector, parents, call);
		}
		item.launch_ns = trace_view_start_ns(view, &events[call]);
		if (is_launch && (item.op == MODEL_NONE ||
					 !is_launch(trace_text(view->trace, events[call].name))))
			continue;
		r = array_append(&collector->items, item);
	}
	return r;
}

static int64_t launch_of(const void *item)
{
	return ((const struct launched *)item)->launch_ns;
}

static int64_t op_of(const void *item)
{
	return ((const struct launched *)item)->op;
}

static int64_t replay_of(const void *item)
{
	return ((const struct launched *)item)->replay;
}

/* By operator and replay, and for each by launch; launches of none by time. */
static int sort(struct collector *collector)
{
	struct launched *items = collector->items.items;
	size_t count = collector->items.count;
	int r = trace_order_items(items, count, sizeof(*items), launch_of, trace_order_stable);

	r = r ?: trace_order_items(items, count, sizeof(*items), replay_of, trace_order_stable);
	return r ?: trace_order_items(items, count, sizeof(*items), op_of, trace_order_stable);
}

static int find_row(struct trace_ops *ops, struct collector *collector, uint32_t *ret_row)
{
	const uint32_t *key = collector->key.items;
	size_t count = collector->key.count;
	struct trace_ops_row row = {
		.name = key[0],
		.first = (uint32_t)ops->sequences.count,
		.works = (uint32_t)count - 1,
	};
	int r = intern_add(&collector->keys, key, count * sizeof(*key), ret_row);

	if (r <= 0)
		return r;
	r = array_reserve(&ops->sequences, count);
	for (size_t i = 1; r == 0 && i < count; i++)
		ops->sequences.items[ops->sequences.count++] = key[i];
	return r ?: array_append(&ops->rows, row);
}

/* The work of one operator. */
static int add_operator(struct trace_ops *ops, struct collector *collector,
	const struct launched *items, size_t count)
{
	const struct trace_view *view = collector->view;
	const struct trace_event *events = view->trace->events.items;
	const struct trace_view_work *works = view->works.items;
	bool is_op = items->op != MODEL_NONE;
	int64_t work_ns = 0, launch_ns = items->launch_ns;
	uint32_t index = 0;
	int r;

	array_clear(&collector->key);
	r = array_append(&collector->key, is_op ? events[items->op].name : 0);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct trace_view_work *work = &works[items[i].work];

		r = array_append(&collector->key, events[work->row].name);
		work_ns += work->end_ns - work->start_ns;
	}
	r = r ?: find_row(ops, collector, &index);
	if (r < 0)
		return r;
	ops->rows.items[index].count++;
	ops->rows.items[index].work_ns += work_ns;
	if (items->replay != MODEL_NONE)
		launch_ns = trace_view_start_ns(view, &events[items->replay]);
	ops->rows.items[index].work_delay_ns += works[items->work].start_ns - launch_ns;
	if (is_op)
		ops->rows.items[index].launch_delay_ns +=
			items->launch_ns - trace_view_start_ns(view, &events[items->op]);
	return 0;
}

static int add_operators(struct trace_ops *ops, struct collector *collector)
{
	const struct launched *items = collector->items.items;
	size_t count = collector->items.count, next;
	int r = 0;

	for (size_t first = 0; r == 0 && first < count; first = next) {
		next = first + 1;
		while (items[first].op != MODEL_NONE && next < count &&
			items[next].op == items[first].op &&
			items[next].replay == items[first].replay)
			next++;
		r = add_operator(ops, collector, &items[first], next - first);
	}
	return r;
}

/* Rows that are equal otherwise are in the order of the operators. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct trace_ops_row *a = left, *b = right;
	const struct collector *collector = context;
	const struct trace *trace = collector->view->trace;
	int order = collector->definition->compare(a, b);

	order = order ? order : strcmp(trace_text(trace, a->name), trace_text(trace, b->name));
	if (order)
		return order;
	return a->first < b->first ? -1 : a->first > b->first;
}

int trace_ops_init_as(struct trace_ops *ops, const struct trace_view *view,
	const struct trace_ops_definition *definition)
{
	struct collector collector = {.view = view, .definition = definition};
	int r;

	*ops = (struct trace_ops){0};
	r = collect(&collector);
	r = r ?: sort(&collector);
	r = r ?: add_operators(ops, &collector);
	array_done(&collector.items);
	array_done(&collector.key);
	intern_done(&collector.keys);
	if (r < 0)
		trace_ops_done(ops);
	else if (ops->rows.count)
		qsort_r(ops->rows.items, ops->rows.count, sizeof(*ops->rows.items), compare_rows,
			&collector);
	return r;
}

static int compare_times(const struct trace_ops_row *a, const struct trace_ops_row *b)
{
	return a->work_ns != b->work_ns ? (a->work_ns > b->work_ns ? -1 : 1) : 0;
}

int trace_ops_init(struct trace_ops *ops, const struct trace_view *view)
{
	static const struct trace_ops_definition definition = {.compare = compare_times};

	return trace_ops_init_as(ops, view, &definition);
}

void trace_ops_done(struct trace_ops *ops)
{
	array_done(&ops->rows);
	array_done(&ops->sequences);
}
