/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charging a GPU's energy to its work. Where the sensor allows it, each class of work has a power,
 * found by regression over the intervals; else all work has the same. Work that runs at the same
 * time as other work has its part of that time. What an interval has is split by power × time, so
 * that nothing is lost, whatever the powers are.
 */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyses/energy/work_state.h"
#include "base/macros.h"

/* Shorter times without work lie between kernels that follow each other; in longer ones nobody
 * feeds the device. */
#define GAP_NS   (100 * NS_PER_MS)
#define LEAST    1e-12 /* W·s that energy can be split by */
#define NO_BEGIN UINT64_MAX

enum moment_kind { MOMENT_EDGE, MOMENT_END, MOMENT_START };

/* Work starts or ends, or an interval does. */
struct moment {
	uint64_t time_ns;
	uint32_t index; /* of works, or of the interval that begins; the count: none does */
	uint32_t kind;
};

/* ---- whose work ---- */

/* A GPU is identified by its UUID; where the rail does not say whose it is, it is the only one's.
 */
static bool is_of_domain(const struct charging *charging, const struct model_device_work *work)
{
	const struct model *model = charging->model;
	const char *device = charging->domain->device;

	if (model->processes.items[work->process].host != charging->domain->host)
		return false;
	if (*device && work->gpu != MODEL_NONE && *model->gpus.items[work->gpu].uuid)
		return strcasecmp(device, model->gpus.items[work->gpu].uuid) == 0;
	return charging->gpus == 1;
}

static void count_gpus(struct charging *charging)
{
	for (uint32_t i = 0; i < charging->model->energy_domains.count; i++)
		charging->gpus += charging->use->domains.items[i].is_counted &&
				  charging->model->energy_domains.items[i].part == WIRE_ENERGY_GPU;
}

/* ---- classes ---- */

static uint32_t size_of(const struct model_device_work *work)
{
	uint64_t threads = 1;

	if (work->kind != WIRE_DEVICE_KERNEL)
		return 0;
	for (unsigned i = 0; i < 3; i++)
		threads *= MAX(work->global_size[i], (uint64_t)1);
	return 63 - (uint32_t)__builtin_clzll(threads | 1);
}

struct class_key {
	const char *name; /* interned: equal names are one pointer */
	uint64_t size;
};

static int find_class(struct charging *charging, struct intern *known,
	const struct model_device_work *work, uint32_t *ret_class)
{
	struct class_key key = {.name = work->name, .size = size_of(work)};
	const struct class_time fresh = {.name = work->name, .size = (uint32_t)key.size};
	int r = intern_add(known, &key, sizeof(key), ret_class);

	return r > 0 ? array_append(&charging->classes, fresh) : r;
}

static int gather_works(struct charging *charging)
{
	const struct model *model = charging->model;
	struct intern known = {0};
	uint32_t class = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < model->device_works.count; i++) {
		const struct model_device_work *work = &model->device_works.items[i];

		if (!is_of_domain(charging, work) || work->end_ns <= work->start_ns)
			continue;
		r = find_class(charging, &known, work, &class);
		r = r ?: array_append(&charging->works, i);
		r = r ?: array_append(&charging->classes_of, class);
		if (r == 0 && class < charging->classes.count) {
			charging->classes.items[class].count++;
			charging->classes.items[class].time_ns += work->end_ns - work->start_ns;
		}
	}
	intern_done(&known);
	return r;
}

/* A column for each of the classes with most time, and one for the others together. */
static void choose_columns(struct charging *charging)
{
	uint32_t taken = 0;

	charging->others = (uint32_t)MIN((size_t)CLASSES, charging->classes.count);
	charging->between = charging->others + 1;
	charging->unfed = charging->others + 2;
	charging->column_count = charging->others + 3;
	array_foreach (&charging->classes, class)
		class->column = charging->others;
	while (taken < charging->others) {
		struct class_time *most = NULL;

		array_foreach (&charging->classes, class) {
			if (class->column == charging->others &&
				(!most || class->time_ns > most->time_ns))
				most = class;
		}
		if (!most)
			break;
		most->column = taken++;
	}
}

static uint32_t column_of(const struct charging *charging, uint32_t work)
{
	assert(work < charging->classes_of.count && charging->classes.items);
	return charging->classes.items[charging->classes_of.items[work]].column;
}

/* ---- time on the device ---- */

static int compare_moments(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static int gather_moments(struct charging *charging)
{
	uint32_t count = charging->domain->interval_count;
	int r = array_reserve(&charging->moments, 2 * charging->works.count + 2 * count);

	for (uint32_t i = 0; r == 0 && i < charging->works.count; i++) {
		const struct model_device_work *work =
			&charging->model->device_works.items[charging->works.items[i]];

		r = array_append(
			&charging->moments, (struct moment){work->start_ns, i, MOMENT_START});
		if (r == 0)
			r = array_append(
				&charging->moments, (struct moment){work->end_ns, i, MOMENT_END});
	}
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		bool follows = i + 1 < count &&
			       charging->intervals[i + 1].start_ns == charging->intervals[i].end_ns;

		r = array_append(&charging->moments,
			(struct moment){charging->intervals[i].start_ns, i, MOMENT_EDGE});
		if (r == 0 && !follows)
			r = array_append(&charging->moments,
				(struct moment){charging->intervals[i].end_ns, count, MOMENT_EDGE});
	}
	if (charging->moments.count)
		qsort(charging->moments.items, charging->moments.count,
			sizeof(*charging->moments.items), compare_moments);
	return r;
}

/* What is going on between two moments. */
struct sweep {
	uint32_t interval; /* the count: none */
	uint32_t active, active_of[COLUMNS];
	uint64_t idle_since_ns, idle_until_ns; /* NO_BEGIN: before the first work, after the last */
	size_t next_start;                     /* among the works, which are by start */
};

static void begin_sweep(const struct charging *charging, struct sweep *sweep)
{
	*sweep = (struct sweep){
		.interval = charging->domain->interval_count,
		.idle_since_ns = NO_BEGIN,
		.idle_until_ns = NO_BEGIN,
	};
}

static void pass_moment(
	const struct charging *charging, struct sweep *sweep, const struct moment *moment)
{
	switch (moment->kind) {
	case MOMENT_EDGE:
		sweep->interval = moment->index;
		break;
	case MOMENT_START:
		sweep->active++;
		sweep->active_of[column_of(charging, moment->index)]++;
		sweep->next_start++;
		break;
	default:
		sweep->active--;
		sweep->active_of[column_of(charging, moment->index)]--;
		if (sweep->active)
			break;
		sweep->idle_since_ns = moment->time_ns;
		sweep->idle_until_ns = NO_BEGIN;
		if (sweep->next_start < charging->works.count)
			sweep->idle_until_ns =
				charging->model->device_works
					.items[charging->works.items[sweep->next_start]]
					.start_ns;
	}
}

static bool is_gap(const struct sweep *sweep)
{
	return sweep->idle_since_ns != NO_BEGIN && sweep->idle_until_ns != NO_BEGIN &&
	       sweep->idle_until_ns - sweep->idle_since_ns < GAP_NS;
}

/* The time of this part of an interval, by column. */
static void add_seconds(struct charging *charging, const struct sweep *sweep, uint64_t length_ns)
{
	double *row = charging->seconds + (size_t)sweep->interval * charging->column_count;
	double seconds = (double)length_ns / 1e9;

	if (!sweep->active) {
		row[is_gap(sweep) ? charging->between : charging->unfed] += seconds;
		return;
	}
	if (sweep->active > 1)
		charging->use->domains.items[charging->index].overlap_ns += length_ns;
	for (unsigned i = 0; i < charging->column_count; i++) {
		if (sweep->active_of[i])
			row[i] += seconds * sweep->active_of[i] / sweep->active;
	}
}

static void find_seconds(struct charging *charging)
{
	uint32_t none = charging->domain->interval_count;
	struct sweep sweep;
	uint64_t last_ns = 0;

	begin_sweep(charging, &sweep);
	array_foreach (&charging->moments, moment) {
		if (sweep.interval != none && moment->time_ns > last_ns)
			add_seconds(charging, &sweep, moment->time_ns - last_ns);
		last_ns = moment->time_ns;
		pass_moment(charging, &sweep, moment);
	}
	for (size_t i = 0; i < none; i++) {
		for (unsigned k = 0; k < charging->column_count; k++)
			charging->all_ns[k] +=
				charging->seconds[i * charging->column_count + k] * 1e9;
	}
}

/* ---- energy ---- */

/* For power × time of 1 in this interval, joules; 0: it has nothing that energy could go to. */
static double rate_of(const struct charging *charging, uint32_t interval)
{
	const struct model_energy_interval *of = &charging->intervals[interval];
	const double *row = charging->seconds + (size_t)interval * charging->column_count;
	double weight = 0;

	for (unsigned i = 0; i < charging->column_count; i++)
		weight += charging->power_w[i] * row[i];
	if (of->gap || !(weight > LEAST))
		return 0;
	return (of->energy_j - energy_idle_share(charging->domain, of)) / weight;
}

static int split_intervals(struct charging *charging)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < charging->domain->interval_count; i++) {
		const struct model_energy_interval *interval = &charging->intervals[i];
		const double *row = charging->seconds + (size_t)i * charging->column_count;
		double rate = rate_of(charging, i);
		struct energy_split split = {
			.idle_j = energy_idle_share(charging->domain, interval)};

		if (interval->gap)
			continue;
		for (unsigned k = 0; k <= charging->others; k++)
			split.attributed_j += rate * charging->power_w[k] * row[k];
		split.gaps_j = rate * charging->power_w[charging->between] * row[charging->between];
		split.unattributed_j =
			rate > 0 ? rate * charging->power_w[charging->unfed] * row[charging->unfed]
				 : interval->energy_j - split.idle_j;
		r = energy_add_split(charging->use, charging->model,
			charging->domain->first_interval + i, &split);
	}
	return r;
}

/*
 * `charged` grows by the rate while work runs, less where it is one of several: between a work's
 * start and end, what it is charged with for each watt of its class.
 */
static int charge_works(struct charging *charging)
{
	uint32_t none = charging->domain->interval_count;
	_cleanup_free_ double *begun = calloc(charging->works.count + 1, sizeof(*begun));
	double charged = 0, rate = 0;
	uint64_t last_ns = 0;
	struct sweep sweep;

	if (!begun)
		return -ENOMEM;
	begin_sweep(charging, &sweep);
	array_foreach (&charging->moments, moment) {
		if (sweep.active)
			charged += rate * (double)(moment->time_ns - last_ns) / 1e9 / sweep.active;
		last_ns = moment->time_ns;
		pass_moment(charging, &sweep, moment);
		if (moment->kind == MOMENT_EDGE)
			rate = sweep.interval == none ? 0 : rate_of(charging, sweep.interval);
		else if (moment->kind == MOMENT_START)
			begun[moment->index] = charged;
		else
			charging->model->device_works.items[charging->works.items[moment->index]]
				.energy_j = (charged - begun[moment->index]) *
					    charging->power_w[column_of(charging, moment->index)];
	}
	return 0;
}

/* How sure what each column gets is. */
static int add_errors(struct charging *charging)
{
	struct energy_domain_use *domain = &charging->use->domains.items[charging->index];

	for (unsigned i = 0; i < charging->column_count; i++) {
		bool published = charging->published[i];
		const struct model_energy_error error = {
			.sensor = charging->domain->relative_error,
			.power = published ? charging->error[i] : 0,
			.split = published ? MODEL_ENERGY_REGRESSED : MODEL_ENERGY_SHARED,
		};
		int index = energy_add_error(charging->model, &error);

		if (index < 0)
			return index;
		charging->errors[i] = (uint16_t)index;
	}
	domain->rest_errors[ENERGY_REST_GAP] = charging->errors[charging->between];
	domain->rest_errors[ENERGY_REST_UNATTRIBUTED] = charging->errors[charging->unfed];
	for (uint32_t i = 0; i < charging->works.count; i++)
		charging->model->device_works.items[charging->works.items[i]].energy_error =
			charging->errors[column_of(charging, i)];
	return 0;
}

/* ---- classes, as they are shown ---- */

static int add_classes(struct charging *charging)
{
	size_t first = charging->use->classes.count;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < charging->classes.count; i++) {
		const struct class_time *class = &charging->classes.items[i];
		uint32_t column = class->column;
		bool published = charging->published[column];

		r = array_append(&charging->use->classes,
			(struct energy_class){
				.name = class->name,
				.domain = charging->index,
				.size = class->size,
				.time_ns = class->time_ns,
				.count = class->count,
				.power_w = published ? charging->fitted_w[column] : NAN,
				.standard_error = charging->error[column],
				.method = published ? ENERGY_METHOD_REGRESSION
						    : ENERGY_METHOD_TIME_SHARE,
				.merged = column == charging->others ? 0 : charging->merged[column],
			});
	}
	for (uint32_t i = 0; r == 0 && i < charging->works.count; i++)
		charging->use->classes.items[first + charging->classes_of.items[i]].energy_j +=
			charging->model->device_works.items[charging->works.items[i]].energy_j;
	for (size_t i = first; r == 0 && i < charging->use->classes.count; i++) {
		struct energy_class *class = &charging->use->classes.items[i];
		double sensor = charging->domain->relative_error;

		class->uncertainty_j =
			class->energy_j *
			sqrt(sensor * sensor + class->standard_error * class->standard_error);
		if (class->method != ENERGY_METHOD_REGRESSION)
			class->uncertainty_j = NAN;
	}
	return r;
}

/* The domain's method is that of most of its work. */
static void name_method(struct charging *charging)
{
	struct energy_domain_use *domain = &charging->use->domains.items[charging->index];
	double sure_ns = 0, all_ns = 0;

	for (unsigned i = 0; i <= charging->others; i++) {
		all_ns += charging->all_ns[i];
		sure_ns += charging->published[i] ? charging->all_ns[i] : 0;
	}
	domain->method = all_ns <= 0            ? ENERGY_METHOD_NONE
			 : 2 * sure_ns > all_ns ? ENERGY_METHOD_REGRESSION
						: ENERGY_METHOD_TIME_SHARE;
}

static int charge_all(struct charging *charging)
{
	size_t rows = charging->domain->interval_count;
	int r;

	count_gpus(charging);
	r = gather_works(charging);
	choose_columns(charging);
	r = r ?: gather_moments(charging);
	if (r < 0)
		return r;
	charging->seconds = calloc(rows * charging->column_count + 1, sizeof(*charging->seconds));
	if (!charging->seconds)
		return -ENOMEM;
	find_seconds(charging);
	r = energy_find_powers(charging);
	r = r ?: add_errors(charging);
	r = r ?: split_intervals(charging);
	r = r ?: charge_works(charging);
	r = r ?: add_classes(charging);
	name_method(charging);
	return r;
}

int energy_charge_works(struct energy_use *use, struct model *model, uint32_t index)
{
	struct charging charging = {
		.use = use,
		.model = model,
		.domain = &model->energy_domains.items[index],
		.intervals = energy_intervals_of(model, index),
		.index = index,
	};
	int r = charge_all(&charging);

	array_done(&charging.works);
	array_done(&charging.classes_of);
	array_done(&charging.classes);
	array_done(&charging.moments);
	free(charging.seconds);
	return r;
}
