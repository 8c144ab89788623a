/* SPDX-License-Identifier: Apache-2.0 */
#include "analyses/energy/span_energy.h"

#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

#define LONG_PERIODS 10   /* that a figure takes */
#define REPEATS      20   /* that may have it together */
#define COVERED      0.95 /* of the spans' time, at least, or it was not measured */

/* A charge at a moment: of a sample, or of device work at its launch. */
struct charge {
	uint64_t time_ns;
	uint32_t owner; /* thread, or process */
	double energy_j;
	double device_ns; /* that the work took */
};

/* Charges by owner and time; sums_* are of all before, so that a span is two of them. */
struct charges {
	ARRAY_OF(struct charge) items;
	double *energy_sums, *device_sums; /* one more than items */
};

enum charge_owner { OWNER_ALL, OWNER_PROCESS, OWNER_THREAD, OWNER_MAX };

struct rail {
	uint32_t domain;
	double *energy_sums, *time_sums; /* of its intervals, one more than there are */
};

struct span_energy {
	const struct model *model;
	const struct energy_use *use;
	struct charges charges[SPAN_ENERGY_SIDES][OWNER_MAX];
	ARRAY_OF(struct rail) rails[SPAN_ENERGY_SIDES];
	uint64_t period_ns[SPAN_ENERGY_SIDES]; /* of the slowest */
	double relative_error[SPAN_ENERGY_SIDES], idle_w[SPAN_ENERGY_SIDES];
};

const char *span_energy_kind_name(enum span_energy_kind kind)
{
	static const char *const names[SPAN_ENERGY_KIND_MAX] = {
		[SPAN_ENERGY_NO_SOURCE] = "no_source",
		[SPAN_ENERGY_NOT_MEASURED] = "not_measured",
		[SPAN_ENERGY_SHORTER_THAN_SENSOR] = "shorter_than_sensor",
		[SPAN_ENERGY_NOTHING_RAN] = "nothing_ran",
		[SPAN_ENERGY_SINGLE] = "single",
		[SPAN_ENERGY_AGGREGATED] = "aggregated",
	};

	return names[kind];
}

/* ---- what is charged ---- */

static int compare_charges(const void *left, const void *right)
{
	const struct charge *a = left, *b = right;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static int add_charge(struct span_energy *energy, enum span_energy_side side, uint32_t process,
	uint32_t thread, struct charge charge)
{
	const uint32_t owners[OWNER_MAX] = {0, process, thread};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < OWNER_MAX; i++) {
		charge.owner = owners[i];
		if (owners[i] != MODEL_NONE)
			r = array_append(&energy->charges[side][i].items, charge);
	}
	return r;
}

/* A sample stands for the period before it: its middle is its moment. */
static int add_samples(struct span_energy *energy)
{
	const struct model *model = energy->model;
	uint64_t half_ns = model->session.period_ns / 2;
	int r = 0;

	array_foreach (&model->samples, sample) {
		const struct charge charge = {
			.time_ns = sample->time_ns - MIN(half_ns, sample->time_ns),
			.energy_j = sample->energy_j,
		};

		if (r == 0 && sample->wait == WIRE_WAIT_NONE)
			r = add_charge(energy, SPAN_ENERGY_HOST,
				model->threads.items[sample->thread].process, sample->thread,
				charge);
	}
	return r;
}

static int add_works(struct span_energy *energy)
{
	int r = 0;

	array_foreach (&energy->model->device_works, work) {
		const struct charge charge = {
			.time_ns = work->launch_ns ? work->launch_ns : work->start_ns,
			.energy_j = work->energy_j,
			.device_ns = (double)(work->end_ns - work->start_ns),
		};

		if (r == 0)
			r = add_charge(
				energy, SPAN_ENERGY_DEVICE, work->process, work->thread, charge);
	}
	return r;
}

static int sum_charges(struct charges *charges)
{
	size_t count = charges->items.count;

	charges->energy_sums = calloc(count + 1, sizeof(*charges->energy_sums));
	charges->device_sums = calloc(count + 1, sizeof(*charges->device_sums));
	if (!charges->energy_sums || !charges->device_sums)
		return -ENOMEM;
	if (count)
		qsort(charges->items.items, count, sizeof(*charges->items.items), compare_charges);
	for (size_t i = 0; i < count; i++) {
		const struct charge *charge = &charges->items.items[i];

		charges->energy_sums[i + 1] = charges->energy_sums[i] + charge->energy_j;
		charges->device_sums[i + 1] = charges->device_sums[i] + charge->device_ns;
	}
	return 0;
}

/* The first charge of an owner at or after a moment. */
static size_t find_charge(const struct charges *charges, uint32_t owner, uint64_t time_ns)
{
	const struct charge key = {.time_ns = time_ns, .owner = owner};
	size_t first = 0, last = charges->items.count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compare_charges(&charges->items.items[middle], &key) < 0)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* ---- rails ---- */

static bool is_device(const struct model_energy_domain *domain)
{
	return domain->part == WIRE_ENERGY_GPU || domain->part == WIRE_ENERGY_GPU_MEMORY ||
	       domain->part == WIRE_ENERGY_NPU;
}

static int sum_rail(const struct model *model, struct rail *rail)
{
	const struct model_energy_domain *domain = &model->energy_domains.items[rail->domain];
	const struct model_energy_interval *intervals =
		model->energy_intervals.items + domain->first_interval;

	rail->energy_sums = calloc((size_t)domain->interval_count + 1, sizeof(double));
	rail->time_sums = calloc((size_t)domain->interval_count + 1, sizeof(double));
	if (!rail->energy_sums || !rail->time_sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < domain->interval_count; i++) {
		rail->energy_sums[i + 1] = rail->energy_sums[i] + intervals[i].energy_j;
		rail->time_sums[i + 1] =
			rail->time_sums[i] +
			(intervals[i].gap ? 0
					  : (double)(intervals[i].end_ns - intervals[i].start_ns));
	}
	return 0;
}

static int add_rail(struct span_energy *energy, uint32_t index)
{
	const struct model_energy_domain *domain = &energy->model->energy_domains.items[index];
	const struct energy_domain_use *use = &energy->use->domains.items[index];
	enum span_energy_side side = is_device(domain) ? SPAN_ENERGY_DEVICE : SPAN_ENERGY_HOST;
	struct rail rail = {.domain = index};
	double error = domain->relative_error;
	int r = array_append(&energy->rails[side], rail);

	if (r < 0)
		return r;
	energy->period_ns[side] = MAX(energy->period_ns[side], use->period_ns);
	/* The worst of them; not known as soon as one is not. */
	if (isnan(error) || error > energy->relative_error[side])
		energy->relative_error[side] = error;
	energy->idle_w[side] += domain->idle_w;
	return sum_rail(energy->model, &energy->rails[side].items[energy->rails[side].count - 1]);
}

/* Up to a moment: energy, and time that was measured. */
static void rail_before(const struct span_energy *energy, const struct rail *rail, uint64_t time_ns,
	double *ret_energy_j, double *ret_time_ns)
{
	const struct model_energy_domain *domain =
		&energy->model->energy_domains.items[rail->domain];
	const struct model_energy_interval *intervals =
		energy->model->energy_intervals.items + domain->first_interval;
	size_t first = 0, last = domain->interval_count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (intervals[middle].end_ns <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	*ret_energy_j = rail->energy_sums[first];
	*ret_time_ns = rail->time_sums[first];
	if (first < domain->interval_count && intervals[first].start_ns < time_ns &&
		!intervals[first].gap) {
		double length_ns = (double)(intervals[first].end_ns - intervals[first].start_ns);
		double inside_ns = (double)(time_ns - intervals[first].start_ns);

		*ret_energy_j += intervals[first].energy_j * inside_ns / length_ns;
		*ret_time_ns += inside_ns;
	}
}

/* The highest power of the intervals that a span reaches into; NaN: none was measured. */
static double peak_power(const struct span_energy *energy, const struct rail *rail,
	uint64_t begin_ns, uint64_t end_ns)
{
	const struct model_energy_domain *domain =
		&energy->model->energy_domains.items[rail->domain];
	const struct model_energy_interval *intervals =
		energy->model->energy_intervals.items + domain->first_interval;
	size_t first = 0, last = domain->interval_count;
	double peak_w = NAN;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (intervals[middle].end_ns <= begin_ns)
			first = middle + 1;
		else
			last = middle;
	}
	for (; first < domain->interval_count && intervals[first].start_ns < end_ns; first++) {
		double power_w = intervals[first].energy_j /
				 (double)(intervals[first].end_ns - intervals[first].start_ns) *
				 1e9;

		if (!intervals[first].gap && !(power_w <= peak_w))
			peak_w = power_w;
	}
	return peak_w;
}

/* ---- spans ---- */

/* What the spans add up to, on one side. */
struct sums {
	double net_j, device_ns, charges;
	double rail_j, covered_ns, peak_w, duration_ns;
	struct span_state_sums state;
};

static void add_span_charges(const struct span_energy *energy, enum span_energy_side side,
	const struct energy_span *span, struct sums *sums)
{
	enum charge_owner by = span->thread != MODEL_NONE    ? OWNER_THREAD
			       : span->process != MODEL_NONE ? OWNER_PROCESS
							     : OWNER_ALL;
	const uint32_t owners[OWNER_MAX] = {0, span->process, span->thread};
	const struct charges *charges = &energy->charges[side][by];
	size_t first = find_charge(charges, owners[by], span->start_ns);
	size_t last = find_charge(charges, owners[by], span->end_ns);

	if (last <= first)
		return;
	sums->net_j += charges->energy_sums[last] - charges->energy_sums[first];
	sums->device_ns += charges->device_sums[last] - charges->device_sums[first];
	sums->charges += (double)(last - first);
}

static void add_span_rails(const struct span_energy *energy, enum span_energy_side side,
	const struct energy_span *span, struct sums *sums)
{
	double peak_w = 0, least_ns = INFINITY;

	array_foreach (&energy->rails[side], rail) {
		double energy_from, energy_to, time_from, time_to;

		span_state_add(
			&sums->state, energy->model, rail->domain, span->start_ns, span->end_ns);
		rail_before(energy, rail, span->start_ns, &energy_from, &time_from);
		rail_before(energy, rail, span->end_ns, &energy_to, &time_to);
		sums->rail_j += energy_to - energy_from;
		least_ns = MIN(least_ns, time_to - time_from);
		peak_w += peak_power(energy, rail, span->start_ns, span->end_ns);
	}
	sums->covered_ns += isfinite(least_ns) ? least_ns : 0;
	if (!isnan(peak_w) && peak_w > sums->peak_w)
		sums->peak_w = peak_w;
}

/* Device work counts with its own time: that is what has to be longer than the sensor. */
static enum span_energy_kind kind_of(const struct span_energy *energy, enum span_energy_side side,
	const struct sums *sums, size_t count)
{
	double long_ns = (double)energy->period_ns[side] * LONG_PERIODS;
	double time_ns = side == SPAN_ENERGY_DEVICE ? sums->device_ns : sums->duration_ns;

	if (!energy->rails[side].count)
		return SPAN_ENERGY_NO_SOURCE;
	if (sums->covered_ns < COVERED * sums->duration_ns || sums->duration_ns <= 0)
		return SPAN_ENERGY_NOT_MEASURED;
	if (side == SPAN_ENERGY_DEVICE && sums->charges == 0)
		return SPAN_ENERGY_NOTHING_RAN;
	if (time_ns >= long_ns * (double)count)
		return sums->charges == 0 ? SPAN_ENERGY_NOTHING_RAN : SPAN_ENERGY_SINGLE;
	if (count < REPEATS || time_ns < long_ns)
		return SPAN_ENERGY_SHORTER_THAN_SENSOR;
	return sums->charges == 0 ? SPAN_ENERGY_NOTHING_RAN : SPAN_ENERGY_AGGREGATED;
}

/*
 * The sensor's own error; what is lost at the edges of the spans, where power changes from outside
 * to inside; and, of samples, how many there are.
 */
static double uncertainty_of(const struct span_energy *energy, enum span_energy_side side,
	const struct sums *sums, size_t count)
{
	double measured_j = 0, measured_ns = 0, edge_j, sampled_j = 0, inside_w, outside_w;
	double sensor_j = energy->relative_error[side] * sums->net_j;

	array_foreach (&energy->rails[side], rail) {
		const struct energy_domain_use *use = &energy->use->domains.items[rail->domain];

		measured_j += use->measured_j;
		measured_ns = MAX(measured_ns, (double)use->measured_ns);
	}
	inside_w = sums->rail_j / sums->duration_ns * 1e9;
	outside_w = measured_ns > sums->duration_ns
			    ? (measured_j - sums->rail_j) / (measured_ns - sums->duration_ns) * 1e9
			    : inside_w;
	edge_j = (double)count * (double)energy->period_ns[side] / 1e9 *
		 fabs(inside_w - outside_w) / 3;
	if (side == SPAN_ENERGY_HOST && sums->charges > 0)
		sampled_j = sums->net_j / sqrt(sums->charges);
	return sqrt(sensor_j * sensor_j + edge_j * edge_j + sampled_j * sampled_j);
}

static void fill_part(const struct span_energy *energy, enum span_energy_side side,
	const struct sums *sums, size_t count, struct span_energy_part *part)
{
	double idle_w = energy->idle_w[side];

	part->kind = kind_of(energy, side, sums, count);
	part->period_ns = energy->period_ns[side];
	part->state = span_state_end(&sums->state);
	part->net_j = part->full_j = part->uncertainty_j = NAN;
	part->rail_j = part->average_w = part->peak_w = NAN;
	if (!span_energy_is_known(part->kind))
		return;
	part->net_j = sums->net_j;
	part->full_j = sums->net_j + (isnan(idle_w) ? 0 : idle_w * sums->duration_ns / 1e9);
	part->uncertainty_j = uncertainty_of(energy, side, sums, count);
	part->rail_j = sums->rail_j;
	part->average_w = sums->rail_j / sums->duration_ns * 1e9;
	part->peak_w = sums->peak_w;
}

void span_energy_ask(const struct span_energy *energy, const struct energy_span *spans,
	size_t count, struct span_energy_answer *ret_answer)
{
	struct span_energy_answer answer = {.count = (uint32_t)count};

	for (unsigned side = 0; side < SPAN_ENERGY_SIDES; side++) {
		struct sums sums = {0};

		span_state_begin(&sums.state);
		for (size_t i = 0; i < count; i++) {
			if (spans[i].end_ns <= spans[i].start_ns)
				continue;
			sums.duration_ns += (double)(spans[i].end_ns - spans[i].start_ns);
			add_span_charges(energy, side, &spans[i], &sums);
			add_span_rails(energy, side, &spans[i], &sums);
		}
		answer.duration_ns = (uint64_t)sums.duration_ns;
		fill_part(energy, side, &sums, count, &answer.sides[side]);
	}
	*ret_answer = answer;
}

int span_energy_new(
	struct span_energy **ret_energy, const struct model *model, const struct energy_use *use)
{
	_cleanup_span_energy_ struct span_energy *energy = calloc(1, sizeof(*energy));
	int r = 0;

	if (!energy)
		return -ENOMEM;
	energy->model = model;
	energy->use = use;
	for (uint32_t i = 0; r == 0 && i < use->domains.count; i++) {
		if (use->domains.items[i].is_counted)
			r = add_rail(energy, i);
	}
	if (energy->rails[SPAN_ENERGY_HOST].count)
		r = r ?: add_samples(energy);
	if (energy->rails[SPAN_ENERGY_DEVICE].count)
		r = r ?: add_works(energy);
	for (unsigned side = 0; side < SPAN_ENERGY_SIDES; side++) {
		for (unsigned by = 0; by < OWNER_MAX; by++)
			r = r ?: sum_charges(&energy->charges[side][by]);
	}
	if (r == 0)
		*ret_energy = TAKE_PTR(energy);
	return r;
}

struct span_energy *span_energy_free(struct span_energy *energy)
{
	if (!energy)
		return NULL;
	for (unsigned side = 0; side < SPAN_ENERGY_SIDES; side++) {
		for (unsigned by = 0; by < OWNER_MAX; by++) {
			array_done(&energy->charges[side][by].items);
			free(energy->charges[side][by].energy_sums);
			free(energy->charges[side][by].device_sums);
		}
		array_foreach (&energy->rails[side], rail) {
			free(rail->energy_sums);
			free(rail->time_sums);
		}
		array_done(&energy->rails[side]);
	}
	free(energy);
	return NULL;
}

void span_energy_freep(struct span_energy **energy)
{
	*energy = span_energy_free(*energy);
}
