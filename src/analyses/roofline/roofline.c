/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/roofline/roofline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/roofline/batches.h"
#include "analyses/roofline/roof.h"
#include "analyses/roofline/units.h"
#include "analyses/trace_order.h"

const char *roofline_bound_name(enum roofline_bound bound)
{
	static const char *const names[ROOFLINE_BOUND_MAX] = {
		[ROOFLINE_COMPUTE] = "compute",
		[ROOFLINE_MEMORY] = "memory",
		[ROOFLINE_LATENCY] = "latency",
	};

	return names[bound];
}

/* Of what a row is: two are the same where this is. */
struct row_key {
	uint32_t name, dims, types, dtype, flop_is, bytes_is;
	double flop, bytes;
};

/* Calls with the same texts: they have one row. */
struct call_key {
	uint32_t name, dims, types, strides, values, is_tf32, list_bytes, batch;
};

struct collector {
	struct roofline *roofline;
	const struct trace_view *view;
	struct intern rows;  /* struct row_key → index in roofline->rows */
	struct intern calls; /* of the view: struct call_key → index in `rows_of_calls` */
	ARRAY_OF(uint32_t) rows_of_calls;
	ARRAY_OF(int64_t) rank_ns; /* by row: of this view */
	enum op_dtype cache_dtype; /* of this view, once it was asked for */
	bool has_cache_dtype;
};

/* ---- rows ---- */

static struct json_text text_of(const struct trace *trace, uint32_t string)
{
	const struct intern_entry *entry = &trace->strings.entries.items[string];

	return (struct json_text){.bytes = entry->bytes, .length = entry->length};
}

/* False: nothing is known of it. */
static bool batch_of(
	struct collector *collector, const struct call_key *call, struct op_batch *batch)
{
	const struct trace *trace = collector->view->trace;

	if (!call->batch || !op_batch_read(batch, trace_text(trace, call->batch)))
		return false;
	if (!collector->has_cache_dtype)
		collector->cache_dtype = roofline_cache_dtype(trace);
	collector->has_cache_dtype = true;
	batch->cache_dtype = collector->cache_dtype;
	return true;
}

static struct op_cost cost_of(
	struct collector *collector, const struct roofline_unit *unit, const struct call_key *call)
{
	const struct trace *trace = collector->view->trace;
	struct op_batch batch;
	const struct op_texts texts = {
		.dims = text_of(trace, call->dims),
		.types = text_of(trace, call->types),
		.strides = text_of(trace, call->strides),
		.values = text_of(trace, call->values),
		.list_bytes = call->list_bytes,
		.batch = batch_of(collector, call, &batch) ? &batch : NULL,
	};
	struct op_cost cost = {.flop = NAN, .bytes = NAN};

	if (unit->formula)
		cost = op_cost_of(unit->formula, &texts);
	if (unit->is_tf32 && cost.dtype == OP_FP32)
		cost.dtype = OP_TF32;
	return cost;
}

static int copy_string(struct collector *collector, uint32_t string, uint32_t *ret_string)
{
	const struct intern_entry *entry = &collector->view->trace->strings.entries.items[string];
	int r = intern_add(&collector->roofline->strings, entry->bytes, entry->length, ret_string);

	return r < 0 ? r : 0;
}

/* On one line, however the file has it: "[[2, 3], [4]]". */
static int copy_json(struct collector *collector, uint32_t string, uint32_t *ret_string)
{
	const char *at = trace_text(collector->view->trace, string);
	_cleanup_strbuf_ struct strbuf text = {0};
	bool inside = false;
	int r;

	for (; *at; at++) {
		inside ^= *at == '"';
		if (inside || (unsigned char)*at > ' ')
			strbuf_add_char(&text, *at);
		if (*at == ',' && !inside)
			strbuf_add_char(&text, ' ');
	}
	if (strbuf_status(&text) < 0)
		return -ENOMEM;
	r = intern_add(&collector->roofline->strings, strbuf_cstr(&text), text.length, ret_string);
	return r < 0 ? r : 0;
}

static int find_row(struct collector *collector, const struct roofline_unit *unit,
	const struct call_key *call, uint32_t *ret_row)
{
	const struct op_cost cost = cost_of(collector, unit, call);
	struct row_key key;
	int r;

	memset(&key, 0, sizeof(key));
	key.dtype = cost.dtype;
	key.flop = cost.flop;
	key.bytes = cost.bytes;
	key.flop_is = cost.flop_is;
	key.bytes_is = cost.bytes_is;
	r = copy_string(collector, call->name, &key.name);
	r = r ?: copy_json(collector, call->dims, &key.dims);
	r = r ?: copy_json(collector, call->types, &key.types);
	if (r == 0)
		r = intern_add(&collector->rows, &key, sizeof(key), ret_row);
	if (r <= 0)
		return r;
	return array_append(&collector->roofline->rows, (struct roofline_row){
								.name = key.name,
								.dims = key.dims,
								.types = key.types,
								.family = unit->family,
								.dtype = cost.dtype,
								.flop = cost.flop,
								.bytes = cost.bytes,
								.flop_is = cost.flop_is,
								.bytes_is = cost.bytes_is,
								.roof_ns = NAN,
								.saves_ns = NAN,
							});
}

static int find_call(
	struct collector *collector, const struct roofline_unit *unit, uint32_t *ret_row)
{
	const struct trace *trace = collector->view->trace;
	const struct trace_event *event = &trace->events.items[unit->row];
	const struct trace_op *op = trace_op(trace, event);
	struct call_key call = {
		.name = event->name, .is_tf32 = unit->is_tf32, .list_bytes = unit->list_bytes};
	uint32_t index = 0, row = 0;
	int r;

	if (op) {
		call.dims = op->input_dims;
		call.types = op->input_types;
		call.strides = op->input_strides;
		call.values = op->concrete_inputs;
	}
	if (unit->formula && unit->formula->needs_batch)
		call.batch = roofline_batch_around(trace, trace_parents(trace, false), unit->row);
	r = intern_add(&collector->calls, &call, sizeof(call), &index);
	if (r > 0) {
		r = find_row(collector, unit, &call, &row);
		r = r ?: array_append(&collector->rows_of_calls, row);
	}
	if (r == 0)
		*ret_row = collector->rows_of_calls.items[index];
	return r;
}

/* ---- steps ---- */

static int64_t step_start(const void *item)
{
	return ((const struct roofline_step *)item)->start_ns;
}

/* What the steps of a view are before anything is in them; one of all where it has none. */
static int add_steps(struct roofline *roofline, const struct trace_view *view, uint32_t index)
{
	struct roofline_step all = {.view = index,
		.number = ROOFLINE_NO_STEP,
		.start_ns = INT64_MAX,
		.end_ns = INT64_MIN};
	size_t first = roofline->steps.count;
	int r = 0;

	array_foreach (&view->trace->events, event) {
		struct roofline_step step = {.view = index};

		if (event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event) ||
			!trace_step_number(trace_text(view->trace, event->name), &step.number))
			continue;
		step.start_ns = trace_view_start_ns(view, event);
		step.end_ns = trace_view_end_ns(view, event);
		r = array_append(&roofline->steps, step);
		if (r < 0)
			return r;
	}
	if (roofline->steps.count == first)
		return array_append(&roofline->steps, all);
	return trace_order_items(&roofline->steps.items[first], roofline->steps.count - first,
		sizeof(*roofline->steps.items), step_start, trace_order_stable);
}

/* The step of the collector's view that the time is in; NULL: none. */
static struct roofline_step *find_step(
	const struct collector *collector, size_t first, int64_t time_ns)
{
	struct roofline_step *steps = collector->roofline->steps.items + first;
	size_t low = 0, high = collector->roofline->steps.count - first;

	if (steps->number == ROOFLINE_NO_STEP)
		return steps;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low && time_ns < steps[low - 1].end_ns ? &steps[low - 1] : NULL;
}

/* ---- one view after the other ---- */

static int add_unit(struct collector *collector, const struct roofline_unit *unit, size_t steps)
{
	struct roofline *roofline = collector->roofline;
	const struct trace_event *event = &collector->view->trace->events.items[unit->row];
	struct roofline_step *step =
		find_step(collector, steps, trace_view_start_ns(collector->view, event));
	struct roofline_row *row;
	uint32_t index = 0;
	int r = find_call(collector, unit, &index);

	while (r == 0 && collector->rank_ns.count < roofline->rows.count)
		r = array_append(&collector->rank_ns, 0);
	if (r < 0)
		return r;
	row = &roofline->rows.items[index];
	row->count++;
	row->works += unit->works;
	row->time_ns += unit->time_ns;
	collector->rank_ns.items[index] += unit->time_ns;
	roofline->in_operators_ns += unit->time_ns;
	if (!isnan(row->flop) || !isnan(row->bytes))
		roofline->known_ns += unit->time_ns;
	if (step)
		roof_add_to_step(step, row, &roofline->peaks);
	return 0;
}

static int add_view(struct collector *collector, uint32_t index)
{
	struct roofline *roofline = collector->roofline;
	_cleanup_roofline_units_ struct roofline_units units = {0};
	size_t steps = roofline->steps.count;
	int r = roofline_units_init(&units, collector->view, roofline->is_cpu);

	r = r ?: add_steps(roofline, collector->view, index);
	roofline->work_ns += units.work_ns;
	for (size_t i = 0; r == 0 && i < units.items.count; i++)
		r = add_unit(collector, &units.items.items[i], steps);
	for (size_t i = 0; r == 0 && i < collector->rank_ns.count; i++) {
		struct roofline_row *row = &roofline->rows.items[i];
		int64_t *time_ns = &collector->rank_ns.items[i];

		if (!*time_ns)
			continue;
		row->least_ns = row->ranks ? MIN(row->least_ns, *time_ns) : *time_ns;
		row->most_ns = MAX(row->most_ns, *time_ns);
		row->ranks++;
		*time_ns = 0;
	}
	if (r == 0)
		roof_finish_steps(roofline, collector->view, steps);
	intern_done(&collector->calls);
	array_clear(&collector->rows_of_calls);
	collector->has_cache_dtype = false;
	return r;
}

/* ---- operators ---- */

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct roofline_row *a = left, *b = right;
	const struct intern *strings = context;
	int order;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	order = strcmp(intern_get(strings, a->name), intern_get(strings, b->name));
	return order ? order : strcmp(intern_get(strings, a->dims), intern_get(strings, b->dims));
}

static int compare_operators(const void *left, const void *right, void *context)
{
	const struct roofline_operator *a = left, *b = right;
	const struct intern *strings = context;
	double x = isnan(a->saves_ns) ? -1 : a->saves_ns, y = isnan(b->saves_ns) ? -1 : b->saves_ns;

	if (x > y || x < y)
		return x > y ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return strcmp(intern_get(strings, a->name), intern_get(strings, b->name));
}

static void add_known(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

static int add_operators(struct roofline *roofline)
{
	struct map_u64 known = {0};
	int r = 0;

	array_foreach (&roofline->rows, row) {
		const struct roofline_operator empty = {.name = row->name,
			.family = row->family,
			.flop = NAN,
			.bytes = NAN,
			.roof_ns = NAN,
			.saves_ns = NAN};
		struct roofline_operator *op;
		uint64_t index = roofline->operators.count;

		if (!map_u64_get(&known, row->name, &index)) {
			r = map_u64_set(&known, row->name, index);
			if (r == 0)
				r = array_append(&roofline->operators, empty);
		}
		if (r < 0)
			break;
		op = &roofline->operators.items[index];
		op->count += row->count;
		op->time_ns += row->time_ns;
		add_known(&op->flop, row->flop * (double)row->count);
		add_known(&op->bytes, row->bytes * (double)row->count);
		add_known(&op->roof_ns, row->roof_ns);
		add_known(&op->saves_ns, row->saves_ns);
		if (!isnan(row->saves_ns))
			roofline->saves_ns += row->saves_ns;
	}
	map_u64_done(&known);
	return r;
}

static int finish(struct roofline *roofline)
{
	int r;

	array_foreach (&roofline->rows, row)
		roof_of_row(row, &roofline->peaks, roofline->is_cpu);
	r = add_operators(roofline);
	if (r == 0 && roofline->rows.count) {
		qsort_r(roofline->rows.items, roofline->rows.count, sizeof(*roofline->rows.items),
			compare_rows, &roofline->strings);
		qsort_r(roofline->operators.items, roofline->operators.count,
			sizeof(*roofline->operators.items), compare_operators, &roofline->strings);
	}
	return r;
}

/* ---- all of them ---- */

static bool has_shapes(const struct trace *trace)
{
	array_foreach (&trace->ops, op) {
		if (op->input_dims)
			return true;
	}
	return false;
}

static void look_at_views(struct roofline *roofline, const struct trace_view *views, size_t count)
{
	roofline->is_cpu = true;
	for (size_t i = 0; i < count; i++) {
		roofline->has_shapes |= has_shapes(views[i].trace);
		roofline->is_cpu &= views[i].works.count == 0;
	}
}

int roofline_init(struct roofline *roofline, const struct trace_view *views, size_t count,
	const struct peaks *given)
{
	struct collector collector = {.roofline = roofline};
	int r = 0;

	*roofline = (struct roofline){0};
	look_at_views(roofline, views, count);
	roof_choose_peaks(roofline, views, count, given);
	for (size_t i = 0; r == 0 && roofline->has_shapes && i < count; i++) {
		collector.view = &views[i];
		r = add_view(&collector, (uint32_t)i);
	}
	r = r ?: finish(roofline);
	intern_done(&collector.rows);
	intern_done(&collector.calls);
	array_done(&collector.rows_of_calls);
	array_done(&collector.rank_ns);
	if (r < 0)
		roofline_done(roofline);
	return r;
}

void roofline_done(struct roofline *roofline)
{
	array_done(&roofline->rows);
	array_done(&roofline->operators);
	array_done(&roofline->steps);
	intern_done(&roofline->strings);
}
