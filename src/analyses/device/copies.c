/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A copy of a row begins or ends. */
struct change {
	int64_t time_ns;
	double gbps;
	uint32_t row;
};

struct changes {
	ARRAY_OF(struct change) items;
};

/* Where copies go to on their way into the result. */
struct collector {
	const struct copies_definition *definition;
	uint32_t *rows; /* by string: the row, + 1; 0: not known yet */
	struct changes begins, ends;
};

static int find_row(struct copies *copies, struct collector *collector,
	const struct trace_view *view, uint32_t string, uint32_t *ret_row)
{
	size_t length;
	const char *name;
	int r = 0;

	if (collector->rows[string]) {
		*ret_row = collector->rows[string] - 1;
		return 0;
	}
	name = collector->definition->row_name(trace_text(view->trace, string), &length);
	for (*ret_row = 0; *ret_row < copies->rows.count; (*ret_row)++) {
		const struct copies_row *row = &copies->rows.items[*ret_row];

		if (row->name_length == length && memcmp(row->name, name, length) == 0)
			break;
	}
	if (*ret_row == copies->rows.count)
		r = array_append(&copies->rows,
			(struct copies_row){.name = name, .name_length = (uint32_t)length});
	collector->rows[string] = *ret_row + 1;
	return r;
}

static void add_to_row(
	struct copies_row *row, const struct trace_work *work, double time_ns, double gbps)
{
	row->count++;
	if (!work || !work->bytes || gbps <= 0) {
		row->without_bytes++;
		return;
	}
	row->bytes += work->bytes;
	row->time_ns += time_ns;
	if (row->count - row->without_bytes == 1 || gbps < row->least_gbps)
		row->least_gbps = gbps;
	row->most_gbps = MAX(row->most_gbps, gbps);
}

static int add_changes(
	struct collector *collector, const struct trace_view_work *work, uint32_t row, double gbps)
{
	int64_t end_ns = work->end_ns;
	int r;

	if (end_ns == work->start_ns)
		end_ns += collector->definition->shortest_ns;
	r = array_append(&collector->begins.items, (struct change){work->start_ns, gbps, row});
	return r ?: array_append(&collector->ends.items, (struct change){end_ns, -gbps, row});
}

static int add_copy(struct copies *copies, struct collector *collector,
	const struct trace_view *view, const struct trace_view_work *copy)
{
	const struct trace_event *event = &view->trace->events.items[copy->row];
	const struct trace_work *work = trace_work(view->trace, event);
	double time_ns = (double)(copy->end_ns - copy->start_ns);
	double gbps = work ? work->bandwidth_gbps : 0;
	uint32_t row;
	int r = find_row(copies, collector, view, event->name, &row);

	if (r < 0)
		return r;
	if (work && gbps > 0)
		time_ns = (double)work->bytes / gbps;
	else if (work && time_ns > 0 && collector->definition->works_out_gbps)
		gbps = (double)work->bytes / time_ns;
	add_to_row(&copies->rows.items[row], work, time_ns, gbps);
	return add_changes(collector, copy, row, gbps);
}

/* Begins, then ends, each in the order of the work. */
static int find_changes(
	struct copies *copies, struct collector *collector, const struct trace_view *view)
{
	int r = 0;

	collector->rows = calloc(view->trace->strings.entries.count + 1, sizeof(*collector->rows));
	if (!collector->rows)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		if (view->works.items[i].kind == TRACE_MEMORY)
			r = add_copy(copies, collector, view, &view->works.items[i]);
	}
	for (size_t i = 0; r == 0 && i < collector->ends.items.count; i++)
		r = array_append(&collector->begins.items, collector->ends.items.items[i]);
	return r;
}

static int describe_row(struct copies *copies, struct copies_row *row)
{
	_cleanup_free_ double *values = malloc((row->point_count + 1) * sizeof(*values));
	size_t count = 0;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = row->first; i < row->first + row->point_count; i++) {
		if (copies->points.items[i].gbps > 0)
			values[count++] = copies->points.items[i].gbps;
	}
	trace_describe(&row->points, values, count);
	return 0;
}

/* Gives each row its piece of `points`. */
static int deal_points(struct copies *copies, const struct changes *changes, const uint32_t *order)
{
	uint32_t first = 0;
	int r = array_reserve(&copies->points, changes->items.count);

	if (r < 0)
		return r;
	copies->points.count = changes->items.count;
	array_foreach (&changes->items, change)
		copies->rows.items[change->row].point_count++;
	array_foreach (&copies->rows, row) {
		row->first = first;
		first += row->point_count;
		row->point_count = 0;
	}
	for (size_t i = 0; i < changes->items.count; i++) {
		const struct change *change = &changes->items.items[order[i]];
		struct copies_row *row = &copies->rows.items[change->row];
		struct copy_point *point = &copies->points.items[row->first + row->point_count];

		*point = (struct copy_point){change->time_ns, change->gbps};
		if (row->point_count++)
			point->gbps += point[-1].gbps;
	}
	for (size_t i = 0; r == 0 && i < copies->rows.count; i++)
		r = describe_row(copies, &copies->rows.items[i]);
	return r;
}

static int find_points(struct copies *copies, const struct changes *changes, trace_order *sort)
{
	size_t count = changes->items.count;
	_cleanup_free_ int64_t *times = malloc((count + 1) * sizeof(*times));
	_cleanup_free_ uint32_t *order = malloc((count + 1) * sizeof(*order));
	int r;

	if (!times || !order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		times[i] = changes->items.items[i].time_ns;
	r = sort(times, order, count);
	return r ?: deal_points(copies, changes, order);
}

static int compare_rows(const void *left, const void *right)
{
	const struct copies_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

int copies_init_as(struct copies *copies, const struct trace_view *view,
	const struct copies_definition *definition)
{
	struct collector collector = {.definition = definition};
	int r;

	*copies = (struct copies){0};
	r = find_changes(copies, &collector, view);
	r = r ?: find_points(copies, &collector.begins, definition->order);
	free(collector.rows);
	array_done(&collector.begins.items);
	array_done(&collector.ends.items);
	if (r < 0)
		copies_done(copies);
	else if (copies->rows.count)
		qsort(copies->rows.items, copies->rows.count, sizeof(*copies->rows.items),
			compare_rows);
	return r;
}

static const char *whole_name(const char *name, size_t *ret_length)
{
	*ret_length = strlen(name);
	return name;
}

int copies_init(struct copies *copies, const struct trace_view *view)
{
	static const struct copies_definition definition = {
		.row_name = whole_name, .works_out_gbps = true, .order = trace_order_stable};

	return copies_init_as(copies, view, &definition);
}

void copies_done(struct copies *copies)
{
	array_done(&copies->rows);
	array_done(&copies->points);
}
