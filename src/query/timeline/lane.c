/* SPDX-License-Identifier: Apache-2.0 */
#include "query/timeline/lane.h"

#include <errno.h>
#include <stdlib.h>

/* ---- sums ---- */

static struct lane_node node_of(const struct lane_slice *slice)
{
	return (struct lane_node){
		.start_ns = slice->start_ns,
		.last_start_ns = slice->start_ns,
		.end_ns = slice->start_ns + slice->duration_ns,
		.longest_ns = slice->duration_ns,
		.busy_ns = (uint64_t)slice->duration_ns,
		.vote_ns = (uint64_t)slice->duration_ns,
		.name = slice->name,
		.category = slice->category,
	};
}

static void vote(struct lane_node *sum, const struct lane_node *more)
{
	if (sum->name == more->name) {
		sum->vote_ns += more->vote_ns;
		return;
	}
	if (sum->vote_ns >= more->vote_ns) {
		sum->vote_ns -= more->vote_ns;
		return;
	}
	sum->vote_ns = more->vote_ns - sum->vote_ns;
	sum->name = more->name;
	sum->category = more->category;
}

/* `more` comes after. */
static void add_node(struct lane_node *sum, const struct lane_node *more)
{
	vote(sum, more);
	sum->last_start_ns = more->last_start_ns;
	sum->end_ns = MAX(sum->end_ns, more->end_ns);
	sum->longest_ns = MAX(sum->longest_ns, more->longest_ns);
	sum->busy_ns += more->busy_ns;
}

/* ---- the tree ---- */

/* The n-th of what lies below a level. */
static struct lane_node node_below(const struct lane *lane, unsigned level, size_t n)
{
	struct lane_slice slice;

	if (level)
		return lane->levels[level - 1][n];
	slice = lane->slice(lane->context, n);
	return node_of(&slice);
}

static size_t count_below(const struct lane *lane, unsigned level)
{
	return level ? lane->level_counts[level - 1] : lane->count;
}

static int add_level(struct lane *lane)
{
	unsigned level = lane->level_count;
	size_t below = count_below(lane, level), count = (below + LANE_FANOUT - 1) / LANE_FANOUT;
	struct lane_node *nodes = malloc(count * sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < below; i++) {
		struct lane_node node = node_below(lane, level, i);

		if (i % LANE_FANOUT == 0)
			nodes[i / LANE_FANOUT] = node;
		else
			add_node(&nodes[i / LANE_FANOUT], &node);
	}
	lane->levels[level] = nodes;
	lane->level_counts[level] = count;
	lane->level_count++;
	return 0;
}

int lane_init(struct lane *lane, lane_slice_function *slice, const void *context, size_t count)
{
	int r = 0;

	*lane = (struct lane){.slice = slice, .context = context, .count = count};
	while (r == 0 && count_below(lane, lane->level_count) > LANE_FANOUT &&
		lane->level_count < LANE_LEVELS)
		r = add_level(lane);
	if (r < 0)
		lane_done(lane);
	return r;
}

void lane_done(struct lane *lane)
{
	for (unsigned level = 0; level < lane->level_count; level++)
		free(lane->levels[level]);
	*lane = (struct lane){0};
}

/* ---- a picture ---- */

struct drawing {
	const struct lane *lane;
	int64_t from_ns, to_ns, column_ns;
	int64_t column; /* of the last group, while others may join it; -1: none */
	struct lane_groups *groups;
};

static int64_t column_of(const struct drawing *drawing, int64_t time_ns)
{
	return time_ns <= drawing->from_ns ? 0 : (time_ns - drawing->from_ns) / drawing->column_ns;
}

/* Slices that follow those that were added; `count` of them from `first`. */
static int add_group(
	struct drawing *drawing, const struct lane_node *node, size_t first, size_t count)
{
	bool is_long = node->longest_ns >= drawing->column_ns;
	int64_t column = is_long ? -1 : column_of(drawing, node->start_ns);
	struct lane_groups *groups = drawing->groups;
	const struct lane_group group = {.sum = *node, .first = first, .count = (uint32_t)count};

	if (column >= 0 && column == drawing->column) {
		struct lane_group *last = &groups->items.items[groups->items.count - 1];

		add_node(&last->sum, node);
		last->count += (uint32_t)count;
		return 0;
	}
	drawing->column = column;
	return array_append(&groups->items, group);
}

static bool is_in_view(const struct drawing *drawing, const struct lane_node *node)
{
	if (node->start_ns >= drawing->to_ns)
		return false;
	return node->end_ns > drawing->from_ns || node->last_start_ns >= drawing->from_ns;
}

/* Do all of its slices lie in the view, and are one in it? */
static bool is_one_group(const struct drawing *drawing, const struct lane_node *node)
{
	return node->longest_ns < drawing->column_ns && node->start_ns >= drawing->from_ns &&
	       node->last_start_ns < drawing->to_ns &&
	       column_of(drawing, node->start_ns) == column_of(drawing, node->last_start_ns);
}

/* How many slices lie below each thing below this level: 1, 16, 256 … */
static size_t slices_below(unsigned level)
{
	return (size_t)1 << (4 * level);
}

/* Things `first` to `end` of what lies below the level. */
static int draw(struct drawing *drawing, unsigned level, size_t first, size_t end)
{
	const struct lane *lane = drawing->lane;
	size_t slices = slices_below(level);
	int r = 0;

	for (size_t i = first; r == 0 && i < end; i++) {
		struct lane_node node = node_below(lane, level, i);

		if (node.start_ns >= drawing->to_ns)
			break;
		if (!is_in_view(drawing, &node))
			continue;
		if (level == 0 || is_one_group(drawing, &node))
			r = add_group(
				drawing, &node, i * slices, MIN(slices, lane->count - i * slices));
		else
			r = draw(drawing, level - 1, i * LANE_FANOUT,
				MIN((i + 1) * LANE_FANOUT, count_below(lane, level - 1)));
	}
	return r;
}

int lane_draw(const struct lane *lane, int64_t from_ns, int64_t to_ns, int64_t column_ns,
	struct lane_groups *groups)
{
	struct drawing drawing = {
		.lane = lane,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.column_ns = column_ns,
		.column = -1,
		.groups = groups,
	};

	return draw(&drawing, lane->level_count, 0, count_below(lane, lane->level_count));
}
