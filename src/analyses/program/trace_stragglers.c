/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/trace_stragglers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.01
#define NO_STEP     UINT64_MAX

struct step {
	uint64_t number;
	int64_t start_ns, end_ns;
};

/* A collective; later the last long one of its rank, queue, step and name. */
struct collective {
	uint32_t name; /* in names: traces have numbers of their own */
	uint32_t rank; /* index of the view */
	int64_t stream;
	uint64_t step;
	uint32_t row;
	int64_t start_ns, duration_ns;
};

struct search {
	const struct trace_view *views;
	size_t count;
	bool hta;
	struct intern names;
	ARRAY_OF(struct step) steps; /* of the view at hand, by start */
	ARRAY_OF(struct collective) collectives;
	int64_t first_ns, last_ns; /* of all ranks' rows in steps, since `origin` */
	struct map_u64 step_numbers;
};

/* ---- steps ---- */

static int compare_steps(const void *left, const void *right)
{
	const struct step *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Times of ranks have one base: see struct trace. */
static int64_t base_of(const struct search *search, const struct trace_view *view)
{
	return (int64_t)(view->trace->base_ns - search->views->trace->base_ns);
}

static int find_steps(struct search *search, const struct trace_view *view)
{
	int r = 0;

	array_clear(&search->steps);
	array_foreach (&view->trace->events, event) {
		struct step step;

		if (r < 0 || event->category != TRACE_USER_ANNOTATION ||
			event->duration_ns == TRACE_NO_DURATION || !trace_view_has(view, event) ||
			!trace_step_number(trace_text(view->trace, event->name), &step.number) ||
			step.number == NO_STEP)
			continue;
		step.start_ns = trace_view_start_ns(view, event);
		step.end_ns = trace_view_end_ns(view, event);
		r = array_append(&search->steps, step);
		r = r ?: map_u64_set(&search->step_numbers, step.number, 1);
	}
	if (search->steps.count)
		qsort(search->steps.items, search->steps.count, sizeof(*search->steps.items),
			compare_steps);
	return r;
}

static uint64_t step_at(const struct search *search, int64_t time_ns)
{
	size_t first = 0, last = search->steps.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (search->steps.items[middle].start_ns <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first || time_ns >= search->steps.items[first - 1].end_ns)
		return NO_STEP;
	return search->steps.items[first - 1].number;
}

/* ---- collectives ---- */

static void widen(struct search *search, int64_t start_ns, int64_t end_ns)
{
	search->first_ns = MIN(search->first_ns, start_ns);
	search->last_ns = MAX(search->last_ns, end_ns);
}

/* HTA knows kernels of NCCL before 2.18 alone. */
static bool is_collective(const struct search *search, const struct trace_view *view,
	const struct trace_view_work *work)
{
	const struct trace_event *event = &view->trace->events.items[work->row];

	if (!search->hta)
		return work->kind == TRACE_COMMUNICATION;
	return strncmp(trace_text(view->trace, event->name), "ncclKernel", strlen("ncclKernel")) ==
		       0 &&
	       view->streams.items[work->stream].number > 0;
}

static int add_work(struct search *search, uint32_t rank, const struct trace_view_work *work)
{
	const struct trace_view *view = &search->views[rank];
	const struct trace_event *launch;
	struct collective collective = {
		.rank = rank,
		.row = work->row,
		.stream = view->streams.items[work->stream].number,
		.start_ns = work->start_ns + base_of(search, view),
		.duration_ns = work->end_ns - work->start_ns,
	};
	const char *name;
	int r;

	if (work->launch == MODEL_NONE)
		return 0;
	launch = &view->trace->events.items[work->launch];
	collective.step = step_at(search, trace_view_start_ns(view, launch));
	if (collective.step == NO_STEP)
		return 0;
	widen(search, collective.start_ns, collective.start_ns + collective.duration_ns);
	if (!is_collective(search, view, work))
		return 0;
	name = trace_text(view->trace, view->trace->events.items[work->row].name);
	r = intern_add(&search->names, name, strlen(name), &collective.name);
	return r < 0 ? r : array_append(&search->collectives, collective);
}

static int add_rank(struct search *search, uint32_t rank)
{
	const struct trace_view *view = &search->views[rank];
	int r = find_steps(search, view);

	/* Rows of threads lie in their steps: but for a few, these are the first and the last. */
	array_foreach (&search->steps, step)
		widen(search, step->start_ns + base_of(search, view),
			step->end_ns + base_of(search, view));
	for (size_t i = 0; r == 0 && i < view->works.count; i++)
		r = add_work(search, rank, &view->works.items[i]);
	return r;
}

/* By kind of collective, then step, then rank, then row. */
static int compare_collectives(const void *left, const void *right)
{
	const struct collective *a = left, *b = right;

	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static bool same_kind(const struct collective *a, const struct collective *b)
{
	return a->stream == b->stream && a->name == b->name;
}

/* Keeps the last long one of each rank and step. */
static void keep_last(struct search *search, double least_ns)
{
	struct collective *items = search->collectives.items;
	size_t kept = 0;

	for (size_t i = 0; i < search->collectives.count; i++) {
		if ((double)items[i].duration_ns < least_ns)
			continue;
		if (kept && same_kind(&items[kept - 1], &items[i]) &&
			items[kept - 1].step == items[i].step &&
			items[kept - 1].rank == items[i].rank)
			kept--;
		items[kept++] = items[i];
	}
	search->collectives.count = kept;
}

/* How much the durations of one step differ between ranks; NaN: of one rank alone. */
static double deviation(const struct collective *items, size_t count)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		mean += (double)items[i].duration_ns / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += pow((double)items[i].duration_ns - mean, 2);
	return count < 2 ? NAN : sqrt(squares / (double)(count - 1));
}

static size_t step_end(const struct search *search, size_t first)
{
	const struct collective *items = search->collectives.items;
	size_t next = first + 1;

	while (next < search->collectives.count && same_kind(&items[next], &items[first]) &&
		items[next].step == items[first].step)
		next++;
	return next;
}

/* The kind whose durations differ most, on average over the steps: its first and one past its last.
 */
static bool choose(const struct search *search, size_t *ret_first, size_t *ret_end)
{
	const struct collective *items = search->collectives.items;
	size_t count = search->collectives.count;
	double most = NAN;

	for (size_t first = 0, next; first < count; first = next) {
		double sum = 0;
		uint64_t steps = 0;

		for (next = first; next < count && same_kind(&items[next], &items[first]);) {
			size_t end = step_end(search, next);
			double differs = deviation(items + next, end - next);

			if (!isnan(differs)) {
				sum += differs;
				steps++;
			}
			next = end;
		}
		if (!steps || !(isnan(most) || sum / (double)steps > most))
			continue;
		most = sum / (double)steps;
		*ret_first = first;
		*ret_end = next;
	}
	return !isnan(most);
}

/* ---- ranks ---- */

static int compare_times(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a > b ? -1 : a < b;
}

/* Of one step: how late each rank was, and which were among the last `candidates`. */
static void judge_step(const struct collective *items, size_t count, size_t candidates,
	int64_t *starts, struct trace_straggler_rank *ranks)
{
	int64_t limit_ns;

	for (size_t i = 0; i < count; i++)
		starts[i] = items[i].start_ns;
	qsort(starts, count, sizeof(*starts), compare_times);
	limit_ns = starts[MIN(candidates, count) - 1];
	for (size_t i = 0; i < count; i++) {
		struct trace_straggler_rank *rank = &ranks[items[i].rank];

		rank->steps++;
		rank->lateness_ns += items[i].start_ns - starts[count - 1];
		rank->duration_ns += items[i].duration_ns;
		rank->late_steps += items[i].start_ns >= limit_ns;
	}
}

static int compare_ranks(const void *left, const void *right)
{
	const struct trace_straggler_rank *a = left, *b = right;

	if (a->late_steps != b->late_steps)
		return a->late_steps > b->late_steps ? -1 : 1;
	if (a->lateness_ns != b->lateness_ns)
		return a->lateness_ns > b->lateness_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int judge(struct trace_stragglers *stragglers, const struct search *search, size_t first,
	size_t end, size_t candidates)
{
	const struct collective *items = search->collectives.items;
	_cleanup_free_ int64_t *starts = malloc((search->count + 1) * sizeof(*starts));
	_cleanup_free_ struct trace_straggler_rank *ranks =
		calloc(search->count + 1, sizeof(*ranks));
	const struct trace_event *event;
	int r = 0;

	if (!starts || !ranks)
		return -ENOMEM;
	for (size_t i = first, next; i < end; i = next) {
		next = step_end(search, i);
		judge_step(items + i, next - i, candidates, starts, ranks);
		stragglers->steps++;
	}
	event = &search->views[items[first].rank].trace->events.items[items[first].row];
	stragglers->name = trace_text(search->views[items[first].rank].trace, event->name);
	stragglers->stream = items[first].stream;
	for (size_t i = 0; r == 0 && i < search->count; i++) {
		ranks[i].rank = search->views[i].rank;
		if (!ranks[i].steps)
			continue;
		ranks[i].lateness_ns /= (int64_t)ranks[i].steps;
		ranks[i].duration_ns /= (int64_t)ranks[i].steps;
		r = array_append(&stragglers->ranks, ranks[i]);
	}
	if (stragglers->ranks.count)
		qsort(stragglers->ranks.items, stragglers->ranks.count,
			sizeof(*stragglers->ranks.items), compare_ranks);
	return r;
}

int trace_stragglers_init(struct trace_stragglers *stragglers, const struct trace_view *views,
	size_t count, const struct trace_straggler_options *options)
{
	struct search search = {
		.views = views,
		.count = count,
		.hta = count && views->options.hta_compatible,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN,
	};
	size_t candidates = options->candidates ?: search.hta ? 2 : 1, first = 0, end = 0;
	double share = options->least_share > 0 ? options->least_share : LEAST_SHARE;
	int r = 0;

	*stragglers = (struct trace_stragglers){.name = ""};
	for (uint32_t i = 0; r == 0 && count > 1 && i < count; i++)
		r = add_rank(&search, i);
	if (search.collectives.count)
		qsort(search.collectives.items, search.collectives.count,
			sizeof(*search.collectives.items), compare_collectives);
	if (r == 0 && search.step_numbers.count) {
		double step_ns = ((double)search.last_ns - (double)search.first_ns) /
				 (double)search.step_numbers.count;

		keep_last(&search, step_ns * share);
		if (choose(&search, &first, &end))
			r = judge(stragglers, &search, first, end, candidates);
	}
	intern_done(&search.names);
	map_u64_done(&search.step_numbers);
	array_done(&search.steps);
	array_done(&search.collectives);
	if (r < 0)
		trace_stragglers_done(stragglers);
	return r;
}

void trace_stragglers_done(struct trace_stragglers *stragglers)
{
	array_done(&stragglers->ranks);
}
