/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching by ids. A rule holds when nearly all pairs that it makes have equal names; pairs whose
 * names differ are not matched.
 */
#include "chakra/link/state.h"

/* Of 10 pairs, so many agree at least. */
#define AGREE_OF_TEN 9
/* Differences that are voted on, at most; and ids of one name on either side. */
#define VOTES_MAX 20000
#define SIDE_MAX  100

/* Row of the operator that has this id; of several the first. */
typedef uint64_t row_id_function(const struct trace *device, const struct trace_event *event);

static uint64_t rf_id_of(const struct trace *device, const struct trace_event *event)
{
	const struct trace_op *op = trace_op(device, event);

	/* Kineto writes 0 where no observer ran. */
	return op && op->rf_id ? op->rf_id : TRACE_NO_ID;
}

static uint64_t external_id_of(const struct trace *device, const struct trace_event *event)
{
	return event->external_id;
}

/* Rows that may have an id. */
static uint64_t id_of_row(const struct link *link, row_id_function *id_of, uint32_t row)
{
	const struct trace_event *event = link_event(link, row);

	return link_is_operator(event) ? id_of(link->device, event) : TRACE_NO_ID;
}

static int index_rows(const struct link *link, row_id_function *id_of, struct id_map *rows)
{
	uint64_t first = UINT64_MAX, last = 0, id;
	size_t count = 0;
	int r;

	for (uint32_t row = 0; row < link->device->events.count; row++) {
		id = id_of_row(link, id_of, row);
		if (id == TRACE_NO_ID)
			continue;
		count++;
		first = MIN(first, id);
		last = MAX(last, id);
	}
	r = id_map_init(rows, first, last, count);
	for (uint32_t row = 0; r == 0 && row < link->device->events.count; row++) {
		id = id_of_row(link, id_of, row);
		if (id != TRACE_NO_ID && !id_map_get(rows, id, NULL))
			r = id_map_set(rows, id, row);
	}
	return r;
}

static bool has_rf_id(const struct execution_node *node)
{
	return node->rf_id && node->rf_id != EXECUTION_NO_ID && !link_is_process_or_thread(node);
}

/* Pairs nodes with rows[rf_id + offset], when that holds for nearly all. */
static void match_pairs(
	struct link *link, const struct id_map *rows, int64_t offset, enum execution_match match)
{
	uint64_t agree = 0, differ = 0, row;

	array_foreach (&link->host->nodes, node) {
		if (!has_rf_id(node) || !id_map_get(rows, node->rf_id + (uint64_t)offset, &row))
			continue;
		if (link_names_agree(link, node, (uint32_t)row))
			agree++;
		else
			differ++;
	}
	link->names_agree = agree;
	link->result->names_differ = differ;
	if (!agree || agree * 10 < (agree + differ) * AGREE_OF_TEN)
		return;
	for (uint32_t i = 0; i < link->host->nodes.count; i++) {
		const struct execution_node *node = &link->host->nodes.items[i];

		if (has_rf_id(node) && id_map_get(rows, node->rf_id + (uint64_t)offset, &row) &&
			link_names_agree(link, node, (uint32_t)row) &&
			link->node_of_row[row] == MODEL_NONE)
			link_match(link, i, (uint32_t)row, match);
	}
}

int link_match_by_rf_id(struct link *link)
{
	struct id_map rows = {0};
	int r = index_rows(link, rf_id_of, &rows);

	if (r == 0)
		match_pairs(link, &rows, 0, EXECUTION_BY_RF_ID);
	id_map_done(&rows);
	return r;
}

/* The id of a node or row, under its name. */
struct named_id {
	uint32_t name; /* in the device trace's strings */
	uint64_t id;
};

static int compare_named(const void *a, const void *b)
{
	const struct named_id *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	return (left->id > right->id) - (left->id < right->id);
}

struct named_ids {
	ARRAY_OF(struct named_id) items;
};

static int collect_nodes(const struct link *link, struct named_ids *ids)
{
	int r = 0;

	array_foreach (&link->host->nodes, node) {
		struct named_id named = {.id = node->rf_id};

		if (r == 0 && has_rf_id(node) &&
			intern_find(&link->device->strings, node->name.bytes, node->name.length,
				&named.name))
			r = array_append(&ids->items, named);
	}
	if (ids->items.count)
		qsort(ids->items.items, ids->items.count, sizeof(struct named_id), compare_named);
	return r;
}

static int collect_rows(const struct link *link, struct named_ids *ids)
{
	int r = 0;

	array_foreach (&link->device->events, event) {
		struct named_id named = {event->name, event->external_id};

		if (r == 0 && link_is_operator(event) && named.id != TRACE_NO_ID)
			r = array_append(&ids->items, named);
	}
	if (ids->items.count)
		qsort(ids->items.items, ids->items.count, sizeof(struct named_id), compare_named);
	return r;
}

/* What both sides have of one name. */
struct name_group {
	size_t nodes, rows;             /* where they begin */
	uint32_t node_count, row_count; /* at most SIDE_MAX */
};

static int compare_groups(const void *a, const void *b)
{
	const struct name_group *left = a, *right = b;
	uint32_t left_pairs = left->node_count * left->row_count;
	uint32_t right_pairs = right->node_count * right->row_count;

	if (left_pairs != right_pairs)
		return left_pairs < right_pairs ? -1 : 1;
	return (left->nodes > right->nodes) - (left->nodes < right->nodes);
}

struct name_groups {
	ARRAY_OF(struct name_group) items;
};

static size_t end_of_name(const struct named_ids *ids, size_t first)
{
	size_t end = first;

	while (end < ids->items.count && ids->items.items[end].name == ids->items.items[first].name)
		end++;
	return end;
}

/* Rare names first: they tell most. */
static int group_names(
	const struct named_ids *nodes, const struct named_ids *rows, struct name_groups *groups)
{
	int r = 0;

	for (size_t i = 0, j = 0; r == 0 && i < nodes->items.count && j < rows->items.count;) {
		uint32_t left = nodes->items.items[i].name, right = rows->items.items[j].name;
		size_t left_end = end_of_name(nodes, i), right_end = end_of_name(rows, j);
		struct name_group group = {
			.nodes = i,
			.rows = j,
			.node_count = (uint32_t)MIN(left_end - i, (size_t)SIDE_MAX),
			.row_count = (uint32_t)MIN(right_end - j, (size_t)SIDE_MAX),
		};

		if (left == right)
			r = array_append(&groups->items, group);
		i = left <= right ? left_end : i;
		j = right <= left ? right_end : j;
	}
	if (groups->items.count)
		qsort(groups->items.items, groups->items.count, sizeof(struct name_group),
			compare_groups);
	return r;
}

static int vote(const struct named_ids *nodes, const struct named_ids *rows,
	const struct name_group *group, struct map_u64 *votes)
{
	int r = 0;

	for (uint32_t i = 0; i < group->node_count; i++) {
		for (uint32_t j = 0; r == 0 && j < group->row_count; j++) {
			uint64_t offset = rows->items.items[group->rows + j].id -
					  nodes->items.items[group->nodes + i].id;
			uint64_t count = 0;

			map_u64_get(votes, offset, &count);
			r = map_u64_set(votes, offset, count + 1);
		}
	}
	return r;
}

static int find_offset(const struct named_ids *nodes, const struct named_ids *rows,
	const struct name_groups *groups, int64_t *ret_offset)
{
	struct map_u64 votes = {0};
	uint64_t most = 0, total = 0, offset, count;
	size_t position = 0;
	int r = 0;

	array_foreach (&groups->items, group) {
		if (r == 0 && total < VOTES_MAX)
			r = vote(nodes, rows, group, &votes);
		total += (uint64_t)group->node_count * group->row_count;
	}
	while (map_u64_next(&votes, &position, &offset, &count)) {
		/* Whatever the order in which the map has them. */
		if (count > most || (count == most && (int64_t)offset < *ret_offset)) {
			most = count;
			*ret_offset = (int64_t)offset;
		}
	}
	map_u64_done(&votes);
	return r;
}

int link_match_by_offset(struct link *link)
{
	struct named_ids node_ids = {0}, row_ids = {0};
	struct name_groups groups = {0};
	struct id_map rows = {0};
	int64_t offset = 0;
	int r = collect_nodes(link, &node_ids);

	r = r ?: collect_rows(link, &row_ids);
	r = r ?: group_names(&node_ids, &row_ids, &groups);
	r = r ?: find_offset(&node_ids, &row_ids, &groups, &offset);
	r = r ?: index_rows(link, external_id_of, &rows);
	if (r == 0)
		match_pairs(link, &rows, offset, EXECUTION_BY_OFFSET);
	link->result->offset = offset;
	array_done(&node_ids.items);
	array_done(&row_ids.items);
	array_done(&groups.items);
	id_map_done(&rows);
	return r;
}
