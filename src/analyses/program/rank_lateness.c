/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank begins collectives last: rows of threads and streams, of recordings and of traces. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/ranks.h"
#include "base/map.h"

/* Of a step's time, that a collective must take. */
#define LEAST_SHARE 0.01
#define NO_STEP     UINT64_MAX

/* Times of all ranks have one base, that of the first view. */
struct step {
	uint64_t number;
	uint32_t rank; /* index */
	int64_t start_ns, end_ns;
};

/* A collective; later the last long one of its rank, queue, step and name. */
struct collective {
	uint32_t name; /* in names: traces have numbers of their own */
	uint32_t rank; /* index */
	int64_t stream;
	uint64_t step;
	uint32_t view, row;
	int64_t start_ns, duration_ns;
};

struct search {
	const struct rank_input *input;
	struct intern names, ranks;  /* ranks: by number */
	ARRAY_OF(struct step) steps; /* by rank and start */
	ARRAY_OF(struct collective) collectives;
	int64_t first_ns, last_ns; /* of all rows in steps */
	struct map_u64 step_numbers;
};

static int64_t base_of(const struct search *search, const struct trace_view *view)
{
	return (int64_t)(view->trace->base_ns - search->input->views->trace->base_ns);
}

/* The rank of a thread's rows; MODEL_NONE: it has none. Processes of a recording have their own. */
static uint32_t rank_of(const struct trace_view *view, const struct trace_event *event)
{
	const struct model *model = view->trace->recorded;
	uint32_t thread = view->trace->tracks.items[event->track].recorded;

	if (!model)
		return view->rank;
	return thread ? model->processes.items[model->threads.items[thread - 1].process].rank
		      : MODEL_NONE;
}

static void widen(struct search *search, int64_t start_ns, int64_t end_ns)
{
	search->first_ns = MIN(search->first_ns, start_ns);
	search->last_ns = MAX(search->last_ns, end_ns);
}

/* ---- steps ---- */

static int compare_steps(const void *left, const void *right)
{
	const struct step *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Rows of threads lie in their steps: but for a few, these are the first and the last. */
static int add_step(
	struct search *search, const struct trace_view *view, const struct trace_event *event)
{
	uint32_t rank = rank_of(view, event);
	struct step step = {
		.start_ns = trace_view_start_ns(view, event) + base_of(search, view),
		.end_ns = trace_view_end_ns(view, event) + base_of(search, view),
	};
	int r;

	if (rank == MODEL_NONE || event->duration_ns == TRACE_NO_DURATION ||
		!trace_step_number(trace_text(view->trace, event->name), &step.number) ||
		step.number == NO_STEP || !trace_view_has(view, event))
		return 0;
	widen(search, step.start_ns, step.end_ns);
	r = intern_add(&search->ranks, &rank, sizeof(rank), &step.rank);
	if (r >= 0)
		r = array_append(&search->steps, step);
	return r < 0 ? r : map_u64_set(&search->step_numbers, step.number, 1);
}

static int find_steps(struct search *search)
{
	int r = 0;

	for (size_t i = 0; i < search->input->view_count; i++) {
		const struct trace_view *view = &search->input->views[i];

		array_foreach (&view->trace->events, event) {
			if (r == 0 && event->category == TRACE_USER_ANNOTATION)
				r = add_step(search, view, event);
		}
	}
	if (search->steps.count)
		qsort(search->steps.items, search->steps.count, sizeof(*search->steps.items),
			compare_steps);
	return r;
}

/* The last step of the rank that has begun, if it has not ended; NO_STEP: there is none. */
static uint64_t step_at(const struct search *search, uint32_t rank, int64_t time_ns)
{
	const struct step key = {.rank = rank, .start_ns = time_ns, .number = NO_STEP};
	const struct step *steps = search->steps.items, *step;
	size_t first = 0, last = search->steps.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_steps(&steps[middle], &key) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first)
		return NO_STEP;
	step = &steps[first - 1];
	return step->rank == rank && time_ns < step->end_ns ? step->number : NO_STEP;
}

/* ---- collectives ---- */

static bool is_collective(const struct search *search, const struct trace_view *view,
	const struct trace_view_work *work)
{
	return search->input->definition.is_collective
		       ? search->input->definition.is_collective(view, work)
		       : work->kind == TRACE_COMMUNICATION;
}

static int add_work(struct search *search, uint32_t index, const struct trace_view_work *work)
{
	const struct trace_view *view = &search->input->views[index];
	struct collective collective = {
		.view = index,
		.row = work->row,
		.stream = view->streams.items[work->stream].number,
		.start_ns = work->start_ns + base_of(search, view),
		.duration_ns = work->end_ns - work->start_ns,
	};
	const struct trace_event *launch;
	const char *name;
	uint32_t rank;
	int r;

	if (work->launch == MODEL_NONE)
		return 0;
	launch = &view->trace->events.items[work->launch];
	rank = rank_of(view, launch);
	if (!intern_find(&search->ranks, &rank, sizeof(rank), &collective.rank))
		return 0;
	collective.step = step_at(
		search, collective.rank, trace_view_start_ns(view, launch) + base_of(search, view));
	if (collective.step == NO_STEP)
		return 0;
	widen(search, collective.start_ns, collective.start_ns + collective.duration_ns);
	if (!is_collective(search, view, work))
		return 0;
	name = trace_text(view->trace, view->trace->events.items[work->row].name);
	r = intern_add(&search->names, name, strlen(name), &collective.name);
	return r < 0 ? r : array_append(&search->collectives, collective);
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

static int find_collectives(struct search *search)
{
	int r = 0;

	for (uint32_t i = 0; i < search->input->view_count; i++) {
		array_foreach (&search->input->views[i].works, work) {
			if (r == 0)
				r = add_work(search, i, work);
		}
	}
	if (search->collectives.count)
		qsort(search->collectives.items, search->collectives.count,
			sizeof(*search->collectives.items), compare_collectives);
	return r;
}

static bool same_kind(const struct collective *a, const struct collective *b)
{
	return a->stream == b->stream && a->name == b->name;
}

static bool same_step(const struct collective *a, const struct collective *b)
{
	return same_kind(a, b) && a->step == b->step;
}

/* Keeps the last long one of each rank and step. */
static void keep_last(struct search *search)
{
	double least_ns = ((double)search->last_ns - (double)search->first_ns) /
			  (double)search->step_numbers.count * LEAST_SHARE;
	struct collective *items = search->collectives.items;
	size_t kept = 0;

	for (size_t i = 0; i < search->collectives.count; i++) {
		if ((double)items[i].duration_ns < least_ns)
			continue;
		if (kept && same_step(&items[kept - 1], &items[i]) &&
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

	while (next < search->collectives.count && same_step(&items[next], &items[first]))
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

/* Of one step: how late each rank was, and whether fewer than `candidates` were later. */
static void judge_step(const struct collective *items, size_t count, size_t candidates,
	struct rank_lateness *ranks)
{
	int64_t first_ns = INT64_MAX;

	for (size_t i = 0; i < count; i++)
		first_ns = MIN(first_ns, items[i].start_ns);
	for (size_t i = 0; i < count; i++) {
		struct rank_lateness *rank = &ranks[items[i].rank];
		size_t later = 0;

		for (size_t j = 0; j < count; j++)
			later += items[j].start_ns > items[i].start_ns;
		rank->steps++;
		rank->lateness_ns += items[i].start_ns - first_ns;
		rank->duration_ns += items[i].duration_ns;
		rank->late_steps += later < candidates;
	}
}

static int compare_ranks(const void *left, const void *right)
{
	const struct rank_lateness *a = left, *b = right;

	if (a->late_steps != b->late_steps)
		return a->late_steps > b->late_steps ? -1 : 1;
	if (a->lateness_ns != b->lateness_ns)
		return a->lateness_ns > b->lateness_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int add_means(struct ranks *ranks, const struct search *search, struct rank_lateness *sums)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < search->ranks.entries.count; i++) {
		memcpy(&sums[i].rank, intern_get(&search->ranks, i), sizeof(sums[i].rank));
		if (!sums[i].steps)
			continue;
		sums[i].lateness_ns /= (int64_t)sums[i].steps;
		sums[i].duration_ns /= (int64_t)sums[i].steps;
		r = array_append(&ranks->lateness, sums[i]);
	}
	if (ranks->lateness.count)
		qsort(ranks->lateness.items, ranks->lateness.count, sizeof(*sums), compare_ranks);
	return r;
}

static int judge(struct ranks *ranks, const struct search *search, size_t first, size_t end)
{
	const struct collective *items = search->collectives.items;
	size_t candidates = search->input->definition.candidates;
	size_t count = search->ranks.entries.count;
	_cleanup_free_ struct rank_lateness *sums = calloc(count + 1, sizeof(*sums));
	const struct trace *trace = search->input->views[items[first].view].trace;

	if (!sums)
		return -ENOMEM;
	for (size_t i = first, next; i < end; i = next) {
		next = step_end(search, i);
		judge_step(items + i, next - i, candidates ? candidates : 1, sums);
		ranks->steps++;
	}
	ranks->collective = trace_text(trace, trace->events.items[items[first].row].name);
	ranks->stream = items[first].stream;
	return add_means(ranks, search, sums);
}

int ranks_add_lateness(struct ranks *ranks, const struct rank_input *input)
{
	struct search search = {.input = input, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	size_t first = 0, end = 0;
	int r = find_steps(&search);

	if (r == 0 && search.ranks.entries.count > 1)
		r = find_collectives(&search);
	if (r == 0 && search.collectives.count) {
		keep_last(&search);
		if (choose(&search, &first, &end))
			r = judge(ranks, &search, first, end);
	}
	intern_done(&search.names);
	intern_done(&search.ranks);
	map_u64_done(&search.step_numbers);
	array_done(&search.steps);
	array_done(&search.collectives);
	return r;
}
