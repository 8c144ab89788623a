/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/trace_narrow.h"

#include <errno.h>
#include <stdlib.h>

#include "analyses/selection_match.h"
#include "analyses/trace_view.h"
#include "model/trace.h"

/* What is chosen, since the base of the first trace. */
struct choice {
	const struct trace *first;
	bool has_time, has_steps;
	int64_t start_ns, end_ns; /* of --time; the end is inclusive */
	struct selection_steps steps;
	ARRAY_OF(struct trace_view_times) spans; /* of all steps that are chosen */
	uint64_t lowest, highest;                /* of all there are */
};

enum kept {
	KEPT_NOT,
	KEPT,
	KEPT_FOR_WORK, /* it captured work that is kept, and is not shown by itself */
};

/* Of one trace. */
struct narrowing {
	const struct choice *choice;
	struct trace *trace;
	ARRAY_OF(struct trace_view_times) spans; /* half-open; of --time one */
	const uint32_t *parents;
	uint8_t *kept; /* by row: enum kept */
};

static void narrowing_done(struct narrowing *narrowing)
{
	array_done(&narrowing->spans);
	free(narrowing->kept);
}

/* Unsigned: times of damaged files may wrap. */
static int64_t common_ns(const struct choice *choice, const struct trace *trace, int64_t ns)
{
	return (int64_t)((uint64_t)ns + trace->base_ns - choice->first->base_ns);
}

static int64_t own_ns(const struct choice *choice, const struct trace *trace, int64_t ns)
{
	return (int64_t)((uint64_t)ns + choice->first->base_ns - trace->base_ns);
}

/* ---- what is chosen ---- */

static int64_t first_row_ns(const struct trace *trace)
{
	int64_t first_ns = INT64_MAX;

	if (trace->is_narrowed)
		return trace->first_row_ns;
	array_foreach (&trace->events, event) {
		if (!event->is_capture)
			first_ns = MIN(first_ns, event->start_ns);
	}
	return first_ns;
}

static int choose_time(struct choice *choice, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	int64_t origin_ns = INT64_MAX;
	uint64_t start_ns, end_ns;
	int r;

	if (!selection->time)
		return 0;
	for (size_t i = 0; i < model->traces.count; i++) {
		const struct trace *trace = model->traces.items[i];

		if (trace->events.count)
			origin_ns = MIN(origin_ns, common_ns(choice, trace, first_row_ns(trace)));
	}
	r = selection_parse_time(selection->time, &start_ns, &end_ns, err);
	if (r < 0)
		return r;
	choice->has_time = true;
	if (__builtin_add_overflow(origin_ns, start_ns, &choice->start_ns))
		choice->start_ns = INT64_MAX;
	if (__builtin_add_overflow(origin_ns, end_ns, &choice->end_ns))
		choice->end_ns = INT64_MAX;
	return 0;
}

/* A profiler step of a thread. */
static bool step_of(
	const struct trace *trace, const struct trace_event *event, uint64_t *ret_number)
{
	return event->category == TRACE_USER_ANNOTATION && !event->is_capture &&
	       event->duration_ns != TRACE_NO_DURATION &&
	       trace_step_number(trace_text(trace, event->name), ret_number);
}

static bool is_chosen(const struct choice *choice, uint64_t number)
{
	return number >= choice->steps.first && number <= choice->steps.last;
}

static int add_steps(struct choice *choice, const struct trace *trace)
{
	uint64_t number;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (!step_of(trace, event, &number))
			continue;
		choice->lowest = MIN(choice->lowest, number);
		choice->highest = MAX(choice->highest, number);
		if (is_chosen(choice, number))
			r = array_append(&choice->spans,
				(struct trace_view_times){common_ns(choice, trace, event->start_ns),
					common_ns(choice, trace, trace_end_ns(event))});
	}
	return r;
}

static int choose_steps(struct choice *choice, const struct selection *selection,
	const struct model *model, struct errmsg *err)
{
	int r = 0;

	if (!selection->step)
		return 0;
	r = selection_parse_steps(selection->step, &choice->steps, err);
	if (r < 0)
		return r;
	choice->has_steps = true;
	choice->lowest = UINT64_MAX;
	for (size_t i = 0; r == 0 && i < model->traces.count; i++)
		r = add_steps(choice, model->traces.items[i]);
	if (r < 0)
		return errmsg_set(err, r, "memory ran out while filtering");
	return choice->spans.count
		       ? 0
		       : selection_no_step(selection->step, choice->lowest, choice->highest, err);
}

/* ---- what is left of a trace ---- */

static int compare_spans(const void *left, const void *right)
{
	const struct trace_view_times *a = left, *b = right;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Its own steps, or all that others have; in order, joined where they overlap. */
static int find_spans(struct narrowing *narrowing)
{
	const struct choice *choice = narrowing->choice;
	struct trace *trace = narrowing->trace;
	size_t kept = 0;
	uint64_t number;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trace->events.count; i++) {
		const struct trace_event *event = &trace->events.items[i];

		if (step_of(trace, event, &number) && is_chosen(choice, number))
			r = array_append(&narrowing->spans,
				(struct trace_view_times){event->start_ns, trace_end_ns(event)});
	}
	for (size_t i = 0; r == 0 && !narrowing->spans.count && i < choice->spans.count; i++)
		r = array_append(&narrowing->spans,
			(struct trace_view_times){
				own_ns(choice, trace, choice->spans.items[i].start_ns),
				own_ns(choice, trace, choice->spans.items[i].end_ns)});
	if (r < 0 || !narrowing->spans.count)
		return r;
	qsort(narrowing->spans.items, narrowing->spans.count, sizeof(*narrowing->spans.items),
		compare_spans);
	for (size_t i = 1; i < narrowing->spans.count; i++) {
		struct trace_view_times *span = &narrowing->spans.items[i];
		struct trace_view_times *last = &narrowing->spans.items[kept];

		if (span->start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, span->end_ns);
		else
			narrowing->spans.items[++kept] = *span;
	}
	narrowing->spans.count = kept + 1;
	return 0;
}

/* The first span that ends after the moment; NULL: none does. */
static const struct trace_view_times *span_after(const struct narrowing *narrowing, int64_t time_ns)
{
	size_t low = 0, high = narrowing->spans.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (narrowing->spans.items[middle].end_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < narrowing->spans.count ? &narrowing->spans.items[low] : NULL;
}

static bool is_in_step(const struct narrowing *narrowing, int64_t time_ns)
{
	const struct trace_view_times *span = span_after(narrowing, time_ns);

	return span && span->start_ns <= time_ns;
}

static bool is_in_time(const struct choice *choice, const struct trace *trace, int64_t time_ns)
{
	int64_t ns = common_ns(choice, trace, time_ns);

	return ns >= choice->start_ns && ns <= choice->end_ns;
}

static bool keeps_work(const struct narrowing *narrowing, const struct trace_event *event)
{
	const struct choice *choice = narrowing->choice;
	const struct trace *trace = narrowing->trace;
	uint32_t launch = trace_launch(trace, event);
	int64_t launched_ns =
		launch == MODEL_NONE ? event->start_ns : trace->events.items[launch].start_ns;

	return (!choice->has_time || is_in_time(choice, trace, event->start_ns)) &&
	       (!choice->has_steps || is_in_step(narrowing, launched_ns));
}

/* What lasts and only touches the time does not overlap it; a moment lies in it. */
static bool overlaps(int64_t start_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns)
{
	return start_ns == end_ns ? start_ns >= from_ns && start_ns <= to_ns
				  : start_ns < to_ns && end_ns > from_ns;
}

static bool keeps_row(const struct narrowing *narrowing, const struct trace_event *event)
{
	const struct choice *choice = narrowing->choice;
	const struct trace *trace = narrowing->trace;
	const struct trace_view_times *span;
	int64_t end_ns = trace_end_ns(event);
	uint64_t number;

	if (event->is_capture)
		return false;
	if (choice->has_time &&
		!overlaps(common_ns(choice, trace, event->start_ns),
			common_ns(choice, trace, end_ns), choice->start_ns, choice->end_ns))
		return false;
	if (!choice->has_steps)
		return true;
	if (step_of(trace, event, &number))
		return is_chosen(choice, number);
	span = span_after(narrowing, event->start_ns);
	return span && overlaps(event->start_ns, end_ns, span->start_ns, span->end_ns);
}

/* A call, and what it lies in. */
static void keep_call(struct narrowing *narrowing, uint32_t row, enum kept kept)
{
	for (; row != MODEL_NONE && !narrowing->kept[row]; row = narrowing->parents[row])
		narrowing->kept[row] = (uint8_t)kept;
}

/* Work keeps the call that launched it, and the one that captured it. */
static void keep_calls(struct narrowing *narrowing, bool are_captures)
{
	const struct trace *trace = narrowing->trace;

	for (size_t row = 0; row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];

		if (!narrowing->kept[row] || !trace_is_work(event))
			continue;
		if (are_captures)
			keep_call(narrowing, trace_origin(trace, event), KEPT_FOR_WORK);
		else
			keep_call(narrowing, trace_launch(trace, event), KEPT);
	}
}

static void find_kept(struct narrowing *narrowing)
{
	const struct trace *trace = narrowing->trace;

	for (size_t row = 0; row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];

		narrowing->kept[row] = trace_is_work(event) ? keeps_work(narrowing, event)
							    : keeps_row(narrowing, event);
	}
	keep_calls(narrowing, false);
	keep_calls(narrowing, true);
}

/* ---- cutting ---- */

/* From the begin of the first span to the end of the last one, and of --time. */
static struct trace_view_times cut_of(const struct narrowing *narrowing)
{
	const struct choice *choice = narrowing->choice;
	struct trace_view_times cut = {INT64_MIN, INT64_MAX};

	if (narrowing->spans.count) {
		cut.start_ns = narrowing->spans.items[0].start_ns;
		cut.end_ns = narrowing->spans.items[narrowing->spans.count - 1].end_ns;
	}
	if (choice->has_time) {
		cut.start_ns =
			MAX(cut.start_ns, own_ns(choice, narrowing->trace, choice->start_ns));
		if (choice->end_ns != INT64_MAX)
			cut.end_ns =
				MIN(cut.end_ns, own_ns(choice, narrowing->trace, choice->end_ns));
	}
	return cut;
}

static void cut_row(const struct narrowing *narrowing, struct trace_event *event,
	const struct trace_view_times *cut)
{
	int64_t end_ns = trace_end_ns(event);
	uint64_t number;

	if (event->duration_ns == TRACE_NO_DURATION || trace_is_work(event) ||
		end_ns <= cut->start_ns || event->start_ns >= cut->end_ns ||
		step_of(narrowing->trace, event, &number))
		return;
	event->start_ns = MAX(event->start_ns, cut->start_ns);
	event->duration_ns = MIN(end_ns, cut->end_ns) - event->start_ns;
}

/* What has a time and is no row. */
#define KEEP_MOMENTS(array, cut)                                                                   \
	do {                                                                                       \
		size_t _kept = 0;                                                                  \
                                                                                                   \
		array_foreach (array, one) {                                                       \
			if (one->time_ns >= (cut)->start_ns && one->time_ns <= (cut)->end_ns)      \
				(array)->items[_kept++] = *one;                                    \
		}                                                                                  \
		(array)->count = _kept;                                                            \
	} while (0)

static uint64_t moment_key(uint32_t track, int64_t time_ns)
{
	return hash_u64((uint64_t)time_ns) ^ track;
}

/* Arrows that begin or end where a row does that is kept. Before rows are cut. */
static int keep_flows(struct narrowing *narrowing)
{
	struct trace *trace = narrowing->trace;
	struct map_u64 moments = {0};
	size_t kept = 0;
	int r = 0;

	for (size_t row = 0; r == 0 && trace->flows.count && row < trace->events.count; row++) {
		const struct trace_event *event = &trace->events.items[row];

		if (narrowing->kept[row] == KEPT)
			r = map_u64_set(&moments, moment_key(event->track, event->start_ns), 1);
	}
	array_foreach (&trace->flows, flow) {
		if (r == 0 && map_u64_get(&moments, moment_key(flow->track, flow->time_ns), NULL))
			trace->flows.items[kept++] = *flow;
	}
	trace->flows.count = kept;
	map_u64_done(&moments);
	return r;
}

static int cut_trace(struct narrowing *narrowing)
{
	const struct trace_view_times cut = cut_of(narrowing);
	struct trace *trace = narrowing->trace;
	_cleanup_free_ uint32_t *rows = calloc(trace->events.count + 1, sizeof(*rows));
	uint32_t kept = 0;

	if (!rows)
		return -ENOMEM;
	trace->first_row_ns = first_row_ns(trace);
	trace->is_narrowed = true;
	trace->capture_rows = 0;
	for (size_t row = 0; row < trace->events.count; row++) {
		struct trace_event event = trace->events.items[row];

		if (!narrowing->kept[row])
			continue;
		event.is_capture = narrowing->kept[row] == KEPT_FOR_WORK;
		trace->capture_rows += event.is_capture;
		if (!event.is_capture)
			cut_row(narrowing, &event, &cut);
		rows[row] = kept + 1;
		trace->events.items[kept++] = event;
	}
	trace->events.count = kept;
	array_foreach (&trace->works, work) {
		if (work->captured_by)
			work->captured_by = rows[work->captured_by - 1];
	}
	KEEP_MOMENTS(&trace->counters, &cut);
	return trace_finish(trace);
}

static int narrow_one(const struct choice *choice, struct trace *trace)
{
	_cleanup_(narrowing_done) struct narrowing narrowing = {.choice = choice, .trace = trace};
	int r = choice->has_steps ? find_spans(&narrowing) : 0;

	narrowing.parents = trace_parents(trace, true);
	narrowing.kept = calloc(trace->events.count + 1, sizeof(*narrowing.kept));
	if (r < 0 || !narrowing.parents || !narrowing.kept)
		return -ENOMEM;
	find_kept(&narrowing);
	r = keep_flows(&narrowing);
	return r < 0 ? r : cut_trace(&narrowing);
}

int trace_narrow(const struct selection *selection, struct model *model, struct errmsg *err)
{
	struct choice choice = {0};
	int r;

	if ((!selection->time && !selection->step) || !model->traces.count)
		return 0;
	choice.first = model->traces.items[0];
	r = choose_time(&choice, selection, model, err);
	if (r == 0)
		r = choose_steps(&choice, selection, model, err);
	for (size_t i = 0; r == 0 && i < model->traces.count; i++) {
		r = narrow_one(&choice, model->traces.items[i]);
		if (r < 0)
			errmsg_set(err, r, "memory ran out while filtering");
	}
	model->is_narrowed = true;
	array_done(&choice.spans);
	return r;
}
