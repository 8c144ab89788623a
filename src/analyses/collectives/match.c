/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of ranks in collectives belong together. */
#include "analyses/collectives/calls.h"

#include <errno.h>
#include <stdlib.h>

/* One number after another: below 0, 0 or above. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

int collective_parts_compare(const struct collective_part *a, const struct collective_part *b)
{
	int order = ORDER(a->step, b->step);

	if (!order)
		order = ORDER(a->sequence, b->sequence);
	return order ?: ORDER(a->number, b->number);
}

static int compare_within_ranks(const void *left, const void *right)
{
	const struct collective_part *a = left, *b = right;
	int order = ORDER(a->kind, b->kind);

	if (!order)
		order = ORDER(a->rank, b->rank);
	if (!order)
		order = collective_parts_compare(a, b);
	return order ?: ORDER(a->start_ns, b->start_ns);
}

static int compare_over_ranks(const void *left, const void *right)
{
	const struct collective_part *a = left, *b = right;
	int order = ORDER(a->kind, b->kind);

	if (!order)
		order = collective_parts_compare(a, b);
	return order ?: ORDER(a->rank, b->rank);
}

static void sort_parts(
	struct collective_matches *matches, int (*compare)(const void *left, const void *right))
{
	if (matches->parts.count)
		qsort(matches->parts.items, matches->parts.count, sizeof(*matches->parts.items),
			compare);
}

/* By kind and rank, then in the order of the rank's work. */
static void sort_by_rank(struct collective_matches *matches)
{
	sort_parts(matches, compare_within_ranks);
}

/* Of one rank, those of one step and sequence number: in order of time. */
static void number_parts(struct collective_matches *matches)
{
	sort_by_rank(matches);
	for (size_t i = 1; i < matches->parts.count; i++) {
		struct collective_part *part = &matches->parts.items[i];

		if (part->kind == part[-1].kind && part->rank == part[-1].rank &&
			part->step == part[-1].step && part->sequence == part[-1].sequence)
			part->number = part[-1].number + 1;
	}
}

static bool is_together(const struct collective_part *a, const struct collective_part *b)
{
	return a->kind == b->kind && collective_parts_compare(a, b) == 0;
}

static int64_t bytes_of(const struct collective_part *parts, size_t count)
{
	int64_t bytes = TRACE_NO_NUMBER;

	for (size_t i = 0; i < count; i++)
		bytes = MAX(bytes, parts[i].bytes);
	if (parts->is_share && bytes != TRACE_NO_NUMBER &&
		__builtin_mul_overflow(bytes, (int64_t)count, &bytes))
		return TRACE_NO_NUMBER;
	return bytes;
}

static int add_matches(struct collective_matches *matches)
{
	const struct collective_part *parts = matches->parts.items;
	int r = 0;

	sort_parts(matches, compare_over_ranks);
	for (size_t i = 0, next; r == 0 && i < matches->parts.count; i = next) {
		for (next = i + 1;
			next < matches->parts.count && is_together(&parts[i], &parts[next]);)
			next++;
		if (next - i < 2) {
			matches->unmatched++;
			continue;
		}
		matches->shared += parts[i].is_share;
		r = array_append(&matches->items, (struct collective_match){.first = (uint32_t)i,
							  .count = (uint32_t)(next - i),
							  .bytes = bytes_of(&parts[i], next - i)});
	}
	return r;
}

int collective_matches_finish(struct collective_matches *matches)
{
	int r;

	if (matches->ranks.entries.count < 2)
		return 0;
	number_parts(matches);
	r = collective_clusters_split(matches);
	if (r == 0)
		r = add_matches(matches);
	return r < 0 ? r : collective_clocks_find(matches);
}

int collective_matches_init(
	struct collective_matches *matches, const struct trace_view *views, size_t view_count)
{
	int r;

	*matches = (struct collective_matches){0};
	r = collective_parts_find(matches, views, view_count);
	if (r == 0)
		r = collective_matches_finish(matches);
	if (r < 0)
		collective_matches_done(matches);
	return r;
}

void collective_matches_done(struct collective_matches *matches)
{
	intern_done(&matches->strings);
	intern_done(&matches->ranks);
	array_done(&matches->kinds);
	array_done(&matches->parts);
	array_done(&matches->items);
	collective_covers_done(&matches->covers);
	intern_done(&matches->left_out_keys);
	array_done(&matches->left_out);
	free(matches->clocks);
	matches->clocks = NULL;
}
