/* SPDX-License-Identifier: Apache-2.0 */
#include "chakra/convert/components.h"

#include <errno.h>
#include <stdlib.h>

#define NOT_KNOWN UINT32_MAX

struct search {
	const struct waits *waits;
	uint32_t *order; /* of discovery, from 1; 0: not seen */
	uint32_t *low;   /* the earliest that is reached */
	uint32_t *at;    /* the next wait to look at */
	ARRAY_OF(uint32_t) open, path;
	uint32_t next_order;
	struct components found;
};

static int search_init(struct search *search, const struct waits *waits)
{
	size_t count = (size_t)waits->count + 1;

	search->waits = waits;
	search->order = calloc(count, sizeof(uint32_t));
	search->low = calloc(count, sizeof(uint32_t));
	search->at = malloc(count * sizeof(uint32_t));
	search->found.of = malloc(count * sizeof(uint32_t));
	search->found.sizes = calloc(count, sizeof(uint32_t));
	if (!search->order || !search->low || !search->at || !search->found.of ||
		!search->found.sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < waits->count; i++) {
		search->at[i] = waits->first[i];
		search->found.of[i] = NOT_KNOWN;
	}
	return 0;
}

static void search_done(struct search *search)
{
	free(search->order);
	free(search->low);
	free(search->at);
	array_done(&search->open);
	array_done(&search->path);
	components_done(&search->found);
}

static int enter(struct search *search, uint32_t node)
{
	search->order[node] = search->low[node] = ++search->next_order;
	return array_append(&search->open, node) ?: array_append(&search->path, node);
}

/* All that it waits for was seen: is it the first of its component? */
static void leave(struct search *search, uint32_t node)
{
	uint32_t member;

	search->path.count--;
	if (search->path.count > 0) {
		uint32_t before = search->path.items[search->path.count - 1];

		search->low[before] = MIN(search->low[before], search->low[node]);
	}
	if (search->low[node] != search->order[node])
		return;
	do {
		member = search->open.items[--search->open.count];
		search->found.of[member] = search->found.count;
		search->found.sizes[search->found.count]++;
	} while (member != node);
	search->found.count++;
}

static int search_from(struct search *search, uint32_t root)
{
	int r = enter(search, root);

	while (r == 0 && search->path.count > 0) {
		uint32_t node = search->path.items[search->path.count - 1], on;

		if (search->at[node] == search->waits->first[node + 1]) {
			leave(search, node);
			continue;
		}
		on = search->waits->on[search->at[node]++];
		if (!search->order[on])
			r = enter(search, on);
		else if (search->found.of[on] == NOT_KNOWN)
			search->low[node] = MIN(search->low[node], search->order[on]);
	}
	return r;
}

int components_find(const struct waits *waits, struct components *ret_components)
{
	_cleanup_(search_done) struct search search = {0};
	int r = search_init(&search, waits);

	for (uint32_t i = 0; r == 0 && i < waits->count; i++) {
		if (!search.order[i])
			r = search_from(&search, i);
	}
	if (r < 0)
		return r;
	*ret_components = search.found;
	search.found = (struct components){0};
	return 0;
}

void components_done(struct components *components)
{
	free(components->of);
	free(components->sizes);
	*components = (struct components){0};
}

/* Any node of the same component that this one waits for. */
static uint32_t step(const struct waits *waits, const struct components *components, uint32_t node)
{
	for (uint32_t i = waits->first[node]; i < waits->first[node + 1]; i++) {
		if (components->of[waits->on[i]] == components->of[node])
			return waits->on[i];
	}
	return node;
}

/* Steps inside a component come back to where they were: from there on, around once. */
int components_cycle(const struct waits *waits, const struct components *components, uint32_t node,
	struct node_list *ret_cycle)
{
	_cleanup_free_ uint8_t *rounds = calloc((size_t)waits->count + 1, sizeof(*rounds));
	int r = rounds ? 0 : -ENOMEM;

	for (; r == 0 && rounds[node] == 0; node = step(waits, components, node))
		rounds[node] = 1;
	for (; r == 0 && rounds[node] == 1; node = step(waits, components, node)) {
		rounds[node] = 2;
		r = array_append(&ret_cycle->nodes, node);
	}
	return r;
}
