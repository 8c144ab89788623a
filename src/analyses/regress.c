/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/regress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST_BLOCKS 5
#define MOST_BLOCKS   20

/* One measured duration; the key is the interned kind, domain and name. */
struct value {
	uint32_t key;
	uint32_t number; /* in order of time, of one key */
	uint64_t duration_ns;
};

struct key {
	enum regress_kind kind;
	uint32_t name, domain; /* in regress->names */
};

struct gathering {
	struct regress *regress;
	struct intern keys; /* of struct key */
	ARRAY_OF(struct value) values[2];
	uint64_t totals_ns[2][REGRESS_KIND_MAX];
};

static const char *const kind_names[REGRESS_KIND_MAX] = {
	[REGRESS_CPU] = "cpu",
	[REGRESS_STEP] = "step",
	[REGRESS_RANGE] = "range",
	[REGRESS_DEVICE] = "device",
};

static const char *const verdict_names[REGRESS_VERDICT_MAX] = {
	[REGRESS_SLOWER] = "slower",
	[REGRESS_FASTER] = "faster",
	[REGRESS_NOISE] = "noise",
	[REGRESS_UNCHANGED] = "unchanged",
	[REGRESS_TOO_FEW] = "too_few",
	[REGRESS_TOO_SMALL] = "too_small",
};

const char *regress_kind_to_string(enum regress_kind kind)
{
	return kind_names[kind];
}

const char *regress_verdict_to_string(enum regress_verdict verdict)
{
	return verdict_names[verdict];
}

/* ---- values ---- */

static int add_value(struct gathering *gathering, unsigned side, enum regress_kind kind,
	const char *domain, const char *name, uint64_t duration_ns)
{
	struct intern *names = &gathering->regress->names;
	struct value value = {.duration_ns = duration_ns};
	struct key key;

	memset(&key, 0, sizeof(key));
	key.kind = kind;
	if (intern_add(names, name, strlen(name), &key.name) < 0 ||
		intern_add(names, domain, strlen(domain), &key.domain) < 0 ||
		intern_add(&gathering->keys, &key, sizeof(key), &value.key) < 0)
		return -ENOMEM;
	value.number = (uint32_t)gathering->values[side].count;
	gathering->totals_ns[side][kind] += duration_ns;
	return array_append(&gathering->values[side], value);
}

static int gather(struct gathering *gathering, unsigned side, const struct model *model)
{
	int result = 0;

	array_foreach (&model->steps, step) {
		if (!step->is_cut && result == 0)
			result = add_value(gathering, side, REGRESS_STEP, "", step->name,
				step->end_ns - step->start_ns);
	}
	array_foreach (&model->ranges, range) {
		if (!range->is_mark && !range->is_open && result == 0)
			result = add_value(gathering, side, REGRESS_RANGE, range->domain,
				range->name, range->end_ns - range->start_ns);
	}
	array_foreach (&model->device_works, work) {
		if (!work->failed && result == 0)
			result = add_value(gathering, side, REGRESS_DEVICE, "", work->name,
				work->end_ns - work->start_ns);
	}
	return result;
}

static int by_key(const void *left, const void *right)
{
	const struct value *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int by_duration(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* ---- comparing ---- */

/* Sorts them. */
static uint64_t median_of(uint64_t *values, size_t count)
{
	uint64_t low;

	qsort(values, count, sizeof(*values), by_duration);
	low = values[(count - 1) / 2];
	return low + (values[count / 2] - low) / 2;
}

void regress_interval(
	uint64_t *values, size_t count, unsigned blocks, struct regress_side *ret_side)
{
	struct regress_side side = {.count = count, .low_ns = UINT64_MAX};

	blocks = (unsigned)MIN((size_t)blocks, count);
	for (unsigned i = 0; i < blocks; i++) {
		size_t first = count * i / blocks, end = count * (i + 1) / blocks;
		uint64_t median_ns = median_of(values + first, end - first);

		side.low_ns = MIN(side.low_ns, median_ns);
		side.high_ns = MAX(side.high_ns, median_ns);
	}
	side.median_ns = median_of(values, count);
	*ret_side = side;
}

/* How often the blocks of one of two equal sides are all slower than those of the other. */
static double chance_of(unsigned blocks)
{
	double chance = 1;

	for (unsigned i = 1; i <= blocks; i++)
		chance *= (double)i / (blocks + i);
	return chance;
}

/* CPU time takes half of the false alarms, all other rows the rest. */
static unsigned blocks_for(size_t rows)
{
	unsigned blocks = FEWEST_BLOCKS;

	while (blocks < MOST_BLOCKS && chance_of(blocks) * (double)rows > REGRESS_FALSE_ALARM / 2)
		blocks++;
	return blocks;
}

static bool is_small(
	const struct gathering *gathering, enum regress_kind kind, const uint64_t sums_ns[2])
{
	for (unsigned side = 0; side < 2; side++) {
		if ((double)sums_ns[side] * 100 >=
			(double)gathering->totals_ns[side][kind] * REGRESS_MIN_PERCENT)
			return false;
	}
	return true;
}

static enum regress_verdict judge(const struct regress_row *row, double threshold_percent)
{
	if (fabs(row->change_percent) <= threshold_percent)
		return REGRESS_UNCHANGED;
	if (row->after.low_ns > row->before.high_ns)
		return REGRESS_SLOWER;
	return row->after.high_ns < row->before.low_ns ? REGRESS_FASTER : REGRESS_NOISE;
}

/* The values of one key, in order of time; moves *position behind them. */
static size_t take_values(const struct value *values, size_t count, size_t *position, uint32_t key,
	uint64_t *durations)
{
	size_t taken = 0;

	while (*position < count && values[*position].key == key)
		durations[taken++] = values[(*position)++].duration_ns;
	return taken;
}

static double change_percent(uint64_t before_ns, uint64_t after_ns)
{
	if (!before_ns)
		return after_ns ? INFINITY : 0;
	return 100 * ((double)after_ns - (double)before_ns) / (double)before_ns;
}

static int add_row(struct gathering *gathering, const struct key *key, double threshold_percent,
	const struct regress_side sides[2], const uint64_t sums_ns[2])
{
	struct regress *regress = gathering->regress;
	uint64_t fewest = MIN(sides[0].count, sides[1].count);
	struct regress_row row = {
		.kind = key->kind,
		.name = intern_get(&regress->names, key->name),
		.domain = intern_get(&regress->names, key->domain),
		.before = sides[0],
		.after = sides[1],
		.change_percent = change_percent(sides[0].median_ns, sides[1].median_ns),
	};

	if (is_small(gathering, key->kind, sums_ns))
		row.verdict = REGRESS_TOO_SMALL;
	else if (fewest < MAX(REGRESS_MIN_VALUES, 2 * regress->blocks))
		row.verdict = REGRESS_TOO_FEW;
	else
		row.verdict = judge(&row, threshold_percent);
	regress->judged += row.verdict < REGRESS_TOO_FEW;
	return array_append(&regress->rows, row);
}

/* Rows that can be judged: by them goes how many blocks there are. */
static size_t count_rows(const struct gathering *gathering)
{
	size_t positions[2] = {0, 0}, rows = 0;

	for (uint32_t key = 0; key < gathering->keys.entries.count; key++) {
		size_t firsts[2] = {positions[0], positions[1]};

		for (unsigned side = 0; side < 2; side++) {
			while (positions[side] < gathering->values[side].count &&
				gathering->values[side].items[positions[side]].key == key)
				positions[side]++;
		}
		rows += positions[0] - firsts[0] >= REGRESS_MIN_VALUES &&
			positions[1] - firsts[1] >= REGRESS_MIN_VALUES;
	}
	return rows;
}

static int compare(struct gathering *gathering, double threshold_percent)
{
	size_t counts[2] = {gathering->values[0].count, gathering->values[1].count};
	_cleanup_free_ uint64_t *durations =
		calloc(MAX(counts[0], counts[1]) + 1, sizeof(*durations));
	size_t positions[2] = {0, 0};
	int result = durations ? 0 : -ENOMEM;

	for (unsigned side = 0; side < 2; side++) {
		if (counts[side])
			qsort(gathering->values[side].items, counts[side], sizeof(struct value),
				by_key);
	}
	gathering->regress->blocks = blocks_for(count_rows(gathering));
	for (uint32_t key = 0; key < gathering->keys.entries.count && result == 0; key++) {
		struct regress_side sides[2] = {{0}, {0}};
		uint64_t sums_ns[2] = {0, 0};
		struct key what;

		for (unsigned side = 0; side < 2; side++) {
			size_t taken = take_values(gathering->values[side].items, counts[side],
				&positions[side], key, durations);

			for (size_t i = 0; i < taken; i++)
				sums_ns[side] += durations[i];
			if (taken)
				regress_interval(
					durations, taken, gathering->regress->blocks, &sides[side]);
		}
		gathering->regress->only_before += !sides[1].count;
		gathering->regress->only_after += !sides[0].count;
		memcpy(&what, intern_get(&gathering->keys, key), sizeof(what));
		if (sides[0].count && sides[1].count)
			result = add_row(gathering, &what, threshold_percent, sides, sums_ns);
	}
	return result;
}

/* The sums, with the test of the difference between them. */
static int add_cpu(struct regress *regress, const struct diff *diff, double threshold_percent)
{
	struct regress_row row = {.kind = REGRESS_CPU, .name = "CPU time", .domain = ""};
	double seconds = (double)diff->before.samples * diff->before.sample_weight;

	if (!diff->has_time || !(seconds > 0))
		return 0;
	row.before = (struct regress_side){diff->before.samples, diff->before.cpu_time_ns, 0, 0};
	row.after = (struct regress_side){diff->after.samples, diff->after.cpu_time_ns, 0, 0};
	row.change_percent = 100 * diff->total_time_change / seconds;
	if (fabs(row.change_percent) <= threshold_percent)
		row.verdict = REGRESS_UNCHANGED;
	else if (!(diff->total_time_p <= REGRESS_FALSE_ALARM / 2))
		row.verdict = REGRESS_NOISE;
	else
		row.verdict = row.change_percent > 0 ? REGRESS_SLOWER : REGRESS_FASTER;
	return array_append(&regress->rows, row);
}

static int by_verdict(const void *left, const void *right)
{
	const struct regress_row *a = left, *b = right;

	if (a->verdict != b->verdict)
		return a->verdict < b->verdict ? -1 : 1;
	if (fabs(a->change_percent) != fabs(b->change_percent))
		return fabs(a->change_percent) > fabs(b->change_percent) ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->name, b->name) ?: strcmp(a->domain, b->domain);
}

int regress_init(struct regress *regress, double threshold_percent, const struct model *before,
	const struct model *after, const struct diff *diff)
{
	struct gathering gathering = {.regress = regress};
	int result;

	*regress = (struct regress){0};
	result = gather(&gathering, 0, before);
	result = result ?: gather(&gathering, 1, after);
	result = result ?: compare(&gathering, threshold_percent);
	if (result == 0 && diff)
		result = add_cpu(regress, diff, threshold_percent);
	array_done(&gathering.values[0]);
	array_done(&gathering.values[1]);
	intern_done(&gathering.keys);
	if (result < 0) {
		regress_done(regress);
		return result;
	}
	if (regress->rows.count)
		qsort(regress->rows.items, regress->rows.count, sizeof(*regress->rows.items),
			by_verdict);
	array_foreach (&regress->rows, row)
		regress->slower += row->verdict == REGRESS_SLOWER;
	return 0;
}

void regress_done(struct regress *regress)
{
	array_done(&regress->rows);
	intern_done(&regress->names);
}
