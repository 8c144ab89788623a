/* SPDX-License-Identifier: Apache-2.0 */
/* What rows of a simulation are, by the trace that the simulator was fed: names are the same. */
#include "model/trace.h"

/* Of names that several kinds of rows have, work of a device is meant. */
static bool is_taken_from(enum trace_category category)
{
	return category == TRACE_CPU_OP || category == TRACE_USER_ANNOTATION ||
	       (category >= TRACE_KERNEL && category <= TRACE_MEMSET);
}

struct kinds {
	struct intern names;
	ARRAY_OF(uint8_t) categories; /* by name */
};

static void kinds_done(struct kinds *kinds)
{
	intern_done(&kinds->names);
	array_done(&kinds->categories);
}

static int find_kinds(struct kinds *kinds, const struct trace *from)
{
	array_foreach (&from->events, event) {
		const struct intern_entry *name = &from->strings.entries.items[event->name];
		uint32_t id;
		int r;

		if (!is_taken_from(event->category))
			continue;
		r = intern_add(&kinds->names, name->bytes, name->length, &id);
		if (r > 0)
			r = array_append(&kinds->categories, event->category);
		if (r < 0)
			return r;
		kinds->categories.items[id] = MAX(kinds->categories.items[id], event->category);
	}
	return 0;
}

/* Work has a detail, what a host does needs none. */
static int set_kind(struct trace *trace, struct trace_event *event, uint8_t category)
{
	bool was_work = trace_is_work(event);
	struct trace_work work = trace_no_work;

	event->category = category;
	if (trace_is_work(event) == was_work)
		return 0;
	event->detail = MODEL_NONE;
	if (was_work)
		return 0;
	work.device = trace->rank == MODEL_NONE ? 0 : trace->rank;
	event->detail = (uint32_t)trace->works.count;
	return array_append(&trace->works, work);
}

int trace_take_kinds(struct trace *simulated, const struct trace *from)
{
	_cleanup_(kinds_done) struct kinds kinds = {0};
	int r = find_kinds(&kinds, from);

	array_foreach (&simulated->events, event) {
		const struct intern_entry *name = &simulated->strings.entries.items[event->name];
		uint32_t id;

		if (r == 0 && intern_find(&kinds.names, name->bytes, name->length, &id) &&
			id < kinds.categories.count)
			r = set_kind(simulated, event, kinds.categories.items[id]);
	}
	return r;
}
