/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/cpu/regress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/statistics.h"

#define FEWEST_BLOCKS 5
#define MOST_BLOCKS   20

/* One measured duration; the key is the interned kind, domain and name. */
struct value {
	uint32_t key;
	uint32_t number; /* in order of recordings, and of time in each */
	uint32_t recording;
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

const char *regress_verdict_name(const struct regress *regress, enum regress_verdict verdict)
{
	if (regress->is_energy && verdict <= REGRESS_FASTER)
		return verdict == REGRESS_SLOWER ? "more" : "less";
	return verdict_names[verdict];
}

/* ---- values ---- */

/* Where values go. */
struct place {
	struct gathering *gathering;
	unsigned side;
	uint32_t recording;
};

static int add_value(const struct place *place, enum regress_kind kind, const char *domain,
	const char *name, uint64_t duration_ns)
{
	struct gathering *gathering = place->gathering;
	unsigned side = place->side;
	struct intern *names = &gathering->regress->names;
	struct value value = {.recording = place->recording, .duration_ns = duration_ns};
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

/* Of both sides together; false: one of them is not known. */
static bool find_energy(
	const struct span_energy *energy, const struct energy_span *span, uint64_t *ret_nj)
{
	struct span_energy_answer answer;
	double joules = 0;
	bool any = false;

	span_energy_ask(energy, span, 1, &answer);
	for (unsigned side = 0; side < SPAN_ENERGY_SIDES; side++) {
		if (answer.sides[side].kind == SPAN_ENERGY_NO_SOURCE)
			continue;
		if (!span_energy_is_known(answer.sides[side].kind))
			return false;
		joules += answer.sides[side].net_j;
		any = true;
	}
	*ret_nj = (uint64_t)(joules * 1e9 + 0.5);
	return any;
}

static int add_span_energy(const struct place *place, const struct span_energy *energy,
	enum regress_kind kind, const char *domain, const char *name,
	const struct energy_span *span)
{
	uint64_t nj;

	if (find_energy(energy, span, &nj))
		return add_value(place, kind, domain, name, nj);
	place->gathering->regress->too_short++;
	return 0;
}

static int gather_energy(
	const struct place *place, const struct model *model, const struct span_energy *energy)
{
	int result = 0;

	array_foreach (&model->steps, step) {
		const struct energy_span span = {
			step->start_ns, step->end_ns, step->process, MODEL_NONE};

		if (!step->is_cut && result == 0)
			result =
				add_span_energy(place, energy, REGRESS_STEP, "", step->name, &span);
	}
	array_foreach (&model->ranges, range) {
		const struct energy_span span = {
			range->start_ns, range->end_ns, range->process, range->thread};

		if (!range->is_mark && !range->is_open && result == 0)
			result = add_span_energy(
				place, energy, REGRESS_RANGE, range->domain, range->name, &span);
	}
	array_foreach (&model->device_works, work) {
		if (work->energy_j > 0 && result == 0)
			result = add_value(place, REGRESS_DEVICE, "", work->name,
				(uint64_t)(work->energy_j * 1e9 + 0.5));
	}
	return result;
}

static int gather(const struct place *place, const struct model *model)
{
	int result = 0;

	array_foreach (&model->steps, step) {
		if (!step->is_cut && result == 0)
			result = add_value(
				place, REGRESS_STEP, "", step->name, step->end_ns - step->start_ns);
	}
	array_foreach (&model->ranges, range) {
		if (!range->is_mark && !range->is_open && result == 0)
			result = add_value(place, REGRESS_RANGE, range->domain, range->name,
				range->end_ns - range->start_ns);
	}
	array_foreach (&model->device_works, work) {
		if (result == 0)
			result = add_value(place, REGRESS_DEVICE, "", work->name,
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

static int gather_side(
	struct gathering *gathering, unsigned side, const struct regress_recordings *recordings)
{
	struct place place = {.gathering = gathering, .side = side};
	int r = 0;

	for (; r == 0 && place.recording < recordings->items.count; place.recording++) {
		const struct regress_recording *recording =
			&recordings->items.items[place.recording];

		r = recording->energy ? gather_energy(&place, recording->model, recording->energy)
				      : gather(&place, recording->model);
	}
	return r;
}

/* ---- comparing ---- */

/* Sorts them. */
static uint64_t median_of(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_duration);
	return statistics_median_ns(values, count);
}

/* Cuts the values of one recording. Blocks have two values, if there are so many. */
static void add_blocks(
	uint64_t *values, size_t count, size_t wanted_blocks, struct regress_side *side)
{
	size_t blocks = MIN(wanted_blocks, MAX(count / 2, (size_t)1));

	for (size_t i = 0; i < blocks; i++) {
		size_t first = count * i / blocks, end = count * (i + 1) / blocks;
		uint64_t median_ns = median_of(values + first, end - first);

		side->low_ns = side->blocks ? MIN(side->low_ns, median_ns) : median_ns;
		side->high_ns = MAX(side->high_ns, median_ns);
		side->blocks++;
	}
}

/* The values of one key, in order; `scratch` has place for them. */
static void measure(const struct value *values, size_t count, size_t blocks_of_recording,
	uint64_t *scratch, struct regress_side *ret_side, uint64_t *ret_sum_ns)
{
	struct regress_side side = {.count = count};
	size_t end;

	*ret_sum_ns = 0;
	for (size_t first = 0; first < count; first = end) {
		for (end = first; end < count && values[end].recording == values[first].recording;
			end++) {
			scratch[end] = values[end].duration_ns;
			*ret_sum_ns += scratch[end];
		}
		add_blocks(scratch + first, end - first, blocks_of_recording, &side);
	}
	if (count)
		side.median_ns = median_of(scratch, count);
	*ret_side = side;
}

/* How often all of one of two equal sides are slower than all of the other. */
static double chance_of(size_t before, size_t after)
{
	double chance = 1;

	for (size_t i = 1; i <= after; i++)
		chance *= (double)i / (double)(before + i);
	return chance;
}

/* CPU time takes half of the false alarms, all other rows the rest. */
static unsigned blocks_for(size_t rows)
{
	unsigned blocks = FEWEST_BLOCKS;

	while (blocks < MOST_BLOCKS &&
		chance_of(blocks, blocks) * (double)rows > REGRESS_FALSE_ALARM / 2)
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
	else if (fewest < MAX(REGRESS_MIN_VALUES, 2 * regress->blocks) ||
		 MIN(sides[0].blocks, sides[1].blocks) < regress->blocks)
		row.verdict = REGRESS_TOO_FEW;
	else
		row.verdict = judge(&row, threshold_percent);
	regress->judged += row.verdict < REGRESS_TOO_FEW;
	return array_append(&regress->rows, row);
}

/* The values of one key of one side: moves *position behind them. */
static size_t skip_key(
	const struct gathering *gathering, unsigned side, uint32_t key, size_t *position)
{
	size_t first = *position;

	while (*position < gathering->values[side].count &&
		gathering->values[side].items[*position].key == key)
		(*position)++;
	return *position - first;
}

/* Rows that can be judged: by them goes how many blocks there are. */
static size_t count_rows(const struct gathering *gathering)
{
	size_t positions[2] = {0, 0}, rows = 0;

	for (uint32_t key = 0; key < gathering->keys.entries.count; key++) {
		size_t before = skip_key(gathering, 0, key, &positions[0]);
		size_t after = skip_key(gathering, 1, key, &positions[1]);

		rows += MIN(before, after) >= REGRESS_MIN_VALUES;
	}
	return rows;
}

static int compare(
	struct gathering *gathering, double threshold_percent, const size_t recordings[2])
{
	struct regress *regress = gathering->regress;
	size_t counts[2] = {gathering->values[0].count, gathering->values[1].count};
	_cleanup_free_ uint64_t *scratch = calloc(MAX(counts[0], counts[1]) + 1, sizeof(*scratch));
	size_t positions[2] = {0, 0};
	int result = scratch ? 0 : -ENOMEM;

	for (unsigned side = 0; side < 2; side++) {
		if (counts[side])
			qsort(gathering->values[side].items, counts[side], sizeof(struct value),
				by_key);
	}
	regress->blocks = blocks_for(count_rows(gathering));
	for (uint32_t key = 0; key < gathering->keys.entries.count && result == 0; key++) {
		struct regress_side sides[2];
		uint64_t sums_ns[2];
		struct key what;

		for (unsigned side = 0; side < 2; side++) {
			size_t first = positions[side];
			size_t count = skip_key(gathering, side, key, &positions[side]);
			size_t blocks = (regress->blocks + recordings[side] - 1) / recordings[side];

			measure(gathering->values[side].items + first, count, blocks, scratch,
				&sides[side], &sums_ns[side]);
		}
		regress->only_before += !sides[1].count;
		regress->only_after += !sides[0].count;
		memcpy(&what, intern_get(&gathering->keys, key), sizeof(what));
		if (sides[0].count && sides[1].count)
			result = add_row(gathering, &what, threshold_percent, sides, sums_ns);
	}
	return result;
}

/* ---- CPU time ---- */

/* Returns what one sample stands for in the mean of the recordings; 0: their CPU time is unknown.
 */
static double measure_cpu(
	const struct regress_recordings *recordings, struct regress_side *ret_side)
{
	struct regress_side side = {.low_ns = UINT64_MAX};
	double sum_s = 0, periods_s = 0;
	size_t count = recordings->items.count;

	array_foreach (&recordings->items, recording) {
		double seconds = (double)recording->samples * recording->period_s;

		if (!recording->samples || !(recording->period_s > 0))
			return 0;
		side.count += recording->samples;
		side.low_ns = MIN(side.low_ns, (uint64_t)(seconds * 1e9));
		side.high_ns = MAX(side.high_ns, (uint64_t)(seconds * 1e9));
		sum_s += seconds;
		periods_s += recording->period_s;
	}
	side.median_ns = (uint64_t)(sum_s / (double)count * 1e9);
	*ret_side = side;
	return periods_s / (double)count / (double)count;
}

static int add_cpu(struct regress *regress, double threshold_percent,
	const struct regress_recordings *before, const struct regress_recordings *after)
{
	struct regress_row row = {
		.kind = REGRESS_CPU,
		.name = regress->is_energy ? "energy" : "CPU time",
		.domain = "",
	};
	double before_weight = measure_cpu(before, &row.before);
	double after_weight = measure_cpu(after, &row.after);
	double p;

	if (!(before_weight > 0 && after_weight > 0))
		return 0;
	p = statistics_two_counts(row.before.count, before_weight, row.after.count, after_weight);
	row.change_percent = change_percent(row.before.median_ns, row.after.median_ns);
	row.verdict = judge(&row, threshold_percent);
	if (row.verdict != REGRESS_UNCHANGED && p > REGRESS_FALSE_ALARM / 2)
		row.verdict = REGRESS_NOISE;
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

int regress_init(struct regress *regress, double threshold_percent,
	const struct regress_recordings *before, const struct regress_recordings *after)
{
	const size_t recordings[2] = {before->items.count, after->items.count};
	struct gathering gathering = {.regress = regress};
	int result;

	*regress = (struct regress){
		.run_chance = chance_of(recordings[0], recordings[1]),
		.is_energy = before->items.items[0].energy,
	};
	result = gather_side(&gathering, 0, before);
	result = result ?: gather_side(&gathering, 1, after);
	result = result ?: compare(&gathering, threshold_percent, recordings);
	result = result ?: add_cpu(regress, threshold_percent, before, after);
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
