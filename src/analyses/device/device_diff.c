/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/device/device_diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/statistics.h"

/* One piece of work. */
struct value {
	uint32_t key;
	uint32_t number; /* in order of time */
	uint64_t duration_ns;
};

struct key {
	enum wire_device_kind kind;
	uint32_t name; /* in diff->names */
};

struct gathering {
	struct intern keys; /* of struct key */
	ARRAY_OF(struct value) values[2];
};

static int gather(struct device_diff *diff, struct gathering *gathering, unsigned side,
	const struct model *model)
{
	struct device_diff_side *sum = side ? &diff->after : &diff->before;

	array_foreach (&model->device_works, work) {
		struct value value = {.number = (uint32_t)gathering->values[side].count,
			.duration_ns = work->end_ns - work->start_ns};
		struct key key;

		if (work->failed)
			continue;
		memset(&key, 0, sizeof(key));
		key.kind = work->kind;
		if (intern_add(&diff->names, work->name, strlen(work->name), &key.name) < 0 ||
			intern_add(&gathering->keys, &key, sizeof(key), &value.key) < 0 ||
			array_append(&gathering->values[side], value) < 0)
			return -ENOMEM;
		sum->count++;
		sum->total_ns += value.duration_ns;
	}
	return 0;
}

static int by_key(const void *left, const void *right)
{
	const struct value *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* The figures of one key; moves *position behind its values. */
static struct device_diff_figures take_figures(const struct gathering *gathering, unsigned side,
	uint32_t key, uint64_t all_ns, double *scratch, size_t *position)
{
	struct device_diff_figures figures = {.mean_ns = NAN, .error2_ns2 = NAN};
	const struct value *values = gathering->values[side].items;

	while (*position < gathering->values[side].count && values[*position].key == key) {
		scratch[figures.count++] = (double)values[*position].duration_ns;
		figures.total_ns += values[(*position)++].duration_ns;
	}
	figures.share = all_ns ? (double)figures.total_ns / (double)all_ns : 0;
	if (figures.count)
		figures.mean_ns = (double)figures.total_ns / (double)figures.count;
	if (figures.count >= DEVICE_DIFF_MIN_COUNT)
		figures.error2_ns2 = statistics_batch_means(scratch, figures.count);
	return figures;
}

static void compare_row(const struct device_diff *diff, struct device_diff_row *row)
{
	double before = (double)row->before.count * diff->before.weight;
	double after = (double)row->after.count * diff->after.weight;

	row->change_ns = (double)row->after.total_ns * diff->after.weight -
			 (double)row->before.total_ns * diff->before.weight;
	row->by_count_ns = row->change_ns;
	row->duration_q = NAN;
	if (!row->before.count || !row->after.count)
		return;
	row->by_count_ns = (after - before) * row->before.mean_ns;
	row->by_duration_ns = row->change_ns - row->by_count_ns;
	row->duration_q = statistics_two_means(row->before.mean_ns, row->before.error2_ns2,
		row->after.mean_ns, row->after.error2_ns2);
}

static int correct_rows(struct device_diff *diff)
{
	_cleanup_free_ double *p = calloc(diff->rows.count + 1, sizeof(*p));
	size_t tested = 0;
	int r;

	if (!p)
		return -ENOMEM;
	array_foreach (&diff->rows, row) {
		if (!isnan(row->duration_q))
			p[tested++] = row->duration_q;
	}
	r = statistics_benjamini_hochberg(p, tested);
	if (r < 0)
		return r;
	tested = 0;
	array_foreach (&diff->rows, row) {
		if (!isnan(row->duration_q))
			row->duration_q = p[tested++];
	}
	return 0;
}

static int by_change(const void *left, const void *right)
{
	const struct device_diff_row *a = left, *b = right;
	int order;

	if (fabs(a->change_ns) != fabs(b->change_ns))
		return fabs(a->change_ns) > fabs(b->change_ns) ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ?: (int)a->kind - (int)b->kind;
}

static int compare(struct device_diff *diff, struct gathering *gathering)
{
	size_t counts[2] = {gathering->values[0].count, gathering->values[1].count};
	_cleanup_free_ double *scratch = calloc(MAX(counts[0], counts[1]) + 1, sizeof(*scratch));
	size_t positions[2] = {0, 0};
	int r = scratch ? 0 : -ENOMEM;

	for (unsigned side = 0; side < 2; side++) {
		if (counts[side])
			qsort(gathering->values[side].items, counts[side], sizeof(struct value),
				by_key);
	}
	for (uint32_t i = 0; r == 0 && i < gathering->keys.entries.count; i++) {
		struct device_diff_row row = {0};
		struct key key;

		memcpy(&key, intern_get(&gathering->keys, i), sizeof(key));
		row.name = intern_get(&diff->names, key.name);
		row.kind = key.kind;
		row.before = take_figures(
			gathering, 0, i, diff->before.total_ns, scratch, &positions[0]);
		row.after =
			take_figures(gathering, 1, i, diff->after.total_ns, scratch, &positions[1]);
		compare_row(diff, &row);
		r = array_append(&diff->rows, row);
	}
	r = r ?: correct_rows(diff);
	if (diff->rows.count)
		qsort(diff->rows.items, diff->rows.count, sizeof(*diff->rows.items), by_change);
	return r;
}

static double weight_of(const struct model *model, bool per_second)
{
	uint64_t duration_ns = model_duration_ns(model);

	if (!per_second)
		return 1;
	return duration_ns ? (double)NS_PER_S / (double)duration_ns : 0;
}

int device_diff_init(struct device_diff *diff, const struct model *before,
	const struct model *after, bool per_second)
{
	struct gathering gathering = {0};
	int r;

	*diff = (struct device_diff){.per_second = per_second};
	diff->before.weight = weight_of(before, per_second);
	diff->after.weight = weight_of(after, per_second);
	r = gather(diff, &gathering, 0, before);
	r = r ?: gather(diff, &gathering, 1, after);
	r = r ?: compare(diff, &gathering);
	array_done(&gathering.values[0]);
	array_done(&gathering.values[1]);
	intern_done(&gathering.keys);
	if (r < 0)
		device_diff_done(diff);
	return r;
}

void device_diff_done(struct device_diff *diff)
{
	array_done(&diff->rows);
	intern_done(&diff->names);
}

double device_diff_known_change_ns(const struct device_diff_row *row)
{
	bool significant = row->duration_q <= DEVICE_DIFF_SIGNIFICANT;

	return row->by_count_ns + (significant ? row->by_duration_ns : 0);
}

void device_diff_find_regression(const struct device_diff *diff, double percent,
	struct device_diff_regression *ret_regression)
{
	double all = (double)diff->before.total_ns * diff->before.weight, sum = 0;
	struct device_diff_regression found = {0};

	array_foreach (&diff->rows, row) {
		double change_ns = device_diff_known_change_ns(row);
		double slower = all > 0 ? 100 * change_ns / all : 0;

		sum += change_ns;
		if (slower <= percent || slower <= found.row_percent)
			continue;
		found.row_percent = slower;
		found.row = row;
	}
	found.total_percent = all > 0 ? 100 * sum / all : 0;
	found.total = found.total_percent > percent;
	*ret_regression = found;
}
