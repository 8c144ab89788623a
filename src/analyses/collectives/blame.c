/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom ranks waited for. The rank that began a collective last may be late only because it waited
 * itself, in a collective before, that the waiting rank has no part in: then that part of the delay
 * is passed on to the rank that it waited for. So of tensor-parallel groups that meet in a
 * data-parallel all-reduce, the slow rank is found, and not one of its group.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyses/collectives/match.h"

/* Of one rank's wait in one collective: collectives that are looked at, and how deep. */
#define STEPS_MAX 4096
#define DEPTH_MAX 32

#define NO_PART UINT32_MAX

struct blaming {
	const struct collective_matches *matches;
	uint32_t *match_of; /* by part; MODEL_NONE: it does not count */
	uint32_t *before;   /* by part: the one of its rank that ended before it began */
	uint32_t *order;    /* parts by rank and begin */
	uint32_t *last;     /* by match: the shortest part */
	uint64_t *caused_ns;
	unsigned steps;
};

/* The part of the rank that began last. */
static const struct collective_part *last_of(const struct blaming *blaming, uint32_t match)
{
	return &blaming->matches->parts.items[blaming->last[match]];
}

static bool has_part(const struct blaming *blaming, uint32_t match, uint32_t rank)
{
	const struct collective_match *found = &blaming->matches->items.items[match];
	const struct collective_part *parts = &blaming->matches->parts.items[found->first];
	uint32_t first = 0, end = found->count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (parts[middle].rank < rank)
			first = middle + 1;
		else
			end = middle;
	}
	return first < found->count && parts[first].rank == rank;
}

/* `waiting` waited so long for the rank that began this collective last. */
static void blame(
	struct blaming *blaming, uint32_t waiting, uint32_t match, int64_t delay_ns, unsigned depth)
{
	const struct collective_part *parts = blaming->matches->parts.items;
	const struct collective_part *last = last_of(blaming, match);
	uint32_t part = blaming->before[last - parts];

	for (; delay_ns > 0 && part != NO_PART && depth < DEPTH_MAX && blaming->steps;
		part = blaming->before[part]) {
		uint32_t before = blaming->match_of[part];
		int64_t waited_ns;

		blaming->steps--;
		if (has_part(blaming, before, waiting))
			break;
		waited_ns = collective_part_ns(&parts[part]) -
			    collective_part_ns(last_of(blaming, before));
		waited_ns = MIN(waited_ns, delay_ns);
		if (waited_ns > 0)
			blame(blaming, waiting, before, waited_ns, depth + 1);
		delay_ns -= waited_ns;
	}
	blaming->caused_ns[last->rank] += (uint64_t)delay_ns;
}

static void find_last(struct blaming *blaming)
{
	const struct collective_part *parts = blaming->matches->parts.items;

	for (uint32_t i = 0; i < blaming->matches->items.count; i++) {
		const struct collective_match *match = &blaming->matches->items.items[i];
		uint32_t last = match->first;

		for (uint32_t j = last + 1; j < match->first + match->count; j++) {
			if (collective_part_ns(&parts[j]) < collective_part_ns(&parts[last]))
				last = j;
		}
		blaming->last[i] = last;
	}
}

static void blame_all(struct blaming *blaming)
{
	for (uint32_t i = 0; i < blaming->matches->items.count; i++) {
		const struct collective_match *match = &blaming->matches->items.items[i];
		const struct collective_part *parts = &blaming->matches->parts.items[match->first];

		for (uint32_t j = 0; !match->apart && j < match->count; j++) {
			int64_t delay_ns = collective_part_ns(&parts[j]) -
					   collective_part_ns(last_of(blaming, i));

			blaming->steps = STEPS_MAX;
			if (delay_ns > 0)
				blame(blaming, parts[j].rank, i, delay_ns, 0);
		}
	}
}

static int compare_begins(const void *left, const void *right, void *context)
{
	const struct collective_part *parts = context;
	const struct collective_part *a = &parts[*(const uint32_t *)left];
	const struct collective_part *b = &parts[*(const uint32_t *)right];

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Parts that count, by rank. What overlaps on several streams did not wait for one another. */
static void find_order(struct blaming *blaming)
{
	struct collective_part *parts = blaming->matches->parts.items;
	size_t count = 0;

	for (size_t i = 0; i < blaming->matches->parts.count; i++)
		blaming->match_of[i] = blaming->before[i] = NO_PART;
	for (uint32_t i = 0; i < blaming->matches->items.count; i++) {
		const struct collective_match *match = &blaming->matches->items.items[i];

		for (uint32_t j = 0; !match->apart && j < match->count; j++) {
			blaming->match_of[match->first + j] = i;
			blaming->order[count++] = match->first + j;
		}
	}
	if (count)
		qsort_r(blaming->order, count, sizeof(*blaming->order), compare_begins, parts);
	for (size_t i = 1; i < count; i++) {
		const struct collective_part *part = &parts[blaming->order[i]];
		const struct collective_part *before = &parts[blaming->order[i - 1]];

		if (part->rank == before->rank && before->end_ns <= part->start_ns)
			blaming->before[blaming->order[i]] = blaming->order[i - 1];
	}
}

int collective_blame(const struct collective_matches *matches, uint64_t *caused_ns)
{
	size_t parts = matches->parts.count + 1;
	struct blaming blaming = {
		.matches = matches,
		.match_of = calloc(parts, sizeof(*blaming.match_of)),
		.before = calloc(parts, sizeof(*blaming.before)),
		.order = calloc(parts, sizeof(*blaming.order)),
		.last = calloc(matches->items.count + 1, sizeof(*blaming.last)),
		.caused_ns = caused_ns,
	};
	bool is_ready = blaming.match_of && blaming.before && blaming.order && blaming.last;
	int r = is_ready ? 0 : -ENOMEM;

	if (r == 0) {
		find_last(&blaming);
		find_order(&blaming);
		blame_all(&blaming);
	}
	free(blaming.match_of);
	free(blaming.before);
	free(blaming.order);
	free(blaming.last);
	return r;
}
