/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: values of a name in a process, in the order of time. */
#include <stdlib.h>
#include <string.h>

#include "model/builder/internal.h"

void builder_counters_done(struct model_builder *builder)
{
	array_done(&builder->counters);
}

int builder_visit_counter(void *context, const struct capture_counter *counter)
{
	struct model_builder *builder = context;
	struct raw_counter raw = {
		.counter = {.time_ns = counter->time_ns, .value = counter->value},
		.pid = counter->pid,
	};
	int r = builder_keep(builder, counter->name, &raw.counter.name);

	return r ?: array_append(&builder->counters, raw);
}

static int compare_counters(const void *left, const void *right)
{
	const struct model_counter *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->name != b->name)
		return strcmp(a->name, b->name);
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

int builder_resolve_counters(struct model_builder *builder)
{
	struct model *model = builder->model;
	int r = array_reserve(&model->counters, builder->counters.count);

	for (size_t i = 0; r == 0 && i < builder->counters.count; i++) {
		struct model_counter counter = builder->counters.items[i].counter;

		if (!builder_is_chosen(builder, counter.time_ns))
			continue;
		r = builder_process_at(
			builder, builder->counters.items[i].pid, counter.time_ns, &counter.process);
		r = r ?: array_append(&model->counters, counter);
	}
	if (r == 0 && model->counters.count)
		qsort(model->counters.items, model->counters.count, sizeof(*model->counters.items),
			compare_counters);
	return r;
}
