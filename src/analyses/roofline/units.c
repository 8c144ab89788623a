/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/roofline/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define IS_CLOSED  1 /* of a row: what it calls is a part of it */
#define HAS_CLOSED 2 /* below it is one that is closed */
#define CALLS      4 /* it calls operators */

struct name_formula {
	const struct op_formula *formula;
	enum op_family family;
	bool is_known; /* it was looked for */
};

struct finder {
	const struct trace_view *view;
	const uint32_t *parents;      /* row → the one around it */
	uint32_t *owners;             /* row → the operator that has its work, or MODEL_NONE */
	uint32_t *slots;              /* row → its unit's index + 1 */
	struct map_u64 replayed;      /* row and launch of a graph → its unit's index + 1 */
	uint8_t *flags;               /* by row */
	struct name_formula *by_name; /* by string */
};

static void finder_done(struct finder *finder)
{
	free(finder->owners);
	free(finder->slots);
	map_u64_done(&finder->replayed);
	free(finder->flags);
	free(finder->by_name);
}

static int finder_init(struct finder *finder, const struct trace_view *view)
{
	size_t count = view->trace->events.count + 1;

	*finder = (struct finder){
		.view = view,
		.parents = trace_parents(view->trace, false),
		.owners = malloc(count * sizeof(*finder->owners)),
		.slots = calloc(count, sizeof(*finder->slots)),
		.flags = calloc(count, sizeof(*finder->flags)),
		.by_name = calloc(view->trace->strings.entries.count + 1, sizeof(*finder->by_name)),
	};
	return finder->parents && finder->owners && finder->slots && finder->flags &&
			       finder->by_name
		       ? 0
		       : -ENOMEM;
}

static const struct name_formula *formula_of(struct finder *finder, const struct trace_event *event)
{
	struct name_formula *known = &finder->by_name[event->name];

	if (!known->is_known)
		known->formula = op_formula_find(
			trace_text(finder->view->trace, event->name), &known->family);
	known->is_known = true;
	return known;
}

/* It is closed, and those around it have one below them. */
static void close_row(struct finder *finder, uint32_t row)
{
	finder->flags[row] |= IS_CLOSED;
	for (row = finder->parents[row]; row != MODEL_NONE; row = finder->parents[row]) {
		if (finder->flags[row] & HAS_CLOSED)
			return;
		finder->flags[row] |= HAS_CLOSED;
	}
}

/* The operator that has this row's work, and what that makes of the row. */
static void find_owner(struct finder *finder, uint32_t row, bool closes_composites)
{
	const struct trace_event *event = &finder->view->trace->events.items[row];
	uint32_t parent = finder->parents[row];
	uint32_t around = parent == MODEL_NONE ? MODEL_NONE : finder->owners[parent];
	const struct op_formula *formula;

	finder->owners[row] = around;
	if (event->category != TRACE_CPU_OP)
		return;
	if (around != MODEL_NONE)
		finder->flags[around] |= CALLS;
	if (around != MODEL_NONE && (finder->flags[around] & IS_CLOSED))
		return;
	finder->owners[row] = row;
	formula = formula_of(finder, event)->formula;
	if (formula && (formula->reach == OP_CLOSED ||
			       (closes_composites && formula->reach == OP_COMPOSITE &&
				       !(finder->flags[row] & HAS_CLOSED))))
		close_row(finder, row);
}

/* Who is around a row comes before it. */
static void find_owners(struct finder *finder, bool closes_composites)
{
	const struct trace *trace = finder->view->trace;

	array_foreach (&trace->tracks, track) {
		for (uint32_t i = track->first; i < track->first + track->count; i++)
			find_owner(finder, trace->rows.items[i], closes_composites);
	}
}

/* ---- what they took ---- */

static int add_unit(struct finder *finder, struct roofline_units *units, uint32_t row)
{
	const struct trace_event *event = &finder->view->trace->events.items[row];
	const struct name_formula *known = formula_of(finder, event);

	return array_append(&units->items,
		(struct roofline_unit){
			.row = row, .formula = known->formula, .family = known->family});
}

/* NULL when memory ran out. */
static struct roofline_unit *find_unit(
	struct finder *finder, struct roofline_units *units, uint32_t row)
{
	if (!finder->slots[row]) {
		if (add_unit(finder, units, row) < 0)
			return NULL;
		finder->slots[row] = (uint32_t)units->items.count;
	}
	return &units->items.items[finder->slots[row] - 1];
}

/* The same of an operator that was captured: each replay does its work once more. */
static struct roofline_unit *find_replayed(
	struct finder *finder, struct roofline_units *units, uint32_t row, uint32_t launch)
{
	uint64_t key = (uint64_t)row << 32 | launch, slot;

	if (!map_u64_get(&finder->replayed, key, &slot)) {
		slot = units->items.count + 1;
		if (add_unit(finder, units, row) < 0 ||
			map_u64_set(&finder->replayed, key, slot) < 0)
			return NULL;
	}
	return &units->items.items[slot - 1];
}

/* cuBLAS, CUTLASS and cuDNN: "…_tf32f32_…", "…_s1688gemm_…", "…_tf32x3_…". */
static bool is_tf32(const char *kernel)
{
	return strstr(kernel, "tf32") || strstr(kernel, "s1688");
}

/* PyTorch's kernels that move what they do not compute with: "…CatArrayBatchedCopy<…OpaqueType<2u>,
 * …", mangled "…OpaqueTypeILj2EE…". 0: it says nothing. */
static uint32_t opaque_bytes(const char *kernel)
{
	static const char opaque[] = "OpaqueType";
	const char *at = strstr(kernel, opaque);
	unsigned long bytes;

	if (!at)
		return 0;
	at += strlen(opaque) + strcspn(at + strlen(opaque), "0123456789");
	bytes = strtoul(at, NULL, 10);
	return bytes <= 16 ? (uint32_t)bytes : 0;
}

static int add_works(struct finder *finder, struct roofline_units *units)
{
	const struct trace *trace = finder->view->trace;

	array_foreach (&finder->view->works, work) {
		struct roofline_unit *unit;
		const char *name;
		uint32_t owner, bytes;

		if (work->kind == TRACE_COMMUNICATION || work->is_wait)
			continue;
		units->work_ns += work->end_ns - work->start_ns;
		owner = work->origin == MODEL_NONE ? MODEL_NONE : finder->owners[work->origin];
		if (owner == MODEL_NONE)
			continue;
		unit = work->origin == work->launch
			       ? find_unit(finder, units, owner)
			       : find_replayed(finder, units, owner, work->launch);
		if (!unit)
			return -ENOMEM;
		unit->works++;
		unit->time_ns += work->end_ns - work->start_ns;
		name = trace_text(trace, trace->events.items[work->row].name);
		unit->is_tf32 |= is_tf32(name);
		bytes = opaque_bytes(name);
		unit->list_bytes = unit->works == 1 || unit->list_bytes == bytes ? bytes : 0;
	}
	return 0;
}

/* Operators that are closed, and those that call none. */
static int add_operators(struct finder *finder, struct roofline_units *units)
{
	const struct trace *trace = finder->view->trace;

	for (size_t i = 0; i < trace->rows.count; i++) {
		struct roofline_unit *unit;
		uint32_t row = trace->rows.items[i];
		const struct trace_event *event = &trace->events.items[row];

		if (finder->owners[row] != row || event->duration_ns == TRACE_NO_DURATION ||
			!trace_view_has(finder->view, event) ||
			(finder->flags[row] & (IS_CLOSED | CALLS)) == CALLS)
			continue;
		unit = find_unit(finder, units, row);
		if (!unit)
			return -ENOMEM;
		unit->time_ns = MAX(event->duration_ns, (int64_t)0);
		units->work_ns += unit->time_ns;
	}
	return 0;
}

int roofline_units_init(struct roofline_units *units, const struct trace_view *view, bool is_cpu)
{
	_cleanup_(finder_done) struct finder finder;
	int r = finder_init(&finder, view);

	*units = (struct roofline_units){0};
	if (r < 0)
		return r;
	find_owners(&finder, false);
	find_owners(&finder, true);
	r = is_cpu ? add_operators(&finder, units) : add_works(&finder, units);
	if (r < 0)
		roofline_units_done(units);
	return r;
}

void roofline_units_done(struct roofline_units *units)
{
	array_done(&units->items);
}
