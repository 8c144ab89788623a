/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/trace_order.h"

/* Work with a launch that counts. */
struct launched {
	uint32_t op; /* row of the operator; MODEL_NONE: none encloses the launch */
	uint32_t work;
	int64_t launch_ns;
};

struct collector {
	ARRAY_OF(struct launched) items;
	struct intern keys; /* of rows: the operator's name, then those of its work */
	ARRAY_OF(uint32_t) key;
};

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The pattern KERNEL_LAUNCH_CATEGORY_PATTERN. */
static bool hta_is_launch(const char *name)
{
	if (begins_with(name, "cuda") && strstr(name, "LaunchKernel"))
		return true;
	return begins_with(name, "cuLaunchKernel") || begins_with(name, "runFunction");
}

static bool is_operator(const struct trace_view *view, const struct trace_event *event)
{
	if (event->category != TRACE_CPU_OP)
		return false;
	return !view->options.hta_compatible ||
	       begins_with(trace_text(view->trace, event->name), "aten::");
}

/* The operator that encloses the call; MODEL_NONE: none. */
static uint32_t find_operator(const struct trace_view *view, const uint32_t *parents, uint32_t row)
{
	const struct trace_event *events = view->trace->events.items;

	for (row = parents[row]; row != MODEL_NONE; row = parents[row]) {
		if (is_operator(view, &events[row]))
			return row;
	}
	return MODEL_NONE;
}

static int collect(struct collector *collector, const struct trace_view *view)
{
	_cleanup_free_ uint32_t *parents = trace_parents(view->trace, false);
	const struct trace_event *events = view->trace->events.items;
	int r = parents ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < view->works.count; i++) {
		uint32_t call = view->works.items[i].launch;
		struct launched item = {.work = i};

		if (call == MODEL_NONE)
			continue;
		item.op = find_operator(view, parents, call);
		item.launch_ns = trace_view_start_ns(view, &events[call]);
		if (view->options.hta_compatible &&
			(item.op == MODEL_NONE ||
				!hta_is_launch(trace_text(view->trace, events[call].name))))
			continue;
		r = array_append(&collector->items, item);
	}
	return r;
}

/* By operator, and for each by launch; launches of none by time. */
static int sort(struct collector *collector)
{
	size_t count = collector->items.count;
	_cleanup_free_ struct launched *unsorted = malloc((count + 1) * sizeof(*unsorted));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	_cleanup_free_ int64_t *keys = malloc((count + 1) * sizeof(*keys));
	int r = unsorted && order && keys ? 0 : -ENOMEM;

	for (int pass = 0; r == 0 && pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			unsorted[i] = collector->items.items[i];
			keys[i] = pass ? (int64_t)unsorted[i].op : unsorted[i].launch_ns;
		}
		r = trace_order_stable(keys, order, count);
		for (size_t i = 0; r == 0 && i < count; i++)
			collector->items.items[i] = unsorted[order[i]];
	}
	return r;
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
	const struct trace_view *view, const struct launched *items, size_t count)
{
	const struct trace_event *events = view->trace->events.items;
	const struct trace_view_work *works = view->works.items;
	const struct trace_event *op = items->op == MODEL_NONE ? NULL : &events[items->op];
	int64_t work_ns = 0;
	uint32_t index = 0;
	int r;

	array_clear(&collector->key);
	r = array_append(&collector->key, op ? op->name : 0);
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
	ops->rows.items[index].work_delay_ns += works[items->work].start_ns - items->launch_ns;
	if (op)
		ops->rows.items[index].launch_delay_ns +=
			items->launch_ns - trace_view_start_ns(view, op);
	return 0;
}

static int add_operators(
	struct trace_ops *ops, struct collector *collector, const struct trace_view *view)
{
	const struct launched *items = collector->items.items;
	size_t count = collector->items.count, next;
	int r = 0;

	for (size_t first = 0; r == 0 && first < count; first = next) {
		next = first + 1;
		while (items[first].op != MODEL_NONE && next < count &&
			items[next].op == items[first].op)
			next++;
		r = add_operator(ops, collector, view, &items[first], next - first);
	}
	return r;
}

/* Rows that are equal otherwise are in the order of the operators. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct trace_ops_row *a = left, *b = right;
	const struct trace_view *view = context;
	int order;

	if (view->options.hta_compatible && a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (!view->options.hta_compatible && a->work_ns != b->work_ns)
		return a->work_ns > b->work_ns ? -1 : 1;
	order = strcmp(trace_text(view->trace, a->name), trace_text(view->trace, b->name));
	if (order)
		return order;
	return a->first < b->first ? -1 : a->first > b->first;
}

int trace_ops_init(struct trace_ops *ops, const struct trace_view *view)
{
	struct collector collector = {0};
	int r;

	*ops = (struct trace_ops){0};
	r = collect(&collector, view);
	r = r ?: sort(&collector);
	r = r ?: add_operators(ops, &collector, view);
	array_done(&collector.items);
	array_done(&collector.key);
	intern_done(&collector.keys);
	if (r < 0)
		trace_ops_done(ops);
	else if (ops->rows.count)
		qsort_r(ops->rows.items, ops->rows.count, sizeof(*ops->rows.items), compare_rows,
			(void *)view);
	return r;
}

void trace_ops_done(struct trace_ops *ops)
{
	array_done(&ops->rows);
	array_done(&ops->sequences);
}
