/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/counter_use.h"

#include <math.h>

static void add_value(struct counter_row *row, double value)
{
	uint64_t before = row->count - row->not_numbers;

	row->count++;
	if (!isfinite(value)) {
		row->not_numbers++;
		return;
	}
	row->minimum = before ? MIN(row->minimum, value) : value;
	row->maximum = before ? MAX(row->maximum, value) : value;
	row->mean += (value - row->mean) / (double)(before + 1);
	row->last = value;
}

/* Values of one counter lie together, in the order of time; equal names are equal pointers. */
int counter_use_init(struct counter_use *use, const struct model *model)
{
	int r = 0;

	*use = (struct counter_use){0};
	for (size_t i = 0; r == 0 && i < model->counters.count; i++) {
		const struct model_counter *counter = &model->counters.items[i];

		if (!i || counter->name != counter[-1].name ||
			counter->process != counter[-1].process)
			r = array_append(&use->rows, (struct counter_row){.name = counter->name,
							     .process = counter->process});
		if (r == 0)
			add_value(&use->rows.items[use->rows.count - 1], counter->value);
	}
	if (r < 0)
		counter_use_done(use);
	return r;
}

void counter_use_done(struct counter_use *use)
{
	array_done(&use->rows);
}
