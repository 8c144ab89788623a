/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/category_use.h"

#include <stdlib.h>

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/strbuf.h"

/* Work of one name and category. */
struct named {
	const char *name;
	int64_t total_ns;
	uint8_t category;
};

struct counting {
	struct category_use *use;
	struct intern keys;
	ARRAY_OF(struct named) names;
};

static void counting_done(struct counting *counting)
{
	intern_done(&counting->keys);
	array_done(&counting->names);
}

static int add_name(
	struct counting *counting, const char *name, uint8_t category, int64_t duration_ns)
{
	_cleanup_strbuf_ struct strbuf key = {0};
	uint32_t index = 0;
	int r;

	strbuf_add_char(&key, (char)('a' + category));
	strbuf_add(&key, name);
	r = strbuf_status(&key);
	if (r == 0)
		r = intern_add(&counting->keys, key.data, key.length, &index);
	if (r > 0)
		r = array_append(
			&counting->names, (struct named){.name = name, .category = category});
	if (r < 0)
		return r;
	counting->names.items[index].total_ns =
		trace_add_ns(counting->names.items[index].total_ns, duration_ns);
	return 0;
}

/* The time of one view, by the string that names it: most names come many times. */
static int add_view_names(
	struct counting *counting, const struct trace_view *view, const uint8_t *categories)
{
	struct map_u64 sums = {0};
	size_t position = 0;
	uint64_t key, sum;
	int r = 0;

	for (size_t i = 0; r == 0 && i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];
		uint64_t known = 0;

		if (work->is_wait)
			continue;
		key = (uint64_t)view->trace->events.items[work->row].name << 8 | categories[i];
		map_u64_get(&sums, key, &known);
		r = map_u64_set(&sums, key, known + (uint64_t)trace_view_work_ns(work));
	}
	while (r == 0 && map_u64_next(&sums, &position, &key, &sum))
		r = add_name(counting, trace_text(view->trace, (uint32_t)(key >> 8)), (uint8_t)key,
			(int64_t)sum);
	map_u64_done(&sums);
	return r;
}

static void add_rank(struct category_row *rows, const int64_t *totals, uint32_t rank, bool is_first)
{
	for (int i = 0; i < OP_CATEGORY_MAX; i++) {
		struct category_row *row = &rows[i];

		row->total_ns = trace_add_ns(row->total_ns, totals[i]);
		if (is_first || totals[i] < row->least_ns) {
			row->least_ns = totals[i];
			row->least_rank = rank;
		}
		if (is_first || totals[i] > row->most_ns) {
			row->most_ns = totals[i];
			row->most_rank = rank;
		}
	}
}

static int add_view(struct counting *counting, const struct trace_view *view, bool is_first)
{
	const uint32_t *parents = trace_parents(view->trace, false);
	_cleanup_free_ uint8_t *categories = NULL;
	int64_t totals[OP_CATEGORY_MAX] = {0};
	int r = parents ? op_categories_of_works(view, parents, &categories) : -ENOMEM;

	if (r < 0)
		return r;
	for (size_t i = 0; i < view->works.count; i++) {
		const struct trace_view_work *work = &view->works.items[i];

		if (work->is_wait)
			continue;
		totals[categories[i]] =
			trace_add_ns(totals[categories[i]], trace_view_work_ns(work));
		counting->use->rows[categories[i]].works++;
	}
	add_rank(counting->use->rows, totals, view->rank, is_first);
	return add_view_names(counting, view, categories);
}

static int compare_rows(const void *left, const void *right)
{
	const struct category_row *a = left, *b = right;

	if (!a->works != !b->works)
		return a->works ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return (int)a->category - (int)b->category;
}

static void finish(struct counting *counting)
{
	struct category_use *use = counting->use;

	array_foreach (&counting->names, named) {
		struct category_row *row = &use->rows[named->category];

		row->names++;
		if (row->name && (named->total_ns < row->name_ns ||
					 (named->total_ns == row->name_ns &&
						 strcmp(named->name, row->name) > 0)))
			continue;
		row->name = named->name;
		row->name_ns = named->total_ns;
	}
	for (int i = 0; i < OP_CATEGORY_MAX; i++) {
		use->total_ns = trace_add_ns(use->total_ns, use->rows[i].total_ns);
		use->count += use->rows[i].works != 0;
	}
	qsort(use->rows, OP_CATEGORY_MAX, sizeof(*use->rows), compare_rows);
}

int category_use_init(struct category_use *use, const struct trace_view *views, size_t count)
{
	_cleanup_(counting_done) struct counting counting = {.use = use};
	int r = 0;

	*use = (struct category_use){0};
	for (int i = 0; i < OP_CATEGORY_MAX; i++)
		use->rows[i].category = (enum op_category)i;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_view(&counting, &views[i], i == 0);
	if (r == 0)
		finish(&counting);
	return r;
}
