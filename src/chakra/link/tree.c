/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching without ids: along the call trees of threads, which both traces tell. Operators of a
 * thread in the order in which they began are one list on either side; lists are paired by the
 * names that they have in common, and aligned by name. A pair stays when what is around it agrees:
 * the node's parent is not matched, or is matched with a row that encloses the node's row.
 */
#include "chakra/link/state.h"

/* So far ahead a name is looked for on either side. */
#define LOOK_AHEAD 64
/* A name that more lists have tells nothing of which are a pair. */
#define LISTS_OF_NAME_MAX 16
/* Of 10 operators of the shorter trace, so many must be matched. */
#define MATCHED_OF_TEN 5

/* A node, or an operator's row. */
struct item {
	uint64_t thread, order; /* of a thread in the order in which they began */
	uint32_t index, name;
};

struct list {
	size_t first, count;
	bool is_paired;
};

struct side {
	ARRAY_OF(struct item) items;
	ARRAY_OF(struct list) lists;
};

static void side_done(struct side *side)
{
	array_done(&side->items);
	array_done(&side->lists);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	if (left->order != right->order)
		return left->order < right->order ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

static int make_lists(struct side *side)
{
	struct list list = {0};
	int r = 0;

	if (side->items.count)
		qsort(side->items.items, side->items.count, sizeof(struct item), compare_items);
	for (size_t i = 0; r == 0 && i < side->items.count; i++) {
		list.count++;
		if (i + 1 < side->items.count &&
			side->items.items[i + 1].thread == side->items.items[i].thread)
			continue;
		r = array_append(&side->lists, list);
		list = (struct list){.first = i + 1};
	}
	return r;
}

/* Nodes get their ids when they begin. */
static int collect_nodes(const struct link *link, struct side *side)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < link->host->nodes.count; i++) {
		const struct execution_node *node = &link->host->nodes.items[i];
		struct item item = {.thread = node->tid, .order = node->id, .index = i};

		if (link_is_process_or_thread(node))
			continue;
		if (!intern_find(&link->device->strings, node->name.bytes, node->name.length,
			    &item.name))
			item.name = MODEL_NONE;
		r = array_append(&side->items, item);
	}
	return r ?: make_lists(side);
}

static int collect_rows(const struct link *link, struct side *side)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < link->device->rows.count; i++) {
		uint32_t row = link->device->rows.items[i];
		const struct trace_event *event = link_event(link, row);
		struct item item = {
			.thread = event->track, .order = i, .index = row, .name = event->name};

		if (link_is_operator(event))
			r = array_append(&side->items, item);
	}
	return r ?: make_lists(side);
}

/* How often lists have a name. */
struct name_count {
	uint32_t name, list, count;
};

struct name_counts {
	ARRAY_OF(struct name_count) items;
};

static int compare_counts(const void *a, const void *b)
{
	const struct name_count *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	return (left->list > right->list) - (left->list < right->list);
}

static int count_names(const struct side *side, struct name_counts *counts)
{
	size_t kept = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < side->lists.count; i++) {
		const struct list *list = &side->lists.items[i];

		for (size_t j = 0; r == 0 && j < list->count; j++) {
			struct name_count count = {side->items.items[list->first + j].name, i, 1};

			if (count.name != MODEL_NONE)
				r = array_append(&counts->items, count);
		}
	}
	if (counts->items.count)
		qsort(counts->items.items, counts->items.count, sizeof(struct name_count),
			compare_counts);
	array_foreach (&counts->items, count) {
		struct name_count *last = kept ? &counts->items.items[kept - 1] : NULL;

		if (last && last->name == count->name && last->list == count->list)
			last->count++;
		else
			counts->items.items[kept++] = *count;
	}
	counts->items.count = kept;
	return r;
}

/* Two lists, and how many names they have in common, each as often as both have it. */
struct list_pair {
	uint32_t nodes, rows;
	uint64_t common;
};

struct list_pairs {
	ARRAY_OF(struct list_pair) items;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct list_pair *left = a, *right = b;

	if (left->common != right->common)
		return left->common > right->common ? -1 : 1;
	if (left->nodes != right->nodes)
		return left->nodes < right->nodes ? -1 : 1;
	return (left->rows > right->rows) - (left->rows < right->rows);
}

static size_t end_of_name(const struct name_counts *counts, size_t first)
{
	size_t end = first;

	while (end < counts->items.count &&
		counts->items.items[end].name == counts->items.items[first].name)
		end++;
	return end;
}

static int add_common(const struct name_counts *nodes, size_t node_first, size_t node_end,
	const struct name_counts *rows, size_t row_first, size_t row_end, struct map_u64 *common)
{
	int r = 0;

	if (node_end - node_first > LISTS_OF_NAME_MAX || row_end - row_first > LISTS_OF_NAME_MAX)
		return 0;
	for (size_t i = node_first; i < node_end; i++) {
		for (size_t j = row_first; r == 0 && j < row_end; j++) {
			const struct name_count *left = &nodes->items.items[i];
			const struct name_count *right = &rows->items.items[j];
			uint64_t key = (uint64_t)left->list << 32 | right->list, sum = 0;

			map_u64_get(common, key, &sum);
			r = map_u64_set(common, key, sum + MIN(left->count, right->count));
		}
	}
	return r;
}

static int find_common(
	const struct name_counts *nodes, const struct name_counts *rows, struct map_u64 *common)
{
	int r = 0;

	for (size_t i = 0, j = 0; r == 0 && i < nodes->items.count && j < rows->items.count;) {
		uint32_t left = nodes->items.items[i].name, right = rows->items.items[j].name;
		size_t left_end = end_of_name(nodes, i), right_end = end_of_name(rows, j);

		if (left == right)
			r = add_common(nodes, i, left_end, rows, j, right_end, common);
		i = left <= right ? left_end : i;
		j = right <= left ? right_end : j;
	}
	return r;
}

/* Those with most names in common first. */
static int rank_pairs(const struct side *nodes, const struct side *rows, struct list_pairs *pairs)
{
	struct name_counts node_counts = {0}, row_counts = {0};
	struct map_u64 common = {0};
	uint64_t key, sum;
	size_t position = 0;
	int r = count_names(nodes, &node_counts);

	r = r ?: count_names(rows, &row_counts);
	r = r ?: find_common(&node_counts, &row_counts, &common);
	while (r == 0 && map_u64_next(&common, &position, &key, &sum)) {
		struct list_pair pair = {(uint32_t)(key >> 32), (uint32_t)key, sum};

		r = array_append(&pairs->items, pair);
	}
	if (pairs->items.count)
		qsort(pairs->items.items, pairs->items.count, sizeof(struct list_pair),
			compare_pairs);
	array_done(&node_counts.items);
	array_done(&row_counts.items);
	map_u64_done(&common);
	return r;
}

/* How many items of the list to leave out until one has the name; LOOK_AHEAD: none soon. */
static size_t ahead(const struct item *items, size_t count, uint32_t name)
{
	for (size_t i = 0; i < count && i < LOOK_AHEAD; i++) {
		if (items[i].name == name)
			return i;
	}
	return LOOK_AHEAD;
}

static void align(struct link *link, const struct item *nodes, size_t node_count,
	const struct item *rows, size_t row_count)
{
	while (node_count && row_count) {
		size_t skip_nodes = 1, skip_rows = 1;

		if (nodes->name == rows->name) {
			link_match(link, nodes->index, rows->index, EXECUTION_BY_TREE);
		} else if (nodes->name == MODEL_NONE) {
			skip_rows = 0;
		} else {
			size_t row = ahead(rows, row_count, nodes->name);
			size_t node = ahead(nodes, node_count, rows->name);

			/* Where neither name comes soon, both are left out. */
			if (row != LOOK_AHEAD || node != LOOK_AHEAD) {
				skip_rows = row <= node ? row : 0;
				skip_nodes = row <= node ? 0 : node;
			}
		}
		nodes += skip_nodes, node_count -= skip_nodes;
		rows += skip_rows, row_count -= skip_rows;
	}
}

static void align_lists(struct link *link, struct side *nodes, struct list *node_list,
	struct side *rows, struct list *row_list)
{
	if (node_list->is_paired || row_list->is_paired)
		return;
	node_list->is_paired = row_list->is_paired = true;
	align(link, nodes->items.items + node_list->first, node_list->count,
		rows->items.items + row_list->first, row_list->count);
}

/* Threads whose names tell nothing, because all do the same: in order, where lengths agree. */
static void align_rest(struct link *link, struct side *nodes, struct side *rows)
{
	size_t next = 0;

	array_foreach (&nodes->lists, list) {
		size_t at = next;

		if (list->is_paired)
			continue;
		while (at < rows->lists.count &&
			(rows->lists.items[at].is_paired ||
				rows->lists.items[at].count != list->count))
			at++;
		if (at == rows->lists.count)
			continue;
		align_lists(link, nodes, list, rows, &rows->lists.items[at]);
		next = at + 1;
	}
}

static void unmatch(struct link *link, uint32_t node)
{
	link->node_of_row[link->row_of_node[node]] = MODEL_NONE;
	link->row_of_node[node] = MODEL_NONE;
	link->host->nodes.items[node].match = EXECUTION_UNMATCHED;
	link->result->matched[EXECUTION_BY_TREE]--;
}

static bool encloses(const struct link *link, uint32_t outer, uint32_t inner)
{
	const struct trace_event *a = link_event(link, outer), *b = link_event(link, inner);

	return a->track == b->track && a->start_ns <= b->start_ns &&
	       trace_end_ns(a) >= trace_end_ns(b);
}

/* Pairs must agree with those of their parents. */
static void check_parents(struct link *link)
{
	for (uint32_t i = 0; i < link->host->nodes.count; i++) {
		const struct execution_node *node = &link->host->nodes.items[i];
		uint64_t parent;

		if (link->row_of_node[i] == MODEL_NONE || node->parent == node->id ||
			!id_map_get(&link->host->index, node->parent, &parent) ||
			link->row_of_node[parent] == MODEL_NONE)
			continue;
		if (!encloses(link, link->row_of_node[parent], link->row_of_node[i]))
			unmatch(link, i);
	}
}

/* Traces of different programs have some names in common, too. */
static void unmatch_few(struct link *link, const struct side *nodes, const struct side *rows)
{
	if (link->result->matched[EXECUTION_BY_TREE] * 10 >=
		MIN(nodes->items.count, rows->items.count) * MATCHED_OF_TEN)
		return;
	for (uint32_t i = 0; i < link->host->nodes.count; i++) {
		if (link->row_of_node[i] != MODEL_NONE)
			unmatch(link, i);
	}
}

static bool is_empty(const struct side *side)
{
	return !side->items.items || !side->lists.items;
}

int link_match_by_tree(struct link *link)
{
	struct side nodes = {0}, rows = {0};
	struct list_pairs pairs = {0};
	int r = collect_nodes(link, &nodes);

	r = r ?: collect_rows(link, &rows);
	r = r ?: rank_pairs(&nodes, &rows, &pairs);
	if (r == 0 && !is_empty(&nodes) && !is_empty(&rows)) {
		array_foreach (&pairs.items, pair)
			align_lists(link, &nodes, &nodes.lists.items[pair->nodes], &rows,
				&rows.lists.items[pair->rows]);
		align_rest(link, &nodes, &rows);
		check_parents(link);
		unmatch_few(link, &nodes, &rows);
	}
	side_done(&nodes);
	side_done(&rows);
	array_done(&pairs.items);
	return r;
}
