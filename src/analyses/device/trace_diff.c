/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/trace_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *trace_diff_kind_name(enum trace_diff_kind kind)
{
	static const char *const names[TRACE_DIFF_KIND_MAX] = {
		[TRACE_DIFF_OPERATOR] = "operator",
		[TRACE_DIFF_CALL] = "call",
		[TRACE_DIFF_ANNOTATION] = "annotation",
		[TRACE_DIFF_PYTHON] = "python",
		[TRACE_DIFF_DEVICE] = "gpu",
		[TRACE_DIFF_OTHER] = "other",
		[TRACE_DIFF_ANY] = "any",
	};

	return names[kind];
}

const char *trace_diff_change_name(enum trace_diff_change change)
{
	static const char *const names[TRACE_DIFF_CHANGE_MAX] = {
		[TRACE_DIFF_ADDED] = "added",
		[TRACE_DIFF_DELETED] = "deleted",
		[TRACE_DIFF_INCREASED] = "increased",
		[TRACE_DIFF_DECREASED] = "decreased",
		[TRACE_DIFF_UNCHANGED] = "unchanged",
	};

	return names[change];
}

enum trace_diff_change trace_diff_change_of(const struct trace_diff_row *row)
{
	if (!row->count[0])
		return TRACE_DIFF_ADDED;
	if (!row->count[1])
		return TRACE_DIFF_DELETED;
	if (row->count[0] == row->count[1])
		return TRACE_DIFF_UNCHANGED;
	return row->count[1] > row->count[0] ? TRACE_DIFF_INCREASED : TRACE_DIFF_DECREASED;
}

static enum trace_diff_kind kind_of(const struct trace_event *event)
{
	switch (event->category) {
	case TRACE_CPU_OP:
		return TRACE_DIFF_OPERATOR;
	case TRACE_RUNTIME:
	case TRACE_DRIVER:
		return TRACE_DIFF_CALL;
	case TRACE_USER_ANNOTATION:
	case TRACE_GPU_ANNOTATION:
		return TRACE_DIFF_ANNOTATION;
	case TRACE_PYTHON_FUNCTION:
		return TRACE_DIFF_PYTHON;
	case TRACE_KERNEL:
	case TRACE_MEMCPY:
	case TRACE_MEMSET:
		return TRACE_DIFF_DEVICE;
	default:
		return TRACE_DIFF_OTHER;
	}
}

/* ---- HTA's first step ---- */

/* Of the step with the smallest number: rows of threads begin in it, work is launched by those. */
struct first_step {
	const struct trace_view *view;
	uint64_t number;
	bool is_known;
	int64_t start_ns, end_ns;
};

static struct first_step find_first_step(const struct trace_view *view)
{
	struct first_step step = {.view = view};

	array_foreach (&view->trace->events, event) {
		uint64_t number;

		if (event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION ||
			!trace_step_number(trace_text(view->trace, event->name), &number) ||
			(step.is_known && number > step.number))
			continue;
		step.is_known = true;
		step.number = number;
		step.start_ns = trace_view_start_ns(view, event);
		step.end_ns = trace_view_end_ns(view, event);
	}
	return step;
}

static bool is_in_step(const struct first_step *step, const struct trace_event *event)
{
	const struct trace *trace = step->view->trace;
	const struct trace_work *work = trace_work(trace, event);
	int64_t start_ns;

	if (work && work->stream != TRACE_NO_NUMBER && work->stream != -1) {
		uint32_t launch = trace_launch(trace, event);

		if (work->stream < 1 || launch == MODEL_NONE)
			return false;
		event = &trace->events.items[launch];
	}
	start_ns = trace_view_start_ns(step->view, event);
	return start_ns >= step->start_ns && start_ns < step->end_ns;
}

/* ---- rows ---- */

static bool counts(const struct trace_view *view, const struct first_step *step,
	const struct trace_event *event)
{
	if (event->duration_ns == TRACE_NO_DURATION ||
		strcmp(trace_text(view->trace, event->category_name), "Trace") == 0)
		return false;
	/* HTA compares all steps' rows before it leaves out any. */
	return view->options.hta_compatible ? is_in_step(step, event) : trace_view_has(view, event);
}

/* Rows by kind and name: each trace has numbers of its own for names. */
struct places {
	struct map_u64 of_kinds[TRACE_DIFF_KIND_MAX]; /* name in diff.names → row + 1 */
};

static void places_done(struct places *places)
{
	for (int i = 0; i < TRACE_DIFF_KIND_MAX; i++)
		map_u64_done(&places->of_kinds[i]);
}

/* NULL: memory ran out. */
static struct trace_diff_row *find_row(
	struct trace_diff *diff, struct places *places, enum trace_diff_kind kind, uint32_t name)
{
	uint64_t place;

	if (!map_u64_get(&places->of_kinds[kind], name, &place)) {
		place = diff->rows.count;
		if (array_append(&diff->rows, (struct trace_diff_row){.name = name, .kind = kind}) <
				0 ||
			map_u64_set(&places->of_kinds[kind], name, place) < 0)
			return NULL;
	}
	return &diff->rows.items[place];
}

static int add_event(struct trace_diff *diff, struct places *places, uint32_t *names, int side,
	const struct trace_view *view, const struct trace_event *event)
{
	enum trace_diff_kind kind = view->options.hta_compatible ? TRACE_DIFF_ANY : kind_of(event);
	const struct intern_entry *text = &view->trace->strings.entries.items[event->name];
	struct trace_diff_row *row;

	if (names[event->name] == MODEL_NONE &&
		intern_add(&diff->names, text->bytes, text->length, &names[event->name]) < 0)
		return -ENOMEM;
	row = find_row(diff, places, kind, names[event->name]);
	if (!row)
		return -ENOMEM;
	row->count[side]++;
	row->time_ns[side] += trace_view_end_ns(view, event) - trace_view_start_ns(view, event);
	return 0;
}

static int add_view(
	struct trace_diff *diff, struct places *places, int side, const struct trace_view *view)
{
	size_t size = (view->trace->strings.entries.count + 1) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *names = malloc(size);
	struct first_step step = {0};
	int r = 0;

	if (!names)
		return -ENOMEM;
	memset(names, 0xff, size);
	if (view->options.hta_compatible) {
		step = find_first_step(view);
		if (!step.is_known)
			return -ENODATA;
	}
	array_foreach (&view->trace->events, event) {
		if (r == 0 && counts(view, &step, event))
			r = add_event(diff, places, names, side, view, event);
	}
	return r;
}

/* ---- order ---- */

struct sorted_row {
	struct trace_diff_row row;
	uint64_t change_ns;
	const char *name;
};

static int compare_rows(const void *left, const void *right)
{
	const struct sorted_row *a = left, *b = right;
	int order;

	if (a->change_ns != b->change_ns)
		return a->change_ns > b->change_ns ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ?: (int)a->row.kind - (int)b->row.kind;
}

static int sort_rows(struct trace_diff *diff)
{
	_cleanup_free_ struct sorted_row *sorted = malloc((diff->rows.count + 1) * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < diff->rows.count; i++) {
		const struct trace_diff_row *row = &diff->rows.items[i];
		int64_t change_ns = row->time_ns[1] - row->time_ns[0];

		sorted[i] = (struct sorted_row){*row,
			change_ns < 0 ? 0 - (uint64_t)change_ns : (uint64_t)change_ns,
			intern_get(&diff->names, row->name)};
	}
	qsort(sorted, diff->rows.count, sizeof(*sorted), compare_rows);
	for (size_t i = 0; i < diff->rows.count; i++)
		diff->rows.items[i] = sorted[i].row;
	return 0;
}

int trace_diff_init(struct trace_diff *diff, const struct trace_diff_side sides[2])
{
	_cleanup_(places_done) struct places places = {0};
	int r = 0;

	*diff = (struct trace_diff){0};
	for (int side = 0; side < 2; side++) {
		const struct trace_diff_side *input = &sides[side];
		/* HTA compares the first ranks. */
		size_t count =
			input->count && input->views->options.hta_compatible ? 1 : input->count;

		diff->steps[side] = input->count ? input->views->steps : 0;
		for (size_t i = 0; r == 0 && i < count; i++)
			r = add_view(diff, &places, side, &input->views[i]);
	}
	r = r ?: sort_rows(diff);
	if (r < 0)
		trace_diff_done(diff);
	return r;
}

void trace_diff_done(struct trace_diff *diff)
{
	array_done(&diff->rows);
	intern_done(&diff->names);
}
