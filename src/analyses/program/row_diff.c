/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/row_diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/statistics.h"
#include "analyses/trace_order.h"
#include "base/strbuf.h"

/* ---- names ---- */

const char *row_diff_kind_name(enum row_diff_kind kind)
{
	static const char *const names[ROW_DIFF_KIND_MAX] = {
		[ROW_DIFF_OPERATOR] = "operator",
		[ROW_DIFF_CALL] = "call",
		[ROW_DIFF_STEP] = "step",
		[ROW_DIFF_ANNOTATION] = "annotation",
		[ROW_DIFF_PYTHON] = "python",
		[ROW_DIFF_OTHER] = "other",
		[ROW_DIFF_DEVICE_ANNOTATION] = "device_annotation",
		[ROW_DIFF_KERNEL] = "kernel",
		[ROW_DIFF_COPY] = "copy",
		[ROW_DIFF_FILL] = "fill",
		[ROW_DIFF_ANY] = "any",
	};

	return names[kind];
}

const char *row_diff_change_name(enum row_diff_change change)
{
	static const char *const names[ROW_DIFF_CHANGE_MAX] = {
		[ROW_DIFF_UNCHANGED] = "unchanged",
		[ROW_DIFF_NOISE] = "noise",
		[ROW_DIFF_TOO_FEW] = "too_few",
		[ROW_DIFF_NEW] = "new",
		[ROW_DIFF_GONE] = "gone",
		[ROW_DIFF_MORE] = "more",
		[ROW_DIFF_FEWER] = "fewer",
		[ROW_DIFF_LONGER] = "longer",
		[ROW_DIFF_SHORTER] = "shorter",
	};

	return names[change];
}

static bool is_work(enum row_diff_kind kind)
{
	return kind >= ROW_DIFF_KERNEL && kind <= ROW_DIFF_FILL;
}

/* ---- rows ---- */

int row_diff_begin(struct row_diff_adding *adding, struct row_diff *diff, int side,
	const struct trace_view *view)
{
	size_t names = view->trace->strings.entries.count;

	*adding = (struct row_diff_adding){.diff = diff, .side = side, .view = view};
	adding->known = calloc(names * ROW_DIFF_KIND_MAX + 1, sizeof(*adding->known));
	return adding->known ? 0 : -ENOMEM;
}

void row_diff_end(struct row_diff_adding *adding)
{
	free(adding->known);
}

/* Each trace has numbers of its own for names. Steps of all numbers are one row. */
static int find_row(struct row_diff *diff, enum row_diff_kind kind, const char *name, uint32_t *row)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint64_t number;
	bool is_step = kind != ROW_DIFF_ANY && trace_step_number(name, &number);
	int r;

	strbuf_add_char(&key, (char)('a' + kind));
	strbuf_add(&key, is_step ? "ProfilerStep" : name);
	r = strbuf_status(&key);
	if (r == 0)
		r = intern_add(&diff->keys, key.data, key.length, row);
	if (r <= 0)
		return r;
	return array_append(&diff->rows, (struct row_diff_row){
						 .name = intern_get(&diff->keys, *row) + 1,
						 .kind = kind,
					 });
}

int row_diff_add(
	struct row_diff_adding *adding, const struct trace_event *event, enum row_diff_kind kind)
{
	const struct trace_view *view = adding->view;
	uint32_t *known = &adding->known[(size_t)event->name * ROW_DIFF_KIND_MAX + kind];
	struct row_diff_side *side = &adding->diff->sides[adding->side];
	int64_t start_ns = trace_view_start_ns(view, event);
	int64_t duration_ns = trace_view_end_ns(view, event) - start_ns;
	struct row_diff_figures *figures;
	uint32_t row = *known - 1;
	int r;

	if (!*known) {
		r = find_row(adding->diff, kind, trace_text(view->trace, event->name), &row);
		if (r < 0)
			return r;
		*known = row + 1;
	}
	figures = &adding->diff->rows.items[row].sides[adding->side];
	figures->count++;
	figures->total_ns += duration_ns;
	if (is_work(kind)) {
		side->works++;
		side->device_ns += duration_ns;
	}
	return array_append(&adding->diff->events[adding->side],
		(struct row_diff_event){start_ns, (double)duration_ns, row});
}

static enum row_diff_kind kind_of(const struct trace *trace, const struct trace_event *event)
{
	uint64_t number;

	switch (event->category) {
	case TRACE_CPU_OP:
		return ROW_DIFF_OPERATOR;
	case TRACE_RUNTIME:
	case TRACE_DRIVER:
		return ROW_DIFF_CALL;
	case TRACE_USER_ANNOTATION:
		return trace_step_number(trace_text(trace, event->name), &number)
			       ? ROW_DIFF_STEP
			       : ROW_DIFF_ANNOTATION;
	case TRACE_GPU_ANNOTATION:
		return ROW_DIFF_DEVICE_ANNOTATION;
	case TRACE_PYTHON_FUNCTION:
		return ROW_DIFF_PYTHON;
	case TRACE_KERNEL:
		return ROW_DIFF_KERNEL;
	case TRACE_MEMCPY:
		return ROW_DIFF_COPY;
	case TRACE_MEMSET:
		return ROW_DIFF_FILL;
	default:
		return ROW_DIFF_OTHER;
	}
}

/*
 * Rows of no thread's doing: Kineto's say how long it traced, and those of sonde's exports are
 * samples that were joined into slices.
 */
static bool is_drawn(const struct trace *trace, const struct trace_event *event)
{
	static const char *const categories[] = {
		"Trace", "native", "interpreted", "jit", "os_kernel"};
	const char *category = trace_text(trace, event->category_name);

	for (size_t i = 0; event->category == TRACE_OTHER && i < ARRAY_SIZE(categories); i++) {
		if (strcmp(category, categories[i]) == 0)
			return true;
	}
	return false;
}

/* Of what is no work. */
static bool counts(const struct trace_view *view, const struct trace_event *event)
{
	return event->duration_ns != TRACE_NO_DURATION && !trace_is_work(event) &&
	       trace_view_has(view, event) && !is_drawn(view->trace, event);
}

static int add_view(struct row_diff *diff, int side, const struct trace_view *view)
{
	const struct trace *trace = view->trace;
	struct row_diff_adding adding;
	int r = row_diff_begin(&adding, diff, side, view);

	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_event *event = &trace->events.items[view->works.items[i].row];

		r = row_diff_add(&adding, event, kind_of(trace, event));
	}
	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (counts(view, event))
			r = row_diff_add(&adding, event, kind_of(trace, event));
	}
	row_diff_end(&adding);
	return r;
}

/* ---- figures ---- */

/* All durations of a side, row after row, each in order of time. */
static int sort_durations(const struct row_diff *diff, int side, double **ret_durations)
{
	const struct row_diff_event *events = diff->events[side].items;
	size_t count = diff->events[side].count, end = 0;
	_cleanup_free_ int64_t *starts = calloc(count + 1, sizeof(*starts));
	_cleanup_free_ uint32_t *order = calloc(count + 1, sizeof(*order));
	_cleanup_free_ double *durations = calloc(count + 1, sizeof(*durations));
	_cleanup_free_ size_t *places = calloc(diff->rows.count + 1, sizeof(*places));
	int r;

	if (!starts || !order || !durations || !places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		starts[i] = events[i].start_ns;
	r = trace_order_stable(starts, order, count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < diff->rows.count; i++) {
		places[i] = end;
		end += diff->rows.items[i].sides[side].count;
	}
	for (size_t i = 0; i < count; i++)
		durations[places[events[order[i]].row]++] = events[order[i]].duration_ns;
	*ret_durations = TAKE_PTR(durations);
	return 0;
}

static int find_figures(struct row_diff *diff, int side)
{
	double device_ns = (double)diff->sides[side].device_ns;
	_cleanup_free_ double *all = NULL;
	const double *durations;
	int r = sort_durations(diff, side, &all);

	if (r < 0)
		return r;
	durations = all;
	array_foreach (&diff->rows, row) {
		struct row_diff_figures *figures = &row->sides[side];
		double total_ns = (double)figures->total_ns;

		figures->mean_ns = figures->count ? total_ns / (double)figures->count : NAN;
		figures->share = is_work(row->kind) && device_ns > 0 ? total_ns / device_ns : NAN;
		figures->error2_ns2 = figures->count >= ROW_DIFF_MIN_COUNT
					      ? statistics_batch_means(durations, figures->count)
					      : NAN;
		durations += figures->count;
	}
	array_done(&diff->events[side]);
	return 0;
}

static void compare_row(const struct row_diff_side sides[2], struct row_diff_row *row)
{
	const struct row_diff_figures *before = &row->sides[0], *after = &row->sides[1];
	double count = (double)before->count * sides[0].weight;

	row->change_ns = (double)after->total_ns * sides[1].weight -
			 (double)before->total_ns * sides[0].weight;
	row->by_count_ns = row->change_ns;
	row->duration_q = NAN;
	if (!before->count || !after->count)
		return;
	row->by_count_ns = ((double)after->count * sides[1].weight - count) * before->mean_ns;
	row->by_duration_ns = row->change_ns - row->by_count_ns;
	row->duration_q = statistics_two_means(
		before->mean_ns, before->error2_ns2, after->mean_ns, after->error2_ns2);
}

static int correct_rows(struct row_diff *diff)
{
	_cleanup_free_ double *p = calloc(diff->rows.count + 1, sizeof(*p));
	size_t tested = 0;
	int r;

	if (!p)
		return -ENOMEM;
	array_foreach (&diff->rows, row) {
		if (!isnan(row->duration_q))
			p[tested++] = row->duration_q;
	}
	r = statistics_benjamini_hochberg(p, tested);
	if (r < 0)
		return r;
	tested = 0;
	array_foreach (&diff->rows, row) {
		if (!isnan(row->duration_q))
			row->duration_q = p[tested++];
	}
	return 0;
}

static int by_change(const void *left, const void *right)
{
	const struct row_diff_row *a = left, *b = right;
	int order;

	if (fabs(a->change_ns) != fabs(b->change_ns))
		return fabs(a->change_ns) > fabs(b->change_ns) ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : (int)a->kind - (int)b->kind;
}

int row_diff_finish(struct row_diff *diff)
{
	int r = 0;

	for (int side = 0; r == 0 && side < 2; side++) {
		if (!diff->sides[side].weight)
			diff->sides[side].weight = 1;
		r = find_figures(diff, side);
	}
	if (r < 0)
		return r;
	array_foreach (&diff->rows, row)
		compare_row(diff->sides, row);
	if (diff->rows.count)
		qsort(diff->rows.items, diff->rows.count, sizeof(*diff->rows.items), by_change);
	return correct_rows(diff);
}

int row_diff_init(struct row_diff *diff, const struct row_diff_input inputs[2])
{
	int r = 0;

	*diff = (struct row_diff){0};
	for (int side = 0; side < 2; side++) {
		const struct row_diff_input *input = &inputs[side];

		diff->sides[side].steps = input->count ? input->views->steps : 0;
		if (input->duration_ns)
			diff->sides[side].weight = (double)NS_PER_S / (double)input->duration_ns;
		for (size_t i = 0; r == 0 && i < input->count; i++)
			r = add_view(diff, side, &input->views[i]);
	}
	if (r == 0)
		r = row_diff_finish(diff);
	if (r < 0)
		row_diff_done(diff);
	return r;
}

void row_diff_done(struct row_diff *diff)
{
	array_done(&diff->rows);
	intern_done(&diff->keys);
	array_done(&diff->events[0]);
	array_done(&diff->events[1]);
}

/* ---- what is known ---- */

static bool differs(const struct row_diff_row *row)
{
	return row->duration_q <= ROW_DIFF_SIGNIFICANT;
}

enum row_diff_change row_diff_change_of(const struct row_diff_row *row)
{
	const struct row_diff_figures *before = &row->sides[0], *after = &row->sides[1];

	if (!before->count || !after->count)
		return before->count ? ROW_DIFF_GONE : ROW_DIFF_NEW;
	if (differs(row) && fabs(row->by_duration_ns) > fabs(row->by_count_ns))
		return row->by_duration_ns > 0 ? ROW_DIFF_LONGER : ROW_DIFF_SHORTER;
	if (before->count != after->count)
		return after->count > before->count ? ROW_DIFF_MORE : ROW_DIFF_FEWER;
	if (before->total_ns == after->total_ns)
		return ROW_DIFF_UNCHANGED;
	return isnan(row->duration_q) ? ROW_DIFF_TOO_FEW : ROW_DIFF_NOISE;
}

/* What is more than noise: the count's part, and that of durations that differ. */
static double known_change_ns(const struct row_diff_row *row)
{
	return row->by_count_ns + (differs(row) ? row->by_duration_ns : 0);
}

void row_diff_find_regression(
	const struct row_diff *diff, double percent, struct row_diff_regression *ret_regression)
{
	double all = (double)diff->sides[0].device_ns * diff->sides[0].weight, sum = 0;
	struct row_diff_regression found = {0};

	array_foreach (&diff->rows, row) {
		double change_ns = known_change_ns(row);
		double slower = all > 0 ? 100 * change_ns / all : 0;

		if (!is_work(row->kind))
			continue;
		sum += change_ns;
		if (slower <= percent || slower <= found.row_percent)
			continue;
		found.row_percent = slower;
		found.row = row;
	}
	found.total_percent = all > 0 ? 100 * sum / all : 0;
	found.total = found.total_percent > percent;
	*ret_regression = found;
}
