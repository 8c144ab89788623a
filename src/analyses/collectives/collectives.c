/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/collectives/collectives.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/collectives/match.h"
#include "analyses/collectives/size.h"

/* Who waited and for whom, in one collective. */
struct arrival {
	const struct collective_part *last; /* the rank that began last: its part is shortest */
	int64_t shortest_ns, second_ns, longest_ns;
};

struct summing {
	struct collectives *collectives;
	struct collective_matches matches;
	struct collective_rank *ranks; /* by id */
	uint64_t *lasts;               /* of one kind: how often each rank was last */
	uint8_t *counted;              /* of one kind: ranks that have parts */
	uint64_t *caused_ns;           /* by id of the rank */
};

static struct arrival arrival_of(const struct collective_part *parts, uint32_t count)
{
	struct arrival arrival = {.last = parts, .shortest_ns = INT64_MAX, .second_ns = INT64_MAX};

	for (uint32_t i = 0; i < count; i++) {
		int64_t part_ns = collective_part_ns(&parts[i]);

		arrival.longest_ns = MAX(arrival.longest_ns, part_ns);
		if (part_ns >= arrival.shortest_ns) {
			arrival.second_ns = MIN(arrival.second_ns, part_ns);
			continue;
		}
		arrival.second_ns = arrival.shortest_ns;
		arrival.shortest_ns = part_ns;
		arrival.last = &parts[i];
	}
	return arrival;
}

static void add_waits(
	struct summing *summing, const struct collective_match *match, struct collective_kind *kind)
{
	const struct collective_part *parts = &summing->matches.parts.items[match->first];
	const struct arrival arrival = arrival_of(parts, match->count);
	const uint64_t transfer_ns = (uint64_t)arrival.shortest_ns;
	struct collective_rank *last = &summing->ranks[arrival.last->rank];
	uint64_t waited_ns = (uint64_t)arrival.longest_ns - transfer_ns;

	for (uint32_t i = 0; i < match->count; i++) {
		struct collective_rank *rank = &summing->ranks[parts[i].rank];
		uint64_t wait_ns = (uint64_t)collective_part_ns(&parts[i]) - transfer_ns;

		rank->collectives++;
		rank->suffered_ns += wait_ns;
		rank->transfer_ns += transfer_ns;
		summing->counted[parts[i].rank] = true;
		kind->parts++;
		kind->parts_ns += (uint64_t)collective_part_ns(&parts[i]);
		kind->exposed_ns += (uint64_t)parts[i].exposed_ns;
	}
	last->alone_ns += (uint64_t)arrival.second_ns - transfer_ns;
	kind->count++;
	kind->transfer_ns += transfer_ns;
	kind->least_transfer_ns = MIN(kind->least_transfer_ns, transfer_ns);
	kind->most_transfer_ns = MAX(kind->most_transfer_ns, transfer_ns);
	kind->waited_ns += waited_ns;
	/* As far apart as the ends are, begins may be by chance. */
	if (waited_ns > 2 * summing->matches.end_error_ns) {
		last->last++;
		summing->lasts[arrival.last->rank]++;
	}
}

/* The compute kernel that ran longest beside collectives of this name; NULL: none. */
static const char *hidden_by(const struct collective_matches *matches, uint32_t name)
{
	const struct collective_cover *most = NULL;

	array_foreach (&matches->covers.items, cover) {
		if (cover->name == name && (!most || cover->ns > most->ns))
			most = cover;
	}
	return most ? intern_get(&matches->strings, most->kernel) : NULL;
}

/* Strings are the result's. */
static struct collective_kind kind_of(
	const struct summing *summing, const struct collective_match *match)
{
	const struct collective_matches *matches = &summing->matches;
	const struct collective_part *part = &matches->parts.items[match->first];
	const struct collective_match_kind *kind = &matches->kinds.items[part->kind];
	struct collective_kind found = {
		.name = intern_get(&matches->strings, kind->name),
		.group = intern_get(&matches->strings, kind->group_name),
		.kernel = intern_get(&matches->strings, kind->kernel),
		.elements = kind->has_bytes ? TRACE_NO_NUMBER : kind->elements,
		.bytes = match->bytes,
		.hidden_by = hidden_by(matches, kind->name),
		.is_call = part->is_call,
		.least_transfer_ns = UINT64_MAX,
	};

	collective_algorithm(intern_get(&matches->strings, part->kernel), found.algorithm,
		found.protocol, sizeof(found.algorithm));
	return found;
}

static int add_kind(struct summing *summing, struct collective_kind *kind)
{
	size_t ranks = summing->matches.ranks.entries.count;

	for (uint32_t i = 0; i < ranks; i++) {
		kind->ranks += summing->counted[i];
		if (summing->lasts[i] <= kind->last_rank_last)
			continue;
		kind->last_rank_last = summing->lasts[i];
		kind->last_rank = summing->ranks[i].rank;
	}
	memset(summing->counted, 0, ranks);
	memset(summing->lasts, 0, ranks * sizeof(*summing->lasts));
	return kind->count ? array_append(&summing->collectives->kinds, *kind) : 0;
}

static int compare_matches(const void *left, const void *right, void *context)
{
	const struct collective_matches *matches = context;
	const struct collective_match *a = &matches->items.items[*(const uint32_t *)left];
	const struct collective_match *b = &matches->items.items[*(const uint32_t *)right];
	uint32_t kind_a = matches->parts.items[a->first].kind;
	uint32_t kind_b = matches->parts.items[b->first].kind;

	if (kind_a != kind_b)
		return kind_a < kind_b ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static bool is_same_kind(const struct collective_matches *matches, const struct collective_match *a,
	const struct collective_match *b)
{
	return a && matches->parts.items[a->first].kind == matches->parts.items[b->first].kind &&
	       a->bytes == b->bytes;
}

static void count_match(
	struct summing *summing, const struct collective_match *match, struct collective_kind *kind)
{
	struct collectives *collectives = summing->collectives;
	const struct collective_match_kind *found =
		&summing->matches.kinds.items[summing->matches.parts.items[match->first].kind];

	if (match->apart)
		return;
	collectives->matched++;
	collectives->by_sequence += found->has_sequence;
	collectives->absent += found->group_size > (int64_t)match->count;
	add_waits(summing, match, kind);
}

/* Of one kind and size after the other. */
static int add_kinds(struct summing *summing)
{
	struct collective_matches *matches = &summing->matches;
	const struct collective_match *before = NULL;
	_cleanup_free_ uint32_t *order = calloc(matches->items.count + 1, sizeof(*order));
	struct collective_kind kind = {0};
	int r = order ? 0 : -ENOMEM;

	for (uint32_t i = 0; order && i < matches->items.count; i++)
		order[i] = i;
	if (order && matches->items.count)
		qsort_r(order, matches->items.count, sizeof(*order), compare_matches, matches);
	for (size_t i = 0; r == 0 && i < matches->items.count; i++) {
		const struct collective_match *match = &matches->items.items[order[i]];

		if (!is_same_kind(matches, before, match)) {
			r = add_kind(summing, &kind);
			kind = kind_of(summing, match);
		}
		before = match;
		if (r == 0)
			count_match(summing, match, &kind);
	}
	return r < 0 ? r : add_kind(summing, &kind);
}

static int compare_ranks(const void *left, const void *right)
{
	const struct collective_rank *a = left, *b = right;

	if (a->caused_ns != b->caused_ns)
		return a->caused_ns > b->caused_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int compare_kinds(const void *left, const void *right)
{
	const struct collective_kind *a = left, *b = right;
	int order;

	if (a->waited_ns != b->waited_ns)
		return a->waited_ns > b->waited_ns ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ?: strcmp(a->group, b->group);
}

static int add_ranks(struct summing *summing)
{
	struct collectives *collectives = summing->collectives;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < summing->matches.ranks.entries.count; i++) {
		const struct collective_clock *clock = &summing->matches.clocks[i];
		struct collective_rank *rank = &summing->ranks[i];

		rank->clock_error_ns = clock->error_ns;
		rank->has_clock = clock->is_known;
		rank->caused_ns = summing->caused_ns[i];
		if (rank->collectives)
			r = array_append(&collectives->ranks, *rank);
	}
	if (collectives->ranks.count)
		qsort(collectives->ranks.items, collectives->ranks.count,
			sizeof(*collectives->ranks.items), compare_ranks);
	if (collectives->kinds.count)
		qsort(collectives->kinds.items, collectives->kinds.count,
			sizeof(*collectives->kinds.items), compare_kinds);
	return r;
}

static int compare_left_out(const void *left, const void *right)
{
	const struct collective_left_out *a = left, *b = right;
	int order;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	order = strcmp(a->name, b->name);
	order = order ?: strcmp(a->group, b->group);
	return order ?: (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int add_left_out(struct summing *summing)
{
	const struct collective_matches *matches = &summing->matches;
	struct collectives *collectives = summing->collectives;
	int r = 0;

	for (size_t i = 0; r == 0 && i < matches->left_out.count; i++) {
		const struct collective_left_out_parts *parts = &matches->left_out.items[i];

		r = array_append(&collectives->left_out,
			(struct collective_left_out){
				.name = intern_get(&matches->strings, parts->key.name),
				.group = intern_get(&matches->strings, parts->key.group_name),
				.bytes = parts->key.bytes,
				.parts = parts->count,
				.time_ns = parts->time_ns,
			});
	}
	if (collectives->left_out.count)
		qsort(collectives->left_out.items, collectives->left_out.count,
			sizeof(*collectives->left_out.items), compare_left_out);
	return r;
}

static int sum(struct summing *summing)
{
	size_t ranks = summing->matches.ranks.entries.count;
	int r;

	summing->ranks = calloc(ranks + 1, sizeof(*summing->ranks));
	summing->lasts = calloc(ranks + 1, sizeof(*summing->lasts));
	summing->counted = calloc(ranks + 1, sizeof(*summing->counted));
	summing->caused_ns = calloc(ranks + 1, sizeof(*summing->caused_ns));
	if (!summing->ranks || !summing->lasts || !summing->counted || !summing->caused_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranks; i++) {
		struct collective_rank_key key;

		memcpy(&key, intern_get(&summing->matches.ranks, i), sizeof(key));
		summing->ranks[i].rank = key.rank;
	}
	r = add_kinds(summing);
	if (r == 0)
		r = collective_blame(&summing->matches, summing->caused_ns);
	return r < 0 ? r : add_ranks(summing);
}

int collectives_init(
	struct collectives *collectives, const struct trace_view *views, size_t view_count)
{
	struct summing summing = {.collectives = collectives};
	int r;

	*collectives = (struct collectives){0};
	if (!view_count || (view_count == 1 && !views->trace->recorded))
		return 0;
	r = collective_matches_init(&summing.matches, views, view_count);
	if (r < 0)
		return r;
	collectives->one_sided = summing.matches.one_sided;
	collectives->unmatched = summing.matches.unmatched;
	collectives->apart = summing.matches.apart;
	collectives->end_error_ns = summing.matches.end_error_ns;
	collectives->shared = summing.matches.shared;
	memcpy(collectives->unsized, summing.matches.unsized, sizeof(collectives->unsized));
	r = add_left_out(&summing);
	if (r == 0 && summing.matches.items.count)
		r = sum(&summing);
	free(summing.ranks);
	free(summing.lasts);
	free(summing.counted);
	free(summing.caused_ns);
	collectives->strings = summing.matches.strings;
	summing.matches.strings = (struct intern){0};
	collective_matches_done(&summing.matches);
	if (r < 0)
		collectives_done(collectives);
	return r;
}

void collectives_done(struct collectives *collectives)
{
	array_done(&collectives->ranks);
	array_done(&collectives->kinds);
	array_done(&collectives->left_out);
	intern_done(&collectives->strings);
}

uint64_t collectives_waited_ns(const struct collectives *collectives)
{
	uint64_t waited_ns = 0;

	array_foreach (&collectives->ranks, rank)
		waited_ns += rank->suffered_ns;
	return waited_ns;
}

uint64_t collectives_transfer_ns(const struct collectives *collectives)
{
	uint64_t transfer_ns = 0;

	array_foreach (&collectives->ranks, rank)
		transfer_ns += rank->transfer_ns;
	return transfer_ns;
}

double collective_algorithm_bandwidth(const struct collective_kind *kind)
{
	if (kind->bytes <= 0 || !kind->transfer_ns)
		return NAN;
	return (double)kind->bytes * (double)kind->count / ((double)kind->transfer_ns / 1e9);
}

double collective_bus_bandwidth(const struct collective_kind *kind)
{
	double factor = collective_bus_factor(kind->name, kind->ranks);

	return factor > 0 ? collective_algorithm_bandwidth(kind) * factor : NAN;
}
