/* SPDX-License-Identifier: Apache-2.0 */
/*
 * get_potential_stragglers(): of the last long collective of each step, the one whose duration
 * differs most between ranks. Only kernels of NCCL before 2.18 count, on other streams than the
 * first, and the clocks of all ranks are taken for one.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/program/rank_steps.h"
#include "compat/hta/internal.h"

/* Of a step's time, that a collective must take. */
#define LEAST_SHARE 0.01

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
	struct intern names;
	struct rank_steps steps;
	ARRAY_OF(struct collective) collectives;
	int64_t first_ns, last_ns; /* of all rows in steps */
};

static void widen(struct search *search, int64_t start_ns, int64_t end_ns)
{
	search->first_ns = MIN(search->first_ns, start_ns);
	search->last_ns = MAX(search->last_ns, end_ns);
}

static bool is_collective(const struct trace_view *view, const struct trace_view_work *work)
{
	const struct trace_event *event = &view->trace->events.items[work->row];

	return strncmp(trace_text(view->trace, event->name), "ncclKernel", strlen("ncclKernel")) ==
		       0 &&
	       view->streams.items[work->stream].number > 0;
}

static int add_work(struct search *search, uint32_t index, const struct trace_view_work *work)
{
	const struct trace_view *views = search->input->views, *view = &views[index];
	struct collective collective = {
		.view = index,
		.row = work->row,
		.stream = view->streams.items[work->stream].number,
		.start_ns = rank_common_ns(views, view, work->start_ns),
		.duration_ns = work->end_ns - work->start_ns,
	};
	const struct trace_event *launch;
	const char *name;
	uint32_t rank;
	int r;

	if (work->launch == MODEL_NONE)
		return 0;
	launch = &view->trace->events.items[work->launch];
	rank = rank_of_row(view, launch);
	if (!intern_find(&search->steps.ranks, &rank, sizeof(rank), &collective.rank))
		return 0;
	collective.step = rank_step_at(&search->steps, rank,
		rank_common_ns(views, view, trace_view_start_ns(view, launch)));
	if (collective.step == RANK_NO_STEP)
		return 0;
	widen(search, collective.start_ns, collective.start_ns + collective.duration_ns);
	if (!is_collective(view, work))
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
			  (double)search->steps.numbers.count * LEAST_SHARE;
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

	for (uint32_t i = 0; r == 0 && i < search->steps.ranks.entries.count; i++) {
		memcpy(&sums[i].rank, intern_get(&search->steps.ranks, i), sizeof(sums[i].rank));
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
	size_t count = search->steps.ranks.entries.count;
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

int hta_stragglers(struct ranks *ranks, const struct rank_input *input)
{
	struct search search = {.input = input};
	size_t first = 0, end = 0;
	int r = rank_steps_init(&search.steps, input->views, input->view_count);

	if (r < 0)
		return r;
	search.first_ns = search.steps.first_ns;
	search.last_ns = search.steps.last_ns;
	if (search.steps.ranks.entries.count > 1)
		r = find_collectives(&search);
	if (r == 0 && search.collectives.count) {
		keep_last(&search);
		if (choose(&search, &first, &end))
			r = judge(ranks, &search, first, end);
	}
	intern_done(&search.names);
	rank_steps_done(&search.steps);
	array_done(&search.collectives);
	return r;
}
