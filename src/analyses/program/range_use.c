/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/program/range_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyses/device/busy.h"
#include "analyses/program/range_finder.h"
#include "base/map.h"
#include "base/sort.h"

/* Strings are interned: equal names are equal pointers. */
struct row_key {
	const char *name, *domain;
	uint64_t kind;
};

struct work {
	const struct model *model;
	struct range_use *use;
	struct intern keys;
	struct device_busy busy;
	uint32_t *rows; /* of each range */
	uint64_t *seen; /* by row: the last moment that counted there, + 1 */
	struct {
		uint64_t start_ns, end_ns;
	} * spans; /* of each range, on devices; end 0: none */
};

static int find_row(struct work *work, const struct model_range *range, uint32_t *ret_row)
{
	const struct row_key key = {
		.name = range->name,
		.domain = range->domain,
		.kind = (uint64_t)range->is_mark << 1 | (range->thread == MODEL_NONE),
	};
	int r = intern_add(&work->keys, &key, sizeof(key), ret_row);

	if (r <= 0)
		return r;
	return array_append(&work->use->rows, (struct range_row){
						      .name = range->name,
						      .domain = range->domain,
						      .is_mark = range->is_mark,
						      .of_process = range->thread == MODEL_NONE,
						      .minimum_ns = UINT64_MAX,
					      });
}

/* "Bytes", "bytes", "Message size [bytes]": as NCCL and hooks call them. */
static bool names_bytes(const char *name)
{
	size_t length = strlen(name);

	return strcasecmp(name, "bytes") == 0 ||
	       (length > 7 && strcmp(name + length - 7, "[bytes]") == 0);
}

static void add_bytes(
	const struct model *model, const struct model_range *range, struct range_row *row)
{
	for (uint32_t i = 0; i < range->field_count; i++) {
		const struct model_range_field *field =
			&model->range_fields.items[range->first_field + i];

		if ((field->type != WIRE_RANGE_U64 && field->type != WIRE_RANGE_I64) ||
			!names_bytes(field->name))
			continue;
		row->with_bytes++;
		row->bytes += field->value;
		return;
	}
}

static int add_ranges(struct work *work)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->model->ranges.count; i++) {
		const struct model_range *range = &work->model->ranges.items[i];
		uint64_t time_ns = range->end_ns - range->start_ns;
		struct range_row *row;

		r = find_row(work, range, &work->rows[i]);
		if (r < 0)
			return r;
		row = &work->use->rows.items[work->rows[i]];
		row->count++;
		row->open_count += range->is_open;
		row->total_ns += time_ns;
		row->minimum_ns = MIN(row->minimum_ns, time_ns);
		row->maximum_ns = MAX(row->maximum_ns, time_ns);
		work->use->ranges += !range->is_mark;
		work->use->marks += range->is_mark;
		add_bytes(work->model, range, row);
	}
	return r;
}

static int found_sample(void *context, const struct range_moment *moment, uint32_t range)
{
	struct work *work = context;
	uint32_t row = work->rows[range];

	if (work->seen[row] != moment->index + 1ULL)
		work->use->rows.items[row].samples++;
	work->seen[row] = moment->index + 1ULL;
	return 0;
}

static int find_samples(struct work *work, const struct selected *selected)
{
	_cleanup_range_moments_ struct range_moments moments = {0};
	int r = range_moments_add_samples(&moments, work->model, selected);

	work->use->samples = moments.items.count;
	if (r == 0)
		r = range_find(
			work->model, moments.items.items, moments.items.count, found_sample, work);
	return r;
}

struct launched_in {
	uint32_t work, range;
};

struct launches {
	ARRAY_OF(struct launched_in) found;
};

static int found_launch(void *context, const struct range_moment *moment, uint32_t range)
{
	struct launches *launches = context;

	return array_append(
		&launches->found, (struct launched_in){.work = moment->index, .range = range});
}

/* Works lie in the order of their starts. */
static int compare_launched(const void *left, const void *right)
{
	const struct launched_in *a = left, *b = right;

	if (a->work != b->work)
		return a->work < b->work ? -1 : 1;
	return a->range < b->range ? -1 : a->range > b->range;
}

static int add_launch(struct work *work, const struct launched_in *in)
{
	const struct model_launched one = model_launched(work->model, in->work);
	uint32_t row = work->rows[in->range];

	if (!work->spans[in->range].end_ns)
		work->spans[in->range].start_ns = one.start_ns;
	work->spans[in->range].end_ns = MAX(work->spans[in->range].end_ns, one.end_ns);
	if (work->seen[row] == in->work + 1ULL) /* in another range of this name, too */
		return 0;
	work->seen[row] = in->work + 1ULL;
	work->use->rows.items[row].works++;
	return device_busy_add(&work->busy, &one, row, &work->use->rows.items[row].device_busy_ns);
}

static int find_launches(struct work *work)
{
	_cleanup_range_moments_ struct range_moments moments = {0};
	struct launches launches = {0};
	int r = range_moments_add_launches(&moments, work->model);

	if (r == 0)
		r = range_find(work->model, moments.items.items, moments.items.count, found_launch,
			&launches);
	if (r == 0)
		sort_unless_sorted(launches.found.items, launches.found.count,
			sizeof(*launches.found.items), compare_launched);
	for (size_t i = 0; r == 0 && i < launches.found.count; i++)
		r = add_launch(work, &launches.found.items[i]);
	array_done(&launches.found);
	return r;
}

static void add_spans(struct work *work)
{
	for (size_t i = 0; i < work->model->ranges.count; i++) {
		if (work->spans[i].end_ns)
			work->use->rows.items[work->rows[i]].device_span_ns +=
				work->spans[i].end_ns - work->spans[i].start_ns;
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct range_row *a = left, *b = right;
	int order;

	if (a->is_mark != b->is_mark)
		return a->is_mark ? 1 : -1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	order = strcmp(a->domain, b->domain);
	return order ? order : strcmp(a->name, b->name);
}

static int fill(struct work *work, const struct selected *selected)
{
	size_t count = work->model->ranges.count;
	int r;

	work->rows = calloc(count, sizeof(*work->rows));
	work->spans = calloc(count, sizeof(*work->spans));
	if (!work->rows || !work->spans)
		return -ENOMEM;
	r = add_ranges(work);
	if (r < 0)
		return r;
	work->seen = calloc(work->use->rows.count, sizeof(*work->seen));
	if (!work->seen)
		return -ENOMEM;
	r = find_samples(work, selected);
	memset(work->seen, 0, work->use->rows.count * sizeof(*work->seen));
	r = r ?: find_launches(work);
	if (r == 0)
		add_spans(work);
	return r;
}

int range_use_init(
	struct range_use *use, const struct model *model, const struct selected *selected)
{
	struct work work = {.model = model, .use = use};
	int r;

	*use = (struct range_use){0};
	if (!model->ranges.count)
		return 0;
	r = fill(&work, selected);
	if (r == 0)
		qsort(use->rows.items, use->rows.count, sizeof(*use->rows.items), compare_rows);
	intern_done(&work.keys);
	device_busy_done(&work.busy);
	free(work.rows);
	free(work.spans);
	free(work.seen);
	if (r < 0)
		range_use_done(use);
	return r;
}

void range_use_done(struct range_use *use)
{
	array_done(&use->rows);
}
